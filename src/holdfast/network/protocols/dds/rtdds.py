"""RTDDS: the reliable data writer (R-DW) and the reliable data reader (R-DR). [D16–D29]

One writer implements all three levels. The classifier has set each sample's reliability bit. With no bit set
this is BEQoS, with every bit set FRQoS, and otherwise PRQoS [D30]. While a reliable sample is unacknowledged,
all later samples wait in the ring, so order is preserved [D28]. At other times the ring is empty [D29].
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from ....model.instant import Instant
from ....model.protocol import CancelTimer, Deliver, Effect, Peer, Send, SetTimer
from .deployment import ReliableSettings
from .message import DataMessage, SampleAck, SampleName, SampleStream, cause_of
from .request import SampleGivenUp

Route = Callable[[DataMessage], Mapping[Peer, bool]]
"""A function that returns the receivers of a sample, and for each whether the sample must arrive."""


class RingEntry(msgspec.Struct):
    """A sample in the ring. At the head of the ring, ``awaited`` are the receivers whose ACK is missing."""

    data: DataMessage
    awaited: set[Peer] = msgspec.field(default_factory=set)
    tries: int = 0


@dataclass(slots=True)
class ReliableWriter:
    """R-DW: the reliable data writer, with its ring and the ``wait`` of Algorithm 1."""

    stream: SampleStream
    sequence: int = 0
    """The number of the last accepted sample."""
    ring: deque[RingEntry] = field(default_factory=deque)
    wait: bool = False

    @property
    def timer(self) -> str:
        """The name of the retransmission timer of the writer."""
        return f"rto/{self.stream.topic}/{self.stream.condition}"

    def has_room(self, reliable: bool, terms: ReliableSettings) -> bool:
        """Whether a sample is accepted. While the ring is full, samples are dropped. [D19]"""
        return not (reliable or self.wait) or len(self.ring) < terms.ring

    def give_way(self) -> DataMessage | None:
        """Remove the oldest unreliable sample from the ring, to make room for a transition."""
        waiting = next((held for held in self.ring if not held.data.reliable), None)
        if waiting is None:
            return None
        self.ring.remove(waiting)
        return waiting.data


class SendingParameters(msgspec.Struct, frozen=True):
    """The parameters of sending: route, time, terms."""

    route: Route
    now: Instant
    terms: ReliableSettings
    counted: Counter[str]
    aggregated: bool
    """Whether one ACK stands for all receivers, because an RN collects their ACKs. [D31]"""


def publish(writer: ReliableWriter, data: DataMessage, sending: SendingParameters) -> list[Effect]:
    """Send or queue a sample: Algorithm 1, Data-Writer Partial Reliability QoS. [D27]"""
    if not data.reliable and not writer.wait:  # 1: msg is BE and wait is False
        return _copies(data, sending.route(data), sending)
    writer.ring.append(RingEntry(data))  # 2 and 4: BufferInsert; 3: held at the head until it is acknowledged
    return [] if writer.wait else _drain(writer, sending)


def on_ack(
    writer: ReliableWriter, name: SampleName, sender: Peer, sending: SendingParameters
) -> list[Effect]:
    """Handle an ACK. When the head has arrived at all receivers that need it, release the next
    sample. [D23]
    """
    if not writer.wait or writer.ring[0].data.name != name:
        return []
    awaited = writer.ring[0].awaited
    awaited.discard(sender)
    return [] if awaited and not sending.aggregated else _release(writer, sending)


def on_timeout(writer: ReliableWriter, sending: SendingParameters) -> list[Effect]:
    """Send the head again to receivers whose ACK is missing, up to the limit of retries. [D20, D22]"""
    if not writer.wait:
        return []
    head = writer.ring[0]
    if sending.terms.retries is not None and head.tries >= sending.terms.retries:
        sending.counted["given up"] += 1
        return [Deliver(SampleGivenUp(head.data.name)), *_release(writer, sending)]
    needed = {peer for peer, bit in sending.route(head.data).items() if bit}
    head.awaited = needed if sending.aggregated else head.awaited & needed
    if not head.awaited:
        return _release(writer, sending)
    head.tries += 1
    sending.counted["retransmitted"] += len(head.awaited)
    head.data = replace(head.data, again=True)
    again = _copies(head.data, dict.fromkeys(sorted(head.awaited), True), sending)
    return [*again, SetTimer(writer.timer, sending.now + sending.terms.rto)]


def _drain(writer: ReliableWriter, sending: SendingParameters) -> list[Effect]:
    """Send from the head of the ring: best-effort samples once, up to a reliable sample that must be
    acknowledged.
    """
    effects: list[Effect] = []
    writer.wait = False
    while writer.ring and not writer.wait:
        head = writer.ring[0]
        to = sending.route(head.data)
        effects += _copies(head.data, to, sending)
        head.awaited = {peer for peer, bit in to.items() if bit}
        if head.awaited:
            writer.wait = True
            effects.append(SetTimer(writer.timer, sending.now + sending.terms.rto))
        else:
            writer.ring.popleft()
    return effects


def _release(writer: ReliableWriter, sending: SendingParameters) -> list[Effect]:
    """Remove the head and send the following samples."""
    writer.ring.popleft()
    return [CancelTimer(writer.timer), *_drain(writer, sending)]


def _copies(data: DataMessage, to: Mapping[Peer, bool], sending: SendingParameters) -> list[Effect]:
    """Return a copy of a sample for each receiver, with the receiver's reliability bit."""
    sending.counted["sent"] += len(to)
    return [Send(peer, replace(data, reliable=bit), cause_of(data)) for peer, bit in to.items()]


LastDelivered = dict[tuple[Peer, SampleStream], tuple[Instant, int]]
"""The state of R-DR: the last delivered sample of each stream."""


def is_new(delivered: LastDelivered, name: SampleName) -> bool:
    """Whether a sample is later than all delivered samples of its stream.

    Earlier samples are no longer delivered. So samples stay in order at every level, and none is delivered
    twice. RTPS has the same rule for best-effort readers.
    """
    last = delivered.get((name.origin, name.stream))
    return last is None or name.place > last


def answer(data: DataMessage, sender: Peer, terms: ReliableSettings) -> list[Effect]:
    """Return the ACK of R-DR for a sample whose bit is set. A duplicate is acknowledged too, to replace a
    lost ACK. [D25]

    The ACK goes to the RN, which informs the origin when all readers have the sample. End to end, the ACK
    goes to the origin. The origin then takes the first ACK for all readers, because it does not know the
    readers.
    """
    if not data.reliable:
        return []
    if data.forwarded and terms.acknowledged == "end-to-end":
        return [Send(data.name.origin, SampleAck(data.name, complete=True), "ack")]
    return [Send(sender, SampleAck(data.name), "ack")]
