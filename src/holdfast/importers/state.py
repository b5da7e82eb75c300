"""Translate a comparison of series to a state: a plain one for the latest value of one series, else a
component."""

from __future__ import annotations

from dataclasses import dataclass

from ..definition.show import show
from ..kernels.functions import AGGREGATES
from .expressions import QuerySeries, letters
from .translation import Translation, Untranslatable, with_names


@dataclass(frozen=True)
class TranslatedRule:
    """A rule to translate: its enter predicate, its exit predicate if it differs, its series, and the
    minimum durations."""

    name: str
    enter: str
    exit: str | None
    series: tuple[QuerySeries, ...]
    hold: str | None = None
    keep: str | None = None
    per: str = "source"


def state(into: Translation, line: int, one: TranslatedRule) -> None:
    """Add the state of a rule to the translation."""
    if not one.series:
        raise Untranslatable("it looks at no series")
    if len(one.series) > 26:
        raise Untranslatable("it looks at more than 26 series")
    for series in one.series:
        into.attribute(series.topic, "value")
    if len(one.series) == 1 and one.series[0].function is None:
        _plain(into, line, one)
    else:
        _component(into, line, one)


def _plain(into: Translation, line: int, one: TranslatedRule) -> None:
    (series,) = one.series
    enter, leave = (_value(text) for text in (one.enter, one.exit or f"!({one.enter})"))
    for condition in series.where:
        enter = f"{condition} && ({enter})"
        leave = f"{condition} && ({leave})"
    hold, keep = (f" for {length}" if length else "" for length in (one.hold, one.keep))
    text = f"state {one.name} on {series.topic} [{enter}{hold}; {leave}{keep}] per {one.per}"
    into.add(line, one.name, text)


def _value(text: str) -> str:
    return show(with_names(text, {"A": "value"}))


def _component(into: Translation, line: int, one: TranslatedRule) -> None:
    """Translate several series, or functions over windows: each is a query, and all have the same source."""
    if any(series.where for series in one.series):
        raise Untranslatable("a function over some of a topic's readings has no like here: give them a topic")
    names = {letter: f"{letter}.value" for letter in letters(len(one.series))}
    inputs = [
        f"  {letter} = {_query(series)} each {one.per}"
        for letter, series in zip(names, one.series, strict=True)
    ]
    enter, leave = (_members(text, names) for text in (one.enter, one.exit or f"!({one.enter})"))
    hold, keep = (f" for {length}" if length else "" for length in (one.hold, one.keep))
    head = f"state {one.name}"
    into.add(line, one.name, "\n".join([head, *inputs, f"  enter {enter}{hold}", f"  exit {leave}{keep}"]))


def _members(text: str, names: dict[str, str]) -> str:
    return show(with_names(text, names))


def _query(series: QuerySeries) -> str:
    if series.function is None:
        return series.topic
    if series.function not in AGGREGATES:
        raise Untranslatable(f"{series.function} over a window has no like here")
    return f"{series.function} {series.topic} over {series.window}"
