"""Correlations over history: events packed by slice of time, each slice stepped by itself.

A slice knows a window more than it owns on both sides, and tells only what it owns; so nothing needs to
pass from one to the next, and they are as many tasks as there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from ...compilers.gathering import Gathering
from ...compilers.machine import Group
from ...compilers.stages import Operator
from ...model.batch import concatenate, from_ipc, to_ipc, trimmed
from ...model.topic import Topic
from .notice import schema_of, table_of, to_table
from .pack import gathered, row

_TOPIC, _SLICE = b"holdfast.topic", b"holdfast.slice"


def spread(
    number: int, operator: Operator, topic: str, batch: pa.RecordBatch, shards: int
) -> Iterator[pa.RecordBatch]:
    """The events of a batch of history for an operator, by shard: of correlations by slice of time."""
    if not isinstance(operator, Gathering):
        yield from gathered(number, operator, topic, batch, shards)
        return
    for piece, events in operator.sliced(batch):
        named = trimmed(events).replace_schema_metadata({_TOPIC: topic, _SLICE: str(piece)})
        yield row(number, piece % shards, to_ipc(named))


def told_of_slices(gathering: Gathering, published: Sequence[Topic], raw: Iterable[bytes]) -> pa.Table:
    """What correlations say of the slices of a shard."""
    slices: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    for events in map(from_ipc, raw):
        said = events.schema.metadata or {}
        if _SLICE in said:  # else it only says how far time has come
            mine = slices.setdefault(int(said[_SLICE]), {})
            mine.setdefault(said[_TOPIC].decode(), []).append(events.replace_schema_metadata(None))
    tables = [schema_of(published).empty_table()]
    for piece, parts in sorted(slices.items()):
        batches = {topic: concatenate(some) for topic, some in parts.items()}
        simple, complex_events = gathering.told_of(piece, batches)
        for topic, passed in simple.items():
            group = Group(gathering.machine, gathering.topics[topic], gathering.group.names)  # type: ignore[arg-type]
            tables.append(table_of(group, published, passed))
        tables.append(to_table(published, complex_events))
    return pa.concat_tables(tables)
