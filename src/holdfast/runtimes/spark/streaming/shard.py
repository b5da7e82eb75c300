"""One shard of a streaming query: it applies a micro-batch to the operators of one stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from ....engine.graph import Watermarks, run_alone
from ....engine.machine import Emission
from ....engine.operator import Operator, latest_time, sort_derived
from ....engine.standing import Scoped
from ....kinds.revision import Past, TakeOver, changes_since
from ....model.batch import concatenate
from ....model.event import Event
from ....model.instant import BEGINNING, NEVER, Instant
from ....plan.revise import standing_events, take_over
from ...table import add_ids, schema_of, table_of
from ..job import Job, RevisedOperator
from ..pack import Packet, PacketKind, unpack
from .revision import RevisionInput
from .shard_state import (
    ShardChange,
    ShardState,
    StoredOperator,
    StoredStates,
    copy_state,
    record_change,
    restart_conditions,
)


class Location(NamedTuple):
    """The stage and the shard in which a micro-batch is processed."""

    stage: int
    shard: int

    def has(self, operator: Operator) -> bool:
        """Whether an operator runs here. An operator without a key runs in the first shard only."""
        return operator.links.stage == self.stage and bool(operator.key or self.shard == 0)


class ShardOutput(NamedTuple):
    """The result of one micro-batch in one shard, for the driver and for later stages."""

    notifications: pa.Table
    derived: dict[str, pa.RecordBatch]
    """Derived events by topic."""
    pending: dict[int, Instant]
    """For operators that wait for upstreams here, the earliest time of which these may still emit."""
    started: tuple[int, ...]
    """Operators that start in this batch and need the active scopes of their upstreams."""
    active: dict[str, pa.RecordBatch]
    """The active scopes of this shard as derived events, by topic; empty unless operators start."""


Arrange = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Puts the events of a micro-batch, given in order of arrival, in the order in which to process them."""


def in_arrival_order(events: pa.RecordBatch) -> pa.RecordBatch:
    """Return events without change, in the order of arrival. It is the default of `arrange`."""
    return events


def process_batch(
    job: Job,
    location: Location,
    shard: ShardState,
    packets: Iterable[Packet],
    arrange: Arrange = in_arrival_order,
) -> tuple[ShardState, ShardOutput]:
    """Run the operators of one stage on the packets of one micro-batch. Return the new state and the output.

    Stored states change in place: do not use `shard` again. Idle operators that are not due are not decoded,
    because with 10,000 idle conditions decoding would dominate the batch.
    """
    batch = _MicroBatch(job, shard, ArrivedPackets.of(packets), arrange)
    records = shard.records  # before decoding changes them
    after = ShardState({}, batch.watermarks)
    change = ShardChange(b"", b"", batch.watermarks if batch.watermarks != shard.watermarks else {}, {}, {})
    results: list[_OperatorResult] = []
    for number, operator in job.operators.items():
        if not location.has(operator):
            continue
        result = batch.run(number, operator)
        results.append(result)
        if result.stored is not None:
            after.operators[number] = result.stored
            if result.is_decoded:
                record_change(change, number, result.stored)
    is_revised = any(result.is_revised for result in results)
    after.change = None if is_revised or after.records != records else change
    return after, _combine(job, batch, results)


def _combine(job: Job, batch: _MicroBatch, results: Iterable[_OperatorResult]) -> ShardOutput:
    tables = [schema_of(job.published).empty_table()]
    derived: dict[str, pa.RecordBatch] = {}
    active: dict[str, pa.RecordBatch] = {}
    pending: dict[int, Instant] = {}
    for result in results:
        operator = result.operator
        tables += (table_of(job.published, operator, emission) for emission in result.emissions)
        derived |= _concatenate_by_topic(map(operator.derive, result.emissions))
        active |= result.active
        if (at := operator.pending(result.due)) is None:
            continue
        for number, other in job.watermark_operators.items():
            if operator.is_upstream_of(other):
                pending[number] = min(at, pending.get(number, at))
    notifications = add_ids(pa.concat_tables(tables))
    return ShardOutput(notifications, derived, pending, batch.started, active)


@dataclass(frozen=True)
class ArrivedPackets:
    """The payloads of a micro-batch, by kind and operator.

    Payloads are in the order in which the parts arrived.
    """

    by_kind: dict[tuple[PacketKind, int | None], list[bytes]]

    @staticmethod
    def of(packets: Iterable[Packet]) -> ArrivedPackets:
        """Group packets by kind and operator, in the order of their parts."""
        found: dict[tuple[PacketKind, int | None], list[bytes]] = {}
        for packet in sorted(packets, key=lambda packet: packet.part):
            found.setdefault((packet.kind, packet.operator), []).append(packet.payload)
        return ArrivedPackets(found)

    def payloads(self, kind: PacketKind, operator: int | None = None) -> list[bytes]:
        """Return the payloads of a kind, for one operator if the kind belongs to operators."""
        return self.by_kind.get((kind, operator), [])


class _OperatorResult(NamedTuple):
    """The result of one operator in one micro-batch: its new state, due time and output."""

    operator: Operator
    stored: StoredOperator | None
    is_decoded: bool
    due: Instant | None
    """When the operator has its next timer."""
    emissions: list[Emission]
    is_revised: bool
    active: dict[str, pa.RecordBatch]


@dataclass(frozen=True)
class _MicroBatch:
    """One micro-batch in one shard: its job, the state before it, and the packets that arrived."""

    job: Job
    shard: ShardState
    arrived: ArrivedPackets
    arrange: Arrange

    @cached_property
    def watermarks(self) -> dict[str, Instant]:
        """The watermark of each topic after the batch."""
        latest = dict(self.shard.watermarks)
        for payload in self.arrived.payloads(PacketKind.WATERMARKS):
            for topic, at in msgspec.msgpack.decode(payload, type=dict[str, int]).items():
                latest[topic] = max(at, latest.get(topic, BEGINNING))
        return latest

    @cached_property
    def revision(self) -> RevisionInput | None:
        """The input of a revision for this shard, in the first batch after the revision; otherwise `None`."""
        return RevisionInput.decode_first(self.arrived.payloads(PacketKind.REVISION))

    @property
    def started(self) -> tuple[int, ...]:
        """The operators that start in this batch and need the active scopes of their upstreams."""
        return () if self.revision is None else self.revision.starting

    def run(self, number: int, operator: Operator) -> _OperatorResult:
        """Run one operator, after it has carried over its state if a revision requires that."""
        graph, stored = self.job.graph, self.shard.operators.get(number)
        watermark = self._start_watermark(number, operator)
        history = self.arrived.payloads(PacketKind.HISTORY, number)
        carried = _carry_over(self.job, number, self.shard, watermark, self.revision, history)
        active: dict[str, pa.RecordBatch] = {}
        if self.started:
            state = carried.state if carried else copy_state(operator, stored, watermark)
            active = standing_events(operator, state, self.job.checked, watermark)
        states = StoredStates(graph, number, stored, watermark)
        batches, watermarks = self._input(number, operator)
        now, due = graph.watermark(number, states, watermarks), states.due(number)
        is_due = due is not None and now > max(due, watermark)
        emissions: list[Emission] = []
        if carried is not None:  # its transitions precede those of the batch
            states.put(number, carried.state)
            emissions.append(Emission({}, carried.transitions))
        if carried is not None or batches or is_due:
            is_final = now == NEVER
            watermarks = Watermarks(self.shard.watermarks) if is_final else watermarks
            run = graph.run(states, batches, watermarks, among=(number,), final=is_final)
            emissions += (step.emission for step in run.steps)
        due = states.due(number)
        is_revised = carried is not None
        return _OperatorResult(operator, states.stored, states.is_decoded, due, emissions, is_revised, active)

    def _start_watermark(self, number: int, operator: Operator) -> Instant:
        """Return the watermark of an operator before the batch.

        An operator that waits for upstreams has its own, which they send with their output.
        """
        waits = operator.links.upstreams and operator.machine.traits.uses_watermark
        before = BEGINNING if waits else latest_time(self.shard.watermarks, operator.clock, BEGINNING)
        return max(before, self.job.start_watermarks.get(number, BEGINNING))

    def _input(self, number: int, operator: Operator) -> tuple[dict[str, pa.RecordBatch], Watermarks]:
        """Return the events of an operator by topic, and the watermarks, which upstreams may hold back."""
        inputs = [unpack(payload) for payload in self.arrived.payloads(PacketKind.EVENTS, number)]
        batches = _concatenate_by_topic({it.topic: it.events} for it in inputs if it.topic is not None)
        arrange = sort_derived if operator.upstream_topics else self.arrange
        held_back = [it.watermark for it in inputs if it.topic is None]
        pending = dict.fromkeys(operator.upstream_topics, min(held_back)) if held_back else {}
        ordered = {topic: arrange(events) for topic, events in batches.items()}
        return ordered, Watermarks(self.watermarks, pending)


def _concatenate_by_topic(parts: Iterable[Mapping[str, pa.RecordBatch]]) -> dict[str, pa.RecordBatch]:
    """Return the rows of each topic, concatenated in the order of the parts."""
    batches: dict[str, list[pa.RecordBatch]] = {}
    for part in parts:
        for topic, rows in part.items():
            batches.setdefault(topic, []).append(rows)
    return {topic: concatenate(own) for topic, own in batches.items()}


# --- revisions ---------------------------------------------------------------------------------------


def _carry_over(
    job: Job,
    number: int,
    shard: ShardState,
    at: Instant,
    revision: RevisionInput | None,
    history: Iterable[bytes],
) -> TakeOver | None:
    """Return the state with which a revised or new operator starts.

    Returns `None` if it has a state of its own. `history` has packed derived events: all events that its
    upstreams emitted, or their current states.
    """
    operator, stored = job.operators[number], shard.operators.get(number)
    if revision is not None and number in revision.reruns:
        own = latest_time(shard.watermarks, operator.clock, BEGINNING)
        watermark = max([own, *job.start_watermarks.values()])
        state, emission = run_alone(operator, _unpack_history(history), watermark)
        causes = {(n.subscription, n.scope): n.event for n in operator.notifications(emission)}
        return _changes_by_history(job, number, shard, watermark, state, causes)
    if stored is not None:
        restarted = restart_conditions(operator, stored, at)
        return None if restarted is None else TakeOver(operator, *restarted)
    if revision is not None and number in revision.rebuilt:
        rebuilt, ((name,),) = revision.rebuilt[number], operator.names
        causes = {(name, scope): event for scope, event in rebuilt.causes}
        return _changes_by_history(job, number, shard, at, operator.machine.load(rebuilt.state), causes)
    former = _latest_former(job, number, shard)
    is_starting = revision is not None and number in revision.starting
    if former is None or (operator.starts_from_standings and not is_starting):
        return None
    state = copy_state(former.former_operator, shard.operators.get(former.former_number), at)
    past = Past(former.former_operator, state, at, standings=_unpack_history(history))
    return take_over(former.name, former.former_definition, job.checked, past)


def _unpack_history(history: Iterable[bytes]) -> dict[str, pa.RecordBatch]:
    inputs = map(unpack, history)
    batches = _concatenate_by_topic({it.topic: it.events} for it in inputs if it.topic is not None)
    return {topic: sort_derived(events) for topic, events in batches.items()}


def _latest_former(job: Job, number: int, shard: ShardState) -> RevisedOperator | None:
    """Return the latest former operator that has a state in the shard.

    If there is none, an operator that starts from standings gets its latest former one, and other operators
    get `None`.
    """
    first = former = job.revisions.get(number)
    while former is not None and former.former_number not in shard.operators:
        former = job.revisions.get(former.former_number)
    return former or (first if job.operators[number].starts_from_standings else None)


def _changes_by_history(
    job: Job, number: int, shard: ShardState, at: Instant, state: Any, causes: Mapping[Scoped, Event]
) -> TakeOver:
    """Return a state that was computed from a history, with the transitions of the scopes that it changes."""
    operator, stored = job.operators[number], shard.operators.get(number)
    former_operator = operator
    if stored is None and (former := _latest_former(job, number, shard)) is not None:
        former_operator, stored = former.former_operator, shard.operators.get(former.former_number)
    ((name,),) = operator.names
    past = Past(former_operator, copy_state(former_operator, stored, at), at)
    return changes_since(operator, state, job.checked.by_name[name], past, causes)
