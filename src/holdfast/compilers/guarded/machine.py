"""Checked guarded states become machines and operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...lang.condition import Guarded
from ...lang.ops import Expression
from ...lang.rewrite import in_silence, names, silences
from ...machines.guard.machine import LONGEST, MOST, Guard, Lengths, Rule
from ...machines.machine import Mask
from ...model.event import Event, Value
from ...model.instant import Duration
from ...model.topic import Topic
from .. import columns, scalar, written
from ..filters.machine import alone_in, decisive, delivered, within
from ..keys import joined as key_of
from ..keys import shown
from ..operator import Keys, Operator, digest
from ..tables import lacking, looked_up, looking_up, topic_of

FAMILY = "guarded"


def operators(conditions: Iterable[Guarded], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """As few machines as the conditions allow: those share one that watch the same scopes and forget them at
    the same time; equal ones are one there.  Who expects somebody is alone."""
    alike: dict[object, dict[str, list[Guarded]]] = {}
    for one in conditions:
        means = meaning(one)
        alone = means if one.roster else alone_in(one)
        setting = (one.topic, one.keys, one.forest, one.delivery, one.care.forget, alone)
        alike.setdefault(setting, {}).setdefault(means, []).append(one)
    groups = [list(together.values()) for together in alike.values()]
    return [_operator(group[i : i + MOST]) for group in groups for i in range(0, len(group), MOST)]


def _operator(distinct: Sequence[Sequence[Guarded]]) -> Operator:
    conditions = [equal[0] for equal in distinct]
    first = conditions[0]
    topic, run = first.topic.name, guard(conditions)

    def keyed(_topic: str, batch: pa.RecordBatch) -> Keys:
        codes, texts = run.scoping(batch)[-1]
        return Keys(codes, texts.to_pylist())

    names = tuple(tuple(one.name for one in equal) for equal in distinct)
    why = "those who are expected are in one place"
    return Operator(
        family=FAMILY,
        machine=delivered(run, first.topic, first.delivery),
        names=names,
        meanings=tuple(map(meaning, conditions)),
        listens=((topic,),) * len(conditions),
        looks_at={topic: decisive(conditions)},
        keyed=None if first.roster else keyed,
        key=() if first.roster else (FAMILY,),
        reasons=tuple((name, why) for name in chain.from_iterable(names) if first.roster),
        behind=first.delivery.wait or 0,
        lacking=_lacking(conditions, run),
    )


def _lacking(conditions: Sequence[Guarded], run: Guard) -> Callable[[pa.RecordBatch], Sequence[Mask]] | None:
    """For each condition which events in a scope have no row in its tables."""
    lack = lacking(conditions)
    if lack is None:
        return None
    return lambda batch: [lacks & (run.scoping(batch)[-1][0] >= 0) for lacks in lack(batch)]


def guard(conditions: Sequence[Guarded]) -> Guard:
    """The machine of conditions that share their scopes, whatever their delivery."""
    first = conditions[0]
    universal = not first.keys and first.forest is None
    rules = tuple(Rule(one.care, lengths_of(one)) for one in conditions)
    enters = [tuple(_levels(one.enter, rule.silences)) for one, rule in zip(conditions, rules, strict=True)]
    leaves = [tuple(_levels(one.exit, rule.silences)) for one, rule in zip(conditions, rules, strict=True)]
    return Guard(
        topic=first.topic,
        rules=rules,
        words=_words([*enters, *leaves], conditions),
        columns=_columns([*enters, *leaves], conditions),
        chain=scalar.chain(first),
        scoping=columns.scoping(first),
        shown=(lambda _key: None) if universal else shown,
        expected=tuple(key_of(None, values) for values in first.roster),
        lengths=_lengths(conditions),
    )


def lengths_of(condition: Guarded) -> tuple[Duration, ...]:
    """The silences that it tells apart, the shortest first."""
    return tuple(sorted({*silences(condition.enter), *silences(condition.exit)}))


def _levels(op: Expression, lengths: Sequence[Duration]) -> Iterator[Expression]:
    """A predicate when so many of the silences have passed, from none to all."""
    for passed in (0, *(length + 1 for length in lengths)):
        yield in_silence(op, passed)


Bits = tuple[tuple[Expression, tuple[tuple[int, int], ...]], ...]
"""Distinct predicates, each with the lines in which it stands, and its bits there."""


def _bits(lines: Sequence[Sequence[Expression]]) -> Bits:
    found: dict[str, tuple[Expression, dict[int, int]]] = {}
    for line, levels in enumerate(lines):
        for level, op in enumerate(levels):
            _, bits = found.setdefault(repr(op), (op, {}))  # 1 == 1.0, but they compare differently
            bits[line] = bits.get(line, 0) | 1 << level
    return tuple((op, tuple(bits.items())) for op, bits in found.values())


def _words(
    lines: Sequence[Sequence[Expression]], conditions: Sequence[Guarded]
) -> Callable[[Event], Sequence[int]]:
    """For one event the levels at which each line of predicates holds, a byte for each."""
    tables = tuple(dict.fromkeys(table for one in conditions for table in one.tables))
    marked = [(op, sum(word << 8 * line for line, word in bits)) for op, bits in _bits(lines)]
    marks, size = written.marks(marked, topic_of(conditions), tables), len(lines)
    return lambda event: marks(event).to_bytes(size, "little")


def _columns(
    lines: Sequence[Sequence[Expression]], conditions: Sequence[Guarded]
) -> Callable[[pa.RecordBatch], NDArray[np.uint8]]:
    """The same for each event of a batch."""
    topic, joined = topic_of(conditions), looking_up(conditions)
    tests = [(columns.predicate(op, topic), bits) for op, bits in _bits(lines)]

    def words(batch: pa.RecordBatch) -> NDArray[np.uint8]:
        whole = batch if joined is None else joined(batch)
        held = np.zeros((len(lines), len(batch)), np.uint8)
        for holds, bits in tests:
            mask = holds(whole)
            for line, word in bits:
                held[line] |= mask * np.uint8(word)
        return held

    return words


def _lengths(conditions: Sequence[Guarded]) -> Lengths | None:
    """How long predicates must hold, where tables say so; what is missing there never has lasted."""
    holds = [one.care.enter for one in conditions] + [one.care.exit for one in conditions]
    named = {hold.column for hold in holds if hold.column}
    if not named:
        return None
    tables = {table.name: table for one in conditions for table in one.tables}
    rows = {column: looked_up(tables[column.partition(".")[0]]) for column in named}

    def of_one(event: Event) -> list[Duration]:
        found = {name: some.of_one(event)[name] for name, some in rows.items()}
        return [hold.length if hold.column is None else _length(found[hold.column]) for hold in holds]

    def of_batch(batch: pa.RecordBatch) -> NDArray[np.int64]:
        found = {name: some.of(batch)[name].fill_null(LONGEST).to_numpy() for name, some in rows.items()}
        lines = [hold.length if hold.column is None else found[hold.column] for hold in holds]
        return np.minimum(np.stack([np.broadcast_to(line, len(batch)) for line in lines]), LONGEST)

    return Lengths(of_one, of_batch)


def _length(found: Value) -> Duration:
    assert found is None or isinstance(found, int)
    return LONGEST if found is None else min(found, LONGEST)


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
