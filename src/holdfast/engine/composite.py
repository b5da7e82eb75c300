"""A condition and its upstreams as one machine, for hosts that run one condition each, such as brokers and
motes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ..model.event import Event, Transition
from ..model.instant import Instant
from ..model.topic import Topic
from .graph import Graph, LocalStates, Step, Watermarks
from .machine import Batches, Emission, Machine, Relevance, Traits, transitions
from .operator import Operator

States = dict[int, Any]
"""The state of each operator, by its id."""


def operator_alone(operators: Sequence[Operator], name: str) -> Operator:
    """Return the operator that emits a subscription's notifications. Its machine includes its upstreams."""
    graph = Graph(dict(enumerate(operators))).only(name)
    last = graph.operators[max(graph.operators)]
    if len(graph.operators) == 1:
        return last
    inputs = [operator for operator in graph.operators.values() if not operator.upstream_topics]
    topics = tuple(dict.fromkeys(t for one in inputs for names in one.reading_topics for t in names))
    return replace(
        last,
        machine=Composite(graph),
        reading_topics=(topics,),
        decisive_columns=merge_columns(operator.decisive_columns for operator in inputs),
        keyed=None,
        upstream_topics=frozenset(),
        links=replace(last.links, stage=0, derived_topics={}),
    )


def merge_columns(columns: Iterable[Mapping[str, frozenset[str]]]) -> dict[str, frozenset[str]]:
    """Return the union of columns, by topic."""
    united: dict[str, frozenset[str]] = {}
    for by_topic in columns:
        for topic, names in by_topic.items():
            united[topic] = united.get(topic, frozenset()) | names
    return united


@dataclass(frozen=True)
class Composite(Machine[States]):
    """A graph as a machine. It emits the transitions of its last operator; its state has the state of each
    operator."""

    graph: Graph

    @cached_property
    def traits(self) -> Traits:
        return Traits(uses_watermark=any(one.machine.traits.uses_watermark for one in self.operators))

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        return tuple(self.graph.operators.values())

    @cached_property
    def topics(self) -> dict[str, Topic]:
        inputs = (operator for operator in self.operators if not operator.upstream_topics)
        return {name: topic for operator in inputs for name, topic in operator.topics.items()}

    @property
    def _last(self) -> Operator:
        return self.operators[-1]

    def initial(self) -> States:
        return LocalStates(self.graph).values

    def react(self, state: States, event: Event) -> tuple[States, list[Transition]]:
        states = LocalStates(self.graph, state)
        return states.values, self._last_transitions(self.graph.push(states, event, Watermarks()))

    def advance(self, state: States, watermark: Instant) -> tuple[States, list[Transition]]:
        states = LocalStates(self.graph, state)
        return states.values, self._last_transitions(self.graph.advance(states, self._watermarks(watermark)))

    def step(self, state: States, batches: Batches, watermark: Instant) -> tuple[States, Emission]:
        states, watermarks = LocalStates(self.graph, state), self._watermarks(watermark)
        steps = self.graph.run(states, batches, watermarks).steps
        emitted = self._last_transitions([*steps, *self.graph.advance(states, watermarks)])
        return states.values, Emission({}, emitted)

    def _watermarks(self, until: Instant) -> Watermarks:
        return Watermarks(dict.fromkeys(self.topics, until))

    def _last_transitions(self, steps: Iterable[Step]) -> list[Transition]:
        """Return the transitions that the last operator emitted."""
        last = max(self.graph.operators)
        own = (step.emission for step in steps if step.id == last)
        return [one for emission in own for one in transitions(self._last.topics, emission)]

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        machines = [operator.machine for operator in self.operators if topic in operator.topics]
        rows = np.logical_or.reduce([machine.relevance(topic, batch).satisfies for machine in machines])
        return Relevance(rows, np.zeros(1, np.int64))

    def due(self, state: States) -> Instant | None:
        due = (operator.due(state[i]) for i, operator in self.graph.operators.items())
        return min((at for at in due if at is not None), default=None)

    def active(self, state: States) -> list[tuple[int, str | None, Instant]]:
        return self._last.machine.active(state[max(state)])

    def unknown(self, state: States) -> list[tuple[int, str | None, Instant | None]]:
        return self._last.machine.unknown(state[max(state)])

    def is_initial(self, state: States, condition: int) -> bool:
        return all(
            operator.machine.is_initial(state[i], k)
            for i, operator in self.graph.operators.items()
            for k in range(len(operator.names))
        )

    def dump(self, state: States) -> bytes:
        return msgspec.msgpack.encode(LocalStates(self.graph, state).dump())

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> States:
        states = LocalStates(self.graph)
        if was is None or was[0] is not None:
            states.load(msgspec.msgpack.decode(raw, type=dict[int, bytes]))
        return states.values
