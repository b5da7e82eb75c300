"""RTDDS: the reliable data writer (R-DW) and the reliable data reader (R-DR).  [D16–D29]

One writer does all three levels.  The classifier has set each sample's reliability bit; with no bit ever
set this is BEQoS, with every bit set FRQoS, between them PRQoS [D30].  While a reliable sample is
unacknowledged everything behind it waits in the ring, so order is kept [D28]; otherwise the ring is empty
[D29].
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from ...model.instant import Instant
from ...model.protocol import CancelTimer, Deliver, Effect, Peer, Send, SetTimer
from .deployment import Reliable
from .message import Ack, Data, Name, Stream, cause_of
from .request import GivenUp

Route = Callable[[Data], Mapping[Peer, bool]]
"""To whom a sample goes, and whether it must arrive there."""


class Held(msgspec.Struct):
    """A sample in the ring; at its head, who has yet to acknowledge it."""

    data: Data
    awaited: set[Peer] = msgspec.field(default_factory=set)
    tries: int = 0


@dataclass(slots=True)
class Writer:
    """R-DW: the ring, and the ``wait`` of Algorithm 1."""

    stream: Stream
    sequence: int = 0
    """Of the last sample that was taken."""
    ring: deque[Held] = field(default_factory=deque)
    wait: bool = False

    @property
    def timer(self) -> str:
        return f"rto/{self.stream.topic}/{self.stream.condition}"

    def has_room(self, reliable: bool, terms: Reliable) -> bool:
        """Whether a sample is taken; one that comes while the ring is full is dropped.  [D19]"""
        return not (reliable or self.wait) or len(self.ring) < terms.ring

    def give_way(self) -> Data | None:
        """What need not arrive gives way to what turns a condition: the oldest that waits, if one does."""
        waiting = next((held for held in self.ring if not held.data.reliable), None)
        if waiting is None:
            return None
        self.ring.remove(waiting)
        return waiting.data


class Sending(msgspec.Struct, frozen=True):
    """What a writer needs to send: where to, when, by which terms."""

    route: Route
    now: Instant
    terms: Reliable
    counted: Counter[str]
    aggregated: bool
    """Whether one ACK stands for all: an RN collects them.  [D31]"""


def publish(writer: Writer, data: Data, sending: Sending) -> list[Effect]:
    """Algorithm 1, Data-Writer Partial Reliability QoS.  [D27, AT5]"""
    if not data.reliable and not writer.wait:  # 1: msg is BE and wait is False
        return _copies(data, sending.route(data), sending)
    writer.ring.append(Held(data))  # 2 and 4: BufferInsert; 3: held at the head until it is acknowledged
    return [] if writer.wait else _drain(writer, sending)


def acknowledged(writer: Writer, name: Name, sender: Peer, sending: Sending) -> list[Effect]:
    """An ACK: if the head has arrived with all who need it, the next is released.  [D23]"""
    if not writer.wait or writer.ring[0].data.name != name:
        return []
    awaited = writer.ring[0].awaited
    awaited.discard(sender)
    return [] if awaited and not sending.aggregated else _release(writer, sending)


def timed_out(writer: Writer, sending: Sending) -> list[Effect]:
    """The head is sent again, to those who have not acknowledged it, without end.  [D20, D22]"""
    if not writer.wait:
        return []
    head = writer.ring[0]
    if sending.terms.retries is not None and head.tries >= sending.terms.retries:
        sending.counted["given up"] += 1
        return [Deliver(GivenUp(head.data.name)), *_release(writer, sending)]
    needed = {peer for peer, bit in sending.route(head.data).items() if bit}
    head.awaited = needed if sending.aggregated else head.awaited & needed
    if not head.awaited:
        return _release(writer, sending)
    head.tries += 1
    sending.counted["retransmitted"] += len(head.awaited)
    head.data = replace(head.data, again=True)
    again = _copies(head.data, dict.fromkeys(sorted(head.awaited), True), sending)
    return [*again, SetTimer(writer.timer, sending.now + sending.terms.rto)]


def _drain(writer: Writer, sending: Sending) -> list[Effect]:
    """Send from the head: best effort once and done, up to a reliable one that somebody needs."""
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


def _release(writer: Writer, sending: Sending) -> list[Effect]:
    """Buffer remove, then buffer out."""
    writer.ring.popleft()
    return [CancelTimer(writer.timer), *_drain(writer, sending)]


def _copies(data: Data, to: Mapping[Peer, bool], sending: Sending) -> list[Effect]:
    sending.counted["sent"] += len(to)
    return [Send(peer, replace(data, reliable=bit), cause_of(data)) for peer, bit in to.items()]


Heard = dict[tuple[Peer, Stream], tuple[Instant, int]]
"""R-DR: the last sample of each stream that was delivered."""


def is_new(heard: Heard, name: Name) -> bool:
    """Whether a sample is later than all that was delivered of its stream.

    What comes after a later one is not delivered any more, so order is kept at every level, and nothing
    comes twice; RTPS has the same rule for best-effort readers.
    """
    last = heard.get((name.origin, name.stream))
    return last is None or name.place > last


def answer(data: Data, sender: Peer, terms: Reliable) -> list[Effect]:
    """R-DR acknowledges what has its bit set, also what it has: else a lost ACK never recovers.  [D25]

    To the RN, which tells the origin when all have; or, end to end, to the origin itself, which takes the
    first ACK for all, since it does not know who the readers are.
    """
    if not data.reliable:
        return []
    if data.forwarded and terms.acknowledged == "end-to-end":
        return [Send(data.name.origin, Ack(data.name, complete=True), "ack")]
    return [Send(sender, Ack(data.name), "ack")]
