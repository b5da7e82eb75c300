"""The plan of correlations in words: what they match, what is told when, what is kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain

from ..lang.condition import Correlated
from ..model.correlation import Filter, Tell
from ..model.instant import show_duration
from ..model.topic import Topic
from .correlation import Correlator, correlators
from .gathering import Gathering, gatherings

_TELLS: dict[Tell, str] = {
    "events": "each event that takes part in a complex event, once, with its own time",
    "all": "every complex event, with the time of its last member",
    "latest": "of the complex events that one event completes, that with the latest event for each filter",
    "first": "of the complex events that one event completes, that with the earliest event for each filter",
}


def explained(correlations: Iterable[Correlated]) -> Iterator[str]:
    """The plan of every machine that correlations need."""
    for number, group in enumerate(correlators(correlations), 1):
        yield "\n".join(_machine(number, group))


def explained_on_spark(correlations: Iterable[Correlated]) -> Iterator[Iterator[str]]:
    """The plan of every machine on Spark, line by line."""
    for number, one in enumerate(gatherings(correlations), 1):
        yield chain(_machine(number, one.group), _on_spark(one))


def _on_spark(one: Gathering) -> Iterator[str]:
    length, window = show_duration(one.length), show_duration(one.machine.within)
    yield f"  history   slices of {length}; each knows {window} more on both sides and tells its own"
    yield "  live      all that matches meets in one shard, by a hash (crc32) of window and delivery"


def in_words(one: Correlated) -> dict[str, str]:
    """What a correlation says, to tell what has changed."""
    wait, late = one.delivery.wait, one.delivery.late
    filters = zip(one.correlation.filters, one.measured, strict=True)
    return {
        "window": show_duration(one.correlation.within),
        "distance": "" if one.correlation.near == math.inf else f"{one.correlation.near!r} m",
        "region": "" if one.forest is None else str(one.forest.regions),
        "list of filters": "; ".join(_filter(filter, *measured) for filter, measured in filters),
        "delivery": "timely" if wait is None else f"ordered {wait} µs, late {late}",
        "choice of what is told": one.tell,
    }


def _machine(number: int, group: Correlator) -> Iterator[str]:
    plural = "s" if len(group.names) > 1 else ""
    window = show_duration(group.within)
    yield f"machine of correlations {number}: {len(group.names)} correlation{plural} within {window}"
    for names, one in zip(group.names, group.correlations, strict=True):
        yield f"  {', '.join(names)}"
        for filter, (topic, attribute) in zip(one.correlation.filters, one.measured, strict=True):
            yield f"    matches {_filter(filter, topic, attribute)}"
        yield f"    where   {_where(one)}"
        yield f"    tells   {_TELLS[one.tell]}"
    near = any(one.correlation.near < math.inf for one in group.correlations)
    grid = "; what is near enough, by search in a grid" if near else ""
    yield f"  finds     windows that have a match of every filter, in one pass by time{grid}"
    yield f"  delivery  {_delivery(group.correlations[0])}"
    yield "  drops     what matches no filter, where it is read"
    topics, memory = ", ".join(group.machine.topics), show_duration(group.machine.memory)
    yield f"  keeps     of {topics} what matches, for {memory}"


def _filter(filter: Filter, topic: Topic, attribute: str) -> str:
    unit = topic.by_name[attribute].unit
    sensor = "" if filter.sensor is None else f' of "{filter.sensor}"'
    return f"{topic.name}.{attribute}{sensor} {_range(filter)}" + (f" {unit}" if unit else "")


def _range(filter: Filter) -> str:
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
    """A bound as people write it, and whether it is strict: the next number outward is shorter then."""
    outer = math.nextafter(bound, outward)
    strict = math.isfinite(bound) and len(repr(outer)) < len(repr(bound))
    shown = (outer if strict else bound) + 0.0  # -0.0 is 0
    return strict, f"{shown:g}" if float(f"{shown:g}") == shown else repr(shown)


def _where(one: Correlated) -> str:
    if one.correlation.identified:
        return "the sensors that are named"
    region = "anywhere" if one.correlation.region is None else f"in {one.correlation.region.name}"
    near = one.correlation.near
    return region + (f", each pair less than {near:g} m apart" if near < math.inf else "")


def _delivery(one: Correlated) -> str:
    wait, late = one.delivery.wait, one.delivery.late
    if wait is None:
        return "timely: as events come; out of order by up to a window changes nothing"
    then = "goes to the late output" if late == "drop" else "is taken as it comes"
    return f"ordered: live, events wait {show_duration(wait)} to be put in order; a later one {then}"
