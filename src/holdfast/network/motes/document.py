"""A YAML document with the position of each of its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from ...errors import DefinitionError, InputError, Place
from .fault import Route, ScenarioError

MOST = 100_000
"""The greatest number of values of a document. With aliases, even a short document could have any number."""


@dataclass(frozen=True)
class Document:
    """The values of a YAML file, with their positions for error messages."""

    values: Any
    places: Mapping[Route, Place]
    keys: Mapping[Route, Place]
    """The position of each key in the file."""
    text: str
    file: str

    def error_at(self, fault: ScenarioError) -> DefinitionError:
        """Return an error with its position: that of the value or its key, or of the enclosing value if it is
        missing.
        """
        route, places = fault.route, self.keys if fault.key else self.places
        place = places.get(route)
        while place is None and route:
            route = route[:-1]
            place = self.places.get(route)
        return DefinitionError(fault.message, place, hint=fault.hint, text=self.text, file=self.file)

    def error_inside(self, route: Route, error: DefinitionError) -> DefinitionError:
        """Return an error in an embedded definition, with its position in the document if the definition's
        lines can be located.
        """
        place, lines = error.place, self.text.splitlines()
        if place is None or error.text is None:
            return self.error_at(ScenarioError(error.message, route, hint=error.hint))
        wrong, number = error.text.splitlines()[place.line - 1], self.places[route].line + place.line
        if number > len(lines) or wrong not in lines[number - 1]:
            return error
        there = Place(number, lines[number - 1].index(wrong) + place.column, place.width)
        return DefinitionError(error.message, there, hint=error.hint, text=self.text, file=self.file)

    def put(self, route: Route, value: Any, written: Route) -> Document:
        """Return a copy with another value at ``route``. Its positions are those of ``written``."""
        places, depth = dict(self.places), len(written)
        for there, place in self.places.items():
            if there[:depth] == written:
                places[*route, *there[depth:]] = place
        return replace(self, values=_put(self.values, route, value), places=places)


def _put(values: Any, route: Route, value: Any) -> Any:
    if not route:
        return value
    first, rest = route[0], route[1:]
    if isinstance(first, int):
        return [_put(v, rest, value) if i == first else v for i, v in enumerate(values)]
    return {**values, first: _put(values.get(first), rest, value)}


def load(path: Path) -> Document:
    """Read a YAML file; raise an `InputError` if it cannot be read."""
    return parse(text_of(path), str(path))


def text_of(path: Path) -> str:
    """Read a file as text; raise an `InputError` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


def parse(text: str, file: str = "scenario") -> Document:
    """Parse a YAML text. ``file`` is its name in error messages."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _no_yaml(error, text, file) from None
    if root is None:
        hint = "'holdfast sim --example' prints a scenario."
        raise DefinitionError("the file is empty", file=file, hint=hint)
    reader = _DocumentReader(text, file)
    values = reader.value(root, (), ())
    return Document(values, reader.places, reader.keys, text, file)


class _DocumentReader:
    """Reads the nodes of a YAML document, and collects the positions of values and keys."""

    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._scalars = yaml.SafeLoader("")
        self.places: dict[Route, Place] = {}
        self.keys: dict[Route, Place] = {}

    def value(self, node: Any, route: Route, within: tuple[Any, ...]) -> Any:
        """Return the value of a YAML node. Record its position and those of its parts."""
        self.places[route] = _place(node)
        if len(self.places) > MOST or node in within:
            raise self._fault(node, f"the document repeats itself: more than {MOST:,} values")
        within = (*within, node)
        match node:
            case yaml.ScalarNode():
                return self._scalar(node)
            case yaml.SequenceNode():
                return [self.value(item, (*route, i), within) for i, item in enumerate(node.value)]
            case _:
                items = self._items(node, route)
                return {key: self.value(item, (*route, key), within) for key, item in items}

    def _items(self, node: Any, route: Route) -> Iterator[tuple[str, Any]]:
        """Yield the items of a mapping; raise an error for a key that occurs twice or is no word or
        number.
        """
        seen: dict[str, Place] = {}
        for key_node, item in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise self._fault(key_node, "'<<' is not understood here; write the keys out")
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str | int) or isinstance(key, bool):
                raise self._fault(key_node, "a key must be a word or a number")
            key = str(key)
            if key in seen:
                raise self._fault(key_node, f"'{key}' is there already, in line {seen[key].line}")
            seen[key] = self.keys[*route, key] = _place(key_node)
            yield key, item

    def _scalar(self, node: Any) -> Any:
        try:
            return self._scalars.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise self._fault(node, f"cannot be read: {str(error).splitlines()[0]}") from None

    def _fault(self, node: Any, message: str) -> DefinitionError:
        return DefinitionError(message, _place(node), text=self._text, file=self._file)


def _place(node: Any) -> Place:
    start, end = node.start_mark, node.end_mark
    width = end.column - start.column if end.line == start.line else 1
    return Place(start.line + 1, start.column + 1, max(width, 1))


def _no_yaml(error: yaml.YAMLError, text: str, file: str) -> DefinitionError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    place = None if mark is None else Place(mark.line + 1, mark.column + 1)
    return DefinitionError(f"this is not YAML: {problem}", place, text=text, file=file)
