"""Components that run after the same shuffle, as one machine that runs the graph of their operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...engine import machine
from ...engine.carry_over import CarryOver, CarryOverMachine
from ...engine.graph import Graph, Step, Watermarks
from ...engine.machine import Batches, Emission, Mask, Relevance, Traits, in_time, transitions
from ...engine.operator import Links, Operator, topic_of_condition
from ...lang.expressions.key_text import values_of
from ...model.batch import concatenate, from_ipc, to_ipc
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.scope import join_values
from ...model.topic import Topic
from .detector import columns, component
from .detector.columnar_plan import ColumnarPlan
from .detector.component import CARRIER, Id, signature
from .detector.knowledge import Knowledge
from .detector.smc import Smc
from .detector.topic_levels import levels
from .machine import ComponentMachine, ComponentState, Upstream, upstream

MOST = 64
"""The number of conditions that emissions as rows can represent, with one bit each. Further conditions emit
single transitions."""


class GroupState(msgspec.Struct):
    """The state of each component, in the order of the group."""

    components: list[ComponentState]

    @property
    def latest(self) -> Instant:
        """The time of the latest reading of any component."""
        return max((own.latest for own in self.components), default=BEGINNING)


@lru_cache(1 << 16)
def readable_scope(signature: str | None) -> str | None:
    """Return the scope that users see, given its signature: the host that carries the component, and the
    key."""
    if signature is None:
        return None
    host, _, key = signature.rpartition(CARRIER)
    return join_values([v for part in (host, key) if part for v in values_of(part)] or [""]) or None


Label = Callable[[str | None], str | None]
"""A function that converts the signature of a scope to the scope in emissions."""


class Component(NamedTuple):
    """A component that `link_components` links with others."""

    smc: Smc
    topic: Topic
    """The topic of the component's events."""
    plan: ColumnarPlan | None = None


def link_components(
    components: Sequence[Component],
    readings: Mapping[str, Topic],
    earlier: Iterable[Upstream] = (),
    label: Label = readable_scope,
) -> ComponentGroup:
    """Return the machine of components, linked with one another, with readings, and with components of
    earlier stages.

    `readings` are the topics of readings by name.
    """
    upstreams = {lower.topic.name: lower for lower in earlier}
    derived = [topic_of_condition(lower.topic) for lower in upstreams.values()]
    outside = dict(readings) | {topic.name: topic for topic in derived}
    height = levels(part.smc for part in components)
    members: dict[int, ComponentMachine] = {}
    for i in sorted(range(len(components)), key=lambda i: height[components[i].topic.name]):
        smc, topic, plan = components[i]
        below = {f"@{name}": upstreams[name] for name in smc.topics if name in upstreams}
        topics = {name: readings[name] for name in smc.topics if name in readings}
        topics |= {name: topic_of_condition(lower.topic) for name, lower in below.items()}
        wait = max([smc.wait, *(lower.wait for lower in below.values())])
        members[i] = ComponentMachine(smc, topic, topics, below, wait, plan)
        upstreams[topic.name] = upstream(topic, smc, wait)
    return ComponentGroup(tuple(members[i] for i in range(len(components))), outside, label)


@dataclass(frozen=True)
class ComponentGroup(CarryOverMachine):
    """The machine of components that run after the same shuffle. It runs the graph of their operators.

    Condition `i` of the machine is component `i`. The components share a clock: a reading of any topic
    advances the watermark of all. `topics` are the topics consumed from outside: readings, and derived
    readings of components of earlier stages. `label` converts the signature of a scope to the scope in
    emissions.
    """

    members: tuple[ComponentMachine, ...]
    topics: Mapping[str, Topic]
    label: Label = readable_scope

    @cached_property
    def graph(self) -> Graph:
        """The operators of the components by number. Each operator follows its upstreams."""
        height = levels(self.smcs)
        order = sorted(range(len(self.members)), key=lambda i: height[self.smcs[i].topic])
        return Graph({i: self._operator(self.members[i]) for i in order})

    @property
    def waits(self) -> tuple[Duration, ...]:
        """The duration by which each component evaluates behind the watermark."""
        return tuple(member.wait for member in self.members)

    def _operator(self, member: ComponentMachine) -> Operator:
        """Return the operator of a component, linked with the others of the group."""
        name = member.topic.name
        derived = topic_of_condition(member.topic)
        is_consumed = any(derived.name in other.topics for other in self.members)
        return Operator(
            kind="component",
            machine=member,
            names=((name,),),
            meanings=("",),
            reading_topics=((),),
            decisive_columns={},
            upstream_topics=frozenset(member.upstreams.keys() - self.topics.keys()),
            links=Links(
                derived_topics={name: derived} if is_consumed else {}, clock_topics=frozenset(self.topics)
            ),
        )

    @property
    def smcs(self) -> tuple[Smc, ...]:
        """The State Maintenance Component of each component."""
        return tuple(member.smc for member in self.members)

    @property
    def plans(self) -> tuple[ColumnarPlan | None, ...]:
        """The columnar plan of each component; `None` for a component without a plan."""
        return tuple(member.plan for member in self.members)

    def without_plans(self) -> ComponentGroup:
        """Return the same components without columnar plans. Tests compare both evaluations."""
        return replace(self, members=tuple(replace(member, plan=None) for member in self.members))

    @cached_property
    def traits(self) -> Traits:
        dropping = (member.wait for member in self.members if member.drops_late_events)
        return Traits(uses_watermark=True, lateness=min(dropping, default=None))

    def initial(self) -> GroupState:
        return GroupState([component.InstantState() for _ in self.members])

    # --- events ---

    def react(self, state: GroupState, event: Event) -> tuple[GroupState, list[Transition]]:
        steps = self.graph.push(_MemberStates(self, state), event, Watermarks())
        late = [t for step in steps for t in self._with_number(step.id, step.emission.single)]
        return state, sorted(late, key=lambda transition: transition.condition)

    def advance(self, state: GroupState, watermark: Instant) -> tuple[GroupState, list[Transition]]:
        """Evaluate all components up to the watermark. `NEVER` evaluates all readings."""
        if watermark == NEVER:
            state, emission = self.step(state, {}, watermark)
            return state, transitions(self.topics, emission)
        steps = self.graph.advance(_MemberStates(self, state), self._watermarks(watermark))
        self._pass_time(state, watermark)
        emitted = [t for step in steps for t in self._with_number(step.id, step.emission.single)]
        return state, sorted(emitted, key=in_time)

    def step(self, state: GroupState, batches: Batches, watermark: Instant) -> tuple[GroupState, Emission]:
        """Process a batch of each topic with all components, then advance to the watermark."""
        ends = watermark == NEVER
        if ends:
            watermark = state.latest
            for topic, batch in batches.items():
                times = (m.reading_time(topic, batch) for m in self.members if topic in m.topics)
                watermark = max(watermark, *times)
        watermarks = self._watermarks(watermark)
        steps = self.graph.run(_MemberStates(self, state), batches, watermarks, final=ends).steps
        self._pass_time(state, watermark)
        return state, self._joint(steps, list(batches))

    def _watermarks(self, watermark: Instant) -> Watermarks:
        """Return the same watermark for all topics."""
        return Watermarks(dict.fromkeys(self.topics, watermark))

    def _pass_time(self, state: GroupState, watermark: Instant) -> None:
        """Set the watermark of components that were neither due nor had input."""
        for member, own in zip(self.members, state.components, strict=True):
            member.pass_time(own, watermark)

    # --- emissions ---

    def _joint(self, steps: Iterable[Step], topics: Sequence[str]) -> Emission:
        """Combine the emissions of components: late events in the order of arrival, other events by time and
        condition."""
        late, single = list[Transition](), list[Transition]()
        rows: dict[str, list[pa.RecordBatch]] = {}
        for number, operator, emission in steps:
            if number >= MOST:
                emission = Emission({}, transitions(operator.topics, emission))
            for topic, batch in emission.rows.items():
                rows.setdefault(topic, []).append(self._rows_with_number(number, batch))
            for transition in self._with_number(number, emission.single):
                (late if transition.status == "late" else single).append(transition)
        ordered = {topic: _in_order(batches) for topic, batches in rows.items()}
        published = {member.topic.name: member.topic for member in self.members}
        return Emission(ordered, [*_as_arrived(late, topics), *sorted(single, key=in_time)], published)

    def _with_number(self, number: int, single: Iterable[Transition]) -> list[Transition]:
        """Return the transitions of a component with its number as condition and with labels as scopes."""
        return [t._replace(condition=number, scope=self.label(t.scope)) for t in single]

    def _rows_with_number(self, number: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a component with the bit of its number and with labels as scopes."""
        scopes = rows.column(machine.SCOPE)
        labels = pa.array(map(self.label, scopes.dictionary.to_pylist()), pa.string())
        words = pa.array(np.full(len(rows), 1 << number, np.uint64))
        names = rows.schema.names
        rows = rows.set_column(names.index(machine.SCOPE), machine.SCOPE, labels.take(scopes.indices))
        return rows.set_column(names.index(machine.CONDITIONS), machine.CONDITIONS, words)

    # --- pushdown ---

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        """Return the relevance of rows as `Machine.relevance` defines it.

        A row in a scope of a component is also inside the scopes of components downstream.
        """
        nothing = np.zeros(len(batch), np.bool_)
        inside, relevant = dict[str, Mask](), nothing
        outside = np.zeros(len(self.members), np.int64)
        for i, operator in self.graph.operators.items():
            own = operator.machine.relevance(topic, batch).satisfies if topic in operator.topics else nothing
            upstream = (inside[name] for name in operator.upstream_topics if name in inside)
            either = np.logical_or.reduce([own, *upstream])
            name = f"@{self.members[i].topic.name}"
            inside[name] = inside.get(name, nothing) | either
            outside[i] = np.count_nonzero(~either) if topic in operator.topics else 0
            relevant = relevant | own
        return Relevance(relevant, outside)

    # --- state ---

    def due(self, state: GroupState) -> Instant | None:
        due = (member.due(own) for member, own in zip(self.members, state.components, strict=True))
        return min((at for at in due if at is not None), default=None)

    def active(self, state: GroupState) -> list[tuple[int, str | None, Instant]]:
        found = enumerate(state.components)
        scopes = ((i, id, instance.since) for i, own in found for id, instance in own.instances.items())
        return [(i, self._scope(i, id), since) for i, id, since in scopes if since is not None]

    def _scope(self, condition: int, id: Id) -> str | None:
        """Return the scope in emissions of an internal scope of a component."""
        return self.label(signature(self.smcs[condition], id))

    def latest_transitions(self, state: GroupState, condition: int) -> list[Transition]:
        latest = self.members[condition].latest_transitions(state.components[condition], 0)
        return self._with_number(condition, latest)

    def learn_latest(self, state: GroupState, condition: int, latest: Sequence[Event]) -> GroupState:
        """Give a component the latest event of every publisher, and the last events of its upstreams."""
        known = list(latest)
        for i, operator in self.graph.operators.items():
            last = operator.machine.latest_transitions(state.components[i], 0)
            known += (event for events in operator.derive_events(last).values() for event in events)
        own = self.members[condition].learn_latest(state.components[condition], 0, known)
        state.components[condition] = own
        return state

    def is_initial(self, state: GroupState, condition: int) -> bool:
        own = state.components[condition]
        if isinstance(own, columns.ColumnState):
            return columns.is_empty(own)
        return not (own.instances or own.held or own.hosts or any(own.info.points.values()))

    def dump(self, state: GroupState) -> bytes:
        return msgspec.msgpack.encode(state, enc_hook=to_ipc)

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> GroupState:
        """Decode a snapshot. `was` has the former number of each component, or `None` for a new component."""
        stored = msgspec.msgpack.decode(raw, type=GroupState, dec_hook=lambda _, batch: from_ipc(batch))
        if was is None:
            return stored
        until = max((own.until for own in stored.components), default=BEGINNING)
        components: list[ComponentState] = [
            component.InstantState(until, latest=stored.latest) if i is None else stored.components[i]
            for i in was
        ]
        return GroupState(components)

    # --- carry-over ---

    def carry_overs(self, state: GroupState, condition: int) -> dict[str | None, CarryOver]:
        """Return the active scopes of a component with their starts.

        The seed of each is the encoded internal scope and last event.
        """
        return {
            self._scope(condition, id): CarryOver(instance.since, msgspec.msgpack.encode((id, instance.last)))
            for id, instance in state.components[condition].instances.items()
            if instance.since is not None
        }

    def with_carry_overs(self, state: GroupState, condition: int, bits: Iterable[CarryOver]) -> GroupState:
        """Give a component the scopes that `carry_overs` of another revision returned."""
        for bit in bits:
            id, last = _decode(bit)
            state.components[condition].instances[id] = component.Instance(bit.since, last)
        return state

    def wake(self, state: GroupState, condition: int, bits: Iterable[CarryOver]) -> GroupState:
        """Schedule an evaluation of the given scopes at the watermark."""
        member = self.members[condition]
        state.components[condition] = points = member.as_instants(state.components[condition])
        for bit in bits:
            id, _ = _decode(bit)
            if not isinstance(member.smc.here, str) or id[0] in points.hosts:
                component.wake(points, points.until, id)
        return state

    def without(self, bit: CarryOver, attributes: Collection[str]) -> CarryOver:
        """Return a carry-over whose last event lacks the given attributes."""
        id, last = _decode(bit)
        if last is not None:
            remaining = {name: value for name, value in last.attributes.items() if name not in attributes}
            last = msgspec.structs.replace(last, attributes=remaining)
        return CarryOver(bit.since, msgspec.msgpack.encode((id, last)))


def _decode(bit: CarryOver) -> tuple[Id, Knowledge | None]:
    """Return the internal scope and the last event of a carry-over."""
    return msgspec.msgpack.decode(bit.seed, type=tuple[Id, Knowledge | None])


class _MemberStates:
    """The states of a group's components, as the graph reads and writes them."""

    def __init__(self, group: ComponentGroup, state: GroupState) -> None:
        self.members, self.components = group.members, state.components

    def due(self, operator: int) -> Instant | None:
        return self.members[operator].due(self.components[operator])

    def take(self, operator: int) -> ComponentState:
        return self.components[operator]

    def put(self, operator: int, state: ComponentState) -> None:
        self.components[operator] = state


def _as_arrived(late: Sequence[Transition], topics: Sequence[str]) -> list[Transition]:
    """Sort late events by topic and arrival.

    Each component emits its late events in the order of arrival. All components have the same watermark, so
    the longest list of late events includes all others. That list determines the order.
    """
    own: dict[int, list[Event]] = {}
    for transition in late:
        own.setdefault(transition.condition, []).append(transition.event)
    place: dict[object, int] = {}
    for events in sorted(own.values(), key=len, reverse=True):
        for event in events:
            place.setdefault((event.topic, event.order), len(place))

    def arrival(transition: Transition) -> tuple[int, int, int]:
        event = transition.event
        return topics.index(event.topic), place[event.topic, event.order], transition.condition

    return sorted(late, key=arrival)


def _in_order(rows: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return rows concatenated and sorted by time, condition and scope."""
    whole = concatenate(rows) if len(rows) > 1 else rows[0]
    keys = {name: whole.column(name) for name in ("time", machine.CONDITIONS, machine.SCOPE)}
    keys[machine.SCOPE] = keys[machine.SCOPE].fill_null("")
    return whole.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))
