"""Operators of checked states with minimum durations.

States with the same scopes share a machine. Predicates become bytes: each bit is the value of the predicate
at one level of silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...engine.machine import Mask
from ...engine.operator import Keys, Operator, Presentation
from ...lang.expressions import batch as columns
from ...lang.expressions import event as scalar
from ...lang.expressions import written
from ...lang.expressions.key_text import join_key as key_of
from ...lang.expressions.key_text import readable_key
from ...lang.expressions.tables import add_table_columns, rows_of, rows_without_match, topic_of
from ...lang.ops import Expression
from ...lang.rewrite import in_silence, silences
from ...model.event import Event
from ...model.instant import Duration
from ...model.topic import Topic
from .condition import DurationCondition
from .duration.machine import LONGEST, MOST, DurationMachine, DurationRule, Lengths
from .plan_toggle import alone_in, decisive, meaning, with_delivery


def operators(conditions: Iterable[DurationCondition], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """Return as few operators as possible for states with minimum durations.

    States share a machine if they have the same scopes and forget them after the same time. Equal states
    share one number in the machine. A state with expected sources has a machine of its own.
    """
    alike: dict[object, dict[str, list[DurationCondition]]] = {}
    for condition in conditions:
        means = meaning(condition)
        alone = means if condition.roster else alone_in(condition)
        scopes = condition.topic, condition.keys, condition.forest, condition.care.forget
        alike.setdefault((scopes, condition.delivery, alone), {}).setdefault(means, []).append(condition)
    groups = [list(together.values()) for together in alike.values()]
    return [_operator(group[i : i + MOST]) for group in groups for i in range(0, len(group), MOST)]


def _operator(distinct: Sequence[Sequence[DurationCondition]]) -> Operator:
    """Return the operator of states. The names of equal states are in one inner sequence of ``distinct``."""
    conditions = [equal[0] for equal in distinct]
    first = conditions[0]
    topic, run = first.topic.name, duration_machine(conditions)

    def shard_keys(_topic: str, batch: pa.RecordBatch) -> Keys:
        codes, texts = run.scoping(batch)[-1]
        return Keys(codes, texts.to_pylist())

    names = tuple(tuple(condition.name for condition in equal) for equal in distinct)
    why = "those who are expected are in one place"
    return Operator(
        kind="state",
        machine=with_delivery(run, first.topic, first.delivery),
        names=names,
        meanings=tuple(map(meaning, conditions)),
        reading_topics=((topic,),) * len(conditions),
        decisive_columns={topic: decisive(conditions)},
        keyed=None if first.roster else shard_keys,
        key=() if first.roster else ("duration",),
        delay=first.delivery.wait or 0,
        missing_rows=_lacking(conditions, run),
        presentation=Presentation(
            reasons=tuple((name, why) for name in chain.from_iterable(names) if first.roster)
        ),
    )


def _lacking(
    conditions: Sequence[DurationCondition], run: DurationMachine
) -> Callable[[pa.RecordBatch], Sequence[Mask]] | None:
    """Return a function that finds for each condition the events of a scope without a row in its tables.

    Return ``None`` if no condition has tables.
    """
    lack = rows_without_match(conditions)
    if lack is None:
        return None
    return lambda batch: [lacks & (run.scoping(batch)[-1][0] >= 0) for lacks in lack(batch)]


def duration_machine(conditions: Sequence[DurationCondition]) -> DurationMachine:
    """Return the machine of conditions that share their scopes. Their delivery is ignored."""
    first = conditions[0]
    universal = not first.keys and first.forest is None
    rules = tuple(DurationRule(condition.care, lengths_of(condition)) for condition in conditions)
    enters = [list(_levels(condition.enter, lengths_of(condition))) for condition in conditions]
    leaves = [list(_levels(condition.exit, lengths_of(condition))) for condition in conditions]
    lines = [*enters, *leaves]
    return DurationMachine(
        topic=first.topic,
        rules=rules,
        words=_words(lines, conditions),
        columns=_columns(lines, conditions),
        chain=scalar.chain(first.keys, first.forest),
        scoping=columns.scoping(first.keys, first.forest),
        readable_scope=(lambda _key: None) if universal else readable_key,
        expected=tuple(key_of(None, values) for values in first.roster),
        lengths=_lengths(conditions),
    )


def lengths_of(condition: DurationCondition) -> tuple[Duration, ...]:
    """Return the durations of the ``silent`` predicates of a condition in microseconds, the shortest
    first."""
    return tuple(sorted({*silences(condition.enter), *silences(condition.exit)}))


def _levels(op: Expression, lengths: Sequence[Duration]) -> Iterator[Expression]:
    """Yield a predicate at each level of silence: before the first duration, after the first, and so on."""
    for passed in (0, *(length + 1 for length in lengths)):
        yield in_silence(op, passed)


Bits = tuple[tuple[Expression, tuple[tuple[int, int], ...]], ...]
"""Distinct predicates. Each has pairs of a line and its bits in the byte of that line."""


def _bits(lines: Sequence[Sequence[Expression]]) -> Bits:
    """Return the distinct predicates of lines, with their bits. A line has one predicate for each level of
    silence."""
    found: dict[str, tuple[Expression, dict[int, int]]] = {}
    for line, levels in enumerate(lines):
        for level, op in enumerate(levels):
            _, bits = found.setdefault(repr(op), (op, {}))  # 1 == 1.0, but they compare differently
            bits[line] = bits.get(line, 0) | 1 << level
    return tuple((op, tuple(bits.items())) for op, bits in found.values())


def _words(
    lines: Sequence[Sequence[Expression]], conditions: Sequence[DurationCondition]
) -> Callable[[Event], Sequence[int]]:
    """Return a function that returns one byte for each line of predicates, for a single event.

    The bits of a byte are the levels of silence at which the predicate is true.
    """
    tables = tuple(dict.fromkeys(table for condition in conditions for table in condition.tables))
    marked = [(op, sum(word << 8 * line for line, word in bits)) for op, bits in _bits(lines)]
    marks, size = written.marks(marked, topic_of(conditions), tables), len(lines)
    return lambda event: marks(event).to_bytes(size, "little")


def _columns(
    lines: Sequence[Sequence[Expression]], conditions: Sequence[DurationCondition]
) -> Callable[[pa.RecordBatch], NDArray[np.uint8]]:
    """Return a function that returns the same bytes as `_words` for a batch, with a row for each line."""
    topic, joined = topic_of(conditions), add_table_columns(conditions)
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


def _lengths(conditions: Sequence[DurationCondition]) -> Lengths | None:
    """Return functions for the minimum durations that tables define; ``None`` if no table does.

    A missing duration never elapses.
    """
    cares = [condition.care for condition in conditions]
    holds = [care.enter for care in cares] + [care.exit for care in cares]
    named = {hold.column for hold in holds if hold.column}
    if not named:
        return None
    tables = {table.name: table for condition in conditions for table in condition.tables}
    rows = {column: rows_of(tables[column.partition(".")[0]]) for column in named}

    def of_one(event: Event) -> list[Duration]:
        found = {name: row.of_one(event)[name] for name, row in rows.items()}
        lengths = [hold.length if hold.column is None else found[hold.column] for hold in holds]
        return [LONGEST if length is None else min(cast(int, length), LONGEST) for length in lengths]

    def of_batch(batch: pa.RecordBatch) -> NDArray[np.int64]:
        found = {name: row.of(batch)[name].fill_null(LONGEST).to_numpy() for name, row in rows.items()}
        lines = [hold.length if hold.column is None else found[hold.column] for hold in holds]
        return np.minimum(np.stack([np.broadcast_to(line, len(batch)) for line in lines]), LONGEST)

    return Lengths(of_one, of_batch)
