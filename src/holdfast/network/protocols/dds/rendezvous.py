"""The rendezvous node (RN) of a topic: it matches subscriptions and samples. [D11–D13, D31]

The RN stores subscriptions but no samples. For a reliable sample it stores the missing acknowledgements, for
one sample of each writer, because a writer sends no further sample before. When all have arrived, it sends
one ACK. It forwards a repetition by the publisher only to subscribers whose acknowledgement is missing.
Without any reader the RN reports this, because an ACK would claim delivery.
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
    """The state of an RN: the table of subscribers, and the missing ACKs."""

    registry: SubscriptionTable
    pending: dict[tuple[Peer, SampleStream], PendingSample] = field(default_factory=dict)
    silent_until: Instant = BEGINNING
    """The time until which the table may be incomplete, so that the RN sends no ACKs."""
    expected: set[Peer] = field(default_factory=set)
    """For EATDDS: the readers of the previous RN. The RN sends no ACKs while one of these is missing."""
    expected_until: Instant = BEGINNING
    """The time at which the leases of ``expected`` readers end, so that the RN no longer waits for them."""


def forward(rn: Rendezvous, data: DataMessage, now: Instant, terms: ReliableSettings) -> list[Effect]:
    """Forward a sample to each subscriber, without storing it. [D12, D13]"""
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
    """Record an ACK of a subscriber. After the last missing one, send one ACK to the publisher. [D31]"""
    known = rn.pending.get((name.origin, name.stream))
    if known is None or known.name != name or subscriber not in known.awaited:
        return []
    known.awaited.discard(subscriber)
    return _complete(known)


def on_subscriber_left(rn: Rendezvous, subscriber: Peer) -> list[Effect]:
    """Stop waiting for the ACKs of a subscriber that has no subscriptions left."""
    if subscriber in rn.registry.subscribers():
        return []
    return [effect for pending in rn.pending.values() for effect in on_ack(rn, pending.name, subscriber)]


def _complete(pending: PendingSample) -> list[Effect]:
    """Return the ACK for a sample if no acknowledgement is missing."""
    if pending.awaited:
        return []
    return [Send(pending.name.origin, SampleAck(pending.name, complete=True), "ack")]


def _copies(data: DataMessage, to: dict[Peer, bool]) -> list[Effect]:
    """Return a copy of a sample for each subscriber, with the subscriber's reliability bit."""
    copies = {bit: replace(data, reliable=bit, forwarded=True, hops=0) for bit in set(to.values())}
    return [Send(peer, copies[bit], cause_of(data)) for peer, bit in to.items()]
