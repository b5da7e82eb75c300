"""What is on the air, and what each radio makes of it.

A signal starts at all who hear it at once (300 m are 1 µs).  A radio that listens locks on to the first
signal that stands out of noise and interference; until that signal's preamble has passed, a stronger one
takes it over (capture).  Every change of the interference ends a segment; a frame is right with the
product of its segments' chances, and one number is drawn for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf
from typing import TYPE_CHECKING

from .clock import SIGNAL_ENDS, Clock
from .energy import LISTEN, OFF, RECEIVE, SLEEP, TRANSMIT
from .frame import ASLEEP, BUSY, COLLISION, CUT, DEAD, DEAF, LOSSES, NOISE, Frame, NodeId
from .propagation import CAPTURE_DB
from .radio import ErrorTable, Radio, milliwatts
from .transceiver import TURN, Audience, Path, Transceiver, Transmission

if TYPE_CHECKING:
    from .trace import Trace

WHY_MISSED = {OFF: DEAD, SLEEP: ASLEEP, TURN: DEAF, TRANSMIT: DEAF}
"""By the mode of a receiver that does not listen when a signal starts."""

SPOILED = (BUSY, COLLISION)
"""Why a signal cannot be joined later where overlap alone destroys: it was overlapped."""

CAPTURE = milliwatts(CAPTURE_DB)


def _over(radio: Radio) -> float:
    """How many times the others' power a frame needs."""
    return 0.0 if radio.co_channel_db is None else milliwatts(radio.co_channel_db)


class Medium:
    """The air between the nodes."""

    def __init__(
        self,
        clock: Clock,
        radio: Radio,
        noise_mw: float,
        table: ErrorTable | None,
        trace: Trace | None = None,
    ) -> None:
        self.clock = clock
        self.radio = radio
        self.carrier = milliwatts(radio.carrier_dbm) if table is not None else 0.5
        """mW from which on the channel is busy (of a measured link: half of a perfect one)."""
        self.transmissions = self.reached = self.received = 0
        self.lost = dict.fromkeys(LOSSES, 0)
        self._on_air: dict[Transmission, None] = {}
        self._audiences: dict[NodeId, Audience] = {}
        self._senders: dict[NodeId, set[NodeId]] = {}
        self._noise = noise_mw
        self._table = table  # bit errors by SINR; without it overlap destroys, unless one is much stronger
        self._least = milliwatts(radio.synchronise_db)
        self._over = _over(radio) if table is not None else CAPTURE
        self._trace = trace

    def connect(self, sender: NodeId, audience: Audience) -> None:
        """From now on these get a node's signal."""
        self._audiences[sender] = audience
        self._senders.clear()

    def senders(self, receiver: NodeId) -> set[NodeId]:
        """Those from whom a node can receive."""
        if not self._senders:
            for sender, audience in self._audiences.items():
                for path in audience.receivers:
                    self._senders.setdefault(path.receiver.id, set()).add(sender)
        return self._senders.get(receiver, set())

    def in_flight(self) -> int:
        """How many signals are on their way to somebody who could receive them."""
        return sum(len(transmission.audience.receivers) for transmission in self._on_air)

    def start(self, sender: Transceiver, frame: Frame) -> Transmission:
        """A signal starts at all who hear it."""
        now = self.clock.now
        self.transmissions += 1
        frame.id = self.transmissions
        synchronised = now + frame.wakeup + self.radio.synchronisation
        audience = self._audiences[sender.id]
        transmission = Transmission(frame, sender, audience, synchronised)
        offer, missed = self.offer, transmission.missed
        for path in audience.receivers:
            receiver = path[0]
            heard, mode = receiver.heard, receiver.mode
            if mode == LISTEN:
                why = offer(transmission, path, sum(heard.values()) if heard else 0.0)
                if why is not None:
                    missed[receiver] = why
            elif receiver.locked is not None:
                self._meet(receiver.locked, transmission, path)
            else:
                missed[receiver] = WHY_MISSED[mode]
            heard[transmission] = path[1]
        for receiver, power in audience.disturbed:
            if receiver.locked is not None:
                self._disturb(receiver, receiver.level() + power)
            receiver.heard[transmission] = power
        self.reached += len(audience.receivers)
        self._on_air[transmission] = None
        airtime = self.radio.airtime(frame.bytes) + frame.wakeup
        transmission.end = self.clock.after(airtime, self._end, transmission, SIGNAL_ENDS)
        if self._trace is not None:
            self._trace.transmitted(now, frame, airtime)
        return transmission

    def offer(self, transmission: Transmission, path: Path, interference: float) -> str | None:
        """Let a receiver begin to receive; why not, if it does not."""
        receiver, power, per_us, quality = path
        disturbed, now = False, self.clock.now
        since = now
        if power < self._over * interference:
            return COLLISION
        if quality < 1.0 and receiver.random.random() >= quality:
            return NOISE
        if self._table is not None:
            if interference:
                sinr = power / (self._noise + interference)
                if sinr < self._least:
                    return COLLISION
                per_us, disturbed = self._table.per_us(sinr), True
            if now < transmission.synchronised:
                since = transmission.synchronised  # what the preamble suffers does not matter
        receiver.locked, receiver.path, receiver.since = transmission, path, since
        receiver.per_us, receiver.disturbed, receiver.log_right = per_us, disturbed, 0.0
        receiver.mode = RECEIVE
        receiver.meter.change(now, RECEIVE, transmission.frame.cause)
        return None

    def join(self, transmission: Transmission, receiver: Transceiver) -> bool:
        """Let somebody who begins to listen receive a signal whose preamble has not passed."""
        if self.clock.now >= transmission.synchronised:
            return False
        why = transmission.missed.get(receiver)
        if why is None or why == NOISE or (self._table is None and why in SPOILED):
            return False
        path = next(path for path in transmission.audience.receivers if path.receiver is receiver)
        why = self.offer(transmission, path, receiver.level() - path.power)
        if why is None:
            del transmission.missed[receiver]
        return why is None

    def _meet(self, old: Transmission, new: Transmission, path: Path) -> None:
        """A signal starts where another is being received: it takes over, or it disturbs."""
        receiver = path.receiver
        level = receiver.level()
        stronger = path.power > receiver.path.power and self.clock.now < old.synchronised
        if stronger and self.offer(new, path, level) is None:
            old.missed[receiver] = COLLISION
        else:
            new.missed[receiver] = BUSY
            self._disturb(receiver, level + path.power)

    def _disturb(self, receiver: Transceiver, level: float) -> None:
        """From now on there is that much power where a signal is being received, its own included."""
        receiver.settle(self.clock.now)
        receiver.disturbed = True
        power = receiver.path.power
        if power < self._over * (level - power):
            receiver.per_us = -inf
        elif self._table is not None:
            receiver.per_us = self._table.per_us(power / (self._noise + level - power))
        else:
            receiver.per_us = receiver.path.per_us

    def _relieve(self, receiver: Transceiver) -> None:
        """One signal less disturbs what is being received."""
        if len(receiver.heard) > 1:
            self._disturb(receiver, receiver.level())
        else:
            receiver.settle(self.clock.now)
            receiver.per_us = receiver.path.per_us

    def _end(self, transmission: Transmission) -> None:
        """A signal ends: those who are locked on to it have received it, or not."""
        now, missed = self.clock.now, transmission.missed
        came: list[Transceiver] = []
        failed: list[Transceiver] = []
        for receiver, _, _, _ in transmission.audience.receivers:
            del receiver.heard[transmission]
            locked = receiver.locked
            if locked is not transmission:
                if locked is not None:
                    self._relieve(receiver)
                continue
            receiver.locked = None
            log_right = receiver.log_right
            if now > receiver.since:
                log_right += (now - receiver.since) * receiver.per_us
            if log_right == 0.0 or receiver.random.random() < exp(log_right):
                came.append(receiver)
            else:
                missed[receiver] = COLLISION if receiver.disturbed else NOISE
                failed.append(receiver)
        self.received += len(came)
        self._settle(transmission, came)
        self._told(transmission, came, failed)

    @staticmethod
    def _told(transmission: Transmission, came: list[Transceiver], failed: list[Transceiver]) -> None:
        """The stations of those who took part learn what became of it."""
        sender = transmission.sender
        for radio in (*came, *failed, sender):
            radio.rest()
        for receiver in came:
            if receiver.mode != OFF:  # unless somebody who was told before switched it off
                receiver.upper.received(transmission.frame)
        for receiver in failed:
            if receiver.mode != OFF:
                receiver.upper.failed()
        if sender.mode != OFF:
            sender.upper.transmitted(transmission.frame)

    def cut(self, transmission: Transmission) -> None:
        """The sender goes down: nobody receives what it was sending."""
        Clock.cancel(transmission.end)
        failed = []
        for path in transmission.audience.receivers:
            receiver = path.receiver
            del receiver.heard[transmission]
            if receiver.locked is transmission:
                receiver.locked = None
                transmission.missed[receiver] = CUT
                failed.append(receiver)
            elif receiver.locked is not None:
                self._relieve(receiver)
        self._settle(transmission, [])
        for receiver in failed:
            receiver.rest()
        for receiver in failed:
            receiver.upper.failed()

    def _settle(self, transmission: Transmission, came: Sequence[Transceiver]) -> None:
        """The signal is over: relieve those it disturbed, and count."""
        for receiver, _ in transmission.audience.disturbed:
            del receiver.heard[transmission]
            if receiver.locked is not None:
                self._relieve(receiver)
        for why in transmission.missed.values():
            self.lost[why] += 1
        del self._on_air[transmission]
        transmission.sender.sending = None
        if self._trace is not None:
            self._trace.ended(self.clock.now, transmission.frame, came, transmission.missed)
