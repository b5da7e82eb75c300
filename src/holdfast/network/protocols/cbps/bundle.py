"""Functions on bundles: which parts are stored, which parts a peer accepts, what remains after a
withdrawal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from .border import agent_of
from .condition import CompileCondition, NetworkCondition
from .context import shift_one_hop
from .message import KINDS, Bundle, CbpsMessage, HostedNotification, Kind, RoutingSlip, SubscriptionRef

FIELDS: Mapping[Kind, str] = {
    "advertisement": "advertisements",
    "subscription": "subscriptions",
    "notification": "notifications",
    "slip": "slips",
    "active subscription": "active",
    "payload": "payloads",
}
"""The field of a bundle that contains each kind of component."""

ALL_KINDS = frozenset(KINDS)

_BY_WEIGHT: tuple[Kind, ...] = (
    "active subscription", "advertisement", "subscription", "notification", "slip", "payload"
)  # fmt: skip


def is_empty(bundle: Bundle) -> bool:
    """Return whether a bundle has no component. [B16]"""
    return not any(getattr(bundle, name) for name in FIELDS.values())


def stored_part(bundle: Bundle) -> Bundle:
    """Return the part of a bundle that is stored: everything but notifications and one-time slips.
    [B9, B27]"""
    slips = tuple(slip for slip in bundle.slips if slip.persistent)
    return replace(bundle, express=None, notifications=(), slips=slips)


def transient_part(bundle: Bundle) -> Bundle:
    """Return the part of a bundle that is not stored: notifications, one-time slips and payloads."""
    slips = tuple(slip for slip in bundle.slips if not slip.persistent)
    return replace(bundle, advertisements=(), subscriptions=(), active=(), slips=slips)


def has_transient_part(bundle: Bundle) -> bool:
    """Return whether a bundle has a part that is not stored, and that must not be delivered twice."""
    return bool(bundle.notifications) or any(not slip.persistent for slip in bundle.slips)


def has_stored_part(bundle: Bundle) -> bool:
    """Return whether a bundle has a part that is stored."""
    return bool(bundle.advertisements) or has_interest(bundle)


def is_droppable(message: CbpsMessage) -> bool:
    """Return whether a message may be dropped for a peer that is too slow.

    Only messages that report events may be dropped. A message with a stored part may not, nor may a message
    of an agent, because agents rely on delivery.
    """
    if isinstance(message, Bundle):
        is_transient = bool(message.notifications) and not has_stored_part(message)
        return is_transient and agent_of(message.key) is None
    return isinstance(message, HostedNotification)


def has_interest(bundle: Bundle) -> bool:
    """Return whether a bundle has a part that an unsubscription withdraws."""
    return bool(bundle.subscriptions or bundle.slips or bundle.active)


def is_equal_content(a: Bundle, b: Bundle) -> bool:
    """Return whether two bundles differ at most in their context."""
    return replace(a, context=None) == replace(b, context=None)


def subscription_refs(bundle: Bundle) -> list[SubscriptionRef]:
    """Return references to the subscriptions of a bundle."""
    return [SubscriptionRef(bundle.key, i) for i in range(len(bundle.subscriptions))]


def compile_conditions(bundle: Bundle, compile_condition: CompileCondition) -> dict[int, NetworkCondition]:
    """Compile the conditions of a bundle, by the index of their subscription.

    Raises a `UsageError` if a condition is invalid.
    """
    return {
        i: compile_condition(subscription.state.definition)
        for i, subscription in enumerate(bundle.subscriptions)
        if subscription.state is not None
    }


def main_kind(bundle: Bundle) -> str:
    """Return the most important kind of component in a bundle, as a word for statistics."""
    return next((kind for kind in _BY_WEIGHT if getattr(bundle, FIELDS[kind])), "nothing")


def without_advertisements(bundle: Bundle) -> Bundle:
    """Return the bundle without its advertisements."""
    return replace(bundle, advertisements=())


def without_interest(bundle: Bundle) -> Bundle:
    """Return the bundle without its subscriptions, slips and active subscriptions."""
    return replace(bundle, subscriptions=(), slips=(), active=())


def kinds_of(bundle: Bundle) -> set[Kind]:
    """Return the kinds of components in a bundle."""
    return {kind for kind, name in FIELDS.items() if getattr(bundle, name)}


def restrict_to(bundle: Bundle, kinds: frozenset[Kind]) -> Bundle:
    """Return the bundle restricted to the kinds that a peer accepts.  [B18]"""
    if kinds == ALL_KINDS:
        return bundle
    cleared: dict[str, Any] = {name: () for kind, name in FIELDS.items() if kind not in kinds}
    if "context" not in kinds:
        cleared["context"] = None
    if kinds <= {"notification", "context", "payload"}:
        cleared |= {"express": None, "incoming": (), "outgoing": ()}
    return replace(bundle, **cleared)


def is_source(kinds: frozenset[Kind]) -> bool:
    """Return whether a peer that accepts these kinds is a publisher that runs replicas itself."""
    return "subscription" in kinds and "advertisement" not in kinds


def drop_malformed_slips(bundle: Bundle) -> Bundle:
    """Remove slips whose content does not fit their type: a notification slip needs values.  [B27]"""
    slips = tuple(slip for slip in bundle.slips if _fits(slip))
    return bundle if slips == bundle.slips else replace(bundle, slips=slips)


def _fits(slip: RoutingSlip) -> bool:
    return slip.type == "subscription" or all(c.op == "=" for c in slip.filter.constraints)


def for_next_hop(bundle: Bundle) -> Bundle:
    """Return the bundle as the next broker receives it. [B42]

    Bounds on hops are reduced by one. If no event can satisfy these bounds any more, the stored parts are
    removed.
    """
    if not bundle.incoming:
        return bundle
    incoming = tuple(shifted for f in bundle.incoming if (shifted := shift_one_hop(f)) is not None)
    if incoming:
        return replace(bundle, incoming=incoming)
    return replace(without_interest(without_advertisements(bundle)), incoming=())
