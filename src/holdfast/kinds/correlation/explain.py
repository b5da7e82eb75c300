"""Explain correlations as text: filters, time of notification, stored events.

`holdfast explain` prints these texts; pages and tests show them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ...engine.operator import Operator
from ...engine.slices import length
from ...model.correlation import RangeFilter, Tell
from ...model.instant import show_duration
from ...model.topic import Topic
from ..kind import describe_delivery
from .condition import CorrelationCondition
from .machine import CorrelationMachine
from .plan import operators

_TELLS: dict[Tell, str] = {
    "events": "each event that takes part in a complex event, once, with its own time",
    "all": "every complex event, with the time of its last member",
    "latest": "of the complex events that one event completes, that with the latest event for each filter",
    "first": "of the complex events that one event completes, that with the earliest event for each filter",
}


def explain(correlations: Iterable[CorrelationCondition]) -> Iterator[str]:
    """Yield an explanation of each machine that correlations need."""
    by_name = {correlation.name: correlation for correlation in correlations}
    for number, operator in enumerate(operators(by_name.values()), 1):
        yield "\n".join(_machine(number, operator, by_name))


def explain_on_spark(correlations: Iterable[CorrelationCondition]) -> Iterator[Iterator[str]]:
    """Yield an explanation of each machine on Spark, line by line."""
    by_name = {correlation.name: correlation for correlation in correlations}
    for number, operator in enumerate(operators(by_name.values()), 1):
        yield chain(_machine(number, operator, by_name), _on_spark(operator))


def _on_spark(operator: Operator) -> Iterator[str]:
    lookaround = operator.machine.traits.lookaround
    assert lookaround is not None
    long, window = show_duration(length(lookaround)), show_duration(lookaround)
    yield f"  history   slices of {long}; each reads {window} more on both sides and reports its own events"
    yield "  live      all matching events go to one shard, by a hash (crc32) of the names"


def describe(condition: CorrelationCondition) -> dict[str, str]:
    """Return the parts of a correlation as text, by name, for the comparison of revisions."""
    filters = zip(condition.correlation.filters, condition.measured, strict=True)
    return {
        "window": show_duration(condition.correlation.within),
        "distance": "" if condition.correlation.near == math.inf else f"{condition.correlation.near!r} m",
        "region": "" if condition.forest is None else str(condition.forest.regions),
        "list of filters": "; ".join(_filter(filter, *measured) for filter, measured in filters),
        "delivery": describe_delivery(condition.delivery),
        "choice of what is reported": condition.tell,
    }


def _machine(number: int, operator: Operator, by_name: Mapping[str, CorrelationCondition]) -> Iterator[str]:
    """Yield the lines that explain a machine and its correlations."""
    machine, correlations = operator.machine, [by_name[names[0]] for names in operator.names]
    assert isinstance(machine, CorrelationMachine)
    plural = "s" if len(correlations) > 1 else ""
    window = show_duration(machine.within)
    yield f"machine of correlations {number}: {len(correlations)} correlation{plural} within {window}"
    for names, correlation in zip(operator.names, correlations, strict=True):
        yield f"  {', '.join(names)}"
        for filter, measured in zip(correlation.correlation.filters, correlation.measured, strict=True):
            yield f"    matches {_filter(filter, *measured)}"
        yield f"    where   {_where(correlation)}"
        yield f"    reports {_TELLS[correlation.tell]}"
    near = any(correlation.correlation.near < math.inf for correlation in correlations)
    grid = "; near events by search in a grid" if near else ""
    yield f"  finds     windows that have a match of every filter, in one pass by time{grid}"
    yield f"  delivery  {_delivery(correlations[0])}"
    yield "  drops     events that match no filter, when they are read"
    topics, memory = ", ".join(machine.topics), show_duration(machine.memory)
    yield f"  keeps     matching events of {topics}, for {memory}"


def _filter(filter: RangeFilter, topic: Topic, attribute: str) -> str:
    """Return a filter as text, with the unit of its attribute."""
    unit = topic.by_name[attribute].unit
    sensor = "" if filter.sensor is None else f' of "{filter.sensor}"'
    return f"{topic.name}.{attribute}{sensor} {_range(filter)}" + (f" {unit}" if unit else "")


def _range(filter: RangeFilter) -> str:
    """Return a range as text, with its bounds as they were written."""
    over, low = _end(filter.low, -math.inf)
    under, high = _end(filter.high, math.inf)
    if filter.low == filter.high:
        return f"== {low}"
    if filter.low == -math.inf or filter.high == math.inf:
        sides = [f"{'>' if over else '>='} {low}"] if filter.low > -math.inf else []
        sides += [f"{'<' if under else '<='} {high}"] if filter.high < math.inf else []
        return " ".join(sides)
    return f"in {'(' if over else '['}{low}, {high}{')' if under else ']'}"


def _end(bound: float, outward: float) -> tuple[bool, str]:
    """Undo the rounding of a strict bound. Return whether the bound is strict, and the bound as it was
    written."""
    outer = math.nextafter(bound, outward)
    strict = math.isfinite(bound) and len(repr(outer)) < len(repr(bound))
    shown = (outer if strict else bound) + 0.0  # -0.0 is 0
    return strict, f"{shown:g}" if float(f"{shown:g}") == shown else repr(shown)


def _where(condition: CorrelationCondition) -> str:
    """Return the region and the distance of a correlation as text."""
    if condition.correlation.names_sensors:
        return "the sensors that are named"
    region = "anywhere" if condition.correlation.region is None else f"in {condition.correlation.region.name}"
    near = condition.correlation.near
    return region + (f", each pair less than {near:g} m apart" if near < math.inf else "")


def _delivery(condition: CorrelationCondition) -> str:
    """Return the delivery of a correlation as text."""
    wait, late = condition.delivery.wait, condition.delivery.late
    if wait is None:
        return "timely: as events come; out of order by up to a window changes nothing"
    then = "goes to the late output" if late == "drop" else "is taken as it comes"
    return f"ordered: live, events wait {show_duration(wait)} to be put in order; a later one {then}"
