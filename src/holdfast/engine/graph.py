"""The graph of a definition's operators: the output of an operator is input of the operators downstream.

Only this module passes output from one operator to another, makes an operator wait for its upstreams, and
runs machines in a graph. Runtimes move data and store states. They call `Graph.push` for one event,
`Graph.advance` if only time has passed, and `Graph.run` for a chunk.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from ..model.batch import concatenate
from ..model.event import Event, Notification, Transition
from ..model.instant import BEGINNING, NEVER, Instant
from .machine import Batches, Emission, Machine
from .operator import Operator, latest_time, with_watermark

OperatorId = int
"""The number of an operator in a graph."""


class States(Protocol):
    """The store of operator states: a list, or lazily decoded bytes.

    The graph takes a state before it runs an operator and puts the new state back; it does not use the old
    state again. It calls `due` without taking the state, so that idle operators need not be decoded.
    """

    def due(self, operator: OperatorId) -> Instant | None: ...
    def take(self, operator: OperatorId) -> Any: ...
    def put(self, operator: OperatorId, state: Any) -> None: ...


@dataclass
class Watermarks:
    """The event time up to which nothing more is expected, by topic.

    `topics` has the time of the latest reading of each topic. `pending` is for derived topics of operators
    that ran elsewhere in an earlier stage. It has the earliest time at which these operators may still emit
    without a further reading. `limit` is an upper bound of all watermarks; a replay sets it to the time up to
    which it has read. Timers of operators over `paused` topics do not fire.
    """

    topics: dict[str, Instant] = field(default_factory=dict)
    pending: Mapping[str, Instant] = field(default_factory=dict)
    limit: Instant = NEVER
    paused: frozenset[str] = frozenset()

    def advance(self, topic: str, to: Instant) -> None:
        """Advance the watermark of a topic to a time; an earlier time has no effect."""
        if to > self.topics.get(topic, BEGINNING):
            self.topics[topic] = to

    def is_paused(self, operator: Operator) -> bool:
        """Whether the timers of an operator do not fire now."""
        return not self.paused.isdisjoint(operator.clock) and operator.machine.traits.pauses


class Step(NamedTuple):
    """The output of an operator in one step."""

    id: OperatorId
    operator: Operator
    emission: Emission

    def notifications(self) -> list[Notification]:
        """Return the emission as notifications of the operator's subscriptions."""
        return self.operator.notifications(self.emission)


class Run(NamedTuple):
    """The result of `Graph.run`: the steps of operators in topological order, and derived events by topic.

    Operators of later stages consume the derived events.
    """

    steps: list[Step]
    derived: dict[str, pa.RecordBatch]


def notifications(steps: Iterable[Step]) -> Iterator[Notification]:
    """Yield the notifications of steps, in their order."""
    for step in steps:
        yield from step.notifications()


class Graph:
    """Operators by their ids; each operator follows its upstreams (`plan` links them).

    Laws (`tests/laws/test_graph.py`): pushing events one by one equals running them in chunks of any size,
    and running stage by stage equals running all stages at once.
    """

    def __init__(self, operators: Mapping[OperatorId, Operator]) -> None:
        self.operators = dict(operators)
        self._upstreams = {
            i: tuple(k for k, other in self.operators.items() if other.is_upstream_of(operator))
            for i, operator in self.operators.items()
        }
        self._consumers: dict[str, list[OperatorId]] = {}
        """The operators that consume readings of each topic and no derived events."""
        self._downstream = [i for i, operator in self.operators.items() if operator.upstream_topics]
        for i, operator in self.operators.items():
            for topic in () if operator.upstream_topics else operator.topics:
                self._consumers.setdefault(topic, []).append(i)
        self._timed = [
            i
            for i, operator in self.operators.items()
            if operator.machine.traits.uses_watermark and not operator.upstream_topics
        ]

    # --- time ---

    def watermark(self, id: OperatorId, states: States, watermarks: Watermarks) -> Instant:
        """Return the event time up to which an operator has all its input.

        It is the time of the latest reading of any topic on which the operator depends. Upstream operators
        that may still emit an earlier event hold it back.
        """
        operator = self.operators[id]
        at = min(watermarks.limit, latest_time(watermarks.topics, operator.clock, BEGINNING))
        if not operator.links.upstreams:
            return at
        pending = [self.operators[k].pending(states.due(k)) for k in self._upstreams[id]]
        pending += [watermarks.pending[t] for t in operator.upstream_topics & watermarks.pending.keys()]
        return operator.watermark(at, pending)

    def _now(self, id: OperatorId, states: States, watermarks: Watermarks) -> Instant:
        """Return the watermark of an operator, or `BEGINNING` while its timers are paused."""
        if watermarks.paused and watermarks.is_paused(self.operators[id]):
            return BEGINNING
        return self.watermark(id, states, watermarks)

    def catch_up(self, id: OperatorId, states: States, to: Instant) -> None:
        """Advance an operator to a watermark. The operator must be neither due nor have input, so it emits
        nothing."""
        machine = self.operators[id].machine
        if machine.traits.uses_watermark and to > BEGINNING:
            state, _ = machine.step(states.take(id), {}, to)
            states.put(id, state)

    # --- one event, or time alone: no Arrow ---

    def push(self, states: States, event: Event, watermarks: Watermarks) -> list[Step]:
        """Process one event, and return a step for each operator that emits.

        The caller advances `watermarks` to the time of the event before the call.
        """
        steps: list[Step] = []
        derived = {event.topic: [event]}  # downstream operators may consume readings, too
        for i in self._consumers.get(event.topic, ()):
            operator = self.operators[i]
            machine = operator.machine
            state, out = machine.react(states.take(i), event)
            if machine.traits.uses_watermark:
                state, more = machine.advance(state, self._now(i, states, watermarks))
                out += more
            states.put(i, state)
            if out:
                _collect(steps, derived, Step(i, operator, Emission({}, out)))
        if self._downstream:
            self._push_downstream(states, steps, derived, watermarks)
        return steps

    def advance(self, states: States, watermarks: Watermarks) -> list[Step]:
        """Advance event time to the watermarks without an event, and return a step for each operator that
        emits."""
        steps: list[Step] = []
        derived: dict[str, list[Event]] = {}
        for i in self._timed:
            operator = self.operators[i]
            now = self._now(i, states, watermarks)
            state, out = operator.machine.advance(states.take(i), now)
            states.put(i, state)
            if out:
                _collect(steps, derived, Step(i, operator, Emission({}, out)))
        self._push_downstream(states, steps, derived, watermarks)
        return steps

    def _push_downstream(
        self, states: States, steps: list[Step], derived: dict[str, list[Event]], watermarks: Watermarks
    ) -> None:
        """Run the operators downstream with the derived events, and append their steps to `steps`."""
        for i in self._downstream:
            operator = self.operators[i]
            events = [event for topic in derived if topic in operator.topics for event in derived[topic]]
            if not events and states.due(i) is None:
                continue
            machine, out = operator.machine, list[Transition]()
            now, state = self._now(i, states, watermarks), states.take(i)
            for event in events:
                state, more = machine.react(state, event)
                out += more
            if machine.traits.uses_watermark:
                state, more = machine.advance(state, now)
                out += more
            states.put(i, state)
            if out:
                _collect(steps, derived, Step(i, operator, Emission({}, out)))

    # --- a chunk ---

    def run(
        self,
        states: States,
        batches: Batches,
        watermarks: Watermarks,
        *,
        among: Container[OperatorId] | None = None,
        final: bool = False,
    ) -> Run:
        """Process a batch of each topic, and return the steps of the operators. If ``among`` is given, only
        these operators run.

        Operators without input run only if they are due. With `final`, event time ends: operators emit what
        they still hold back, at the time of the last reading.
        """
        steps: list[Step] = []
        inputs, derived = dict(batches), dict[str, list[pa.RecordBatch]]()
        for i, operator in self.operators.items():
            if among is not None and i not in among:
                continue
            own = {topic: batch for topic, batch in inputs.items() if topic in operator.topics}
            if final:
                own = dict(
                    with_watermark(operator, own, latest_time(watermarks.topics, operator.clock, BEGINNING))
                )
            if final and not own and not operator.machine.traits.uses_watermark:
                continue
            now = NEVER if final else self._now(i, states, watermarks)
            if not own and not self._is_due(operator, states.due(i), now):
                continue
            state, emission = operator.machine.step(states.take(i), own, now)
            states.put(i, state)
            steps.append(Step(i, operator, emission))
            for topic, rows in operator.derive(emission).items():
                derived.setdefault(topic, []).append(rows)
                inputs[topic] = concatenate([inputs[topic], rows]) if topic in inputs else rows
        return Run(steps, {topic: concatenate(rows) for topic, rows in derived.items()})

    @staticmethod
    def _is_due(operator: Operator, due: Instant | None, now: Instant) -> bool:
        """Whether an operator runs without input. An operator downstream always runs if it waits for a
        time."""
        return due is not None and (bool(operator.upstream_topics) or now > due)

    # --- a part of it ---

    def only(self, name: str) -> Graph:
        """Return the graph of the operator that emits a condition's notifications, and of its upstreams."""
        (last,) = [i for i, one in self.operators.items() if any(name in names for names in one.recipients)]
        needed = {last}
        for i, operator in reversed(self.operators.items()):
            topics = {topic.name for topic in operator.links.derived_topics.values()}
            if any(self.operators[k].upstream_topics & topics for k in needed):
                needed.add(i)
        return Graph({i: operator for i, operator in self.operators.items() if i in needed})


def start_alone(operator: Operator, watermark: Instant) -> Any:
    """Return the state of an operator that starts at a watermark, before any event."""
    state = operator.machine.initial()
    return advance_alone(operator.machine, state, watermark)[0] if watermark > BEGINNING else state


def run_alone(
    operator: Operator, batches: Batches, watermark: Instant, state: Any = None
) -> tuple[Any, Emission]:
    """Run one operator on all its input. It starts with its initial state unless `state` is given."""
    return operator.machine.step(operator.machine.initial() if state is None else state, batches, watermark)


def push_alone(
    machine: Machine[Any], state: Any, event: Event, watermark: Instant | None = None
) -> tuple[Any, list[Transition]]:
    """Process one event with a machine that runs outside of a graph, then advance the machine to `watermark`.

    Publishers and revisions run such machines, whose emissions no other machine consumes.
    """
    state, transitions = machine.react(state, event)
    if watermark is None:
        return state, transitions
    state, more = advance_alone(machine, state, watermark)
    return state, transitions + more


def advance_alone(machine: Machine[Any], state: Any, watermark: Instant) -> tuple[Any, list[Transition]]:
    """Advance a machine that runs outside of a graph."""
    return machine.advance(state, watermark)


def _collect(steps: list[Step], derived: dict[str, list[Event]], step: Step) -> None:
    """Append a step to `steps`, and its derived events to `derived`."""
    steps.append(step)
    for topic, events in step.operator.derive_events(step.emission.single).items():
        derived.setdefault(topic, []).extend(events)


class LocalStates:
    """The states of a graph's operators in this process."""

    def __init__(self, graph: Graph, states: Mapping[OperatorId, Any] | None = None) -> None:
        self.graph = graph
        self.values = (
            {i: operator.machine.initial() for i, operator in graph.operators.items()}
            if states is None
            else dict(states)
        )

    def due(self, operator: OperatorId) -> Instant | None:
        return self.graph.operators[operator].machine.due(self.values[operator])

    def take(self, operator: OperatorId) -> Any:
        return self.values[operator]

    def put(self, operator: OperatorId, state: Any) -> None:
        self.values[operator] = state

    def dump(self) -> dict[OperatorId, bytes]:
        """Return all states as bytes, for `load`."""
        return {i: self.graph.operators[i].machine.dump(state) for i, state in self.values.items()}

    def load(self, states: Mapping[OperatorId, bytes]) -> None:
        """Replace all states by those that `dump` returned."""
        self.values = {i: self.graph.operators[i].machine.load(raw) for i, raw in states.items()}
