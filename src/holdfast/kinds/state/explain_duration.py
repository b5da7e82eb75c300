"""Explain states with minimum durations as text: predicates, timers, stored state.

`holdfast explain` prints these texts; pages and tests show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...lang.show import show_expression
from ...model.guard import Hold
from ...model.instant import show_duration
from . import explain_toggle as filters
from .condition import DurationCondition
from .plan_duration import lengths_of, operators


def explain(conditions: Iterable[DurationCondition]) -> Iterator[str]:
    """Yield an explanation of each machine that the states need."""
    for equal, states in _machines(conditions):
        yield "\n".join([*_head(equal, states), *_tail(states)])


def explain_on_spark(conditions: Iterable[DurationCondition]) -> Iterator[Iterator[str]]:
    """Yield an explanation of each machine on Spark, line by line."""
    for equal, states in _machines(conditions):
        shuffle = filters.explain_shuffle(states[0])
        if states[0].roster:
            shuffle = "to one shard: who is expected must be known in one place"
        yield iter([*_head(equal, states), f"  shuffle   {shuffle}", *_tail(states)])


def _machines(
    conditions: Iterable[DurationCondition],
) -> Iterator[tuple[tuple[tuple[str, ...], ...], list[DurationCondition]]]:
    """Yield for each machine the names that share each of its states, and the states."""
    by_name = {condition.name: condition for condition in conditions}
    for operator in operators(by_name.values()):
        yield operator.names, [by_name[names[0]] for names in operator.names]


def _head(equal: Iterable[tuple[str, ...]], conditions: Sequence[DurationCondition]) -> Iterator[str]:
    """Yield lines that explain the conditions of a machine and their scopes."""
    for names, condition in zip(equal, conditions, strict=True):
        yield from _explain_condition(names, condition)
    yield f"  scopes    {filters.scopes(conditions[0])}"


def _explain_condition(names: tuple[str, ...], condition: DurationCondition) -> Iterator[str]:
    yield f"timed state {', '.join(names)} on {condition.topic.name}"
    yield f"  starts    {show_expression(condition.enter)}{_held(condition.care.enter)}"
    yield f"  ends      {show_expression(condition.exit)}{_held(condition.care.exit)}"
    yield from in_silence(condition)
    if condition.care.initially != "off" or condition.care.quietly:
        yield f"  begins    {condition.care.initially}" + ", without a notification" * condition.care.quietly
    if condition.roster:
        expected = len(condition.roster)
        yield f"  expects   {expected} scope{'s' * (expected != 1)} before their first reading"


def in_silence(condition: DurationCondition) -> Iterator[str]:
    """Yield lines that explain the behaviour of a scope without readings."""
    if condition.care.unknown is not None:
        after = show_duration(condition.care.unknown)
        yield f"  unknown   {after} after the last reading; notified once, the state stays as it was"
    if condition.care.forget is not None:
        yield f"  forgets   a scope {show_duration(condition.care.forget)} after its last reading"


def _tail(conditions: Sequence[DurationCondition]) -> Iterator[str]:
    """Yield lines that explain delivery, timers and stored state of a machine."""
    yield f"  delivery  {filters.delivery(conditions[0])}"
    yield f"  wakes     {_wakes(conditions)}"
    dropped = "events in no scope, where they are read"
    if conditions[0].delivery.wait is None:
        dropped = "events in no scope; of ordered input, readings between others with the same outcome"
    yield f"  drops     {dropped}"
    size = 8 + 40 * len(conditions)
    readings = "readings that are" if len(conditions) > 1 else "reading that is"
    name = "its name (about 30 bytes and the text)"
    emitted = f"the {readings} emitted when time alone decides"
    yield f"  keeps     for each scope {size} bytes, {name}, and {emitted}"
    yield from filters.remembers(conditions[0])


def _held(hold: Hold) -> str:
    """Return a minimum duration as text; empty if there is none."""
    if hold.readings:
        return f", at {hold.readings} readings in a row" if hold.readings > 1 else ", at one reading"
    if hold.column:
        return f", for {hold.column} without interruption"
    return f", for {show_duration(hold.length)} without interruption" if hold.length else ""


def _wakes(conditions: Sequence[DurationCondition]) -> str:
    """Return a text about the timers of the states."""
    cares = [condition.care for condition in conditions]
    holds = [hold for care in cares for hold in (care.enter, care.exit)]
    timers = {
        "when a minimum duration has elapsed": any(hold.length or hold.column for hold in holds),
        "when a scope has been silent for long enough": any(map(lengths_of, conditions)),
        "when a scope becomes unknown": any(care.unknown is not None for care in cares),
        "when a scope is forgotten": any(care.forget is not None for care in cares),
    }
    used = [words for words, is_so in timers.items() if is_so]
    return " and ".join(used) or "never: only readings change it"


def describe(condition: DurationCondition) -> dict[str, str]:
    """Return the parts of a state with minimum durations as text, by name, for the comparison of
    revisions."""
    care = condition.care
    return filters.describe(condition) | {
        "guard of the start": _held(care.enter),
        "guard of the end": _held(care.exit),
        "time until it is unknown": "" if care.unknown is None else show_duration(care.unknown),
        "time until it is forgotten": "" if care.forget is None else show_duration(care.forget),
        "beginning": care.initially + ", quietly" * care.quietly,
        "roster": ", ".join(",".join(row) for row in condition.roster),
    }
