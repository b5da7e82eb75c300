"""The parts of a bundle: the items that the database stores, and the addresses to which the bundle goes.

Every part of a bundle is either an address or floods. Addresses are matched in the same way for
advertisements, subscriptions and notifications. [B26]
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, NamedTuple

from . import content
from .content import Box, Filter, box_of
from .database import Item
from .message import Advertisement, Bundle, CbpsSubscription, Kind, SlipType, SubscriptionRef
from .ranges import Value


class PartAddress(NamedTuple):
    """A part of a bundle that goes to matching peers. ``needs`` is the kind that a peer must accept."""

    needs: Kind | None
    row: content.Kind
    box: Box
    column: content.Kind


def database_items(bundle: Bundle, owner: Any) -> Iterator[tuple[content.Kind, Item]]:
    """Yield the items of a bundle for the database, except subscriptions with a state filter."""
    key = bundle.key
    for i, advertisement in enumerate(bundle.advertisements):
        group = _group(bundle, advertisement)
        pinned = frozenset(pins(advertisement.filter))
        yield "advertisement", Item((key, "advertisement", i), advertisement.filter, owner, group, pinned)
    for i, subscription in enumerate(bundle.subscriptions):
        if subscription.state is None:
            group = _group(bundle, subscription)
            yield "subscription", Item((key, "subscription", i), subscription.filter, owner, group)
    for i, slip in enumerate(bundle.slips):
        kind: content.Kind = "subscription slip" if slip.type == "subscription" else "notification slip"
        yield kind, Item((key, "slip", i), slip.filter, owner, None)
    for i, active in enumerate(bundle.active):
        for j, strategy in enumerate(active.strategies):
            yield "subscription slip", Item((key, "strategy", i, j), strategy.slip, owner, None)


def state_items(bundle: Bundle) -> Iterator[tuple[SubscriptionRef, Item]]:
    """Yield the subscriptions with a state filter. Equal subscriptions have equal keys."""
    for i, subscription in enumerate(bundle.subscriptions):
        if subscription.state is not None:
            key = subscription.filter.digest, subscription.state.definition
            yield SubscriptionRef(bundle.key, i), Item(key, subscription.filter, {}, None)


def _group(bundle: Bundle, part: CbpsSubscription | Advertisement) -> Hashable:
    """Return the covering group of a part; ``None`` if it takes no part in covering.

    Covering needs equal context filters and an unrestricted range. [B12, B13]
    """
    return None if not part.aggregation or bundle.outgoing else (part.flood_forward, bundle.incoming)


def pins(filter_: Filter) -> dict[str, Value]:
    """Return the attributes for which a filter allows exactly one value, with that value."""
    return {c.name: c.value for c in filter_.constraints if c.op == "=" and c.value is not None}


def kinds_to_flood(bundle: Bundle, hidden: Collection[Hashable]) -> set[Kind]:
    """Return the kinds of the parts of a bundle that go to every peer that accepts their kind. [B14]"""
    kinds: set[Kind] = set()
    if any(notification.flood_forward for notification in bundle.notifications):
        kinds.add("notification")
    for i, advertisement in enumerate(bundle.advertisements):
        if advertisement.flood_forward and (bundle.key, "advertisement", i) not in hidden:
            kinds.add("advertisement")
    for i, subscription in enumerate(bundle.subscriptions):
        if subscription.flood_forward and (bundle.key, "subscription", i) not in hidden:
            kinds.add("subscription")
    return kinds


def addresses(bundle: Bundle, hidden: Collection[Hashable]) -> Iterator[PartAddress]:
    """Yield the parts of a bundle that go to matching peers."""
    for notification in bundle.notifications:
        yield PartAddress("notification", "notification", box_of(notification.content), "subscription")
    for i, subscription in enumerate(bundle.subscriptions):
        if (bundle.key, "subscription", i) not in hidden:
            yield PartAddress("subscription", "subscription", subscription.filter.box, "advertisement")
    for slip in bundle.slips:
        if slip.type == "subscription":
            yield PartAddress(None, "subscription slip", slip.filter.box, "advertisement")
        else:
            yield PartAddress(None, "notification slip", slip.filter.box, "subscription")
    for active in bundle.active:
        for strategy in active.strategies:
            yield PartAddress("active subscription", "subscription slip", strategy.slip.box, "advertisement")


def has_address(bundle: Bundle, hidden: Collection[Hashable], type_: SlipType) -> bool:
    """Whether a slip of a type can have been written for a part of a bundle."""
    if type_ == "notification":
        return bool(bundle.notifications or any(slip.type == type_ for slip in bundle.slips))
    in_sight = any((bundle.key, type_, i) not in hidden for i in range(len(bundle.subscriptions)))
    return bool(in_sight or bundle.active or any(slip.type == type_ for slip in bundle.slips))
