"""Checked levels become machines and operators: the states inside are filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...lang.condition import Leveled
from ...lang.levels import BEFORE, LEVEL
from ...lang.show import show
from ...machines.levels import Levels
from ...model.topic import Topic
from ..filters import machine as filters
from ..operator import Operator, digest

FAMILY = "levels"


def operators(levels: Iterable[Leveled], topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each."""
    return [_operator(one, topics) for one in levels]


def _operator(one: Leveled, topics: Sequence[Topic]) -> Operator:
    (inside,) = filters.operators([replace(rung, delivery=one.delivery) for rung in one.rungs], topics)
    numbers = {rung.name: i for i, rung in enumerate(one.rungs)}
    bits = tuple(sum(1 << numbers[name] for name in names) for names in inside.names)
    names = tuple(rung.name for rung in one.rungs)
    return replace(
        inside,
        family=FAMILY,
        machine=Levels(inside.machine, bits, names, one.name, (LEVEL, BEFORE)),
        names=((one.name,),),
        meanings=(meaning(one),),
        listens=inside.listens[:1],
        key=(FAMILY,),
    )


def meaning(one: Leveled) -> str:
    """Equal for levels that mean the same; what they tell has their name."""
    rungs = [(rung.name, filters.meaning(replace(rung, delivery=one.delivery))) for rung in one.rungs]
    return digest((one.topic, rungs))


def in_words(one: Leveled) -> dict[str, str]:
    """What levels say, to tell what has changed."""
    from ..filters.explain import in_words

    said = in_words(replace(one.rungs[0], delivery=one.delivery))
    rungs = {f"level {rung.name}": f"[{show(rung.enter)}; {show(rung.exit)}]" for rung in one.rungs}
    return {name: said[name] for name in ("topic", "key", "scope", "delivery")} | rungs


def explained(levels: Sequence[Leveled]) -> Iterator[str]:
    """The plan of levels, line by line."""
    return ("\n".join(_plan(one)) for one in levels)


def _plan(one: Leveled) -> Iterator[str]:
    from ..filters.explain import explained

    yield f"levels {one.name}: {' < '.join(rung.name for rung in one.rungs)}; the highest that holds is told"
    (states,) = explained([replace(rung, delivery=one.delivery) for rung in one.rungs])
    yield from states.splitlines()[1:]
    yield "            and of each scope that has a level its bits and two times"
