"""A shard of history: all that reached it is put in order and stepped through.

Stage by stage where components build on one another under other keys: what a stage is not about
passes it as it is, and what it says goes on to the stages that hear it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from ...compilers.gathering import Gathering, gatherings
from ...compilers.machine import Group, groups
from ...compilers.stages import Operator, operators, progress
from ...files.sort import Sorter
from ...lang.condition import Checked, Component, Condition, Correlated
from ...model.batch import concatenate, from_events, from_ipc, in_order, times
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, Instant
from ...model.qos import TIMELY
from ...model.topic import Topic
from .notice import schema_of, table_of, to_table
from .pack import REPORT, TOLD, as_bytes, gathered, row, time_in, topic_and_events
from .slices import told_of_slices

MEMORY = 512 << 20
"""How many bytes of an operator's events may wait in memory to be sorted."""


@dataclass(frozen=True)
class Work:
    """What is to be computed: plain values, which travel.  Filters have the first numbers, operators
    those after them."""

    conditions: tuple[Condition, ...]
    components: tuple[Component, ...]
    topics: tuple[Topic, ...]
    correlations: tuple[Correlated, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def on_history(cls, checked: Checked) -> Work:
        """Of history, which is in order, nothing is late."""
        return cls(
            tuple(replace(condition, delivery=TIMELY) for condition in checked.conditions),
            tuple(replace(component, delivery=TIMELY) for component in checked.components),
            checked.topics,
            tuple(replace(one, delivery=TIMELY) for one in checked.correlations),
        )

    @property
    def published(self) -> tuple[Topic, ...]:
        """The topics that notifications can be of."""
        complex_events = (one.topic for one in self.correlations if one.tell != "events")
        return (*self.topics, *(component.topic for component in self.components), *complex_events)

    @cached_property
    def groups(self) -> list[Group]:
        return groups(self.conditions)

    @cached_property
    def operators(self) -> dict[int, Operator]:
        """The operators, numbered, those of an earlier stage first."""
        found = [*operators(self.components, self.topics), *gatherings(self.correlations)]
        return dict(enumerate(found, len(self.groups)))

    @cached_property
    def progress(self) -> frozenset[str]:
        """The topics that say how far time has come for components."""
        return progress(self.operators.values())

    def shards(self, cores: int) -> int:
        """How many shards so many cores should share: components have much to do in each, so that some
        more let the cores end at about the same time."""
        return (8 if self.components else 2) * cores

    @property
    def stages(self) -> int:
        return 1 + max((operator.stage for operator in self.operators.values()), default=0)

    def stage_of(self, number: int) -> int:
        return self.operators[number].stage if number in self.operators else 0


# --- machines over a shard ---------------------------------------------------------------------------


def step_shard(work: Work, number: int, raw: Iterable[bytes]) -> tuple[pa.Table, dict[str, list[Event]]]:
    """What one machine says of all events of a shard: notifications, and what later stages hear."""
    if number in work.operators:
        operator = work.operators[number]
        if isinstance(operator, Gathering):
            return told_of_slices(operator, work.published, raw), {}
        said = detected(operator, raw)
        return to_table(work.published, list(operator.addressed(said))), operator.retold(said)
    group = work.groups[number]
    events = [from_ipc(part) for part in raw]
    if not events:
        return schema_of(work.published).empty_table(), {}
    machine = group.machine
    _, passed = machine.step(machine.initial(), in_order(concatenate(events)), BEGINNING)
    return table_of(group, work.published, passed), {}


def detected(operator: Operator, raw: Iterable[bytes]) -> list[Transition]:
    """What an operator says of all events of a shard; time ends with the last reading of the input."""
    machine, end = operator.machine, BEGINNING
    state, said = machine.initial(), list[Transition]()
    with ExitStack() as stack:
        sorters = {t: stack.enter_context(Sorter(MEMORY // len(operator.topics))) for t in operator.topics}
        for topic, events in map(topic_and_events, raw):
            if topic is None:
                end = max(end, time_in(events))
            else:
                sorters[topic].add(events)
        for topic, events, until in merged({t: sorter.drain() for t, sorter in sorters.items()}):
            state, some = machine.step(state, {topic: events}, until)
            said += some
    _, some = machine.step(state, {}, end + 1)
    return said + some


def merged(
    streams: Mapping[str, Iterator[pa.RecordBatch]],
) -> Iterator[tuple[str, pa.RecordBatch, Instant]]:
    """Batches of several topics, each in order, and how far time has come with each."""
    first = {topic: next(stream, None) for topic, stream in streams.items()}
    heads = {topic: batch for topic, batch in first.items() if batch is not None}
    last = BEGINNING
    while heads:
        topic = min(heads, key=lambda name: int(times(heads[name])[-1]))
        batch = heads.pop(topic)
        if (following := next(streams[topic], None)) is not None:
            heads[topic] = following
        last = max(last, int(times(batch)[-1]))
        yield topic, batch, min((int(times(head)[0]) for head in heads.values()), default=last)


# --- stages ------------------------------------------------------------------------------------------

Step = Callable[[tuple[pa.Scalar, ...], Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What becomes of the packed rows of one machine and shard."""


def staged(work: Work, stage: int, shards: int) -> Step:
    """A stage that others follow: packed rows in, packed rows out."""

    def step(key: tuple[pa.Scalar, ...], rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, shard = key[0].as_py(), key[1].as_py()
        if number < 0 or work.stage_of(number) != stage:
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
            yield from map(from_ipc, _raw(rows))
        else:
            yield from step_shard(work, number, _raw(rows))[0].to_batches()

    return step


def passed_on(
    operators: Mapping[int, Operator], heard: Mapping[str, list[Event]], shards: int
) -> Iterator[pa.RecordBatch]:
    """What components have said, packed for the operators of later stages that hear it."""
    for number, operator in operators.items():
        for topic in operator.heard & heard.keys():
            batch = from_events(operator.topics[topic], heard[topic])
            yield from gathered(number, operator, topic, batch, shards)


def _raw(rows: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    return (raw for batch in rows for raw in batch.column("events").to_pylist())
