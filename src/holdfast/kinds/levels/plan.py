"""Operators of checked levels; their inner machines are those of states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...engine.operator import Operator, digest
from ...lang.condition import BEFORE, LEVEL
from ...lang.show import show_expression, show_hold
from ...model.topic import Topic
from ..state import plan_duration as guarded
from ..state import plan_toggle as filters
from ..state.condition import DurationCondition, StateCondition
from ..state.explain_duration import describe as guard_words
from ..state.explain_duration import in_silence
from ..state.explain_toggle import describe as filter_words
from ..state.explain_toggle import scopes
from .condition import LevelsCondition
from .machine import LevelsMachine


def operators(levels: Iterable[LevelsCondition], topics: Sequence[Topic] = ()) -> list[Operator]:
    """One operator for each statement."""
    return [_operator(level, topics) for level in levels]


def _operator(condition: LevelsCondition, topics: Sequence[Topic]) -> Operator:
    rungs = [replace(rung, delivery=condition.delivery) for rung in condition.rungs]
    inside = [
        *filters.operators([rung for rung in rungs if isinstance(rung, StateCondition)], topics),
        *(
            condition
            for rung in rungs
            if isinstance(rung, DurationCondition)
            for condition in guarded.operators([rung], topics)
        ),
    ]
    numbers = {rung.name: i for i, rung in enumerate(rungs)}
    bits = tuple(
        tuple(sum(1 << numbers[name] for name in names) for names in operator.names) for operator in inside
    )
    names = tuple(rung.name for rung in rungs)
    machines = tuple(machine.machine for machine in inside)
    (topic,) = inside[0].topics
    return replace(
        inside[0],
        kind="levels",
        machine=LevelsMachine(machines, bits, names, condition.name, (LEVEL, BEFORE), _forgets(condition)),
        names=((condition.name,),),
        meanings=(meaning(condition),),
        reading_topics=((topic,),),
        decisive_columns={topic: frozenset().union(*(machine.decisive_columns[topic] for machine in inside))},
        keyed=inside[0].keyed if all(machine.keyed for machine in inside) else None,
        key=("levels",) if all(machine.key for machine in inside) else (),
    )


def _forgets(condition: LevelsCondition) -> bool:
    """Whether scopes are forgotten after a time without data; all levels have the same clauses."""
    return any(
        isinstance(rung, DurationCondition) and rung.care.forget is not None for rung in condition.rungs
    )


def meaning(condition: LevelsCondition) -> str:
    """A digest that is equal for levels with equal meaning; it includes the name, which their events have."""
    rungs = [replace(rung, delivery=condition.delivery) for rung in condition.rungs]
    meanings = [
        filters.meaning(rung) if isinstance(rung, StateCondition) else guarded.meaning(rung) for rung in rungs
    ]
    return digest((condition.topic, [rung.name for rung in rungs], meanings))


def describe(condition: LevelsCondition) -> dict[str, str]:
    """Describe the parts of levels, for the comparison of revisions."""
    rungs = {f"level {rung.name}": _pair(rung) for rung in condition.rungs}
    first = condition.rungs[0]
    wait = condition.delivery.wait
    return {
        "topic": first.topic.name,
        "key": " within ".join(", ".join(level) for level in first.keys),
        "delivery": "timely" if wait is None else f"ordered {wait} µs, late {condition.delivery.late}",
        **rungs,
        **{what: words for what, words in _further(condition) if words},
    }


def _further(condition: LevelsCondition) -> Iterator[tuple[str, str]]:
    """Describe scopes, tables and no-data clauses, if there are any."""
    for rung in condition.rungs:
        yield from ((what, text) for what, text in filter_words(rung).items() if what.startswith("table "))
    first = condition.rungs[0]
    yield "scope", filter_words(first)["scope"]
    if isinstance(first, DurationCondition):
        guards = guard_words(first)
        for what in ("time until it is unknown", "time until it is forgotten", "roster"):
            yield what, guards[what]


def _pair(rung: StateCondition | DurationCondition) -> str:
    holds = (rung.care.enter, rung.care.exit) if isinstance(rung, DurationCondition) else (None, None)
    ends = ((rung.enter, holds[0]), (rung.exit, holds[1]))
    return f"[{'; '.join(show_expression(op) + (show_hold(hold) if hold else '') for op, hold in ends)}]"


def explain(levels: Sequence[LevelsCondition]) -> Iterator[str]:
    """Explain levels, line by line."""
    return ("\n".join(_plan(level)) for level in levels)


def _plan(condition: LevelsCondition) -> Iterator[str]:
    yield f"levels {condition.name} on {condition.rungs[0].topic.name}; the highest that holds is told"
    for rung in reversed(condition.rungs):
        yield f"  {rung.name:<9} {_pair(rung)}"
    (operator,) = operators([condition])
    looked_at = operator.decisive_columns[condition.rungs[0].topic.name] | {"time", "source", "sequence"}
    yield f"  looks at  {', '.join(sorted(looked_at))}"
    yield f"  scopes    {scopes(condition.rungs[0])}"
    if isinstance(condition.rungs[0], DurationCondition):
        yield from in_silence(condition.rungs[0])
    yield "  keeps     the state of each level, and of each scope that has one its bits and two times"
