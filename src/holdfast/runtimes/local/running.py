"""A running definition in this process: its graph of operators, their states, and watermarks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.carry_over import CarryingOver, CarryOver
from ...engine.corrected import start_corrections
from ...engine.graph import Graph, LocalStates, OperatorId, Step, Watermarks, notifications, start_alone
from ...engine.operator import Operator, OperatorRecord, latest_time, sort_derived, without_names
from ...lang.condition import Checked
from ...model.batch import concatenate, plain
from ...model.event import Event, Notification, lacking
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from ...plan.compile import link
from ...plan.resume import Resumed, resume
from ...plan.revise import standing_events

Load = Callable[[Resumed], Any]
"""Loads the state of an operator that ran before."""


class RunningDefinition:
    """The graph of a definition with its states.

    The latest event of each source is stored if `remember` is set or an operator requires it. Conditions that
    start later or replace others get these events.
    """

    def __init__(self, *, remember: bool) -> None:
        self.topics: dict[str, Topic] = {}
        self.graph = Graph({})
        self.states = LocalStates(self.graph)
        self.watermarks = Watermarks()
        self.latest: dict[str, dict[str, Event]] = {}
        """The latest event of each source, by topic.  [F75]"""
        self.remembers = self.always_remembers = remember

    @property
    def operators(self) -> Iterable[tuple[Operator, Any]]:
        """The operators with their states, in topological order."""
        return ((operator, self.states.values[i]) for i, operator in self.graph.operators.items())

    @property
    def names(self) -> list[str]:
        """The names of the running conditions."""
        return [name for operator in self.graph.operators.values() for name in operator.subscriptions]

    @property
    def latest_events(self) -> list[Event]:
        """The stored latest events of all sources."""
        return [event for events in self.latest.values() for event in events.values()]

    def id_of(self, name: str) -> OperatorId:
        """Return the id of the operator that runs a condition."""
        return next(i for i, operator in self.graph.operators.items() if operator.serves((name,)))

    # --- replacing the definition ---

    def start(
        self, checked: Checked, records: Sequence[OperatorRecord] = (), load: Load | None = None
    ) -> list[Notification]:
        """Start a definition. Return the notifications of conditions that start from the states of others.

        `records` are those of operators that ran before, and `load` returns the state of each. Without them,
        all operators start without state.
        """
        self.declare(checked)
        resumed = resume(records, checked)
        self.install([(one.operator, self.resume_state(one, load)) for one in resumed])
        new = {id(continued.operator.machine) for continued in resumed if continued.before is None}
        emitted: list[Notification] = []
        for i, operator in self.graph.operators.items():
            if operator.starts_from_standings and id(operator.machine) in new:
                emitted += notifications(self.start_from_standings(i, checked))
        return emitted

    def stored_records(self, gone: Collection[str] = ()) -> tuple[list[OperatorRecord], Load]:
        """Return the records of the running operators, and a function that loads their states.

        Conditions in `gone` are left out of the records.
        """
        before = list(self.operators)
        records = [without_names(operator.record, gone) for operator, _ in before]

        def load(resumed: Resumed) -> Any:
            assert resumed.before is not None
            operator, state = before[resumed.before]
            if records[resumed.before] == resumed.operator.record:
                return state
            return resumed.operator.machine.load(operator.machine.dump(state), resumed.was)

        return records, load

    def declare(self, checked: Checked) -> None:
        """Replace the topics by those of a definition.

        Drop changed attributes from the stored latest events.
        """
        before, self.topics = self.topics, {topic.name: topic for topic in checked.topics}
        self.latest = {
            name: _without_changed(events, before.get(name), self.topics[name])
            for name, events in self.latest.items()
            if name in self.topics
        }

    def install(self, running: Sequence[tuple[Operator, Any]]) -> None:
        """Link operators, and run them with the given states instead of the current ones."""
        states = {id(operator.machine): state for operator, state in running}
        self.graph = Graph(dict(enumerate(link(operator for operator, _ in running))))
        found = {i: states[id(operator.machine)] for i, operator in self.graph.operators.items()}
        self.states = LocalStates(self.graph, found)
        self.remembers = self.always_remembers or any(operator.joins for operator, _ in running)
        if not self.remembers:  # otherwise old events would later pass for the latest
            self.latest = {}

    def resume_state(
        self,
        resumed: Resumed,
        load: Load | None,
        carried_over: Mapping[str, Sequence[CarryOver]] = MappingProxyType({}),
    ) -> Any:
        """Return the state with which an operator continues, or its initial state at the watermark.

        `carried_over` has the active scopes of conditions that restart in an operator with others.
        """
        operator, machine = resumed.operator, resumed.operator.machine
        new = [i for i in range(len(operator.names)) if resumed.before is None or resumed.was[i] is None]
        now = latest_time(self.watermarks.topics, operator.clock, BEGINNING)
        if resumed.before is None:
            state = start_corrections(machine, start_alone(operator, now))
        else:
            assert load is not None
            state = load(resumed)
        for i in new if operator.joins else ():
            state = machine.learn_latest(state, i, self.latest_events)
        if isinstance(machine, CarryingOver):
            for i in new:
                known = [bit for name in operator.names[i] for bit in carried_over.get(name, ())]
                state = machine.start(state, i, known, now)
        return state

    def start_from_standings(self, id: OperatorId, checked: Checked) -> list[Step]:
        """Run a new operator on the standings of its upstreams, and return the steps."""
        events = self.upstream_standings(id, checked)
        watermarks = replace(self.watermarks, paused=frozenset())
        return self.graph.run(self.states, events, watermarks, among={id}).steps

    def upstream_standings(self, id: OperatorId, checked: Checked) -> dict[str, pa.RecordBatch]:
        """Return derived events for the active and unknown scopes of an operator's upstreams, by topic."""
        found: dict[str, list[pa.RecordBatch]] = {}
        topics = self.graph.operators[id].upstream_topics
        for i, upstream in self.graph.operators.items():
            if topics & {topic.name for topic in upstream.links.derived_topics.values()}:
                batches = standing_events(upstream, self.states.take(i), checked, self.watermark(i))
                for topic, batch in batches.items():
                    if topic in topics:
                        found.setdefault(topic, []).append(batch)
        return {topic: sort_derived(concatenate(batches)) for topic, batches in found.items()}

    def share(self, name: str, meaning: str) -> None:
        """Let a new condition share the state of an equal one that is in its initial state.

        Otherwise do nothing.
        """
        for id, operator in self.graph.operators.items():
            for i, its_meaning in enumerate(operator.meanings):
                if its_meaning == meaning and operator.machine.is_initial(self.states.take(id), i):
                    names = [(*some, name) if i == k else some for k, some in enumerate(operator.names)]
                    self.graph = Graph({**self.graph.operators, id: operator.with_names(names)})
                    self.states = LocalStates(self.graph, self.states.values)
                    return

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A context that restores definition and states if its block raises an error."""
        before = {name: getattr(self, name) for name in ("topics", "graph", "remembers", "latest")}
        states = {i: self._state_backup(i) for i in self.graph.operators}
        try:
            yield
        except BaseException:
            for name, value in before.items():
                setattr(self, name, value)
            self.states = LocalStates(self.graph, {i: load() for i, load in states.items()})
            raise

    def _state_backup(self, id: OperatorId) -> Callable[[], Any]:
        """Return a function that restores a state.

        The state of an operator with upstreams is stored as bytes, because a revision changes it in place.
        """
        operator, state = self.graph.operators[id], self.states.take(id)
        if not operator.upstream_topics:
            return lambda: state
        return partial(operator.machine.load, operator.machine.dump(state))

    # --- time ---

    def watermark(self, id: OperatorId) -> Instant:
        """Return the watermark of an operator, which is that of its topics and upstreams."""
        return self.graph.watermark(id, self.states, self.watermarks)

    def pause(self, topics: Iterable[str], until: Mapping[str, Instant]) -> None:
        """Stop the timers of operators over some topics, and continue the timers of others.

        The watermarks advance to `until`. The clocks of scopes ignore that step of time.
        """
        paused = [i for i, operator in self.graph.operators.items() if self.watermarks.is_paused(operator)]
        for name in self.topics.keys() & until.keys():
            self.watermarks.advance(name, until[name])
        self.watermarks.paused = frozenset(topics)
        for i in paused:
            operator = self.graph.operators[i]
            if not self.watermarks.is_paused(operator):
                state = operator.machine.resume(self.states.take(i), self.watermark(i))
                self.states.put(i, state)

    def due(self) -> Instant | None:
        """Return the earliest time that the watermark must pass before an operator emits without an event.

        Returns ``None`` if only events can make an operator emit.
        """
        due = (
            operator.due(state)
            for operator, state in self.operators
            if not self.watermarks.is_paused(operator)
        )
        return min((at for at in due if at is not None), default=None)

    # --- events ---

    def remember(self, topic: str, events: Iterable[Event]) -> None:
        """Store the latest event of each source of a topic."""
        known = self.latest.setdefault(topic, {})
        for event in events:
            before = known.get(event.source)
            if before is None or before.time <= event.time:
                known[event.source] = event

    def last_notifications(self, name: str) -> Iterator[Notification]:
        """Yield the last notification of a condition in each scope, if its machine stores it."""
        for operator, state in self.operators:
            for i, names in enumerate(operator.names):
                if name in names:
                    for notification in operator.address(operator.machine.latest_transitions(state, i)):
                        yield notification._replace(subscription=name)


def _without_changed(events: dict[str, Event], was: Topic | None, now: Topic) -> dict[str, Event]:
    """Return the latest events of a topic without the attributes whose type or unit has changed."""
    changed = was.differing(now) if was is not None else ()
    return {source: lacking(event, changed) for source, event in events.items()} if changed else events


def last_rows(batch: pa.RecordBatch) -> list[int]:
    """Return the number of the last row of each source in a batch."""
    codes = plain(batch.column("source")).dictionary_encode().indices
    last = np.full(len(batch), -1)
    last[np.asarray(codes)] = np.arange(len(batch))
    return [int(row) for row in last if row >= 0]
