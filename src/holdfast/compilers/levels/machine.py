"""Checked levels become machines and operators: the states inside are filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...lang.condition import Condition, Guarded, Leveled
from ...lang.levels import BEFORE, LEVEL
from ...lang.show import show, show_hold
from ...machines.levels import Levels
from ...model.topic import Topic
from ..filters import machine as filters
from ..filters.explain import in_words as filter_words
from ..filters.explain import scopes
from ..guarded import machine as guarded
from ..guarded.explain import in_silence
from ..guarded.explain import in_words as guard_words
from ..operator import Operator, digest

FAMILY = "levels"


def operators(levels: Iterable[Leveled], topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each."""
    return [_operator(one, topics) for one in levels]


def _operator(one: Leveled, topics: Sequence[Topic]) -> Operator:
    rungs = [replace(rung, delivery=one.delivery) for rung in one.rungs]
    inside = [
        *filters.operators([rung for rung in rungs if isinstance(rung, Condition)], topics),
        *(one for rung in rungs if isinstance(rung, Guarded) for one in guarded.operators([rung], topics)),
    ]
    numbers = {rung.name: i for i, rung in enumerate(rungs)}
    bits = tuple(tuple(sum(1 << numbers[name] for name in names) for names in each.names) for each in inside)
    names = tuple(rung.name for rung in rungs)
    machines = tuple(each.machine for each in inside)
    (topic,) = inside[0].topics
    return replace(
        inside[0],
        family=FAMILY,
        machine=Levels(machines, bits, names, one.name, (LEVEL, BEFORE), _forgets(one)),
        names=((one.name,),),
        meanings=(meaning(one),),
        listens=((topic,),),
        looks_at={topic: frozenset().union(*(each.looks_at[topic] for each in inside))},
        keyed=inside[0].keyed if all(each.keyed for each in inside) else None,
        key=(FAMILY,) if all(each.key for each in inside) else (),
    )


def _forgets(one: Leveled) -> bool:
    """Whether scopes are forgotten; all levels have the same clauses."""
    return any(isinstance(rung, Guarded) and rung.care.forget is not None for rung in one.rungs)


def meaning(one: Leveled) -> str:
    """Equal for levels that mean the same; what they tell has their name."""
    rungs = [replace(rung, delivery=one.delivery) for rung in one.rungs]
    meanings = [
        filters.meaning(rung) if isinstance(rung, Condition) else guarded.meaning(rung) for rung in rungs
    ]
    return digest((one.topic, [rung.name for rung in rungs], meanings))


def in_words(one: Leveled) -> dict[str, str]:
    """What levels say, to tell what has changed."""
    rungs = {f"level {rung.name}": _pair(rung) for rung in one.rungs}
    first = one.rungs[0]
    wait = one.delivery.wait
    return {
        "topic": first.topic.name,
        "key": " within ".join(", ".join(level) for level in first.keys),
        "delivery": "timely" if wait is None else f"ordered {wait} µs, late {one.delivery.late}",
        **rungs,
        **{what: words for what, words in _further(one) if words},
    }


def _further(one: Leveled) -> Iterator[tuple[str, str]]:
    """What levels say of scopes, tables and silence, where they do."""
    for rung in one.rungs:
        yield from ((what, said) for what, said in filter_words(rung).items() if what.startswith("table "))
    first = one.rungs[0]
    yield "scope", filter_words(first)["scope"]
    if isinstance(first, Guarded):
        guards = guard_words(first)
        for what in ("time until it is unknown", "time until it is forgotten", "roster"):
            yield what, guards[what]


def _pair(rung: Condition | Guarded) -> str:
    holds = (rung.care.enter, rung.care.exit) if isinstance(rung, Guarded) else (None, None)
    ends = ((rung.enter, holds[0]), (rung.exit, holds[1]))
    return f"[{'; '.join(show(op) + (show_hold(hold) if hold else '') for op, hold in ends)}]"


def explained(levels: Sequence[Leveled]) -> Iterator[str]:
    """The plan of levels, line by line."""
    return ("\n".join(_plan(one)) for one in levels)


def _plan(one: Leveled) -> Iterator[str]:
    yield f"levels {one.name} on {one.rungs[0].topic.name}; the highest that holds is told"
    for rung in reversed(one.rungs):
        yield f"  {rung.name:<9} {_pair(rung)}"
    (operator,) = operators([one])
    looked_at = operator.looks_at[one.rungs[0].topic.name] | {"time", "source", "sequence"}
    yield f"  looks at  {', '.join(sorted(looked_at))}"
    yield f"  scopes    {scopes(one.rungs[0])}"
    if isinstance(one.rungs[0], Guarded):
        yield from in_silence(one.rungs[0])
    yield "  keeps     the state of each level, and of each scope that has one its bits and two times"
