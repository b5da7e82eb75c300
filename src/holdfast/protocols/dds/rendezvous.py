"""The rendezvous node (RN) of a topic: where subscriptions and samples meet.  [D11–D13, D31]

It keeps subscriptions and no samples.  Of a reliable sample it remembers who has yet to acknowledge it,
one for each writer, since a writer sends no other before; when all have, it sends one ACK.  A repetition
from the publisher goes to those who are missing, and to nobody else.  If it knows no reader it says so: an
ACK would claim that somebody has the sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from ...model.instant import BEGINNING, Instant
from ...model.protocol import Effect, Peer, Send
from .deployment import Reliable
from .message import Ack, Data, Name, Stream, cause_of
from .registry import Registry


@dataclass(slots=True)
class Pending:
    """A reliable sample that was forwarded, and who has not acknowledged it."""

    name: Name
    awaited: set[Peer]


@dataclass(slots=True)
class Rendezvous:
    """The table of subscribers, and which ACKs are missing."""

    registry: Registry
    pending: dict[tuple[Peer, Stream], Pending] = field(default_factory=dict)
    silent_until: Instant = BEGINNING
    """Until then its table may be incomplete, and it acknowledges nothing."""
    expected: set[Peer] = field(default_factory=set)
    """EATDDS: readers of the RN before; while one of them is missing it acknowledges nothing either,"""
    expected_until: Instant = BEGINNING
    """but no longer than this: then their leases are over."""


def forward(rn: Rendezvous, data: Data, now: Instant, terms: Reliable) -> list[Effect]:
    """One copy in, a copy for each subscriber out; the sample is then forgotten.  [D12, D13, AT9]"""
    if not data.reliable:
        return _copies(data, rn.registry.recipients(data))
    rn.expected -= set(rn.registry.subscribers())
    if now < (rn.expected_until if rn.expected else rn.silent_until):
        return []
    name = data.name
    if not rn.registry.wishes:
        return [Send(name.origin, Ack(name, complete=True, unread=True), "ack")]
    if terms.acknowledged == "end-to-end":
        return _copies(data, rn.registry.recipients(data))
    known = rn.pending.get((name.origin, name.stream))
    if known is not None and name.place < known.name.place:
        return []
    if known is None or known.name != name:
        to = rn.registry.recipients(data)
        known = Pending(name, {peer for peer, bit in to.items() if bit})
        rn.pending[name.origin, name.stream] = known
        return [*_copies(data, to), *_complete(known)]
    return [*_copies(data, dict.fromkeys(sorted(known.awaited), True)), *_complete(known)]


def acknowledged(rn: Rendezvous, name: Name, subscriber: Peer) -> list[Effect]:
    """An ACK from a subscriber; after the last one the publisher gets its one ACK.  [D31]"""
    known = rn.pending.get((name.origin, name.stream))
    if known is None or known.name != name or subscriber not in known.awaited:
        return []
    known.awaited.discard(subscriber)
    return _complete(known)


def left(rn: Rendezvous, subscriber: Peer) -> list[Effect]:
    """Nobody waits for a subscriber that has gone."""
    if subscriber in rn.registry.subscribers():
        return []
    return [
        effect for pending in rn.pending.values() for effect in acknowledged(rn, pending.name, subscriber)
    ]


def _complete(pending: Pending) -> list[Effect]:
    if pending.awaited:
        return []
    return [Send(pending.name.origin, Ack(pending.name, complete=True), "ack")]


def _copies(data: Data, to: dict[Peer, bool]) -> list[Effect]:
    return [
        Send(peer, replace(data, reliable=bit, forwarded=True, hops=0), cause_of(data))
        for peer, bit in to.items()
    ]
