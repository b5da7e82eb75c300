"""Check correlations: resolve attributes, convert ranges to numbers, and find the shapes of regions. [J1]"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from ...errors import DefinitionError, Place, did_you_mean
from ...lang import scopes
from ...lang.condition import Caution
from ...lang.context import Context
from ...lang.ops import Expression, place_of
from ...lang.show import show_shape
from ...lang.typed import CALLED, NameScope, Parameters, TypedQuantity
from ...lang.types import in_unit_of, of_attribute, type_of
from ...model.correlation import Correlation, RangeFilter
from ...model.space import Forest, Gazetteer, Region, nest
from ...model.topic import RESERVED, Attribute, Topic
from ..checks import naming, require_order
from .condition import CorrelationCondition
from .show import show_match
from .syntax import DefineCorrelation, MatchRange

Measured = tuple[Topic, str]
"""A topic, and the name of one of its attributes."""


def implicit_topics(statements: Iterable[DefineCorrelation], _parameters: Parameters) -> tuple[Topic, ...]:
    """Return a topic for each attribute of a definition without topics, as in the paper's notation."""
    names = dict.fromkeys(match.attribute for statement in statements for match in statement.matches)
    return tuple(Topic(str(name), (Attribute("value", "float"),)) for name in names if "." not in name)


def check_correlation(statement: DefineCorrelation, context: Context) -> CorrelationCondition:
    """Check one correlation. Raise a `DefinitionError` if it has a mistake."""
    name, matches, tell, delivery = statement.name, statement.matches, statement.tell, statement.delivery
    with naming(name):
        _refuse_unclear(statement)
        measured = tuple(resolve_attribute(match, context.topics, statement.at) for match in matches)
        filters = tuple(map(_filter, matches, measured, [context.parameters] * len(measured)))
        _refuse_repeated(statement, filters)
        forest = _forest(statement, context.regions)
        near = math.inf if statement.near is None else statement.near
        region = None if forest is None else forest.regions[0]
        correlation = Correlation(filters, statement.within, near, region)
        topic = _output_topic(name, matches, measured)
        return CorrelationCondition(name, correlation, measured, forest, tell, delivery, topic)


def _refuse_unclear(statement: DefineCorrelation) -> None:
    """Raise a `DefinitionError` for a mistake that does not depend on attributes."""
    at = statement.at
    if len(statement.matches) < 2:
        message = "a correlation needs at least two filters"
        raise DefinitionError(message, at, hint="Of one attribute alone, write: filter … on …")
    if statement.within <= 0:
        raise DefinitionError("'within' needs a duration above zero: its bound is strict", at)
    if statement.near is not None and not statement.near > 0:
        raise DefinitionError("the distance must be above zero: its bound is strict", at)
    named = [match for match in statement.matches if match.sensor is not None]
    if named and len(named) < len(statement.matches):
        other = next(match for match in statement.matches if match.sensor is None)
        message = f"'{other.attribute}' names no sensor, but other filters do"
        hint = 'Name the sensor of every filter, as in wind_speed of "s12", or of none.'
        raise DefinitionError(message, other.at or at, hint=hint)
    if named and (statement.near is not None or statement.region is not None):
        message = "a correlation that names its sensors has neither a distance nor a region"
        raise DefinitionError(message, at, hint="Leave them out: where the sensors are is known.")
    require_order(statement.delivery, at)


def _refuse_repeated(statement: DefineCorrelation, filters: Sequence[RangeFilter]) -> None:
    """Raise a `DefinitionError` if two filters have the same attribute and sensor."""
    seen: set[tuple[str, str | None]] = set()
    for match, filter in zip(statement.matches, filters, strict=True):
        if (filter.attribute, filter.sensor) in seen:
            of = "" if filter.sensor is None else f' of "{filter.sensor}"'
            message = f"'{match.attribute}'{of} has two filters"
            hint = "Write one range: a in [low, high]."
            raise DefinitionError(message, match.at or statement.at, hint=hint)
        seen.add((filter.attribute, filter.sensor))


# --- attributes --------------------------------------------------------------------------------


def resolve_attribute(match: MatchRange, topics: Sequence[Topic], at: Place | None) -> Measured:
    """Return the numeric attribute that a filter compares, and its topic."""
    word, at = match.attribute, place_of(match.attribute, match.at or at)
    found = list(_candidates(word, topics))
    if not found:
        names = [*(t.name for t in topics), *(f"{t.name}.{a.name}" for t in topics for a in t.attributes)]
        names += [a.name for t in topics for a in t.attributes]
        has = f"topics: {', '.join(t.name for t in topics)}" if topics else "no topic is declared"
        message = f"no topic has an attribute '{word}'; {has}"
        raise DefinitionError(message, at, hint=did_you_mean(word, names))
    if len(found) > 1:
        ways = " or ".join(f"{topic.name}.{attribute}" for topic, attribute in found[:3])
        raise DefinitionError(f"'{word}' can mean {len(found)} attributes", at, hint=f"Write {ways}.")
    ((topic, attribute),) = found
    if (kind := topic.by_name[attribute].kind) not in _NUMERIC:
        owner = f"'{attribute}' of topic '{topic.name}'"
        raise DefinitionError(f"{owner} is {kind}; a correlation compares numbers", at)
    return topic, attribute


def _candidates(word: str, topics: Sequence[Topic]) -> Iterator[Measured]:
    """Yield the attributes that a word may stand for. A topic with one number stands for that number."""
    owner, _, name = word.rpartition(".")
    for topic in topics:
        numbers = [a.name for a in topic.attributes if a.kind in _NUMERIC]
        if topic.name == word and len(numbers) == 1:
            yield topic, numbers[0]
        elif owner in ("", topic.name):
            yield from ((topic, a.name) for a in topic.attributes if a.name == name)


_NUMERIC = ("float", "int")


# --- ranges ------------------------------------------------------------------------------------


def _filter(match: MatchRange, measured: Measured, known: Parameters) -> RangeFilter:
    """Return the closed range of a filter, in the unit of its attribute. A strict bound becomes the next
    float."""
    topic, name = measured
    low = -math.inf if match.low is None else _number(match.low, measured, known)
    high = math.inf if match.high is None else _number(match.high, measured, known)
    if match.strict[0]:
        low = math.nextafter(low, math.inf)
    if match.strict[1]:
        high = math.nextafter(high, -math.inf)
    if low > high:
        message = f"nothing lies in the range of '{match.attribute}'"
        raise DefinitionError(f"{message}: {show_match(match)}", match.at)
    return RangeFilter(f"{topic.name}.{name}", low, high, None if match.sensor is None else str(match.sensor))


def _number(bound: Expression, measured: Measured, known: Parameters) -> float:
    """Return a bound in the unit of the attribute."""
    topic, name = measured
    found = type_of(bound, NameScope(None, known))
    if not isinstance(found, TypedQuantity):
        raise DefinitionError(f"expected a number, not {CALLED[type(found)]}", bound.at)
    wanted = of_attribute(topic.by_name[name])
    assert isinstance(wanted, TypedQuantity)
    return float(in_unit_of(found, wanted, bound, name))


# --- places ------------------------------------------------------------------------------------


def _forest(statement: DefineCorrelation, regions: Gazetteer) -> Forest | None:
    """Return the region of a correlation, or `None` if it has none."""
    match statement.region:
        case None:
            return None
        case str(name):
            found = scopes.forest(((name,),), regions, statement.at)
            assert found is not None
            if len(found.regions) > 1:
                raise DefinitionError(
                    f"'{name}' is a level of {len(found.regions)} regions; a correlation is in one of them",
                    place_of(name, statement.at),
                    hint=f"Name one of them, such as {found.regions[0].name}.",
                )
            return found
        case shape:
            region = Region(show_shape(shape), shape)
            return nest([region], Gazetteer((region,)))


# --- output ----------------------------------------------------------------------------------


def _output_topic(name: str, matches: Sequence[MatchRange], measured: Sequence[Measured]) -> Topic:
    """Return the topic of complex events, with value, source and time of the event that matches each
    filter."""
    attributes: list[Attribute] = []
    taken: set[str] = set()
    for match, (topic, attribute) in zip(matches, measured, strict=True):
        own = topic.by_name[attribute]
        word = match.attribute if match.sensor is None else f"{match.attribute}_{match.sensor}"
        word = re.sub(r"\W", "_", word)
        numbered = (name for i in count(2) if (name := f"{word}_{i}") not in taken)
        label = next(numbered) if word in taken | RESERVED else word
        taken.add(label)
        attributes += (
            Attribute(label, "float", own.unit),
            Attribute(f"{label}_source", "text"),
            Attribute(f"{label}_time", "text"),
        )
    return Topic(name, tuple(attributes))


# --- warnings ----------------------------------------------------------------------------------


def cautions(
    statement: DefineCorrelation, checked: CorrelationCondition, context: Context
) -> Iterator[Caution]:
    """Yield warnings about undeclared regions, and about cases whose readings have no location."""
    name = statement.name
    if isinstance(statement.region, str) and not context.regions.regions:
        yield Caution(
            f"'{name}': no region is declared, so {statement.region} stands for the events whose place has "
            "that name",
            statement.at,
        )
    topics = {topic.name for topic, _ in checked.measured}
    for case in context.cases:
        if statement.near is None or not any(expect.subscription == name for expect in case.expect):
            continue
        for given in case.given:
            if given.topic in topics and given.location is None:
                message = f"'{name}' compares distances, but these readings have no location"
                yield Caution(message, given.at, "Add where they are: at (120, 40)")
