"""The rendezvous node (RN) of a topic: it matches subscriptions and samples.  [D11–D13, D31]

It stores subscriptions and no samples. For a reliable sample it remembers the missing acknowledgements, one
sample for each writer, because a writer sends no other before. When all have arrived, it sends one ACK. A
repetition by the publisher is forwarded only to subscribers with a missing acknowledgement. Without any
reader the RN reports that, because an ACK would claim delivery.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from ....model.instant import BEGINNING, Instant
from ....model.protocol import Effect, Peer, Send
from .deployment import ReliableSettings
from .message import DataMessage, SampleAck, SampleName, SampleStream, cause_of
from .registry import SubscriptionTable


@dataclass(slots=True)
class PendingSample:
    """A forwarded reliable sample, and the subscribers whose ACK is missing."""

    name: SampleName
    awaited: set[Peer]


@dataclass(slots=True)
class Rendezvous:
    """The table of subscribers, and the missing ACKs."""

    registry: SubscriptionTable
    pending: dict[tuple[Peer, SampleStream], PendingSample] = field(default_factory=dict)
    silent_until: Instant = BEGINNING
    """Until then its table may be incomplete, and it sends no ACKs."""
    expected: set[Peer] = field(default_factory=set)
    """EATDDS: readers of the previous RN; it sends no ACKs while one of them is missing,"""
    expected_until: Instant = BEGINNING
    """but at most until then, when their leases are over."""


def forward(rn: Rendezvous, data: DataMessage, now: Instant, terms: ReliableSettings) -> list[Effect]:
    """Forward a sample to each subscriber, and forget it.  [D12, D13]"""
    if not data.reliable:
        return _copies(data, rn.registry.recipients(data))
    rn.expected -= set(rn.registry.subscribers())
    if now < (rn.expected_until if rn.expected else rn.silent_until):
        return []
    name = data.name
    if not rn.registry.wishes:
        return [Send(name.origin, SampleAck(name, complete=True, unread=True), "ack")]
    if terms.acknowledged == "end-to-end":
        return _copies(data, rn.registry.recipients(data))
    known = rn.pending.get((name.origin, name.stream))
    if known is not None and name.place < known.name.place:
        return []
    if known is None or known.name != name:
        to = rn.registry.recipients(data)
        known = PendingSample(name, {peer for peer, bit in to.items() if bit})
        rn.pending[name.origin, name.stream] = known
        return [*_copies(data, to), *_complete(known)]
    return [*_copies(data, dict.fromkeys(sorted(known.awaited), True)), *_complete(known)]


def on_ack(rn: Rendezvous, name: SampleName, subscriber: Peer) -> list[Effect]:
    """Record an ACK of a subscriber; after the last one send one ACK to the publisher.  [D31]"""
    known = rn.pending.get((name.origin, name.stream))
    if known is None or known.name != name or subscriber not in known.awaited:
        return []
    known.awaited.discard(subscriber)
    return _complete(known)


def on_subscriber_left(rn: Rendezvous, subscriber: Peer) -> list[Effect]:
    """Stop waiting for the ACKs of a subscriber without subscriptions."""
    if subscriber in rn.registry.subscribers():
        return []
    return [effect for pending in rn.pending.values() for effect in on_ack(rn, pending.name, subscriber)]


def _complete(pending: PendingSample) -> list[Effect]:
    """Return the ACK for a sample without missing acknowledgements."""
    if pending.awaited:
        return []
    return [Send(pending.name.origin, SampleAck(pending.name, complete=True), "ack")]


def _copies(data: DataMessage, to: dict[Peer, bool]) -> list[Effect]:
    """Return a copy of a sample for each subscriber, with its bit."""
    copies = {bit: replace(data, reliable=bit, forwarded=True, hops=0) for bit in set(to.values())}
    return [Send(peer, copies[bit], cause_of(data)) for peer, bit in to.items()]
