"""What all MACs share: a queue, frames, acknowledgements, retries, duplicates, and the ledger."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import UsageError
from ...model.instant import Duration, Instant
from ..clock import Clock, Entry, LocalClock
from ..energy import Account
from ..frame import (
    ACK,
    ACKNOWLEDGED,
    AIRED,
    BROADCAST,
    DATA,
    NO_ACK,
    NODE_DOWN,
    NOT_RECEIVED,
    QUEUE_FULL,
    Frame,
    NodeId,
    Outcome,
    Packet,
)
from ..platforms import Work

if TYPE_CHECKING:
    from ..transceiver import Transceiver

DATA_OVERHEAD = 11
"""802.15.4 with short addresses: control, sequence, PAN, destination, source, check."""
ACK_BYTES = 5
"""Control, sequence, check."""


def at_least(mac: object, **least: int) -> None:
    """Refuse a MAC whose parameters are too small to work."""
    for name, bound in least.items():
        if (value := getattr(mac, name)) < bound:
            raise UsageError(f"{type(mac).__name__}: {name} is {value}; it must be {bound} at least")


Received = Callable[[Frame], None]
Done = Callable[[Outcome], None]


@dataclass(slots=True)
class Ledger:
    """What became of packets: sent = delivered + dropped + in flight, at every moment."""

    sent: int = 0
    delivered: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, why: str) -> None:
        self.dropped[why] = self.dropped.get(why, 0) + 1


@dataclass(slots=True)
class Ledgers:
    """Of packets to one neighbour (delivered: the neighbour has it), and to all (delivered: it was aired)."""

    unicast: Ledger = field(default_factory=Ledger)
    broadcast: Ledger = field(default_factory=Ledger)

    def of(self, packet: Packet) -> Ledger:
        return self.broadcast if packet.destination == BROADCAST else self.unicast


class Owner(Protocol):
    """What a station needs of its node."""

    id: NodeId
    boots: int
    clock: Clock
    local: LocalClock
    random: Random
    radio: Transceiver
    energy: Account
    work: Work
    delays: bool
    ledgers: Ledgers


class Station:
    """A node's access to its neighbours: the link that routing protocols use."""

    spacing: Duration = 0
    """The pause after a packet, before the next."""

    def __init__(self, node: Owner, *, queue: int, retries: int = 0, acknowledged: bool = True) -> None:
        self.node = node
        self._id = node.id
        self.clock = node.clock
        self.radio = node.radio
        self.spec = node.radio.medium.radio
        self.most_queued = 0
        self._limit, self._retries, self._acknowledged = queue, retries, acknowledged
        self._queue: deque[Packet] = deque()
        self._current: Packet | None = None
        self._on_air: Frame | None = None
        self._awaits: int | None = None
        self._sequence = node.boots << 32
        self.neighbours: dict[NodeId, int] = {}
        """The latest sequence number of every neighbour that was heard."""
        self._timer: Entry | None = None
        self._idle = True
        self._received: Received = _ignore
        self._overheard: Received | None = None
        self._up = True
        self._free: Instant = 0
        """When the processor has done what it has begun."""
        self.unit: Duration = self.spec.turnaround + self.spec.sensing
        self.patience: Duration = self.unit + self.spec.turnaround + self.spec.airtime(ACK_BYTES)
        """How long an acknowledgement is waited for (macAckWaitDuration)."""

    # What the layer above uses.

    def send(self, to: NodeId, payload: Any, size: int, cause: str = "", done: Done | None = None) -> None:
        """Bring ``payload`` of ``size`` bytes to a neighbour, or to all (``BROADCAST``).

        ``done`` is told ``ACKNOWLEDGED``, ``AIRED`` (where nobody acknowledges) or why it was dropped, later,
        never within this call.  ``NO_ACK`` does not mean that it has not arrived.
        """
        if size + DATA_OVERHEAD > self.spec.longest:
            raise UsageError(
                f"node {self.node.id} is to send {size} bytes in one frame; {self.spec.name} takes "
                f"{self.spec.longest - DATA_OVERHEAD}. Send less, or in several messages."
            )
        self._sequence += 1
        packet = Packet(to, payload, size, cause, done, self._sequence)
        self.node.ledgers.of(packet).sent += 1
        if not self._up:
            self._settle(packet, NODE_DOWN)
        elif len(self._queue) >= self._limit:
            self._settle(packet, QUEUE_FULL)
        else:
            self._queue.append(packet)
            self.most_queued = max(self.most_queued, len(self._queue))
            if self._idle:
                self._next(None)

    def listen(self, received: Received, overheard: Received | None = None) -> None:
        """Who gets the frames for us and for all, and those for others that we could hear."""
        self._received, self._overheard = received, overheard

    def in_flight(self) -> list[Packet]:
        """The packets that wait or are being sent."""
        return [*([self._current] if self._current else []), *self._queue]

    def start(self) -> None:
        """The node is switched on."""
        self.radio.on()

    def halt(self) -> None:
        """The node goes down: what waits is lost."""
        self._up = False
        self._forget()
        packets = self.in_flight()
        self._current = None
        self._queue.clear()
        for packet in packets:
            self._settle(packet, NODE_DOWN)

    # What kinds of MAC do differently.

    def _contend(self) -> None:
        """Get the channel for the current packet, then ``_transmit`` it."""
        raise NotImplementedError

    # What the radio tells.

    def received(self, frame: Frame) -> None:
        mine = frame.destination == self._id
        if frame.kind == DATA:
            if mine or frame.destination == BROADCAST:
                self._data(frame, mine)
            elif self._overheard is not None:
                self._work(self.node.work.receive, frame.cause)
                self._worked(self.node.work.receive, self._hand_up, (self._overheard, frame))
        elif mine and frame.kind == ACK and frame.sequence == self._awaits:
            self._conclude(ACKNOWLEDGED)

    def failed(self) -> None:
        """Nothing depends on it here."""

    def transmitted(self, frame: Frame) -> None:
        if frame is not self._on_air:
            return
        self._on_air = None
        if frame.kind == DATA:
            self._aired(frame)

    # Data out.

    def _next(self, _: None) -> None:
        """Turn to the next packet, if there is one."""
        self._idle = not self._queue
        if self._queue:
            self._current = self._queue.popleft()
            self._worked(self.node.work.send, self._begin, self._current)

    def _begin(self, packet: Packet) -> None:
        if self._current is packet:
            self._contend()

    def _transmit(self) -> None:
        """Send the current packet now."""
        packet = self._current
        assert packet is not None
        packet.tries += 1
        self._forget()
        self._work(self.node.work.send, packet.cause)
        self._radiate(self._frame(packet))

    def _frame(self, packet: Packet) -> Frame:
        size = packet.size + DATA_OVERHEAD
        return Frame(
            DATA, self.node.id, packet.destination, packet.sequence, packet.size, size, packet.cause, packet
        )

    def _radiate(self, frame: Frame) -> None:
        self._on_air = frame
        self.radio.transmit(frame)

    def _aired(self, frame: Frame) -> None:
        packet = self._current
        if packet is None or frame.packet is not packet:
            return
        if packet.destination == BROADCAST or not self._acknowledged:
            self._conclude(AIRED)
        else:
            self._awaits = packet.sequence
            self._wait(self.patience, self._unacknowledged)

    def _unacknowledged(self, _: None) -> None:
        self._awaits = None
        packet = self._current
        assert packet is not None
        if packet.tries <= self._retries:
            self._contend()
        else:
            self._conclude(NO_ACK)

    def _conclude(self, outcome: Outcome) -> None:
        """The current packet is done with."""
        packet, self._current, self._awaits = self._current, None, None
        assert packet is not None
        self._settle(packet, outcome)
        self._wait(self.spacing, self._next)

    def _settle(self, packet: Packet, outcome: Outcome) -> None:
        ledger = self.node.ledgers.of(packet)
        if packet.arrived or (outcome == AIRED and packet.destination == BROADCAST):
            ledger.delivered += 1
        else:
            ledger.drop(NOT_RECEIVED if outcome == AIRED else outcome)
        if packet.done is not None and self._up:
            self.clock.after(0, self._tell, (packet.done, outcome))

    def _tell(self, news: tuple[Done, Outcome]) -> None:
        done, outcome = news
        if self._up:
            done(outcome)

    # Data in.

    def _data(self, frame: Frame, mine: bool) -> None:
        if mine and self._acknowledged:
            self._acknowledge(frame)
        self._work(self.node.work.receive, frame.cause)
        if self.neighbours.get(frame.source) == frame.sequence:
            return
        self.neighbours[frame.source] = frame.sequence
        if mine and frame.packet is not None:
            frame.packet.arrived = True
        self._worked(self.node.work.receive, self._hand_up, (self._received, frame))

    def _hand_up(self, given: tuple[Received, Frame]) -> None:
        taker, frame = given
        if self._up:
            taker(frame)

    def _acknowledge(self, frame: Frame) -> None:
        self._radiate(Frame(ACK, self.node.id, frame.source, frame.sequence, 0, ACK_BYTES, frame.cause))

    def _wait(self, delay: Duration, action: Callable[[None], None]) -> None:
        """The one thing this station waits for."""
        self._forget()
        self._timer = self.clock.after(delay, action)

    def _forget(self) -> None:
        """It no longer waits for anything."""
        if self._timer is not None:
            Clock.cancel(self._timer)
            self._timer = None

    def _work(self, length: Duration, cause: str) -> None:
        self.node.energy.mcu.work(self.clock.now, length, cause)

    def _worked(self, length: Duration, action: Callable[[Any], None], argument: Any) -> None:
        """Go on when the processor has done that much; at once if its time is not to delay anything."""
        if not self.node.delays:
            action(argument)
            return
        now = self.clock.now
        self._free = (now if now > self._free else self._free) + length
        self.clock.at(self._free, action, argument)


def _ignore(frame: Frame) -> None:
    """Nobody listens yet."""
