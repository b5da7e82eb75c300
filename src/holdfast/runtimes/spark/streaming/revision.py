"""Revisions of a streaming query: states are rebuilt from the files that the query has read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from ....engine.graph import Graph, LocalStates, Step, Watermarks, notifications
from ....engine.operator import Operator
from ....errors import HoldfastError
from ....files.read import read
from ....files.reading import Reading
from ....files.tally import Rejects, Tally
from ....model.batch import concatenate
from ....model.batch import latest_time as latest_time_of
from ....model.event import Event
from ....model.instant import BEGINNING, Instant
from ....plan.compile import operators, with_upstreams
from ....plan.revise import splits
from ..job import Job
from ..pack import OperatorEvents, PacketKind, pack, packet_row, shards_of
from .log import Entry


class RebuiltScopes(msgspec.Struct):
    """The rebuilt state of an operator for the scopes of one shard, and the last event of each scope."""

    state: bytes
    causes: list[tuple[str | None, Event]]


class RevisionInput(msgspec.Struct):
    """The input of a revision for one shard: states that were rebuilt from files, by operator.

    Operators in `reruns` process all derived events of their upstreams again. Operators in `starting` process
    the current states of their upstreams.
    """

    rebuilt: dict[int, RebuiltScopes]
    reruns: tuple[int, ...] = ()
    starting: tuple[int, ...] = ()

    @staticmethod
    def decode_first(payloads: Sequence[bytes]) -> RevisionInput | None:
        """Decode the input of a revision that a shard received, or return `None`. There is at most one."""
        return msgspec.msgpack.decode(payloads[0], type=RevisionInput) if payloads else None


def pack_revision(
    job: Job, reading: Reading, entries: Sequence[Entry], shards: int
) -> Iterator[pa.RecordBatch]:
    """Yield a packet with the `RevisionInput` of each shard, then the derived events to process again.

    If a file no longer exists, nothing is rebuilt. Revised conditions then carry over the state of their
    scopes.
    """
    is_whole = all(os.path.exists(entry.path) for entry in entries)
    rebuilding = [
        i for i in job.revisions if i in job.operators and splits(job.revisions[i].name, job.checked)
    ]
    new = {slot.number for slot in job.slots or () if slot.files >= 0}
    reruns = tuple(job.reruns) if is_whole else ()
    starting = () if is_whole else tuple(job.reruns.keys() & new)
    inputs = [RevisionInput({}, reruns, starting) for _ in range(shards)]
    for number in rebuilding if is_whole else ():
        for shard, rebuilt in _rebuild(job, number, _readings(entries, reading), shards):
            inputs[shard].rebuilt[number] = rebuilt
    for shard, input in enumerate(inputs):
        yield packet_row(PacketKind.REVISION, shard, msgspec.msgpack.encode(input))
    yield from _pack_derived_again(job, _readings(entries, reading), reruns, shards)


def _rebuild(
    job: Job, number: int, history: Iterator[tuple[str, pa.RecordBatch]], shards: int
) -> Iterator[tuple[int, RebuiltScopes]]:
    """Run an operator on all files. Yield its state for each shard."""
    operator = job.operators[number]
    machine: Any = operator.machine
    graph = Graph({number: operator})
    states, watermarks = LocalStates(graph), Watermarks()
    causes: dict[str | None, Event] = {}

    def collect(steps: Iterable[Step]) -> None:
        causes.update((n.scope, n.event) for n in notifications(steps))

    for topic, batch in history:
        if topic in operator.topics:
            watermarks.advance(topic, latest_time_of(batch) or BEGINNING)
            collect(graph.run(states, {topic: batch}, watermarks).steps)
    for topic in operator.clock:
        watermarks.advance(topic, job.start_watermarks[number])
    collect(graph.advance(states, watermarks))
    state = states.take(number)
    if not operator.key:  # all scopes are in the first shard
        yield 0, RebuiltScopes(machine.dump(state), list(causes.items()))
        return
    keys = machine.keys(state)
    by_shard: dict[int, list[str]] = {shard: [] for shard in range(shards)}
    for key, shard in zip(keys, shards_of(keys, shards), strict=True):
        by_shard[shard].append(key)
    for shard, own in by_shard.items():
        part = machine.replace_scopes(machine.initial(), state, (own,))
        scopes = dict.fromkeys(operator.label_of(machine.readable_scope(key)) for key in own)
        own_causes = [(scope, causes[scope]) for scope in scopes if scope in causes]
        yield shard, RebuiltScopes(machine.dump(part), own_causes)


def _pack_derived_again(
    job: Job, history: Iterator[tuple[str, pa.RecordBatch]], numbers: Sequence[int], shards: int
) -> Iterator[pa.RecordBatch]:
    """Yield, as packets, the derived events of a history that operators process again."""
    if not numbers:
        return
    part = with_upstreams(job.checked, job.reruns.values())
    reached = max(job.start_watermarks[number] for number in job.start_watermarks)
    derived = run_history(operators(part), history, {topic.name: reached for topic in part.topics})
    for number in numbers:
        operator = job.operators[number]
        for topic in operator.upstream_topics & derived.keys():
            batch = OperatorEvents(number, operator, topic, derived[topic])
            yield from pack(batch, shards, kind=PacketKind.HISTORY)


def run_history(
    operators: Sequence[Operator],
    history: Iterable[tuple[str, pa.RecordBatch]],
    reached: Mapping[str, Instant],
) -> dict[str, pa.RecordBatch]:
    """Run operators on a history up to final watermarks. Return their derived events by topic."""
    graph = Graph(dict(enumerate(operators)))
    states, watermarks = LocalStates(graph), Watermarks()
    derived: dict[str, list[pa.RecordBatch]] = {}

    def collect(steps: Iterable[Step]) -> None:
        for step in steps:
            for topic, rows in step.operator.derive(step.emission).items():
                derived.setdefault(topic, []).append(rows)

    for topic, batch in history:
        watermarks.advance(topic, latest_time_of(batch) or BEGINNING)
        collect(graph.run(states, {topic: batch}, watermarks).steps)
    for topic, at in reached.items():
        watermarks.advance(topic, at)
    collect(graph.advance(states, watermarks))
    return {topic: concatenate(batches) for topic, batches in derived.items()}


def _readings(entries: Sequence[Entry], reading: Reading) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the events of files in the order of arrival.

    Files with errors are skipped, as in the first pass.
    """
    for number, entry in enumerate(entries):
        with suppress(HoldfastError):
            own_causes = [*read(entry.input_file(number), reading, Tally(), Rejects())]
            yield from ((topic.name, batch) for topic, batch in own_causes if len(batch))
