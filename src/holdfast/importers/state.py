"""Translation of a comparison of series to a state.

The latest value of one series becomes a plain state, anything else a component.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..definition.show import show
from ..kernels.functions import AGGREGATES
from .expressions import QuerySeries
from .translation import Translation, Untranslatable, with_names


@dataclass(frozen=True)
class TranslatedRule:
    """A rule to translate: its predicates, its series, and the minimum durations.

    ``exit`` may be ``None``.
    """

    name: str
    enter: str
    exit: str | None
    series: tuple[QuerySeries, ...]
    hold: str | None = None
    keep: str | None = None
    per: str = "source"


def state(into: Translation, line: int, rule: TranslatedRule) -> None:
    """Add the state of a rule to a translation. Raises ``Untranslatable`` if it has no equivalent."""
    if not rule.series:
        raise Untranslatable("it looks at no series")
    if len(rule.series) > 26:
        raise Untranslatable("it looks at more than 26 series")
    for series in rule.series:
        into.attribute(series.topic, "value")
    add = _plain if len(rule.series) == 1 and rule.series[0].function is None else _component
    add(into, line, rule)


def _plain(into: Translation, line: int, rule: TranslatedRule) -> None:
    (series,) = rule.series
    enter, leave = _predicates(rule, {"A": "value"})
    for condition in series.where:
        enter = f"{condition} && ({enter})"
        leave = f"{condition} && ({leave})"
    hold, keep = _durations(rule)
    text = f"state {rule.name} on {series.topic} [{enter}{hold}; {leave}{keep}] per {rule.per}"
    into.add(line, rule.name, text)


def _predicates(rule: TranslatedRule, names: dict[str, str]) -> list[str]:
    """Return the enter and exit predicates, with the series renamed."""
    return [show(with_names(text, names)) for text in (rule.enter, rule.exit or f"!({rule.enter})")]


def _durations(rule: TranslatedRule) -> list[str]:
    return [f" for {length}" if length else "" for length in (rule.hold, rule.keep)]


def _component(into: Translation, line: int, rule: TranslatedRule) -> None:
    """Add a component for several series or functions over windows.

    Each is a query; all have the same source.
    """
    if any(series.where for series in rule.series):
        raise Untranslatable("a function over some of a topic's readings has no like here: give them a topic")
    queries = {chr(ord("A") + i): _query(series) for i, series in enumerate(rule.series)}
    inputs = [f"  {letter} = {query} each {rule.per}" for letter, query in queries.items()]
    enter, leave = _predicates(rule, {letter: f"{letter}.value" for letter in queries})
    hold, keep = _durations(rule)
    lines = [f"state {rule.name}", *inputs, f"  enter {enter}{hold}", f"  exit {leave}{keep}"]
    into.add(line, rule.name, "\n".join(lines))


def _query(series: QuerySeries) -> str:
    if series.function is None:
        return series.topic
    if series.function not in AGGREGATES:
        raise Untranslatable(f"{series.function} over a window has no like here")
    return f"{series.function} {series.topic} over {series.window}"
