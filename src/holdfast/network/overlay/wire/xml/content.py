"""Attribute values and constraints in the thesis' XML: ``<av …/>`` and ``<ac …/>``.  [§6.4.2.2.1–2]"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar
from xml.etree.ElementTree import Element, SubElement

from ....protocols.cbps.content import Constraint, Filter, Op
from ....protocols.cbps.ranges import LONG, Type, Value, type_of
from ..fault import WireFault

T = TypeVar("T")

TYPES: Mapping[str, Type] = {"long": "long", "double": "double", "string": "text", "boolean": "bool"}
OPS: Mapping[str, Op] = {
    "LT": "<", "LE": "<=", "EQ": "=", "GE": ">=", "GT": ">", "NE": "!=", "ANY": "any", "PREFIX": "prefix",
}  # fmt: skip
_TYPE_NAMES = {ours: theirs for theirs, ours in TYPES.items()}
_OP_NAMES = {ours: theirs for theirs, ours in OPS.items()}
_TRUTHS = {"true": True, "false": False}
_UNWRITABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot contain, or would change."""


def is_writable(text: str) -> bool:
    """Whether XML preserves the text unchanged."""
    return _UNWRITABLE.search(text) is None


def put(element: Element, name: str, text: str) -> None:
    """Set an attribute; a text that XML cannot contain is written as the hex of its UTF-8."""
    if is_writable(text):
        element.set(name, text)
    else:
        element.set(f"{name}.hex", text.encode("utf-8", "surrogatepass").hex())


def attribute(element: Element, name: str) -> str | None:
    """Return an attribute of an element; ``None`` if it is missing."""
    if (coded := element.get(f"{name}.hex")) is None:
        return element.get(name)
    try:
        return bytes.fromhex(coded).decode("utf-8", "surrogatepass")
    except ValueError:
        raise WireFault(f"<{element.tag}>: {name}.hex is not the hex of a text in UTF-8") from None


def require_attribute(element: Element, name: str) -> str:
    """Return an attribute of an element; raise a fault if it is missing."""
    if (text := attribute(element, name)) is None:
        raise WireFault(f"<{element.tag}> lacks the attribute {name}")
    return text


def add_value(parent: Element, name: str, value: Value) -> None:
    """Write a name with its value as an element ``<av>``."""
    element = SubElement(parent, "av")
    put(element, "name", name)
    element.set("type", _TYPE_NAMES[type_of(value)])
    put(element, "value", _value_text(value))


def add_constraint(parent: Element, constraint: Constraint) -> None:
    """Write a constraint as an element ``<ac>``. The operator ``ANY`` has no value."""
    element = SubElement(parent, "ac")
    put(element, "name", constraint.name)
    element.set("type", _TYPE_NAMES[constraint.type])
    element.set("op", _OP_NAMES[constraint.op])
    if constraint.value is not None:
        put(element, "value", _value_text(constraint.value))


def add_constraints(parent: Element, filter_: Filter) -> None:
    """Write all constraints of a filter as children of an element."""
    for constraint in filter_.constraints:
        add_constraint(parent, constraint)


def values_in(parent: Element) -> dict[str, Value]:
    """Return the values of the ``<av>`` children of an element, by name."""
    return {require_attribute(av, "name"): _value(av, _type(av)) for av in parent.iterfind("av")}


def constraints_in(parent: Element, tags: Iterable[str] = ("ac", "av")) -> Filter:
    """Return the constraints of an element. An attribute value becomes a constraint of equality. [B26]"""
    return Filter(tuple(_constraint(child) for child in parent if child.tag in tags))


def _constraint(element: Element) -> Constraint:
    kind = _type(element)
    op: Op = "=" if element.tag == "av" else _lookup(element, "op", OPS)
    value = None if op == "any" else _value(element, kind)
    return Constraint(require_attribute(element, "name"), kind, op, value)


def _type(element: Element) -> Type:
    return _lookup(element, "type", TYPES)


def _lookup(element: Element, name: str, known: Mapping[str, T]) -> T:
    word = require_attribute(element, name)
    if word not in known:
        raise WireFault(f"<{element.tag}>: {name} {word[:40]!r}; there is {', '.join(known)}")
    return known[word]


def _value(element: Element, kind: Type) -> Value:
    text = require_attribute(element, "value")
    try:
        return _read(text, kind)
    except (ValueError, KeyError):
        raise WireFault(f"<{element.tag}>: value {text[:40]!r} is not a {_TYPE_NAMES[kind]}") from None


def _read(text: str, kind: Type) -> Value:
    """Return the value of a text for a type; raise a `ValueError` or `KeyError` if it does not fit."""
    match kind:
        case "text":
            return text
        case "bool":
            return _TRUTHS[text]
        case "long" if (whole := int(text)) in LONG:
            return whole
        case "double":
            return float(text)
    raise ValueError


def _value_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
