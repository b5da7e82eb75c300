"""Bundles in the thesis' XML: ``<ISCAMsg>`` and its parts.  [§6.4.2.2]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args
from xml.etree.ElementTree import Element, SubElement, tostring

from ....protocols.cbps.content import Constraint, Filter
from ....protocols.cbps.message import (
    ActiveSubscription,
    Advertisement,
    AgentStrategy,
    Bundle,
    BundleContext,
    BundleKey,
    CbpsSubscription,
    ConditionText,
    ExpressSlip,
    PublishedNotification,
    RoutingSlip,
    SlipType,
)
from ..fault import WireFault
from .content import (
    add_constraints,
    add_value,
    attribute,
    constraints_in,
    is_writable,
    put,
    require_attribute,
    values_in,
)
from .markup import parse_element

BUNDLES = ("ISCAMsg", "MessageBundle")
"""The tag of chapter 6, which is written, and the tag of chapter 4, which is also read."""

CONTEXT: Mapping[str, str] = {
    "origin": "origin",
    "sender": "sender",
    "hopCnt": "hop_count",
    "arrivalTime": "arrival_time",
    "travelTime": "travel_time",
}
"""The thesis' names of the context's attributes, and the fields of `BundleContext`."""

CACHE_ID = "cacheId"


def bundle_element(bundle: Bundle) -> Element:
    """Return a bundle as an element, in the order of the thesis' grammar."""
    root = Element(BUNDLES[0])
    put(root, "origin", bundle.key.origin)
    root.set("sequence", str(bundle.key.sequence))
    if bundle.lease is not None:
        root.set("lease", str(bundle.lease))
    if bundle.express is not None:
        _add_express(root, bundle.express)
    if bundle.context is not None:
        _add_context(root, bundle.context)
    for direction, filters in (("incoming", bundle.incoming), ("outgoing", bundle.outgoing)):
        for filter_ in filters:
            add_constraints(SubElement(root, "MessageContextFilter", type=direction), filter_)
    for field, add in _WRITERS.items():
        for part in getattr(bundle, field):
            add(root, part)
    return root


def read_bundle(root: Element, key: Callable[[], BundleKey]) -> Bundle:
    """Return the bundle of an element. ``key`` makes a key for a bundle without one."""
    parts: dict[str, list[Any]] = {}
    for child in root:
        if child.tag in _READERS:
            field, read = _READERS[child.tag]
            if (part := read(child)) is not None:
                parts.setdefault(_direction(child) if field == "" else field, []).append(part)
    fields: dict[str, Any] = {name: tuple(found) for name, found in parts.items()}
    fields |= {name: parts[name][-1] for name in ("context", "express") if name in parts}
    return Bundle(_key(root) or key(), lease=_whole(root, "lease"), **fields)


def _key(root: Element) -> BundleKey | None:
    origin, sequence = attribute(root, "origin"), _whole(root, "sequence")
    return None if origin is None or sequence is None else BundleKey(origin, sequence)


def _whole(element: Element, name: str) -> int | None:
    text = element.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise WireFault(f"<{element.tag}>: {name} {text[:40]!r} is not a whole number") from None


def _direction(element: Element) -> str:
    direction = require_attribute(element, "type")
    if direction not in ("incoming", "outgoing"):
        raise WireFault(f"<{element.tag}>: type {direction[:40]!r}; there is incoming, outgoing")
    return direction


# --- flags: what is not said, or not understood, is the default ---


def _flag(element: Element, name: str, default: bool) -> bool:
    return element.get(name) != "false" if default else element.get(name) == "true"


def _set_flag(element: Element, name: str, value: bool, default: bool) -> None:
    if value != default:
        element.set(name, "true" if value else "false")


# --- parts ---


def _add_advertisement(root: Element, it: Advertisement) -> None:
    element = SubElement(root, "Advertisement")
    _set_flag(element, "floodForward", it.flood_forward, True)
    _set_flag(element, "aggregation", it.aggregation, True)
    add_constraints(element, it.filter)


def _advertisement(element: Element) -> Advertisement:
    flood, aggregation = _flag(element, "floodForward", True), _flag(element, "aggregation", True)
    return Advertisement(constraints_in(element), flood, aggregation)


def _add_subscription(root: Element, it: CbpsSubscription) -> None:
    element = SubElement(root, "Subscription")
    _set_flag(element, "floodForward", it.flood_forward, False)
    _set_flag(element, "aggregation", it.aggregation, True)
    add_constraints(element, it.filter)
    if it.state is not None:
        put(SubElement(element, "StateFilter"), "definition", it.state.definition)


def _subscription(element: Element) -> CbpsSubscription:
    state = element.find("StateFilter")
    return CbpsSubscription(
        constraints_in(element),
        _flag(element, "floodForward", False),
        _flag(element, "aggregation", True),
        None if state is None else ConditionText(require_attribute(state, "definition")),
    )


def _add_notification(root: Element, it: PublishedNotification) -> None:
    element = SubElement(root, "Notification")
    _set_flag(element, "floodForward", it.flood_forward, False)
    for name, value in it.content.items():
        add_value(element, name, value)


def _notification(element: Element) -> PublishedNotification:
    return PublishedNotification(values_in(element), _flag(element, "floodForward", False))


def _add_slip(root: Element, it: RoutingSlip) -> None:
    element = SubElement(root, "RoutingSlip", type=it.type)
    _set_flag(element, "persistent", it.persistent, True)
    _add_address(element, it.type, it.filter)


def _slip(element: Element) -> RoutingSlip | None:
    """Parse a slip; return ``None`` for a slip that is empty or whose content does not fit its type. [B27]"""
    kind = _slip_type(element)
    if kind is None or not (address := _address(element, kind)).constraints:
        return None
    return RoutingSlip(kind, address, _flag(element, "persistent", True))


def _slip_type(element: Element) -> SlipType | None:
    kind = element.get("type")
    return cast(SlipType, kind) if kind in get_args(SlipType) else None


def _add_address(element: Element, kind: SlipType, address: Filter) -> None:
    """Write the address of a slip: constraints for the type ``subscription``, values for ``notification``."""
    if kind == "subscription":
        add_constraints(element, address)
        return
    for constraint in address.constraints:
        if constraint.op == "=" and constraint.value is not None:
            add_value(element, constraint.name, constraint.value)


def _address(element: Element, kind: SlipType) -> Filter:
    return constraints_in(element, ("ac",) if kind == "subscription" else ("av",))


def _add_express(root: Element, it: ExpressSlip) -> None:
    element = SubElement(root, "ExpressForwardingSlip", type=it.type)
    _add_address(element, it.type, Filter((Constraint(CACHE_ID, "text", "=", it.cache_id),)))


def _express(element: Element) -> ExpressSlip | None:
    """Parse an express slip. The type may be missing, as in the thesis' example for a notification."""
    kind = _slip_type(element) or ("notification" if element.find("av") is not None else "subscription")
    for constraint in _address(element, kind).constraints:
        if constraint.name == CACHE_ID and isinstance(constraint.value, str):
            return ExpressSlip(kind, constraint.value)
    return None


def _add_context(root: Element, it: BundleContext) -> None:
    element = SubElement(root, "MessageContext")
    for name, ours in CONTEXT.items():
        if (value := getattr(it, ours)) is not None:
            add_value(element, name, value)


def _context(element: Element) -> BundleContext:
    known = {CONTEXT[name]: value for name, value in values_in(element).items() if name in CONTEXT}
    for name, value in known.items():
        if not isinstance(value, str if name in ("origin", "sender") else int):
            raise WireFault(f"<{element.tag}>: {value!r} cannot be the {name}")
    return BundleContext(**known)  # type: ignore[arg-type]


def _add_active(root: Element, it: ActiveSubscription) -> None:
    """Write an active subscription with its strategies."""
    element = SubElement(root, "ActiveSubscription")
    for flag in ("again", "disabled"):
        if getattr(it, flag):
            element.set(flag, "true")
    if it.signed:
        put(element, "signed", it.signed)
    for strategy in it.strategies:
        part = SubElement(element, "ImplementationStrategy")
        add_constraints(SubElement(part, "DeploymentSlip", type="subscription"), strategy.slip)
        put(SubElement(part, "ImplementationClass"), "name", strategy.implementation)
        parameters = SubElement(part, "InitializationParameters")
        for name, value in strategy.parameters:
            parameter = SubElement(parameters, "parameter")
            put(parameter, "name", name)
            put(parameter, "value", value)
    if it.code:
        _write(SubElement(element, "ImplementationCode"), it.code)


def _active(element: Element) -> ActiveSubscription:
    code = element.find("ImplementationCode")
    return ActiveSubscription(
        tuple(map(_strategy, element.iterfind("ImplementationStrategy"))),
        "" if code is None else _text(code),
        signed=attribute(element, "signed") or "",
        again=element.get("again") == "true",
        disabled=element.get("disabled") == "true",
    )


def _strategy(element: Element) -> AgentStrategy:
    slip, named = element.find("DeploymentSlip"), element.find("ImplementationClass")
    if slip is None or named is None:
        raise WireFault("<ImplementationStrategy> needs a <DeploymentSlip> and an <ImplementationClass>")
    return AgentStrategy(
        constraints_in(slip, ("ac",)),
        require_attribute(named, "name"),
        tuple(_parameter(child) for child in element.iterfind("InitializationParameters/*")),
    )


def _parameter(element: Element) -> tuple[str, str]:
    """Parse ``<parameter name="uid" value="A"/>``, which allows any name, or ``<uid value="A"/>`` as in the
    thesis.
    """
    name = attribute(element, "name") if element.tag == "parameter" else None
    return element.tag if name is None else name, require_attribute(element, "value")


# --- free text ---


def _write(element: Element, text: str) -> None:
    """Write a text into an element. A text that XML would change becomes an attribute."""
    if is_writable(text):
        element.text = text
    else:
        put(element, "text", text)


def _text(element: Element) -> str:
    return attribute(element, "text") or element.text or ""


def _add_payload(root: Element, payload: str) -> None:
    """Write a payload: markup as elements, any other payload as text."""
    if (parsed := _markup(payload)) is not None:
        root.append(parsed)
    else:
        _write(SubElement(root, "Payload"), payload)


def _markup(payload: str) -> Element | None:
    """Parse a payload as elements; ``None`` if it is not markup or XML would change it."""
    if not payload.startswith("<") or not is_writable(payload):
        return None
    try:
        element = parse_element(f"<Payload>{payload}</Payload>".encode())
    except WireFault:
        return None
    return element if len(element) and _payload(element) == payload else None


def _payload(element: Element) -> str:
    if not len(element):
        return _text(element)
    inner = "".join(tostring(child, encoding="unicode") for child in element)
    return (element.text or "") + inner


_READERS: Mapping[str, tuple[str, Callable[[Element], Any]]] = {
    "ExpressForwardingSlip": ("express", _express),
    "MessageContext": ("context", _context),
    "MessageContextFilter": ("", constraints_in),
    "RoutingSlip": ("slips", _slip),
    "Advertisement": ("advertisements", _advertisement),
    "Subscription": ("subscriptions", _subscription),
    "Notification": ("notifications", _notification),
    "ActiveSubscription": ("active", _active),
    "Payload": ("payloads", _payload),
}
"""For each part, the field of a bundle and the function that reads the part. A context filter names its field
itself.
"""

_WRITERS: Mapping[str, Callable[[Element, Any], None]] = {
    "slips": _add_slip,
    "advertisements": _add_advertisement,
    "subscriptions": _add_subscription,
    "notifications": _add_notification,
    "active": _add_active,
    "payloads": _add_payload,
}
