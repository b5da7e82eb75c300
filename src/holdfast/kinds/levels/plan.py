"""Operators of checked levels, whose inner machines are those of states, and the explanations of levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...engine.operator import Operator, digest
from ...lang.condition import BEFORE, LEVEL
from ...lang.show import show_expression, show_hold
from ...model.topic import Topic
from ..kind import describe_delivery
from ..state import plan_duration, plan_toggle
from ..state.condition import AnyState, DurationCondition, split
from ..state.explain_duration import describe as guard_words
from ..state.explain_duration import in_silence
from ..state.explain_toggle import describe as filter_words
from ..state.explain_toggle import scopes
from .condition import LevelsCondition
from .machine import LevelsMachine


def operators(levels: Iterable[LevelsCondition], topics: Sequence[Topic] = ()) -> list[Operator]:
    """Return one operator for each statement of levels."""
    return [_operator(level, topics) for level in levels]


def _operator(condition: LevelsCondition, topics: Sequence[Topic]) -> Operator:
    """Return the operator of levels, with an inner machine for plain states and one for each other state."""
    rungs = [replace(rung, delivery=condition.delivery) for rung in condition.rungs]
    toggles, durations = split(rungs)
    inside = plan_toggle.operators(toggles, topics)
    for duration in durations:
        inside += plan_duration.operators([duration], topics)
    numbers = {rung.name: i for i, rung in enumerate(rungs)}
    bits = tuple(tuple(sum(1 << numbers[name] for name in names) for names in op.names) for op in inside)
    machines = tuple(operator.machine for operator in inside)
    forgets = any(duration.care.forget is not None for duration in durations)  # all have the same clauses
    (topic,) = inside[0].topics
    return replace(
        inside[0],
        kind="levels",
        machine=LevelsMachine(machines, bits, tuple(numbers), condition.name, (LEVEL, BEFORE), forgets),
        names=((condition.name,),),
        meanings=(meaning(condition),),
        reading_topics=((topic,),),
        decisive_columns={topic: plan_toggle.decisive(rungs)},
        keyed=inside[0].keyed if all(operator.keyed for operator in inside) else None,
        key=("levels",) if all(operator.key for operator in inside) else (),
    )


def meaning(condition: LevelsCondition) -> str:
    """Return a digest that is equal for levels with equal meaning.

    The name is part of the meaning, because it is the topic of the levels' events.
    """
    rungs = [replace(rung, delivery=condition.delivery) for rung in condition.rungs]
    names, meanings = [rung.name for rung in rungs], list(map(plan_toggle.meaning, rungs))
    return digest((condition.topic, names, meanings))


def describe(condition: LevelsCondition) -> dict[str, str]:
    """Return the parts of levels as text, by name, for the comparison of revisions."""
    rungs = {f"level {rung.name}": _pair(rung) for rung in condition.rungs}
    first = condition.rungs[0]
    return {
        "topic": first.topic.name,
        "key": " within ".join(", ".join(level) for level in first.keys),
        "delivery": describe_delivery(condition.delivery),
        **rungs,
        **{what: words for what, words in _further(condition) if words},
    }


def _further(condition: LevelsCondition) -> Iterator[tuple[str, str]]:
    """Yield tables, scopes and no-data clauses as text, each with its name."""
    for rung in condition.rungs:
        yield from ((what, text) for what, text in filter_words(rung).items() if what.startswith("table "))
    first = condition.rungs[0]
    yield "scope", filter_words(first)["scope"]
    if isinstance(first, DurationCondition):
        guards = guard_words(first)
        for what in ("time until it is unknown", "time until it is forgotten", "roster"):
            yield what, guards[what]


def _pair(rung: AnyState) -> str:
    """Return the predicates of a level as text, with their minimum durations."""
    holds = (rung.care.enter, rung.care.exit) if isinstance(rung, DurationCondition) else (None, None)
    ends = ((rung.enter, holds[0]), (rung.exit, holds[1]))
    return f"[{'; '.join(show_expression(op) + (show_hold(hold) if hold else '') for op, hold in ends)}]"


def explain(condition: LevelsCondition) -> Iterator[str]:
    """Explain levels, line by line."""
    yield f"levels {condition.name} on {condition.rungs[0].topic.name}; the highest active level is reported"
    for rung in reversed(condition.rungs):
        yield f"  {rung.name:<9} {_pair(rung)}"
    (operator,) = operators([condition])
    looked_at = operator.decisive_columns[condition.rungs[0].topic.name] | {"time", "source", "sequence"}
    yield f"  looks at  {', '.join(sorted(looked_at))}"
    yield f"  scopes    {scopes(condition.rungs[0])}"
    if isinstance(condition.rungs[0], DurationCondition):
        yield from in_silence(condition.rungs[0])
    yield "  keeps     the state of each level; for each scope with a level, its bits and two times"
