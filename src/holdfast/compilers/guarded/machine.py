"""Checked guarded states become machines and operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from ...lang.condition import Guarded
from ...lang.ops import Expression
from ...lang.rewrite import in_silence, names, silences
from ...machines.guard.machine import Guard
from ...machines.ordered import Ordered
from ...model.event import Event
from ...model.instant import Duration
from ...model.topic import Topic
from .. import columns, scalar
from ..filters.machine import decisive, within
from ..keys import joined as key_of
from ..keys import shown
from ..operator import Keys, Operator, digest
from ..tables import looking_up, looking_up_one

FAMILY = "guarded"


def operators(conditions: Iterable[Guarded], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each condition; equal ones share theirs."""
    equal: dict[str, list[Guarded]] = {}
    for condition in conditions:
        equal.setdefault(meaning(condition), []).append(condition)
    return [_operator(some) for some in equal.values()]


def _operator(equal: Sequence[Guarded]) -> Operator:
    first = equal[0]
    topic, run = first.topic.name, guard(first)

    def keyed(_topic: str, batch: pa.RecordBatch) -> Keys:
        codes, texts = run.scoping(batch)[-1]
        return Keys(codes, texts.to_pylist())

    told = tuple(one.name for one in equal)
    wait, late = first.delivery.wait, first.delivery.late
    return Operator(
        family=FAMILY,
        machine=run if wait is None else Ordered(run, first.topic, wait, late),
        names=(told,),
        meanings=(meaning(first),),
        listens=((topic,),),
        looks_at={topic: decisive([first])},
        keyed=None if first.roster else keyed,
        key=() if first.roster else (FAMILY,),
        reasons=tuple((name, "those who are expected are in one place") for name in told if first.roster),
    )


def guard(condition: Guarded) -> Guard:
    """The machine of a condition, whatever its delivery."""
    topic, universal = condition.looked, not condition.keys and condition.forest is None
    joined, join = looking_up([condition]), looking_up_one(condition.tables)
    lengths = lengths_of(condition)
    enter, leave = (list(_levels(op, lengths)) for op in (condition.enter, condition.exit))
    words = _words(enter, leave, topic)
    enters, leaves = (columns.words(some, topic, np.uint8) for some in (enter, leave))
    return Guard(
        topic=condition.topic,
        care=condition.care,
        silences=lengths,
        words=words if joined is None else lambda event: words(join(event)),
        enters=enters if joined is None else lambda batch: enters(joined(batch)),
        leaves=leaves if joined is None else lambda batch: leaves(joined(batch)),
        chain=scalar.chain(condition),
        scoping=columns.scoping(condition),
        shown=(lambda _key: None) if universal else shown,
        expected=tuple(key_of(None, values) for values in condition.roster),
    )


def lengths_of(condition: Guarded) -> tuple[Duration, ...]:
    """The silences that it tells apart, the shortest first."""
    return tuple(sorted({*silences(condition.enter), *silences(condition.exit)}))


def _levels(op: Expression, lengths: Sequence[Duration]) -> Iterator[Expression]:
    """A predicate when so many of the silences have passed, from none to all."""
    for passed in (0, *(length + 1 for length in lengths)):
        yield in_silence(op, passed)


def _words(
    enter: Sequence[Expression], leave: Sequence[Expression], topic: Topic
) -> Callable[[Event], tuple[int, int]]:
    """For one event the levels at which entrance and exit hold."""
    entering, leaving = ([scalar.predicate(op, topic) for op in some] for some in (enter, leave))
    if len(entering) == 1:
        (enters,), (leaves,) = entering, leaving
        return lambda event: (int(enters(event)), int(leaves(event)))

    def words(event: Event) -> tuple[int, int]:
        first = sum(1 << level for level, test in enumerate(entering) if test(event))
        return first, sum(1 << level for level, test in enumerate(leaving) if test(event))

    return words


def meaning(condition: Guarded) -> str:
    """Equal for conditions that mean the same, whatever their names."""
    used = [*names(condition.enter), *names(condition.exit), *chain.from_iterable(condition.keys)]
    return digest(
        (
            condition.topic.name,
            [condition.looked.by_name[name] for name in used],
            condition.enter,
            condition.exit,
            condition.keys,
            within(condition.forest),
            condition.delivery,
            condition.care,
            condition.roster,
        )
    )
