"""The radio channel: which signals are in transmission, and which receivers decode them.

A signal starts at all nodes in range at the same time, because 300 m take only 1 µs. A listening radio locks
on to the first signal that is strong enough against noise and interference. Until the preamble of that signal
has passed, a stronger signal replaces it (capture). Every change of interference ends a segment. A frame is
received correctly with the product of its segments' probabilities; one random number decides.
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
"""The cause of a loss, by the mode of a receiver that does not listen when a signal starts."""

SPOILED = (BUSY, COLLISION)
"""Causes of loss that mean that another signal overlapped. Where overlap alone destroys frames, a receiver
cannot join such a signal late.
"""

CAPTURE = milliwatts(CAPTURE_DB)


class Medium:
    """The channel that all nodes share."""

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
        """The power in mW at which the channel counts as busy. With measured links it is half of a perfect
        link.
        """
        self.transmissions = self.signals = self.received = 0
        self.lost = dict.fromkeys(LOSSES, 0)
        self._on_air: dict[Transmission, None] = {}
        self._audiences: dict[NodeId, Audience] = {}
        self._senders: dict[NodeId, set[NodeId]] = {}
        self._noise = noise_mw
        self._table = (
            table  # bit errors by SINR; None: overlap destroys both frames, unless one is much stronger
        )
        self._least = milliwatts(radio.synchronise_db)
        ratio = 0.0 if radio.co_channel_db is None else milliwatts(radio.co_channel_db)
        self._capture_ratio = ratio if table is not None else CAPTURE
        """The factor by which a frame's power must exceed the sum of all other signals."""
        self._trace = trace

    def connect(self, sender: NodeId, audience: Audience) -> None:
        """Set the nodes that a sender's signal reaches from now on."""
        self._audiences[sender] = audience
        self._senders.clear()

    def senders(self, receiver: NodeId) -> set[NodeId]:
        """Return the nodes from which a node can receive."""
        if not self._senders:
            for sender, audience in self._audiences.items():
                for path in audience.receivers:
                    self._senders.setdefault(path.receiver.id, set()).add(sender)
        return self._senders.get(receiver, set())

    def in_flight(self) -> int:
        """The number of signals in transmission, counted once for each node that could receive them."""
        return sum(len(transmission.audience.receivers) for transmission in self._on_air)

    def start(self, sender: Transceiver, frame: Frame) -> Transmission:
        """Start a signal at all nodes in its audience."""
        now = self.clock.now
        self.transmissions += 1
        frame.id = self.transmissions
        synchronised = now + frame.wakeup + self.radio.synchronisation
        audience = self._audiences[sender.id]
        transmission = Transmission(frame, sender, audience, synchronised)
        offer, missed = self.offer, transmission.missed
        for path in audience.receivers:
            receiver = path[0]
            signals, mode = receiver.signals, receiver.mode
            if mode == LISTEN:
                why = offer(transmission, path, sum(signals.values()) if signals else 0.0)
                if why is not None:
                    missed[receiver] = why
            elif receiver.locked is not None:
                self._overlap(receiver.locked, transmission, path)
            else:
                missed[receiver] = WHY_MISSED[mode]
            signals[transmission] = path[1]
        for receiver, power in audience.disturbed:
            if receiver.locked is not None:
                self._disturb(receiver, receiver.level() + power)
            receiver.signals[transmission] = power
        self.signals += len(audience.receivers)
        self._on_air[transmission] = None
        airtime = self.radio.airtime(frame.bytes) + frame.wakeup
        transmission.end = self.clock.after(airtime, self._end, transmission, SIGNAL_ENDS)
        if self._trace is not None:
            self._trace.record_transmission(now, frame, airtime)
        return transmission

    def offer(self, transmission: Transmission, path: Path, interference: float) -> str | None:
        """Let a receiver lock on to a signal; return the cause of the loss if it cannot."""
        receiver, power, per_us, quality = path
        disturbed, now = False, self.clock.now
        since = now
        if power < self._capture_ratio * interference:
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
                since = transmission.synchronised  # interference during the preamble causes no bit errors
        receiver.locked, receiver.path, receiver.since = transmission, path, since
        receiver.per_us, receiver.disturbed, receiver.log_right = per_us, disturbed, 0.0
        receiver.mode = RECEIVE
        receiver.meter.change(now, RECEIVE, transmission.frame.cause)
        return None

    def join(self, transmission: Transmission, receiver: Transceiver) -> bool:
        """Let a node that starts to listen lock on to a signal; return whether it did.

        This is possible until the preamble of the signal has passed.
        """
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

    def _overlap(self, old: Transmission, new: Transmission, path: Path) -> None:
        """Start a signal at a node that is receiving another one. The new signal captures the receiver, or
        interferes.
        """
        receiver = path.receiver
        level = receiver.level()
        stronger = path.power > receiver.path.power and self.clock.now < old.synchronised
        if stronger and self.offer(new, path, level) is None:
            old.missed[receiver] = COLLISION
        else:
            new.missed[receiver] = BUSY
            self._disturb(receiver, level + path.power)

    def _disturb(self, receiver: Transceiver, level: float) -> None:
        """Start a segment with the given total power in mW, including the received signal."""
        receiver.settle(self.clock.now)
        receiver.disturbed = True
        power = receiver.path.power
        if power < self._capture_ratio * (level - power):
            receiver.per_us = -inf
        elif self._table is not None:
            receiver.per_us = self._table.per_us(power / (self._noise + level - power))
        else:
            receiver.per_us = receiver.path.per_us

    def _relieve(self, receiver: Transceiver) -> None:
        """Start a segment after an interfering signal has ended."""
        if len(receiver.signals) > 1:
            self._disturb(receiver, receiver.level())
        else:
            receiver.settle(self.clock.now)
            receiver.per_us = receiver.path.per_us

    def _end(self, transmission: Transmission) -> None:
        """End a signal. For each receiver that is locked on to it, decide whether the frame is correct."""
        now, missed = self.clock.now, transmission.missed
        received: list[Transceiver] = []
        failed: list[Transceiver] = []
        for receiver, _, _, _ in transmission.audience.receivers:
            del receiver.signals[transmission]
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
                received.append(receiver)
            else:
                missed[receiver] = COLLISION if receiver.disturbed else NOISE
                failed.append(receiver)
        self.received += len(received)
        self._settle(transmission, received)
        self._notify_stations(transmission, received, failed)

    @staticmethod
    def _notify_stations(
        transmission: Transmission, received: list[Transceiver], failed: list[Transceiver]
    ) -> None:
        """Notify the stations of the sender and the receivers that a signal has ended."""
        sender = transmission.sender
        for radio in (*received, *failed, sender):
            radio.rest()
        for receiver in received:
            if receiver.mode != OFF:  # a station notified before may have switched it off
                receiver.upper.on_frame(transmission.frame)
        for receiver in failed:
            if receiver.mode != OFF:
                receiver.upper.on_frame_lost()
        if sender.mode != OFF:
            sender.upper.on_transmitted(transmission.frame)

    def cut(self, transmission: Transmission) -> None:
        """Abort a signal whose sender goes down. No node receives it."""
        Clock.cancel(transmission.end)
        failed = []
        for path in transmission.audience.receivers:
            receiver = path.receiver
            del receiver.signals[transmission]
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
            receiver.upper.on_frame_lost()

    def _settle(self, transmission: Transmission, received: Sequence[Transceiver]) -> None:
        """End the interference of a finished signal, and count its losses."""
        for receiver, _ in transmission.audience.disturbed:
            del receiver.signals[transmission]
            if receiver.locked is not None:
                self._relieve(receiver)
        for why in transmission.missed.values():
            self.lost[why] += 1
        del self._on_air[transmission]
        transmission.sender.sending = None
        if self._trace is not None:
            self._trace.record_end(self.clock.now, transmission.frame, received, transmission.missed)
