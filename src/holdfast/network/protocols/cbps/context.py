"""The context of a message, that is, the path and the times of a bundle, and filters on it. [B40–B43]

Filters use the attributes ``origin``, ``sender``, ``hopCnt``, ``arrivalTime``, ``brokerLatencyTime`` and
``travelTime``. Times and durations are integers in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ....model.instant import Duration, Instant
from ....model.protocol import Peer
from .content import Constraint, Content, Filter, satisfies
from .message import Bundle, BundleContext, CbpsMessage

HOP_COUNT, TRAVEL_TIME = "hopCnt", "travelTime"
FAR = 1 << 62
"""Upper bound of hop counts and of durations in microseconds."""
LOCAL = frozenset({"sender", "arrivalTime", "brokerLatencyTime"})
"""Attributes that have a meaning at a single broker only."""


def stamp_arrival(message: CbpsMessage, now: Instant) -> CbpsMessage:
    """Write the arrival time into a bundle; hosts call this before the bundle is queued."""
    if not isinstance(message, Bundle):
        return message
    context = replace(message.context or BundleContext(), arrival_time=now)
    return replace(message, context=context)


def add_output_delay(message: CbpsMessage, waited: Duration) -> CbpsMessage:
    """Add the time that a bundle spent in an output queue to its travel time."""
    if not isinstance(message, Bundle) or message.context is None or waited <= 0:
        return message
    travel_time = min(message.context.travel_time + waited, FAR)
    return replace(message, context=replace(message.context, travel_time=travel_time))


def context_from_client(bundle: Bundle, sender: Peer, now: Instant) -> BundleContext:
    """Return the context of a bundle at the broker to which a client sent it.

    Of the client's own context only the arrival time is used, because the host has written it.
    """
    given = bundle.context or BundleContext()
    return BundleContext(sender, sender, 1, now if given.arrival_time is None else given.arrival_time)


def context_from_broker(bundle: Bundle, sender: Peer, now: Instant) -> BundleContext:
    """Return the context of a bundle at a broker that received it from a broker. The first broker counts as 1
    hop.
    """
    given = bundle.context or BundleContext()
    return BundleContext(
        origin=bundle.key.origin if given.origin is None else given.origin,
        sender=sender,
        hop_count=min(max(given.hop_count, 0), FAR) + 1,
        arrival_time=now if given.arrival_time is None else given.arrival_time,
        travel_time=min(max(given.travel_time, 0), FAR),
    )


def context_on_departure(context: BundleContext, now: Instant) -> BundleContext:
    """Return the context with which a bundle leaves, including the time that it spent at this broker."""
    assert context.arrival_time is not None
    return replace(context, arrival_time=None, travel_time=_travel_time(context, now))


def _travel_time(context: BundleContext, now: Instant) -> Duration:
    """Return the travel time in µs, limited so that it can always be encoded and increased."""
    spent = 0 if context.arrival_time is None else now - context.arrival_time
    return min(context.travel_time + max(spent, 0), FAR)


def content_of(context: BundleContext, now: Instant) -> Content:
    """Return a context as content, to which filters on contexts apply."""
    attributes = {
        "origin": context.origin,
        "sender": context.sender,
        HOP_COUNT: context.hop_count,
        "arrivalTime": context.arrival_time,
        "brokerLatencyTime": None if context.arrival_time is None else now - context.arrival_time,
        TRAVEL_TIME: _travel_time(context, now),
    }
    return {name: value for name, value in attributes.items() if value is not None}


def passes_any(filters: Iterable[Filter], context: Content) -> bool:
    """Return whether a context satisfies one of the filters; true without filters. [B41]"""
    filters = tuple(filters)
    return not filters or any(satisfies(filter_, context) for filter_ in filters)


def within_hops(hops: int) -> Filter:
    """Return the filter for bundles that passed at most ``hops`` brokers."""
    return Filter((Constraint(HOP_COUNT, "long", "<=", hops),))


def shift_one_hop(filter_: Filter) -> Filter | None:
    """Return an incoming filter as the next broker applies it; ``None`` if no bundle can satisfy it there.

    A message will have made one hop more when it arrives here, so bounds on hops are reduced by one [B42].
    Constraints that only this broker can evaluate are omitted.
    """
    shifted = Filter(tuple(c for constraint in filter_.constraints for c in _shift_constraint(constraint)))
    reachable = Filter((*shifted.constraints, Constraint(HOP_COUNT, "long", ">=", 1)))
    return None if reachable.is_empty else shifted


def _shift_constraint(constraint: Constraint) -> Iterable[Constraint]:
    if constraint.name in LOCAL:
        return ()
    if constraint.name == HOP_COUNT and isinstance(constraint.value, int | float):
        return (Constraint(HOP_COUNT, constraint.type, constraint.op, constraint.value - 1),)
    if constraint.name == TRAVEL_TIME and constraint.op not in ("<", "<="):
        return ()
    return (constraint,)
