"""The parts of a bundle: what the database stores of it, and where each part wants to go.

Content addresses are matched apart from what an advertisement, a subscription or a notification means:
every part is an address, or it floods.  [B26]
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, NamedTuple

from . import content
from .content import Box, Filter, box_of
from .database import Item
from .message import Advertisement, Bundle, Kind, Part, SlipType, Subscription
from .ranges import Value


class Address(NamedTuple):
    """A part of a bundle that goes where it matches; ``needs`` is what a peer must accept for it."""

    needs: Kind | None
    row: content.Kind
    box: Box
    column: content.Kind


def items(bundle: Bundle, owner: Any) -> Iterator[tuple[content.Kind, Item]]:
    """What the database stores of a bundle, state filters apart."""
    key = bundle.key
    for i, advertisement in enumerate(bundle.advertisements):
        group = _advertisement_group(bundle, advertisement)
        pinned = frozenset(pins(advertisement.filter))
        yield "advertisement", Item((key, "advertisement", i), advertisement.filter, owner, group, pinned)
    for i, subscription in enumerate(bundle.subscriptions):
        if subscription.state is None:
            group = _subscription_group(bundle, subscription)
            yield "subscription", Item((key, "subscription", i), subscription.filter, owner, group)
    for i, slip in enumerate(bundle.slips):
        kind: content.Kind = "subscription slip" if slip.type == "subscription" else "notification slip"
        yield kind, Item((key, "slip", i), slip.filter, owner, None)
    for i, active in enumerate(bundle.active):
        for j, strategy in enumerate(active.strategies):
            yield "subscription slip", Item((key, "strategy", i, j), strategy.slip, owner, None)


def state_items(bundle: Bundle) -> Iterator[tuple[Part, Item]]:
    """The subscriptions of a bundle that have a state filter; equal ones are one item."""
    for i, subscription in enumerate(bundle.subscriptions):
        if subscription.state is not None:
            key = subscription.filter.digest, subscription.state.definition
            yield Part(bundle.key, i), Item(key, subscription.filter, {}, None)


def _subscription_group(bundle: Bundle, subscription: Subscription) -> Hashable:
    """Covering needs equal context filters; what may not go farther covers nothing that may.  [B12, B13]"""
    if not subscription.aggregation or bundle.outgoing:
        return None
    return subscription.flood_forward, bundle.incoming


def _advertisement_group(bundle: Bundle, advertisement: Advertisement) -> Hashable:
    """As for subscriptions."""
    if not advertisement.aggregation or bundle.outgoing:
        return None
    return advertisement.flood_forward, bundle.incoming


def pins(filter_: Filter) -> dict[str, Value]:
    """The attributes for which a filter allows one value."""
    return {c.name: c.value for c in filter_.constraints if c.op == "=" and c.value is not None}


def flooding(bundle: Bundle, hidden: Collection[Hashable]) -> set[Kind]:
    """The kinds of which a part of a bundle goes to everybody who accepts it.  [B14]"""
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


def addresses(bundle: Bundle, hidden: Collection[Hashable]) -> Iterator[Address]:
    """The parts of a bundle that go where they match."""
    for notification in bundle.notifications:
        yield Address("notification", "notification", box_of(notification.content), "subscription")
    for i, subscription in enumerate(bundle.subscriptions):
        if (bundle.key, "subscription", i) not in hidden:
            yield Address("subscription", "subscription", subscription.filter.box, "advertisement")
    for slip in bundle.slips:
        if slip.type == "subscription":
            yield Address(None, "subscription slip", slip.filter.box, "advertisement")
        else:
            yield Address(None, "notification slip", slip.filter.box, "subscription")
    for active in bundle.active:
        for strategy in active.strategies:
            yield Address("active subscription", "subscription slip", strategy.slip.box, "advertisement")


def has_address(bundle: Bundle, hidden: Collection[Hashable], type_: SlipType) -> bool:
    """Whether there is something in a bundle that a slip of a type can have been written for."""
    if type_ == "notification":
        return bool(bundle.notifications or any(slip.type == type_ for slip in bundle.slips))
    in_sight = any((bundle.key, type_, i) not in hidden for i in range(len(bundle.subscriptions)))
    return bool(in_sight or bundle.active or any(slip.type == type_ for slip in bundle.slips))
