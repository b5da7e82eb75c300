"""The processing of one shard of a history: put its events in order and run its operators, stage by stage.

A stage passes on packets that do not concern it and adds derived events for later stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import pyarrow as pa

from ....engine.graph import Graph, LocalStates, Step, Watermarks
from ....engine.operator import decode_order, encode_order, sort_derived
from ....engine.slices import own_part
from ....files.merge import merge_by_time
from ....files.sort import Sorter, in_order
from ....model.batch import concatenate, from_ipc
from ....model.instant import BEGINNING, NEVER, Duration
from ...table import add_ids, schema_of, table_of
from ..job import Job
from ..pack import OperatorInput, PacketKind, encode_table, pack_derived, packet_row, unpack

MEMORY = 512 << 20
"""How many bytes of an operator's events are sorted in memory; more are sorted on disk."""


def run_shard(job: Job, number: int, raw: Iterable[bytes]) -> tuple[pa.Table, dict[str, pa.RecordBatch]]:
    """Run an operator on all events of a shard. Return its notifications and the derived events by topic."""
    operator = job.operators[number]
    tables, derived = [schema_of(job.published).empty_table()], dict[str, list[pa.RecordBatch]]()
    for step in _run(Graph({number: operator}), map(unpack, raw)):
        tables.append(table_of(job.published, operator, step.emission))
        for topic, events in operator.derive(step.emission).items():
            derived.setdefault(topic, []).append(events)
    return pa.concat_tables(tables), {topic: concatenate(batches) for topic, batches in derived.items()}


def _run(graph: Graph, inputs: Iterable[OperatorInput]) -> Iterator[Step]:
    (operator,) = graph.operators.values()
    if operator.machine.traits.lookaround is not None:
        return _run_slices(graph, operator.machine.traits.lookaround, inputs)
    if operator.machine.traits.uses_watermark or len(operator.topics) > 1:
        return _run_in_time(graph, inputs)
    return _run_at_once(graph, inputs)


def _run_at_once(graph: Graph, inputs: Iterable[OperatorInput]) -> Iterator[Step]:
    """Run an operator that has one topic and uses no watermark, on all events at once."""
    (operator,) = graph.operators.values()
    (topic,) = operator.topics
    if events := [input.events for input in inputs]:
        arrange = sort_derived if operator.upstream_topics else in_order
        batches = {topic: arrange(concatenate(events))}
        yield from graph.run(LocalStates(graph), batches, Watermarks()).steps


def _run_slices(graph: Graph, lookaround: Duration, inputs: Iterable[OperatorInput]) -> Iterator[Step]:
    """Run an operator with a lookaround on each slice of time separately."""
    (operator,) = graph.operators.values()
    slices: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    for topic, slice, events in inputs:
        assert topic is not None and slice is not None
        slices.setdefault(slice, {}).setdefault(topic, []).append(events)
    for slice, parts in sorted(slices.items()):
        batches = {topic: concatenate(batches) for topic, batches in parts.items()}
        ended = Watermarks(dict.fromkeys(operator.clock, NEVER))
        for step in graph.run(LocalStates(graph), batches, ended).steps:
            yield step._replace(emission=own_part(step.emission, slice, lookaround))


def _run_in_time(graph: Graph, inputs: Iterable[OperatorInput]) -> Iterator[Step]:
    """Run an operator on all its topics merged by time. Event time ends with the last event of the input."""
    (operator,) = graph.operators.values()
    states, watermarks, end = LocalStates(graph), Watermarks(), BEGINNING
    with ExitStack() as stack:
        sorters = {t: stack.enter_context(Sorter(MEMORY // len(operator.topics))) for t in operator.topics}
        for input in inputs:
            if input.topic is None:
                end = max(end, input.watermark)
            else:
                is_derived = input.topic in operator.upstream_topics
                sorters[input.topic].add(encode_order(input.events) if is_derived else input.events)
        parts = {topic: map(decode_order, sorter.drain()) for topic, sorter in sorters.items()}
        for topic, events, until in merge_by_time(parts):
            watermarks.topics = dict.fromkeys(operator.clock, until)
            yield from graph.run(states, {topic: events}, watermarks).steps
    watermarks.topics = dict.fromkeys(operator.clock, end)
    yield from graph.run(states, {}, watermarks, final=True).steps


# --- stages ------------------------------------------------------------------------------------------

GroupStep = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function from the packets of one operator and shard to rows."""


def stage_step(job: Job, stage: int, shards: int) -> GroupStep:
    """Return the function of a stage that is not the last. It maps packets to packets."""

    def step(key: tuple[pa.Scalar, ...], rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kind, number, shard = (part.as_py() for part in key)
        if kind != PacketKind.EVENTS or job.operators[number].links.stage != stage:
            yield from rows
            return
        notifications, derived = run_shard(job, number, _payloads(rows))
        if len(notifications):
            yield packet_row(PacketKind.NOTIFICATIONS, shard, encode_table(notifications))
        yield from pack_derived(job.operators, derived, shards)

    return step


def last_step(job: Job, require_success: Callable[[bytes], None]) -> GroupStep:
    """Return the function of the last stage. It maps packets to notifications."""

    def step(key: tuple[pa.Scalar, ...], rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kind, number, _ = (part.as_py() for part in key)
        if kind == PacketKind.REPORT:
            for raw in _payloads(rows):
                require_success(raw)
        elif kind == PacketKind.NOTIFICATIONS:
            for batch in map(from_ipc, _payloads(rows)):
                yield from add_ids(pa.Table.from_batches([batch])).to_batches()
        else:
            yield from add_ids(run_shard(job, number, _payloads(rows))[0]).to_batches()

    return step


def _payloads(rows: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    return (raw for batch in rows for raw in batch.column("payload").to_pylist())
