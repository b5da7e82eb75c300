"""Who is related: groups, routes and pairs, listed in a definition or in a table beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...errors import DefinitionError, Place, did_you_mean
from ...model.folder import Folder
from ...model.relation import Member, Term
from ...model.topic import Topic
from ...model.unit import UNITS
from ..ops import DeclareGroup, DeclareRoute, Relate, place_of
from .table import rows

NUMERIC = ("float", "int")


def topic_named(name: str, topics: Mapping[str, Topic], at: Place | None) -> Topic:
    if name not in topics:
        has = f"declared: {', '.join(topics)}" if topics else "none is declared"
        raise DefinitionError(
            f"unknown topic '{name}'; {has}", place_of(name, at), hint=did_you_mean(name, topics)
        )
    return topics[name]


def group(one: DeclareGroup, topics: Mapping[str, Topic], folder: Folder) -> Iterator[Member]:
    """The members of a group."""
    topic = topic_named(one.topic, topics, one.at)
    sources = list(_sources(one, folder))
    if len(sources) < 2:
        raise DefinitionError(f"group '{one.name}' needs at least two sources", one.at)
    for source in _distinct(sources, f"group '{one.name}'", one.at):
        yield Member(topic.name, source)


def _sources(one: DeclareGroup, folder: Folder) -> Iterator[str]:
    if not isinstance(one.sources, str):
        yield from one.sources
        return
    for _, (source,) in rows(folder / one.sources, ("source",), place_of(one.sources, one.at)):
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


def route(one: DeclareRoute, topics: Mapping[str, Topic], folder: Folder) -> Iterator[Term]:
    """Seconds that each leg takes, from the speed that its source tells."""
    topic = topic_named(one.topic, topics, one.at)
    at = place_of(one.attribute, one.at)
    attribute = topic.by_name.get(one.attribute)
    if attribute is None or attribute.kind not in NUMERIC:
        has = ", ".join(a.name for a in topic.attributes if a.kind in NUMERIC)
        raise DefinitionError(
            f"topic '{topic.name}' has no speed '{one.attribute}'", at, hint=f"Its numbers: {has or 'none'}."
        )
    unit = None if attribute.unit is None else UNITS[attribute.unit]
    if unit is None or unit.dimension != UNITS["m/s"].dimension:
        raise DefinitionError(
            f"'{attribute.name}' of topic '{topic.name}' is not a speed",
            at,
            hint=f"Declare its unit in the topic, such as: {attribute.name} float km/h",
        )
    legs = list(_legs(one, folder))
    if not legs:
        raise DefinitionError(f"route '{one.name}' has no leg", one.at)
    sources = _distinct([source for source, _ in legs], f"route '{one.name}'", one.at)
    for source, (_, metres) in zip(sources, legs, strict=True):
        if not metres > 0:
            raise DefinitionError(f"a leg of route '{one.name}' has no length", place_of(source, one.at))
        scale = float(metres / float(unit.factor))
        yield Term(Member(topic.name, source, attribute.name), scale, reciprocal=True)


def _legs(one: DeclareRoute, folder: Folder) -> Iterator[tuple[str, float]]:
    if not isinstance(one.legs, str):
        yield from one.legs
        return
    at = place_of(one.legs, one.at)
    for line, (source, length) in rows(folder / one.legs, ("source", "metres"), at):
        try:
            yield source, float(length)
        except ValueError:
            raise DefinitionError(
                f"{one.legs}, line {line}: '{length}' is not a length in metres", at
            ) from None


def pairs(one: Relate, roles: Mapping[str, Topic], folder: Folder) -> Iterator[tuple[str, str]]:
    """The pairs that are named, each once."""
    found: Iterator[tuple[int, tuple[str, ...]]]
    table: str | None = None
    if isinstance(one.pairs, str):
        table = one.pairs
        found = rows(folder / table, ("a", "b"), place_of(table, one.at))
    else:
        found = enumerate(one.pairs or ())
    alike = len({topic.name for topic in roles.values()}) == 1
    seen: set[tuple[str, str]] = set()

    def refused(line: int, a: str, what: str) -> DefinitionError:
        if table is None:
            return DefinitionError(what, place_of(a, one.at))
        return DefinitionError(f"{folder / table}, line {line}: {what}", place_of(table, one.at))

    for line, (a, b) in found:
        if not a.strip() or not b.strip():
            raise refused(line, a, "a source is blank")
        if a == b and alike:
            raise refused(line, a, f"'{a}' is paired with itself")
        if (a, b) in seen:
            raise refused(line, a, f"the pair {a}, {b} is named twice")
        seen.add((a, b))
        yield str(a), str(b)
    if not seen:
        raise DefinitionError("there is no pair", one.at)


def listed(one: DeclareGroup | DeclareRoute | Relate, folder: Folder) -> DeclareGroup | DeclareRoute | Relate:
    """The statement with what is in its table, so that it means the same elsewhere."""
    match one:
        case DeclareGroup(sources=str()):
            return replace(one, sources=tuple(_sources(one, folder)))
        case DeclareRoute(legs=str()):
            return replace(one, legs=tuple(_legs(one, folder)))
        case Relate(pairs=str(path)):
            cells = (row for _, row in rows(folder / path, ("a", "b"), place_of(path, one.at)))
            return replace(one, pairs=tuple((a, b) for a, b in cells))
    return one
