"""Message context: how a bundle came to a broker, and filters on that.  [B40–B43]

Filters name the attributes ``origin``, ``sender``, ``hopCnt``, ``arrivalTime``, ``brokerLatencyTime``
and ``travelTime``; instants and durations are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ...model.instant import Duration, Instant
from ...model.protocol import Peer
from .content import Constraint, Content, Filter, satisfied
from .message import Bundle, Context, Message

HOP_COUNT, TRAVEL_TIME = "hopCnt", "travelTime"
FAR = 1 << 62
"""No number of hops or microseconds is greater."""
LOCAL = frozenset({"sender", "arrivalTime", "brokerLatencyTime"})
"""Attributes that mean something at one broker only."""


def stamped(message: Message, now: Instant) -> Message:
    """A message as it arrives: what a host does on its input side, before a bundle waits its turn."""
    if not isinstance(message, Bundle):
        return message
    context = replace(message.context or Context(), arrival_time=now)
    return replace(message, context=context)


def late(message: Message, waited: Duration) -> Message:
    """A message that has waited so long on the output side: the time of a bundle goes on."""
    if not isinstance(message, Bundle) or message.context is None or waited <= 0:
        return message
    travelled = min(message.context.travel_time + waited, FAR)
    return replace(message, context=replace(message.context, travel_time=travelled))


def begun(bundle: Bundle, sender: Peer, now: Instant) -> Context:
    """The context at the broker to which a client has given a bundle; of what the client says of it, only
    when it arrived counts, which the host has written."""
    given = bundle.context or Context()
    return Context(sender, sender, 1, now if given.arrival_time is None else given.arrival_time)


def received(bundle: Bundle, sender: Peer, now: Instant) -> Context:
    """The context at the broker that takes a bundle from a connection; 1 hop at the first broker."""
    given = bundle.context or Context()
    return Context(
        origin=bundle.key.origin if given.origin is None else given.origin,
        sender=sender,
        hop_count=min(max(given.hop_count, 0), FAR) + 1,
        arrival_time=now if given.arrival_time is None else given.arrival_time,
        travel_time=min(max(given.travel_time, 0), FAR),
    )


def leaving(context: Context, now: Instant) -> Context:
    """The context with which a bundle leaves: it has spent so long here."""
    assert context.arrival_time is not None
    return replace(context, arrival_time=None, travel_time=_travelled(context, now))


def _travelled(context: Context, now: Instant) -> Duration:
    """How long a bundle has been on its way; whatever others say, it can be written and added to."""
    spent = 0 if context.arrival_time is None else now - context.arrival_time
    return min(context.travel_time + max(spent, 0), FAR)


def content_of(context: Context, now: Instant) -> Content:
    """The context as filters see it."""
    known = {
        "origin": context.origin,
        "sender": context.sender,
        HOP_COUNT: context.hop_count,
        "arrivalTime": context.arrival_time,
        "brokerLatencyTime": None if context.arrival_time is None else now - context.arrival_time,
        TRAVEL_TIME: _travelled(context, now),
    }
    return {name: value for name, value in known.items() if value is not None}


def passes(filters: Iterable[Filter], seen: Content) -> bool:
    """Whether a context passes: there is no filter, or one of them is satisfied.  [B41]"""
    filters = tuple(filters)
    return not filters or any(satisfied(filter_, seen) for filter_ in filters)


def within(hops: int) -> Filter:
    """The filter that only what has come by so many brokers passes."""
    return Filter((Constraint(HOP_COUNT, "long", "<=", hops),))


def carried(filter_: Filter) -> Filter | None:
    """An incoming filter one broker farther from its owner; nothing if nothing can pass it there.

    What comes by will have made one hop more when it arrives here, so bounds on hops shrink by one
    [B42].  What only this broker can know is left to it.
    """
    moved = Filter(tuple(c for constraint in filter_.constraints for c in _moved(constraint)))
    reachable = Filter((*moved.constraints, Constraint(HOP_COUNT, "long", ">=", 1)))
    return None if reachable.empty else moved


def _moved(constraint: Constraint) -> Iterable[Constraint]:
    if constraint.name in LOCAL:
        return ()
    if constraint.name == HOP_COUNT and isinstance(constraint.value, int | float):
        return (Constraint(HOP_COUNT, constraint.type, constraint.op, constraint.value - 1),)
    if constraint.name == TRAVEL_TIME and constraint.op not in ("<", "<="):
        return ()
    return (constraint,)
