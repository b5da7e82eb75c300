"""Conversion of a document to frozen values. Errors carry the position, the expected form, and a hint.

Any dataclass can be a target: its fields define the allowed keys and their defaults. A key is a field's name
with hyphens and without the unit at its end (``range_m`` is ``range: 30 m``). Where several classes are
possible, the ``kind`` in the document selects one of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ...errors import did_you_mean
from ...model.quantity import Quantity
from .document import Document
from .fault import ScenarioError, at

T = TypeVar("T")

_WORDS: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "list": "a list",
    "array": "a list",
    "dict": "a mapping (key: value)",
    "object": "a mapping (key: value)",
    "NoneType": "nothing",
    "null": "nothing",
}
_CHOICE = re.compile(r"Invalid enum value '?(.*?)'?")


def convert(document: Document, kind: type[T]) -> T:
    """Return the values of a document as a frozen value of type ``kind``; raise a `DefinitionError` at their
    position.
    """
    try:
        values: T = value(kind, document.values)
        return values
    except ScenarioError as fault:
        raise document.error_at(fault) from None


def value(kind: Any, given: Any) -> Any:
    """Convert a value of the document to a type; raise a `ScenarioError` if it does not fit."""
    if is_dataclass(kind):
        return _dataclass(kind, given)
    if (quantity := quantity_in(kind)) is not None:
        return _quantity(quantity, given)
    match get_origin(kind):
        case origin if origin in (Union, UnionType):
            return _one_of(options(kind), given)
        case origin if origin is tuple:
            return _list(get_args(kind), given)
        case origin if origin is Mapping:
            _, item_kind = get_args(kind)
            return {key: _value_at(key, item_kind, item) for key, item in _expect("dict", given).items()}
    return _plain(kind, given)


def _value_at(step: str | int, kind: Any, given: Any) -> Any:
    with at(step):
        return value(kind, given)


def _expect(kind: str, given: Any) -> Any:
    """Return the value if its type has the name ``kind``, which is ``dict`` or ``list``; otherwise raise an
    error.
    """
    name = type(given).__name__
    if name != kind:
        raise ScenarioError(f"expected {_WORDS[kind]}; got {_WORDS.get(name, given)}")
    return given


# Parts: mappings with certain keys.


def keys(part: type) -> dict[str, tuple[str, Any]]:
    """Return the keys of a part of the document, each with the field that it sets and the field's type.

    >>> from holdfast.network.sim.propagation import UnitDisk
    >>> [(key, name) for key, (name, _) in keys(UnitDisk).items()]
    [('range', 'range_m'), ('interference', 'interference_m'), ('quality', 'quality')]
    """
    types = get_type_hints(part, include_extras=True)
    return {_key_of(f.name, types[f.name]): (f.name, types[f.name]) for f in fields(part)}


def _key_of(name: str, kind: Any) -> str:
    suffixes = [quantity.suffix for quantity in map(quantity_in, options(kind)) if quantity]
    return name.removesuffix("".join(suffixes)).rstrip("_").replace("_", "-")


def _dataclass(part: Any, given: Any) -> Any:
    """Convert a mapping to a dataclass; raise a `ScenarioError` for unknown and missing keys."""
    known = keys(part)
    every = ["kind", *known] if hasattr(part, "kind") else list(known)
    for key in _expect("dict", given):
        if key not in every:
            hint = did_you_mean(key, every) or f"There is {', '.join(every)}."
            raise ScenarioError(f"there is no '{key}' here", (key,), hint=hint, key=True)
    values = {name: _value_at(key, kind, given[key]) for key, (name, kind) in known.items() if key in given}
    needed = {f.name for f in fields(part) if f.default is MISSING and f.default_factory is MISSING}
    for key, (name, kind) in known.items():
        if name in needed - values.keys():
            quantity = quantity_in(kind)
            example = None if quantity is None else f"Expected {quantity.expectation}."
            raise ScenarioError(f"'{key}' is missing", hint=example)
    with at():
        return part(**values)


# Unions.


def options(kind: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union type, or the type itself as the only alternative."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def kinds(several: tuple[Any, ...]) -> dict[str, Any]:
    """Return the classes that a ``kind`` in the document selects, by the value of ``kind``."""
    return {option.kind: option for option in several if hasattr(option, "kind")}


def _one_of(several: tuple[Any, ...], given: Any) -> Any:
    """Convert a value to one of several types; the ``kind`` selects among classes."""
    if given is None and NoneType in several:
        return None
    parts = [option for option in several if is_dataclass(option)]
    lists = [option for option in several if get_origin(option) is tuple]
    plain = [option for option in several if option in _SCALARS or get_origin(option) in (Literal, Annotated)]
    if isinstance(given, list) and lists:
        return value(lists[0], given)
    if parts and (isinstance(given, dict) or not plain):
        return _dataclass(_of_kind(kinds(several), _expect("dict", given)) or parts[0], given)
    return value(plain[0], given) if len(plain) == 1 else _plain(Union[tuple(plain)], given)  # noqa: UP007


_SCALARS = (int, float, str, bool)


def _of_kind(known: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    if not known:
        return None
    if "kind" not in given:
        raise ScenarioError("'kind' is missing", hint=f"There is {', '.join(known)}.")
    if given["kind"] not in known:
        raise _no_choice(str(given["kind"]), known, ("kind",))
    return known[given["kind"]]


def _no_choice(word: str, known: Any, route: tuple[str, ...] = ()) -> ScenarioError:
    hint = did_you_mean(word, known) or f"There is {', '.join(known)}."
    return ScenarioError(f"there is no such choice as '{word}'", route, hint=hint)


# Lists, quantities, and plain values.


def _list(items: tuple[Any, ...], given: Any) -> tuple[Any, ...]:
    _expect("list", given)
    kinds = (items[0],) * len(given) if items[-1] is ... else items
    if len(kinds) != len(given):
        raise ScenarioError(f"expected a list of {len(kinds)}")
    return tuple(_value_at(i, kind, item) for i, (kind, item) in enumerate(zip(kinds, given, strict=True)))


def quantity_in(kind: Any) -> Quantity | None:
    """Return the quantity with which a number's type is annotated; ``None`` if there is none."""
    known = getattr(kind, "__metadata__", ())
    return next((item for item in known if isinstance(item, Quantity)), None)


def _quantity(quantity: Quantity, given: Any) -> float:
    try:
        return quantity.read(given)
    except ValueError as error:
        raise ScenarioError(str(error)) from None


def _plain(kind: Any, given: Any) -> Any:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        if (choice := _CHOICE.fullmatch(str(error))) is None:
            raise ScenarioError(_reword(str(error))) from None
    known = [word for option in options(kind) if get_origin(option) is Literal for word in get_args(option)]
    raise _no_choice(choice[1], known)


def _reword(message: str) -> str:
    """Return a message of msgspec in the words of a scenario file.

    >>> _reword("Expected `int`, got `str`"), _reword("Expected `int` >= 1")
    ('expected a whole number; got text', 'expected a whole number >= 1')
    """

    def words(match: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(name, name) for name in match[1].split(" | "))

    text = re.sub(r"`([^`]+)`", words, message).replace(", got ", "; got ")
    return text[:1].lower() + text[1:]
