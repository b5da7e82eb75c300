"""Revisions in this process: changed conditions carry over their scopes or are rebuilt from a history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ...engine.corrected import start_corrections
from ...engine.graph import OperatorId, notifications
from ...engine.machine import Emission
from ...engine.operator import Operator
from ...engine.standing import Scoped, revision_transitions, standings
from ...errors import UsageError
from ...kinds.revision import Past, TakeOver
from ...lang.condition import Checked
from ...model.batch import concatenate, conform, to_events
from ...model.event import Event, Notification, Transition, lacking
from ...model.instant import BEGINNING, Instant
from ...plan import revise as plan
from ...plan.compile import meanings, only, with_upstreams, without
from ...plan.resume import resume
from .running import RunningDefinition, last_rows

if TYPE_CHECKING:
    from .engine import Engine

History = Iterable[Event | tuple[str, pa.RecordBatch] | Instant | Mapping[str, Instant]]
"""The input of an engine: events, batches with the names of their topics, and watermarks."""


class KnownHistory(NamedTuple):
    """A history for a revision.

    ``history`` is ``None`` if there is none; ``whole`` tells whether it is complete. ``fresh`` creates an
    engine without events.
    """

    history: History | None
    whole: bool
    fresh: Callable[[Checked], Engine]


class Rebuilt(NamedTuple):
    """Operators that processed a history, with their states.

    ``causes`` has the last event of each scope, and ``names`` the names of their conditions.
    """

    running: Sequence[tuple[Operator, Any]] = ()
    causes: Mapping[Scoped, Event] = {}
    names: frozenset[str] = frozenset()


class Old(NamedTuple):
    """The operators that ran before a revision, with their watermarks and the latest event of each source."""

    operators: list[tuple[Operator, Any]]
    watermarks: list[Instant]
    latest: Sequence[Event]

    def past(self, name: str) -> Past:
        """Return the state of a condition before the revision."""
        number = next(i for i, (operator, _) in enumerate(self.operators) if operator.serves((name,)))
        return Past(*self.operators[number], self.watermarks[number], self.latest)


def revise(
    running: RunningDefinition, before: Checked, after: Checked, known: KnownHistory
) -> list[Notification]:
    """Replace the running definition. Return the notifications of the scopes that change.

    First every operator of the new definition gets its state: unchanged operators continue, the others carry
    over their scopes or were rebuilt from the history. Then operators that start from standings do so,
    upstreams first. Last, unchanged operators downstream consume the output of the others.
    """
    rebuilt, latest = Rebuilt(), running.latest_events
    if known.history is not None and known.whole:
        rebuilt = rebuild(before, after, known.history, running.watermarks.topics, known.fresh)
    elif known.history is not None:
        latest = [*latest, *latest_of(known.history, before)]
    old = Old(list(running.operators), [*map(running.watermark, running.graph.operators)], latest)
    was = {key: standing for pair in old.operators for key, standing in standings(*pair).items()}
    changed = [name for name in plan.find_changed_conditions(before, after) if name not in rebuilt.names]
    consuming = {name for name in changed if plan.starts_from_standings(name, after)}
    restarting = {name for name in changed if plan.keeps_its_machine(name, after)}
    taken = _take_over([n for n in changed if n not in consuming | restarting], before, after, old)

    records, load = running.stored_records(gone=consuming | restarting)
    left = {name: plan.carry_overs_of(name, before, after, old.past(name)) for name in restarting}
    resumed = resume(records, without(after, {*rebuilt.names, *taken, *consuming}))
    new = [plan.operator_for_revision(name, after) for name in changed if name in consuming]
    running.declare(after)
    running.install(
        [
            *((taken_over.operator, running.resume_state(taken_over, load, left)) for taken_over in resumed),
            *rebuilt.running,
            *((taken_over.operator, taken_over.state) for taken_over in taken.values()),
            *((operator, operator.machine.initial()) for operator in new),
        ]
    )
    started = {id(taken_over.operator.machine) for taken_over in resumed if taken_over.before is None}
    emitted: dict[OperatorId, list[tuple[Operator, list[Transition]]]] = {}
    unchanged: set[OperatorId] = set()
    for i, operator in running.graph.operators.items():
        names = {name for served in operator.names for name in served}
        is_new = id(operator.machine) in started
        if names & consuming:
            (name,) = names
            upstream = running.upstream_standings(i, after)
            revised = _events_for(operator, _derive(pair for pairs in emitted.values() for pair in pairs))
            past = old.past(name)._replace(
                watermark=running.watermark(i), standings=upstream, revised=revised
            )
            taken_over = plan.take_over(name, before, after, past)
            running.states.put(i, taken_over.state)
            emitted[i] = [(operator, taken_over.transitions)]
        elif names & taken.keys():
            emitted[i] = [(operator, taken[name].transitions) for name in names]
            unchanged.add(i)
        elif names & (rebuilt.names | restarting) or (is_new and operator.starts_from_standings):
            if is_new and operator.starts_from_standings:
                running.start_from_standings(i, after)
            at = running.watermark(i)
            at = at if at > BEGINNING else max(running.watermarks.topics.values(), default=BEGINNING)
            nothing = plan.placeholders(after, at)
            state = running.states.take(i)
            emitted[i] = list(revision_transitions(operator, state, was, rebuilt.causes, nothing))
        else:
            unchanged.add(i)
    pairs = [pair for pairs in emitted.values() for pair in pairs]
    changes = [n for operator, transitions in pairs for n in operator.address(transitions)]
    downstream = {i for i in unchanged if running.graph.operators[i].upstream_topics}
    watermarks = replace(running.watermarks, paused=frozenset())
    steps = running.graph.run(running.states, _derive(pairs), watermarks, among=downstream).steps
    return [*changes, *notifications(steps)]


def _take_over(names: Iterable[str], before: Checked, after: Checked, old: Old) -> dict[str, TakeOver]:
    """Return how conditions that are not rebuilt carry over their state.

    Unchanged conditions are left out.
    """
    was, now = meanings(before), meanings(after)
    found = {name: plan.take_over(name, before, after, old.past(name)) for name in names}
    return {name: one for name, one in found.items() if one.has_changes or was[name] != now[name]}


def _derive(pairs: Iterable[tuple[Operator, list[Transition]]]) -> dict[str, pa.RecordBatch]:
    """Return the derived events of transitions, by topic."""
    found: dict[str, list[pa.RecordBatch]] = {}
    for operator, transitions in pairs:
        for topic, batch in operator.derive(Emission({}, transitions)).items():
            found.setdefault(topic, []).append(batch)
    return {topic: concatenate(batches) for topic, batches in found.items()}


def _events_for(operator: Operator, derived: Mapping[str, pa.RecordBatch]) -> list[Event]:
    """Return the derived events that an operator consumes."""
    topics = operator.upstream_topics & derived.keys()
    return [event for topic in topics for event in to_events(operator.topics[topic], derived[topic])]


# --- histories ---------------------------------------------------------------------------------------


def rebuild(
    before: Checked,
    after: Checked,
    history: History,
    watermarks: Mapping[str, Instant],
    fresh: Callable[[Checked], Engine],
) -> Rebuilt:
    """Rebuild the conditions whose state a complete history determines."""
    names = plan.to_rebuild(before, after)
    if not names:
        return Rebuilt()
    engine = fresh(with_upstreams(after, names))
    causes = _process(engine, history, before, watermarks)
    records, load = engine._running.stored_records()
    running = []
    for resumed in resume(records, only(after, names)):
        assert resumed.before is not None
        running.append((resumed.operator, start_corrections(resumed.operator.machine, load(resumed))))
    return Rebuilt(running, causes, names)


def _process(
    engine: Engine, history: History, before: Checked, watermarks: Mapping[str, Instant]
) -> dict[Scoped, Event]:
    """Process a history up to the watermarks. Return the last event of each scope.

    Topics and attributes that the new definition does not have are ignored.
    """
    found: dict[Scoped, Event] = {}
    topics = engine._running.topics
    gone = {topic.name for topic in before.topics} - topics.keys()
    lost = {
        topic.name: topic.by_name.keys() - topics[topic.name].by_name.keys()
        for topic in before.topics
        if topic.name not in gone
    }
    for item in history:
        match item:
            case Event():
                emitted = [] if item.topic in gone else engine.push(_without(item, lost))
            case (str() as topic, batch):
                emitted = [] if topic in gone else engine.push_batch(topic, batch)
            case int():
                emitted = engine.advance(item)
            case Mapping():
                emitted = engine.advance_topics(item)
            case _:
                raise _not_history(item)
        found |= _causes(emitted)
    return found | _causes(engine.advance_topics(watermarks))


def latest_of(history: History, checked: Checked) -> list[Event]:
    """Return the latest event of each source in a history."""
    topics = {topic.name: topic for topic in checked.topics}
    found: dict[tuple[str, str], Event] = {}
    for item in history:
        match item:
            case Event():
                events = [item]
            case (str() as name, batch) if name in topics:
                whole = conform(topics[name], batch)
                events = list(to_events(topics[name], whole.take(pa.array(last_rows(whole)))))
            case int() | Mapping() | (str(), _):
                events = []
            case _:
                raise _not_history(item)
        for event in events:
            before = found.get((event.topic, event.source))
            if before is None or before.time <= event.time:
                found[event.topic, event.source] = event
    return list(found.values())


def _not_history(event: object) -> UsageError:
    return UsageError(
        "a history has events, batches with the names of their topics, and instants to which "
        f"time has come, not {event!r:.60}"
    )


def _causes(notifications: Iterable[Notification]) -> dict[Scoped, Event]:
    return {(n.subscription, n.scope): n.event for n in notifications}


def _without(event: Event, lost: Mapping[str, Collection[str]]) -> Event:
    """Return an event without the attributes that its topic no longer has."""
    names = lost.get(event.topic)
    if not names or not isinstance(event.attributes, Mapping):
        return event
    return lacking(event, names)
