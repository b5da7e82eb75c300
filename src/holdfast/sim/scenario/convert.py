"""From a document to values; a mistake is told with its place, what was expected, and what would do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from ...errors import DefinitionError, did_you_mean
from .document import Document, Route
from .quantity import quantity

T = TypeVar("T")

_WORDS: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping (key: value)",
    "null": "nothing",
}
_SAID = re.compile(r"(?P<message>.*?)(?: - at `\$(?P<route>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_MISSING = re.compile(r"Object missing required field `(.+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_INVALID = re.compile(r"Invalid (?:enum )?value (.+)")
_LENGTH = re.compile(r"Expected `array` of length (\d+).*")


def convert(document: Document, kind: type[T]) -> T:
    """The values of a document as a frozen value of that kind."""
    try:
        return msgspec.convert(document.values, kind, dec_hook=quantity)
    except msgspec.ValidationError as error:
        found = _SAID.fullmatch(str(error))
        assert found is not None
        route = tuple(name or int(index) for name, index in _STEP.findall(found["route"] or ""))
        raise _explained(document, kind, route, found["message"]) from None


def _explained(document: Document, kind: type, route: Route, message: str) -> DefinitionError:
    if missing := _MISSING.fullmatch(message):
        choices = _kinds(kind, route, document.values) if missing[1] == "kind" else []
        hint = (
            f"There is {', '.join(choices)}." if choices else _example(kind, (*route, missing[1]), document)
        )
        return document.fault(route, f"'{missing[1]}' is missing", hint=hint)
    if unknown := _UNKNOWN.fullmatch(message):
        known = _fields(kind, route, document.values)
        hint = did_you_mean(unknown[1], known) or f"There is {', '.join(known)}."
        return document.fault((*route, unknown[1]), f"there is no '{unknown[1]}' here", hint=hint, key=True)
    if invalid := _INVALID.fullmatch(message):
        word = invalid[1].strip("'")
        choices = _choices(kind, route, document.values)
        hint = did_you_mean(word, choices) or f"There is {', '.join(choices)}."
        return document.fault(route, f"there is no such choice as '{word}'", hint=hint)
    if length := _LENGTH.fullmatch(message):
        return document.fault(route, f"expected a list of {length[1]}")
    return document.fault(route, _worded(message))


def _worded(message: str) -> str:
    """What the library says, in the words of a file.

    >>> _worded("Expected `int`, got `str`"), _worded("Expected `int` >= 1")
    ('expected a whole number; got text', 'expected a whole number >= 1')
    """

    def words(match: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(name, name) for name in match[1].split(" | "))

    text = re.sub(r"`([^`]+)`", words, message).replace(", got ", "; got ")
    return text[:1].lower() + text[1:]


# What may stand at a place: found from the types.


def _type_at(kind: type, route: Route, values: Any) -> inspect.Type:
    """The type of what is expected at the end of the route, as far as the values say which it is."""
    found = inspect.type_info(kind)
    for step in route:
        found = _narrowed(found, values)
        match found:
            case inspect.StructType(fields=fields):
                found = next((f.type for f in fields if f.encode_name == step), inspect.AnyType())
            case inspect.ListType(item_type=item):
                found = item
            case _:
                return inspect.AnyType()
        values = _value_at(values, step)
    return found


def _narrowed(found: inspect.Type, values: Any) -> inspect.Type:
    """Of several types the one that the values choose by their kind, or the one that holds others."""
    options = _options(found)
    for option in options:
        match option:
            case inspect.StructType(tag=None) | inspect.ListType():
                if isinstance(values, list) == isinstance(option, inspect.ListType):
                    return option
            case inspect.StructType(tag=tag) if _value_at(values, "kind") == tag:
                return option
    return options[0]


def _options(found: inspect.Type) -> tuple[inspect.Type, ...]:
    return found.types if isinstance(found, inspect.UnionType) else (found,)


def _value_at(values: Any, step: str | int) -> Any:
    try:
        return values[step]
    except (LookupError, TypeError):
        return None


def _fields(kind: type, route: Route, values: Any) -> list[str]:
    there = values
    for step in route:
        there = _value_at(there, step)
    found = _narrowed(_type_at(kind, route, values), there)
    if not isinstance(found, inspect.StructType):
        return []
    tag = [found.tag_field] if found.tag_field else []
    return [*tag, *(f.encode_name for f in found.fields)]


def _kinds(kind: type, route: Route, values: Any) -> list[str]:
    options = _options(_type_at(kind, route, values))
    return [str(option.tag) for option in options if isinstance(option, inspect.StructType) and option.tag]


def _choices(kind: type, route: Route, values: Any) -> list[str]:
    """The words that may stand at the end of the route."""
    if route and route[-1] == "kind" and (kinds := _kinds(kind, route[:-1], values)):
        return kinds
    found = _type_at(kind, route, values)
    return [
        str(v) for option in _options(found) if isinstance(option, inspect.LiteralType) for v in option.values
    ]


def _example(kind: type, route: Route, document: Document) -> str | None:
    """What could stand there, for one kind of quantity or another."""
    for option in _options(_type_at(kind, route, document.values)):
        if isinstance(option, inspect.CustomType):
            try:
                quantity(option.cls, None)
            except ValueError as error:
                return str(error).split(";")[0].capitalize() + "."
    return None
