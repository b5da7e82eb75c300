"""Bundles: what of them is stored, what is accepted, and what a withdrawal leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from .border import agent_of
from .context import carried
from .message import KINDS, Bundle, Kind, Message, RoutingSlip, Said

FIELD: Mapping[Kind, str] = {
    "advertisement": "advertisements",
    "subscription": "subscriptions",
    "notification": "notifications",
    "slip": "slips",
    "active subscription": "active",
    "payload": "payloads",
}
"""Where a bundle keeps its components."""

EVERYTHING = frozenset(KINDS)

_BY_WEIGHT: tuple[Kind, ...] = (
    "active subscription", "advertisement", "subscription", "notification", "slip", "payload"
)  # fmt: skip


def is_empty(bundle: Bundle) -> bool:
    """Whether it carries nothing.  [B16]"""
    return not any(getattr(bundle, name) for name in FIELD.values())


def lasting(bundle: Bundle) -> Bundle:
    """What of a bundle is stored: notifications and slips for once are not.  [B9, B27]"""
    slips = tuple(slip for slip in bundle.slips if slip.persistent)
    return replace(bundle, express=None, notifications=(), slips=slips)


def passing(bundle: Bundle) -> Bundle:
    """What of a bundle is not stored."""
    slips = tuple(slip for slip in bundle.slips if not slip.persistent)
    return replace(bundle, advertisements=(), subscriptions=(), active=(), slips=slips)


def is_passing(bundle: Bundle) -> bool:
    """Whether there is something in it that is not stored, and must not come twice."""
    return bool(bundle.notifications) or any(not slip.persistent for slip in bundle.slips)


def is_stored(bundle: Bundle) -> bool:
    """Whether there is something in it to be stored."""
    return bool(bundle.advertisements) or has_interest(bundle)


def is_losable(message: Message) -> bool:
    """Whether a message may be given up for a peer that cannot keep up: it says what happened, and nothing
    in it is stored.  What agents say may not: they count on being heard."""
    if isinstance(message, Bundle):
        said = bool(message.notifications) and not is_stored(message)
        return said and agent_of(message.key) is None
    return isinstance(message, Said)


def has_interest(bundle: Bundle) -> bool:
    """Whether there is something in it that an unsubscription withdraws."""
    return bool(bundle.subscriptions or bundle.slips or bundle.active)


def says_the_same(a: Bundle, b: Bundle) -> bool:
    """Whether two bundles differ at most in how they came."""
    return replace(a, context=None) == replace(b, context=None)


def kind_of(bundle: Bundle) -> str:
    """What a bundle is mostly, in a word, for accounts."""
    return next((kind for kind in _BY_WEIGHT if getattr(bundle, FIELD[kind])), "nothing")


def without_advertisements(bundle: Bundle) -> Bundle:
    """What is left when its advertisements are withdrawn."""
    return replace(bundle, advertisements=())


def without_interest(bundle: Bundle) -> Bundle:
    """What is left when its subscriptions are withdrawn, and what goes with them."""
    return replace(bundle, subscriptions=(), slips=(), active=())


def kinds_of(bundle: Bundle) -> set[Kind]:
    """The kinds of which there is something in a bundle."""
    return {kind for kind, name in FIELD.items() if getattr(bundle, name)}


def accepted(bundle: Bundle, kinds: frozenset[Kind]) -> Bundle:
    """What of a bundle a peer is sent.  [B18]"""
    if kinds == EVERYTHING:
        return bundle
    dropped: dict[str, Any] = {name: () for kind, name in FIELD.items() if kind not in kinds}
    if "context" not in kinds:
        dropped["context"] = None
    if kinds <= {"notification", "context", "payload"}:
        dropped |= {"express": None, "incoming": (), "outgoing": ()}
    return replace(bundle, **dropped)


def is_source(kinds: frozenset[Kind]) -> bool:
    """Whether who accepts these kinds is a publisher that runs replicas itself."""
    return "subscription" in kinds and "advertisement" not in kinds


def well_formed(bundle: Bundle) -> Bundle:
    """A bundle without slips whose content does not fit their type: a notification has values.  [T27]"""
    slips = tuple(slip for slip in bundle.slips if _fits(slip))
    return bundle if slips == bundle.slips else replace(bundle, slips=slips)


def _fits(slip: RoutingSlip) -> bool:
    return slip.type == "subscription" or all(c.op == "=" for c in slip.filter.constraints)


def onward(bundle: Bundle) -> Bundle:
    """A bundle as the next broker gets it: bounds on hops are one less, and where nothing could pass
    them, nothing is there to be stored.  [B42]"""
    if not bundle.incoming:
        return bundle
    incoming = tuple(moved for f in bundle.incoming if (moved := carried(f)) is not None)
    if incoming:
        return replace(bundle, incoming=incoming)
    return replace(without_interest(without_advertisements(bundle)), incoming=())
