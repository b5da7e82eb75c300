"""The common part of all MACs: queue, frames, acknowledgements, retries, duplicates, and packet counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ....errors import UsageError
from ....model.instant import Duration, Instant
from ..clock import Clock, Entry
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
    LinkPacket,
    NodeId,
    Outcome,
)

if TYPE_CHECKING:
    from ..node import Node

DATA_OVERHEAD = 11
"""The bytes that a frame adds to its payload in 802.15.4 with short addresses: control, sequence, PAN,
destination, source, checksum.
"""
ACK_BYTES = 5
"""The bytes of an acknowledgement: control, sequence, checksum."""


def at_least(mac: object, **least: int) -> None:
    """Raise a `UsageError` if a parameter of a MAC is below its least value."""
    for name, bound in least.items():
        if (value := getattr(mac, name)) < bound:
            raise UsageError(f"{type(mac).__name__}: {name} is {value}; it must be {bound} at least")


FrameHandler = Callable[[Frame], None]
OutcomeHandler = Callable[[Outcome], None]


@dataclass(slots=True)
class PacketCounts:
    """Counts of packets by outcome. At every time, sent = delivered + dropped + in flight."""

    sent: int = 0
    delivered: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, why: str) -> None:
        self.dropped[why] = self.dropped.get(why, 0) + 1


@dataclass(slots=True)
class PacketLedgers:
    """Separate counts of packets to one neighbour and of packets to all neighbours.

    A packet to one neighbour counts as delivered when the neighbour has it, a packet to all when it was sent.
    """

    unicast: PacketCounts = field(default_factory=PacketCounts)
    broadcast: PacketCounts = field(default_factory=PacketCounts)

    def of(self, packet: LinkPacket) -> PacketCounts:
        return self.broadcast if packet.destination == BROADCAST else self.unicast


class Station:
    """A node's access to its neighbours: the link that routing protocols use.

    A MAC is a subclass that implements ``_contend``.
    """

    spacing: Duration = 0
    """The pause in µs between two packets."""

    def __init__(self, node: Node, *, queue: int, retries: int = 0, acknowledged: bool = True) -> None:
        self.node = node
        self._id = node.id
        self.clock = node.clock
        self.radio = node.radio
        self.spec = node.radio.medium.radio
        self.most_queued = 0
        self._limit, self._retries, self._acknowledged = queue, retries, acknowledged
        self._queue: deque[LinkPacket] = deque()
        self._current: LinkPacket | None = None
        self._on_air: Frame | None = None
        self._awaits: int | None = None
        self._sequence = node.boots << 32
        self.neighbours: dict[NodeId, int] = {}
        """The latest sequence number received from each neighbour."""
        self._timer: Entry | None = None
        self._idle = True
        self._on_data: FrameHandler = lambda _: None
        self._on_overheard: FrameHandler | None = None
        self._up = True
        self._free: Instant = 0
        """The simulated time at which the processor finishes its queued work."""
        self.unit: Duration = self.spec.turnaround + self.spec.sensing
        self.patience: Duration = self.unit + self.spec.turnaround + self.spec.airtime(ACK_BYTES)
        """The time in µs to wait for an acknowledgement (macAckWaitDuration)."""

    # Interface for the layer above.

    def send(
        self, to: NodeId, payload: Any, size: int, cause: str = "", done: OutcomeHandler | None = None
    ) -> None:
        """Send ``payload`` of ``size`` bytes to a neighbour, or to all (``BROADCAST``).

        ``done`` is called later, never within this call, with ``ACKNOWLEDGED``, ``AIRED`` (sent without
        acknowledgement) or the cause of the drop.  ``NO_ACK`` does not mean that the packet has not arrived.
        """
        if size + DATA_OVERHEAD > self.spec.longest:
            raise UsageError(
                f"node {self.node.id} is to send {size} bytes in one frame; {self.spec.name} takes "
                f"{self.spec.longest - DATA_OVERHEAD}. Send less, or in several messages."
            )
        self._sequence += 1
        packet = LinkPacket(to, payload, size, cause, done, self._sequence)
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

    def listen(self, on_frame: FrameHandler, on_overheard: FrameHandler | None = None) -> None:
        """Set the callbacks for frames addressed to this node or to all, and for frames addressed to other
        nodes.
        """
        self._on_data, self._on_overheard = on_frame, on_overheard

    def in_flight(self) -> list[LinkPacket]:
        """Return the packets that are queued or being sent."""
        return [*([self._current] if self._current else []), *self._queue]

    def start(self) -> None:
        """Start to listen. The node calls this when it is switched on."""
        self.radio.on()

    def halt(self) -> None:
        """Drop all queued packets. The node calls this when it goes down."""
        self._up = False
        self._cancel_timer()
        packets = self.in_flight()
        self._current = None
        self._queue.clear()
        for packet in packets:
            self._settle(packet, NODE_DOWN)

    # For subclasses.

    def _contend(self) -> None:
        """Acquire the channel for the current packet, then call `_transmit`. Each MAC implements this."""
        raise NotImplementedError

    # Callbacks of the radio.

    def on_frame(self, frame: Frame) -> None:
        """Handle a frame that was received without errors."""
        is_ours = frame.destination == self._id
        if frame.kind == DATA:
            if is_ours or frame.destination == BROADCAST:
                self._receive_data(frame, is_ours)
            elif self._on_overheard is not None:
                self._work(self.node.work.receive, frame.cause)
                self._after_work(self.node.work.receive, self._call_handler, (self._on_overheard, frame))
        elif is_ours and frame.kind == ACK and frame.sequence == self._awaits:
            self._conclude(ACKNOWLEDGED)

    def on_frame_lost(self) -> None:
        """Handle a frame that was lost during reception. By default there is nothing to do."""

    def on_transmitted(self, frame: Frame) -> None:
        """Handle the end of a transmission of this node."""
        if frame is not self._on_air:
            return
        self._on_air = None
        if frame.kind == DATA:
            self._on_data_sent(frame)

    # Sending data.

    def _next(self, _: None) -> None:
        """Start to send the next queued packet, if there is one."""
        self._idle = not self._queue
        if self._queue:
            self._current = self._queue.popleft()
            self._after_work(self.node.work.send, self._begin, self._current)

    def _begin(self, packet: LinkPacket) -> None:
        if self._current is packet:
            self._contend()

    def _transmit(self) -> None:
        """Transmit the current packet now; the MAC calls this when it has the channel."""
        packet = self._current
        assert packet is not None
        packet.tries += 1
        self._cancel_timer()
        self._work(self.node.work.send, packet.cause)
        self._radiate(self._frame(packet))

    def _frame(self, packet: LinkPacket) -> Frame:
        size = packet.size + DATA_OVERHEAD
        about = packet.destination, packet.sequence, packet.size, size, packet.cause
        return Frame(DATA, self.node.id, *about, packet)

    def _radiate(self, frame: Frame) -> None:
        self._on_air = frame
        self.radio.transmit(frame)

    def _on_data_sent(self, frame: Frame) -> None:
        """Continue after the transmission of the current packet: finish it, or wait for its
        acknowledgement.
        """
        packet = self._current
        if packet is None or frame.packet is not packet:
            return
        if packet.destination == BROADCAST or not self._acknowledged:
            self._conclude(AIRED)
        else:
            self._awaits = packet.sequence
            self._wait(self.patience, self._on_ack_timeout)

    def _on_ack_timeout(self, _: None) -> None:
        """Send the current packet again, or drop it after the last retry."""
        self._awaits = None
        packet = self._current
        assert packet is not None
        if packet.tries <= self._retries:
            self._contend()
        else:
            self._conclude(NO_ACK)

    def _conclude(self, outcome: Outcome) -> None:
        """Finish the current packet and start the next one after a pause."""
        packet, self._current, self._awaits = self._current, None, None
        assert packet is not None
        self._settle(packet, outcome)
        self._wait(self.spacing, self._next)

    def _settle(self, packet: LinkPacket, outcome: Outcome) -> None:
        """Count the outcome of a packet and report it to its sender."""
        counts = self.node.ledgers.of(packet)
        if packet.arrived or (outcome == AIRED and packet.destination == BROADCAST):
            counts.delivered += 1
        else:
            counts.drop(NOT_RECEIVED if outcome == AIRED else outcome)
        if packet.done is not None and self._up:
            self.clock.after(0, self._report, (packet.done, outcome))

    def _report(self, report: tuple[OutcomeHandler, Outcome]) -> None:
        done, outcome = report
        if self._up:
            done(outcome)

    # Receiving data.

    def _receive_data(self, frame: Frame, is_ours: bool) -> None:
        """Acknowledge a data frame, and pass it to the handler unless it is a duplicate."""
        if is_ours and self._acknowledged:
            self._acknowledge(frame)
        self._work(self.node.work.receive, frame.cause)
        if self.neighbours.get(frame.source) == frame.sequence:
            return
        self.neighbours[frame.source] = frame.sequence
        if is_ours and frame.packet is not None:
            frame.packet.arrived = True
        self._after_work(self.node.work.receive, self._call_handler, (self._on_data, frame))

    def _call_handler(self, arguments: tuple[FrameHandler, Frame]) -> None:
        handler, frame = arguments
        if self._up:
            handler(frame)

    def _acknowledge(self, frame: Frame) -> None:
        self._radiate(Frame(ACK, self.node.id, frame.source, frame.sequence, 0, ACK_BYTES, frame.cause))

    def _wait(self, delay: Duration, action: Callable[[None], None]) -> None:
        """Set the station's only timer; it replaces the previous timer."""
        self._cancel_timer()
        self._timer = self.clock.after(delay, action)

    def _cancel_timer(self) -> None:
        """Cancel the station's timer, if it is set."""
        if self._timer is not None:
            Clock.cancel(self._timer)
            self._timer = None

    def _work(self, length: Duration, cause: str) -> None:
        self.node.energy.mcu.work(self.clock.now, length, cause)

    def _after_work(self, length: Duration, action: Callable[[Any], None], argument: Any) -> None:
        """Call ``action`` after the processor has worked for ``length`` µs, or at once if processing causes
        no delays.
        """
        if not self.node.delays:
            action(argument)
            return
        now = self.clock.now
        self._free = (now if now > self._free else self._free) + length
        self.clock.at(self._free, action, argument)
