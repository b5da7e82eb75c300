"""Members of relations: groups, routes and pairs, listed in a definition or in a table beside it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ...errors import DefinitionError, Place, did_you_mean
from ...lang.ops import place_of
from ...model.folder import Folder
from ...model.relation import Participant, Term
from ...model.topic import Topic
from ...model.unit import UNITS
from .syntax import DeclareGroup, DeclareRoute, DefineRelation

T = TypeVar("T")
NUMERIC = ("float", "int")


def declared(name: str, known: Mapping[str, T], what: str, at: Place | None) -> T:
    """Return the declaration of ``name``.

    Raise a `DefinitionError` if there is none; ``what`` is the kind of declaration in its message.
    """
    if name not in known:
        has = f"declared: {', '.join(known)}" if known else "none is declared"
        message = f"unknown {what} '{name}'; {has}"
        raise DefinitionError(message, place_of(name, at), hint=did_you_mean(name, known))
    return known[name]


def group(statement: DeclareGroup, topics: Mapping[str, Topic], folder: Folder) -> Iterator[Participant]:
    """Yield the members of a group."""
    topic = declared(statement.topic, topics, "topic", statement.at)
    sources = list(_sources(statement, folder))
    if len(sources) < 2:
        raise DefinitionError(f"group '{statement.name}' needs at least two sources", statement.at)
    for source in _distinct(sources, f"group '{statement.name}'", statement.at):
        yield Participant(topic.name, source)


def _sources(statement: DeclareGroup, folder: Folder) -> Iterator[str]:
    """Yield the sources of a group, from the statement or from its table."""
    if not isinstance(statement.sources, str):
        yield from statement.sources
        return
    at = place_of(statement.sources, statement.at)
    for _, (source,) in rows(folder / statement.sources, ("source",), at):
        yield source


def _distinct(sources: Iterable[str], where: str, at: Place | None) -> Iterator[str]:
    """Yield sources. Raise a `DefinitionError` for a source that is blank or repeated."""
    seen: set[str] = set()
    for source in sources:
        if not source.strip():
            raise DefinitionError(f"a source of {where} is blank", place_of(source, at))
        if source in seen:
            raise DefinitionError(f"{where} names '{source}' twice", place_of(source, at))
        seen.add(source)
        yield str(source)


def route(statement: DeclareRoute, topics: Mapping[str, Topic], folder: Folder) -> Iterator[Term]:
    """Yield the travel time of each leg as a term.

    The travel time is the length of the leg divided by the speed that its source reports.
    """
    topic = declared(statement.topic, topics, "topic", statement.at)
    at = place_of(statement.attribute, statement.at)
    attribute = topic.by_name.get(statement.attribute)
    if attribute is None or attribute.kind not in NUMERIC:
        has = ", ".join(a.name for a in topic.attributes if a.kind in NUMERIC)
        message = f"topic '{topic.name}' has no speed '{statement.attribute}'"
        raise DefinitionError(message, at, hint=f"Its numbers: {has or 'none'}.")
    unit = None if attribute.unit is None else UNITS[attribute.unit]
    if unit is None or unit.dimension != UNITS["m/s"].dimension:
        hint = f"Declare its unit in the topic, such as: {attribute.name} float km/h"
        raise DefinitionError(f"'{attribute.name}' of topic '{topic.name}' is not a speed", at, hint=hint)
    legs = list(_legs(statement, folder))
    if not legs:
        raise DefinitionError(f"route '{statement.name}' has no leg", statement.at)
    sources = _distinct([source for source, _ in legs], f"route '{statement.name}'", statement.at)
    for source, (_, metres) in zip(sources, legs, strict=True):
        if not metres > 0:
            at = place_of(source, statement.at)
            raise DefinitionError(f"a leg of route '{statement.name}' has no length", at)
        scale = float(metres / float(unit.factor))
        yield Term(Participant(topic.name, source, attribute.name), scale, reciprocal=True)


def _legs(statement: DeclareRoute, folder: Folder) -> Iterator[tuple[str, float]]:
    """Yield the source and the length in metres of each leg, from the statement or from its table."""
    if not isinstance(statement.legs, str):
        yield from statement.legs
        return
    at = place_of(statement.legs, statement.at)
    for line, (source, length) in rows(folder / statement.legs, ("source", "metres"), at):
        try:
            yield source, float(length)
        except ValueError:
            message = f"'{length}' is not a length in metres"
            raise DefinitionError(f"{statement.legs}, line {line}: {message}", at) from None


def pairs(statement: DefineRelation, roles: Mapping[str, Topic], folder: Folder) -> Iterator[tuple[str, str]]:
    """Yield the listed pairs. Raise a `DefinitionError` for a pair that is blank, repeated or paired with
    itself."""
    found: Iterator[tuple[int, tuple[str, ...]]]
    table: str | None = None
    if isinstance(statement.pairs, str):
        table = statement.pairs
        found = rows(folder / table, ("a", "b"), place_of(table, statement.at))
    else:
        found = enumerate(statement.pairs or ())
    alike = len({topic.name for topic in roles.values()}) == 1
    seen: set[tuple[str, str]] = set()

    def fail(line: int, a: str, what: str) -> DefinitionError:
        if table is None:
            return DefinitionError(what, place_of(a, statement.at))
        return DefinitionError(f"{folder / table}, line {line}: {what}", place_of(table, statement.at))

    for line, (a, b) in found:
        if not a.strip() or not b.strip():
            raise fail(line, a, "a source is blank")
        if a == b and alike:
            raise fail(line, a, f"'{a}' is paired with itself")
        if (a, b) in seen:
            raise fail(line, a, f"the pair {a}, {b} is named twice")
        seen.add((a, b))
        yield str(a), str(b)
    if not seen:
        raise DefinitionError("there is no pair", statement.at)


def with_listed_sources(
    statement: DeclareGroup | DeclareRoute | DefineRelation, folder: Folder
) -> DeclareGroup | DeclareRoute | DefineRelation:
    """Return the statement with the rows of its table in the place of the file name. The result needs no
    file."""
    match statement:
        case DeclareGroup(sources=str()):
            return replace(statement, sources=tuple(_sources(statement, folder)))
        case DeclareRoute(legs=str()):
            return replace(statement, legs=tuple(_legs(statement, folder)))
        case DefineRelation(pairs=str(path)):
            cells = (row for _, row in rows(folder / path, ("a", "b"), place_of(path, statement.at)))
            return replace(statement, pairs=tuple((a, b) for a, b in cells))
    return statement


# --- tables beside the definition: CSV with a header -------------------------------------------------

MOST = 10_000_000
"""The maximal number of lines of a table, because all rows are in memory."""


def rows(path: Path, columns: tuple[str, ...], at: Place | None) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the line number and the cells of `columns` for each row of a CSV table with a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _cells(file, path, columns, at)
    except OSError as error:
        raise DefinitionError(f"cannot read {path}: {error.strerror}", at) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DefinitionError(f"{path} is not a table in CSV: {error}", at) from None


def _cells(
    file: Iterator[str], path: Path, columns: tuple[str, ...], at: Place | None
) -> Iterator[tuple[int, tuple[str, ...]]]:
    table = csv.reader(file)
    header = [name.strip() for name in next(table, [])]
    absent = [name for name in columns if name not in header]
    if absent:
        has = f"it has {', '.join(header)}" if header else "it is empty"
        raise DefinitionError(
            f"{path} has no column '{absent[0]}'; {has}", at, hint=f"Its first line is: {','.join(columns)}"
        )
    places = [header.index(name) for name in columns]
    for row in table:
        if not row:
            continue
        if len(row) <= max(places) or not all(row[i].strip() for i in places):
            message = f"a cell of {', '.join(columns)} is empty"
            raise DefinitionError(f"{path}, line {table.line_num}: {message}", at)
        if table.line_num > MOST:
            raise DefinitionError(f"{path} has more than {MOST:,} lines", at)
        yield table.line_num, tuple(row[i].strip() for i in places)
