"""Members of relations: groups, routes and pairs, listed in a definition or in a table beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...errors import DefinitionError, Place, did_you_mean
from ...lang.ops import place_of
from ...model.folder import Folder
from ...model.relation import Participant, Term
from ...model.topic import Topic
from ...model.unit import UNITS
from .sources_table import rows
from .syntax import DeclareGroup, DeclareRoute, DefineRelation

NUMERIC = ("float", "int")


def topic_named(name: str, topics: Mapping[str, Topic], at: Place | None) -> Topic:
    if name not in topics:
        has = f"declared: {', '.join(topics)}" if topics else "none is declared"
        raise DefinitionError(
            f"unknown topic '{name}'; {has}", place_of(name, at), hint=did_you_mean(name, topics)
        )
    return topics[name]


def group(statement: DeclareGroup, topics: Mapping[str, Topic], folder: Folder) -> Iterator[Participant]:
    """Yield the members of a group."""
    topic = topic_named(statement.topic, topics, statement.at)
    sources = list(_sources(statement, folder))
    if len(sources) < 2:
        raise DefinitionError(f"group '{statement.name}' needs at least two sources", statement.at)
    for source in _distinct(sources, f"group '{statement.name}'", statement.at):
        yield Participant(topic.name, source)


def _sources(statement: DeclareGroup, folder: Folder) -> Iterator[str]:
    if not isinstance(statement.sources, str):
        yield from statement.sources
        return
    for _, (source,) in rows(
        folder / statement.sources, ("source",), place_of(statement.sources, statement.at)
    ):
        yield source


def _distinct(sources: Iterable[str], where: str, at: Place | None) -> Iterator[str]:
    seen: set[str] = set()
    for source in sources:
        if not source.strip():
            raise DefinitionError(f"a source of {where} is blank", place_of(source, at))
        if source in seen:
            raise DefinitionError(f"{where} names '{source}' twice", place_of(source, at))
        seen.add(source)
        yield str(source)


def route(statement: DeclareRoute, topics: Mapping[str, Topic], folder: Folder) -> Iterator[Term]:
    """Yield the travel time of each leg as a term: its length divided by the speed that its source
    reports.
    """
    topic = topic_named(statement.topic, topics, statement.at)
    at = place_of(statement.attribute, statement.at)
    attribute = topic.by_name.get(statement.attribute)
    if attribute is None or attribute.kind not in NUMERIC:
        has = ", ".join(a.name for a in topic.attributes if a.kind in NUMERIC)
        raise DefinitionError(
            f"topic '{topic.name}' has no speed '{statement.attribute}'",
            at,
            hint=f"Its numbers: {has or 'none'}.",
        )
    unit = None if attribute.unit is None else UNITS[attribute.unit]
    if unit is None or unit.dimension != UNITS["m/s"].dimension:
        raise DefinitionError(
            f"'{attribute.name}' of topic '{topic.name}' is not a speed",
            at,
            hint=f"Declare its unit in the topic, such as: {attribute.name} float km/h",
        )
    legs = list(_legs(statement, folder))
    if not legs:
        raise DefinitionError(f"route '{statement.name}' has no leg", statement.at)
    sources = _distinct([source for source, _ in legs], f"route '{statement.name}'", statement.at)
    for source, (_, metres) in zip(sources, legs, strict=True):
        if not metres > 0:
            raise DefinitionError(
                f"a leg of route '{statement.name}' has no length", place_of(source, statement.at)
            )
        scale = float(metres / float(unit.factor))
        yield Term(Participant(topic.name, source, attribute.name), scale, reciprocal=True)


def _legs(statement: DeclareRoute, folder: Folder) -> Iterator[tuple[str, float]]:
    if not isinstance(statement.legs, str):
        yield from statement.legs
        return
    at = place_of(statement.legs, statement.at)
    for line, (source, length) in rows(folder / statement.legs, ("source", "metres"), at):
        try:
            yield source, float(length)
        except ValueError:
            raise DefinitionError(
                f"{statement.legs}, line {line}: '{length}' is not a length in metres", at
            ) from None


def pairs(statement: DefineRelation, roles: Mapping[str, Topic], folder: Folder) -> Iterator[tuple[str, str]]:
    """Yield the listed pairs, each once."""
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
    """Return the statement with the rows of its table in the place of the file name, so that no file is
    needed.
    """
    match statement:
        case DeclareGroup(sources=str()):
            return replace(statement, sources=tuple(_sources(statement, folder)))
        case DeclareRoute(legs=str()):
            return replace(statement, legs=tuple(_legs(statement, folder)))
        case DefineRelation(pairs=str(path)):
            cells = (row for _, row in rows(folder / path, ("a", "b"), place_of(path, statement.at)))
            return replace(statement, pairs=tuple((a, b) for a, b in cells))
    return statement
