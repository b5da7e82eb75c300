"""The machine of one component: it converts readings and events of other components to its own events.

Events are sorted by time before they are evaluated. The result therefore depends only on the watermark, not
on the division of a history into batches or on the order of topics and rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...engine import operator
from ...engine.machine import (
    CONDITIONS,
    SCOPE,
    SINCE,
    STATUS,
    Batches,
    Emission,
    Machine,
    Mask,
    Relevance,
    Traits,
    transitions,
    with_columns,
)
from ...engine.operator import RETOLD
from ...model.batch import TIME, concatenate, latest_time, times, to_events
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.topic import Topic
from .detector import columns, component
from .detector.columnar_plan import ColumnarPlan
from .detector.columns import ColumnarComponent
from .detector.component import Published, signature
from .detector.event_rows import EventRows
from .detector.knowledge import Knowledge, of_event, to_event
from .detector.rows import SIGNATURE, ReadingRows, component_columns, to_knowledge, with_status
from .detector.smc import Input, Smc

FEW = 64
"""The batch size below which readings are processed one by one, unless the state is already in columns."""
LONG = (8, 512)
"""Limits for the rows of queries over all time, as multiples of the batch size.

The first limit applies to a conversion to columns, the second to a state that is already in columns. Columns
read all these rows for each batch, while the other evaluation updates aggregates.
"""
ENOUGH = 1 << 14
"""The number of rows of queries over all time that never prevents evaluation in columns."""

ComponentState = component.InstantState | columns.ColumnState
"""The state of a component that is evaluated instant by instant, or in columns."""

_EVENTS = ("ingress", "egress", "atomic")
"""The statuses of a component's events. Other statuses are emitted only after a revision."""


class Upstream(NamedTuple):
    """The properties of a consumed component.

    `lasting` is true if its condition has a start and an end, `spawns` if it has a scope for each key or
    host. `wait` is the duration by which it evaluates behind the watermark, in microseconds.
    """

    topic: Topic
    lasting: bool
    spawns: bool
    wait: Duration


def upstream(topic: Topic, smc: Smc, wait: Duration) -> Upstream:
    """Return the properties of a component that components downstream need."""
    return Upstream(topic, smc.exit is not None, smc.spawns, wait)


@dataclass(frozen=True)
class ComponentMachine(Machine[ComponentState]):
    """The machine of one component.

    Scopes in its emissions are signatures (`signature`). A component with a columnar plan evaluates many
    instants at once. Both evaluations give the same events, and a state can be converted from one to the
    other.
    """

    smc: Smc
    topic: Topic
    """The topic of the component's events."""
    topics: Mapping[str, Topic]
    """The topics of readings, and of derived readings of `upstreams`."""
    upstreams: Mapping[str, Upstream]
    """The components that this component consumes, by their derived topics."""
    wait: Duration
    """The duration by which the component evaluates behind the watermark. It is not less than that of any
    upstream. [F76]"""
    plan: ColumnarPlan | None = None

    traits = Traits(uses_watermark=True)

    @property
    def drops_late_events(self) -> bool:
        return self.smc.late == "drop"

    @cached_property
    def columnar(self) -> ColumnarComponent | None:
        """The component with its columnar plan; `None` without a plan."""
        return None if self.plan is None else ColumnarComponent(self.smc, self.plan)

    # --- events ---

    def react(self, state: ComponentState, event: Event) -> tuple[ComponentState, list[Transition]]:
        """Put an event into the input buffer, or emit it as late. Other emissions follow when the watermark
        advances."""
        points = self.as_instants(state)
        if event.topic not in self.upstreams:
            points.latest = max(points.latest, event.time)
            return points, self._take_readings(points, [event])
        for known in derived_knowledge(self.upstreams[event.topic], [event]):
            component.take(self.smc, points, known)
        return points, []

    def step(
        self, state: ComponentState, batches: Batches, watermark: Instant
    ) -> tuple[ComponentState, Emission]:
        """Process a batch of each topic, then evaluate the component up to the watermark."""
        state = self._prepare(state, sum(map(len, batches.values())))
        late: list[Transition] = []
        for topic, batch in batches.items():
            state.latest = max(state.latest, self.reading_time(topic, batch))
            upstream = self.upstreams.get(topic)
            if isinstance(state, columns.ColumnState):
                late += self._take_columns(state, topic, batch)
            elif upstream is None:
                late += self._take_readings(state, to_events(self.topics[topic], batch))
            else:
                for known in derived_knowledge(upstream, to_events(self.topics[topic], batch)):
                    component.take(self.smc, state, known)
        emission = self._evaluate(state, watermark)
        return state, emission._replace(single=[*late, *emission.single])

    def advance(self, state: ComponentState, watermark: Instant) -> tuple[ComponentState, list[Transition]]:
        return state, transitions(self.topics, self._evaluate(state, watermark))

    def reading_time(self, topic: str, batch: pa.RecordBatch) -> Instant:
        """Return the latest event time that a batch represents.

        Derived readings are ignored, because a component can set their time to the future. The watermark in
        the metadata of their batch is used instead.
        """
        if topic in self.upstreams and batch.schema.metadata is None:
            return BEGINNING
        latest = latest_time(batch)
        return BEGINNING if latest is None else latest

    def pass_time(self, state: ComponentState, watermark: Instant) -> None:
        """Set a watermark before which nothing is due. Older events are late from then on."""
        state.until = max(state.until, watermark - self.wait)

    def _evaluate(self, state: ComponentState, watermark: Instant) -> Emission:
        """Evaluate the component up to the watermark, less its delay. `NEVER` as watermark evaluates all
        readings."""
        until = state.latest + 1 if watermark == NEVER else watermark - self.wait
        if until <= state.until:
            return Emission({})
        if isinstance(state, component.InstantState):
            return Emission({}, list(map(self._transition, component.advance(self.smc, state, until))))
        assert self.columnar is not None
        single, rows = columns.advance(self.columnar, state, until)
        batches = {self.topic.name: concatenate(list(map(self._rows, rows)))} if rows else {}
        return Emission(batches, list(map(self._transition, single)), {self.topic.name: self.topic})

    # --- input ---

    def _prepare(self, state: ComponentState, size: int) -> ComponentState:
        """Convert the state if the other evaluation is faster for a batch of `size` rows."""
        in_columns = isinstance(state, columns.ColumnState)
        if self.columnar is None or (size == 0 if in_columns else size < FEW):
            return state
        is_long = columns.endless_size(self.columnar, state) > max(ENOUGH, LONG[in_columns] * size)
        if isinstance(state, columns.ColumnState):
            return columns.to_instants(self.columnar, state) if is_long else state
        return state if is_long else columns.to_columns(self.columnar, state)

    def as_instants(self, state: ComponentState) -> component.InstantState:
        """Return the state for evaluation instant by instant."""
        if isinstance(state, component.InstantState):
            return state
        assert self.columnar is not None
        return columns.to_instants(self.columnar, state)

    def _take_columns(
        self, state: columns.ColumnState, topic: str, batch: pa.RecordBatch
    ) -> list[Transition]:
        """Put a batch into the input buffer of a state in columns; return the transitions of late
        readings."""
        assert self.columnar is not None
        if topic in self.upstreams:
            upstream = self.upstreams[topic]
            columns.take(self.columnar, state, upstream.topic.name, derived_columns(upstream, batch))
            return []
        late = times(batch) < state.until
        if not self.drops_late_events or not late.any():
            columns.take(self.columnar, state, topic, batch)
            return []
        columns.take(self.columnar, state, topic, batch.filter(pa.array(~late)))
        events = to_events(self.topics[topic], batch.filter(pa.array(late)))
        return [Transition(event, "late", None, None, 0) for event in events]

    def _take_readings(self, state: component.InstantState, events: Iterable[Event]) -> list[Transition]:
        """Put readings into the input buffer; return the transitions of late readings."""
        late = []
        for event in events:
            known = of_event(event)
            if self.drops_late_events and component.is_late(state, known):
                late.append(Transition(event, "late", None, None, 0))
            else:
                component.take(self.smc, state, known)
        return late

    # --- output ---

    def _transition(self, published: Published) -> Transition:
        """Convert an event to a transition."""
        event, id, since = published
        return Transition(to_event(event), event.status, signature(self.smc, id), since, 0)

    def _rows(self, events: EventRows) -> pa.RecordBatch:
        """Return events as rows of an emission."""
        whose = pa.array(events.whose.astype(np.int32), mask=None if self.smc.spawns else events.whose >= 0)
        scopes = pa.array([signature(self.smc, id) or "" for id in events.ids], pa.string())
        added = {
            CONDITIONS: pa.array(np.ones(len(events.whose), np.uint64)),
            STATUS: events.statuses,
            SCOPE: pa.DictionaryArray.from_arrays(whose, scopes),
            SINCE: pa.array(events.since, mask=events.since == NEVER).cast(TIME),
        }
        return with_columns(events.events, added)

    # --- pushdown, timers, latest events ---

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        found = np.ones(len(batch), np.bool_)
        if topic not in self.upstreams and topic != self.smc.here:
            rows = ReadingRows(self.topics[topic], batch)
            inputs = [input for input in self.smc.inputs.values() if topic in input.query.topics]
            found = np.logical_or.reduce([self._is_selected(input, rows) for input in inputs])
        return Relevance(found, np.array([np.count_nonzero(~found)], np.int64))

    def _is_selected(self, input: Input, rows: ReadingRows) -> Mask:
        """Return a mask of the readings that lie in the locations of a query and have a key."""
        inside = rows.in_locations(input.query, self.smc.stationary)
        found = np.ones(len(rows), np.bool_) if inside is None else inside
        if input.key is None:
            return found
        if input.encoded_keys is not None:
            return found & (input.encoded_keys(rows).codes >= 0)
        known = to_knowledge(rows.topic, rows.batch)
        return found & np.array([input.key(k) is not None for k in known], np.bool_)

    def due(self, state: ComponentState) -> Instant | None:
        if isinstance(state, component.InstantState):
            at = component.due(state)
        else:
            assert self.columnar is not None
            at = columns.due(self.columnar, state)
        return None if at is None else at + self.wait

    def latest_transitions(self, state: ComponentState, condition: int) -> list[Transition]:
        """Return the last event of each scope. [F75]"""
        known = ((id, one.last) for id, one in state.instances.items())
        return [self._transition(Published(last, id, None)) for id, last in known if last]

    def learn_latest(self, state: ComponentState, condition: int, latest: Sequence[Event]) -> ComponentState:
        """Take the latest event of every publisher that the component consumes, regardless of the watermark.
        [F53, F75]"""
        points = self.as_instants(state)
        for event in latest:
            if event.topic in self.upstreams:
                known = [*derived_knowledge(self.upstreams[event.topic], [event])]
            else:
                known = [of_event(event)] if event.topic in self.topics else []
            for point in known:
                component.take(self.smc, points, point)
        return points


# --- derived readings: events of other components -----------------------------------------------------


def of_derived(event: Event) -> Knowledge:
    """Convert a derived reading back to the component's event from which it was made."""
    known = of_event(event)
    return msgspec.structs.replace(
        known,
        topic=event.topic.removeprefix("@"),
        attributes={name: value for name, value in known.attributes.items() if name not in RETOLD},
        status=known.attributes[operator.STATUS],
        signature=known.attributes[operator.KEY],
    )


def derived_knowledge(upstream: Upstream, events: Iterable[Event]) -> Iterator[Knowledge]:
    """Convert derived readings to events of a component. Readings with a status that events do not have are
    skipped."""
    for known in map(of_derived, events):
        if known.status in _EVENTS:
            yield known if upstream.spawns else msgspec.structs.replace(known, signature=None)


def derived_columns(upstream: Upstream, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return derived readings as events of a component in columns, as `detector.rows` stores them."""
    statuses = batch.column(operator.STATUS).dictionary_encode()
    if not set(statuses.dictionary.to_pylist()) <= set(_EVENTS):
        is_event = pc.is_in(batch.column(operator.STATUS), value_set=pa.array(_EVENTS))
        batch, statuses = batch.filter(is_event), statuses.filter(is_event)
    events = component_columns(batch.drop_columns(list(RETOLD)))
    if upstream.lasting:
        events = with_status(events, statuses)
    if not upstream.spawns:
        return events
    keys = batch.column(operator.KEY)
    keys = keys if pa.types.is_dictionary(keys.type) else keys.dictionary_encode()
    return events.append_column(SIGNATURE, keys)
