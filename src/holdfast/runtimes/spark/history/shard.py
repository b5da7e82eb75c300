"""A shard of history: all that reached it is put in order and stepped through.

Stage by stage where conditions build on others under another key: what a stage is not about passes it
as it is, and what it says goes on to the stages that hear it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import pyarrow as pa

from ....compilers.operator import Operator, as_were, by_turns, in_turn, with_time
from ....compilers.slices import told_of
from ....files.merge import merged
from ....files.sort import Sorter, in_order
from ....machines.machine import Told
from ....model.batch import concatenate, from_ipc
from ....model.instant import BEGINNING, NEVER
from ...table import identified, schema_of, table_of
from ..pack import REPORT, TOLD, Piece, as_bytes, passed_on, row, unpacked
from ..plan import Work

MEMORY = 512 << 20
"""How many bytes of an operator's events may wait in memory to be sorted."""


def step_shard(work: Work, number: int, raw: Iterable[bytes]) -> tuple[pa.Table, dict[str, pa.RecordBatch]]:
    """What an operator says of all events of a shard: notifications, and what later stages hear."""
    operator = work.operators[number]
    tables, heard = [schema_of(work.published).empty_table()], dict[str, list[pa.RecordBatch]]()
    for told in _told(operator, map(unpacked, raw)):
        tables.append(table_of(work.published, operator, told))
        for topic, events in operator.retold(told).items():
            heard.setdefault(topic, []).append(events)
    return pa.concat_tables(tables), {topic: concatenate(some) for topic, some in heard.items()}


def _told(operator: Operator, pieces: Iterable[Piece]) -> Iterator[Told]:
    if operator.machine.margin is not None:
        return _of_slices(operator, pieces)
    if operator.machine.is_timed or len(operator.topics) > 1:
        return _in_time(operator, pieces)
    return _at_once(operator, pieces)


def _at_once(operator: Operator, pieces: Iterable[Piece]) -> Iterator[Told]:
    """Of events of one topic."""
    machine, (topic,) = operator.machine, operator.topics
    if events := [piece.events for piece in pieces]:
        arranged = in_turn if operator.heard else in_order
        yield machine.step(machine.initial(), {topic: arranged(concatenate(events))}, BEGINNING)[1]


def _of_slices(operator: Operator, pieces: Iterable[Piece]) -> Iterator[Told]:
    """Of slices of time, each by itself."""
    slices: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    for topic, slice, events in pieces:
        assert topic is not None and slice is not None
        slices.setdefault(slice, {}).setdefault(topic, []).append(events)
    for slice, parts in sorted(slices.items()):
        batches = {topic: concatenate(some) for topic, some in parts.items()}
        yield told_of(operator.machine, slice, batches)


def _in_time(operator: Operator, pieces: Iterable[Piece]) -> Iterator[Told]:
    """Of several topics, merged by time, which ends with the last reading of the input."""
    machine, end = operator.machine, BEGINNING
    state = machine.initial()
    with ExitStack() as stack:
        sorters = {t: stack.enter_context(Sorter(MEMORY // len(operator.topics))) for t in operator.topics}
        for piece in pieces:
            if piece.topic is None:
                end = max(end, piece.reached)
            else:
                heard = piece.topic in operator.heard
                sorters[piece.topic].add(by_turns(piece.events) if heard else piece.events)
        for topic, events, until in merged({t: map(as_were, each.drain()) for t, each in sorters.items()}):
            state, told = machine.step(state, {topic: events}, until)
            yield told
    yield machine.step(state, with_time(operator, {}, end), NEVER)[1]


# --- stages ------------------------------------------------------------------------------------------

Step = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What becomes of the packed rows of one operator and shard."""


def staged(work: Work, stage: int, shards: int) -> Step:
    """A stage that others follow: packed rows in, packed rows out."""

    def step(key: tuple[pa.Scalar, ...], rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, shard = key[0].as_py(), key[1].as_py()
        if number < 0 or work.operators[number].stage != stage:
            yield from rows
            return
        told, heard = step_shard(work, number, _raw(rows))
        if len(told):
            yield row(TOLD, shard, as_bytes(told))
        yield from passed_on(work.operators, heard, shards)

    return step


def finished(work: Work, require_success: Callable[[bytes], None]) -> Step:
    """The last stage: packed rows in, notifications out."""

    def step(key: tuple[pa.Scalar, ...], rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = key[0].as_py()
        if number == REPORT:
            for raw in _raw(rows):
                require_success(raw)
        elif number == TOLD:
            for batch in map(from_ipc, _raw(rows)):
                yield from identified(pa.Table.from_batches([batch])).to_batches()
        else:
            yield from identified(step_shard(work, number, _raw(rows))[0]).to_batches()

    return step


def _raw(rows: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    return (raw for batch in rows for raw in batch.column("events").to_pylist())
