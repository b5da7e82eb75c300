"""Conditions over events that come one by one or in batches, in this process.

The engine is the definition of live behaviour: other runtimes are faster or farther away.
It is not safe to push from two threads at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ...compilers.machine import Group
from ...compilers.resume import Kept, fingerprint, kept, resumed, started
from ...errors import UsageError, did_you_mean
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked, Component, Condition, Correlated
from ...lang.ops import Case, Correlate, Detect, Subscribe
from ...lang.parse import parse
from ...machines.machine import transitions
from ...model.batch import conform, reached
from ...model.event import UNNUMBERED, Event, Notification, Value
from ...model.instant import BEGINNING, EARLIEST, LATEST, NEVER, Instant
from ...model.topic import Attribute, Topic
from .correlating import Correlating
from .correlating import Kept as KeptCorrelations
from .detecting import Detecting
from .detecting import Kept as KeptComponents

Callback = Callable[[Notification], Any]

LATE_KEPT = 10_000
"""How many late events stay readable; all of them are counted."""


class Holding(NamedTuple):
    """A condition that holds now."""

    subscription: str
    scope: str | None
    since: Instant


@dataclass
class _Running:
    """A machine at work; ``conditions[i]`` is the meaning of its condition ``i``."""

    group: Group
    conditions: list[Condition]
    state: Any

    def rename(self, i: int, names: Iterable[str]) -> None:
        """Serve these subscriptions with condition ``i``."""
        served = list(self.group.conditions)
        served[i] = tuple(names)
        self.group = replace(self.group, conditions=tuple(served))


class Subscription:
    """Somebody who wants to know.  Without a callback, notifications wait to be iterated over."""

    def __init__(self, engine: Engine, name: str, callback: Callback | None) -> None:
        self.name = name
        self._engine = engine
        self._waiting: deque[Notification] = deque()
        self._callback = callback or self._waiting.append

    def __iter__(self) -> Iterator[Notification]:
        """What has come since the last look; ends when nothing is waiting."""
        while self._waiting:
            yield self._waiting.popleft()

    def cancel(self) -> None:
        """Hear no more; the condition goes on for others."""
        self._engine._silence(self)


class Engine:
    """The conditions of an app, over live events.

    >>> from holdfast import Engine, Event, parse
    >>> engine = Engine(parse('''
    ...     topic Temperature (value float)
    ...     state Warm on Temperature [value > 25; value < 22] per source
    ... '''))
    >>> for time, value in enumerate([24, 26, 27, 23, 21.9]):
    ...     for note in engine.push(Event("Temperature", time, "s1", {"value": value})):
    ...         print(note.status, note.event.attributes)
    ingress {'value': 26.0}
    egress {'value': 21.9}
    """

    def __init__(self, app: App | str | None = None, *, base: Path | None = None) -> None:
        self._app = _as_app(app)
        self._base = base
        checked = check(self._app, base)
        self._topics = {topic.name: topic for topic in checked.topics}
        self._running: list[_Running] = []
        self._listeners: dict[str, list[Subscription]] = {}
        self._reached: dict[str, Instant] = {}
        self._sequence = 0
        self._late: deque[Notification] = deque(maxlen=LATE_KEPT)
        self._late_counts: Counter[str] = Counter()
        self._start(checked.conditions)
        self._detecting = Detecting()
        self._detect(checked)
        self._correlating = Correlating(checked.correlations)
        self._listeners.update({name: [] for name in self._correlating.names})

    # --- who wants to know ---

    @property
    def app(self) -> App:
        """The definitions that run now, also those that were subscribed to on the way."""
        return self._app

    @property
    def subscriptions(self) -> list[str]:
        """The names of the conditions that run."""
        return list(self._listeners)

    def subscribe(self, what: str, callback: Callback | None = None) -> Subscription:
        """Hear of a condition that runs already, by its name, or of a new one, by its definition.

        A new condition starts with the next event.  If an equal filter runs and nothing holds
        there, the two share its state; the answers are the same as if they did not.  A component
        that runs tells its last event at once; a new one knows the latest events, and one with the
        name of another takes its place.
        """
        name = what.strip()
        if name not in self._listeners:
            if name.isidentifier():
                hint = did_you_mean(name, self._listeners) or "Give its definition to start it."
                raise UsageError(f"no condition named '{name}' runs. {hint}")
            name = self._define(what)
        subscription = Subscription(self, name, callback)
        self._listeners[name].append(subscription)
        for notification in self._detecting.latest(name) if name in self._detecting.names else ():
            subscription._callback(notification)
        return subscription

    def _define(self, text: str) -> str:
        added = _as_app(text)
        if text.lstrip().startswith(("[", "{")):  # nameless, as in the papers: any free name will do
            free = next(name for i in count(1) if (name := f"state_{i}") not in self._listeners)
            added = App([replace(s, name=free) if isinstance(s, Subscribe) else s for s in added.statements])
        replaced = {s.name for s in added.statements if isinstance(s, Detect)} & set(self._detecting.names)
        staying = [s for s in self._app.statements if not (isinstance(s, Detect) and s.name in replaced)]
        whole = App((*staying, *added.statements), file=self._app.file)
        checked = check(whole, self._base)
        every: list[Condition | Component | Correlated] = [
            *checked.conditions,
            *checked.components,
            *checked.correlations,
        ]
        fresh = [one for one in every if one.name not in self._listeners or one.name in replaced]
        if len(fresh) != 1:
            raise UsageError("give one new subscription at a time, under a name that is not yet used")
        self._app = whole
        self._topics = {topic.name: topic for topic in checked.topics}
        match fresh[0]:
            case Component(name=name):
                self._detect(checked, replacing=name)
            case Correlated(name=name):
                self._correlating.add(fresh[0])
                self._listeners[name] = []
            case condition:
                self._join(condition)
        return fresh[0].name

    def _detect(self, checked: Checked, replacing: str = "") -> None:
        """Run the components of a definition; those that ran already go on."""
        self._detecting.run(checked.components, checked.topics, replacing=replacing)
        for name in self._detecting.names:
            self._listeners.setdefault(name, [])

    def _join(self, condition: Condition) -> None:
        """Start a condition, on an equal one's machine where that makes no difference."""
        for running in self._running:
            for i, other in enumerate(running.conditions):
                if fingerprint(other) == fingerprint(condition) and running.group.machine.is_fresh(
                    running.state, i
                ):
                    running.rename(i, [*running.group.conditions[i], condition.name])
                    self._listeners[condition.name] = []
                    return
        self._start([condition])

    def _start(self, conditions: Iterable[Condition]) -> None:
        for group, distinct in started(conditions):
            state = group.machine.initial()
            if group.wait is not None and group.topic.name in self._reached:  # time has come so far for all
                state, _ = group.machine.advance(state, self._reached[group.topic.name] - group.wait)
            self._run(group, distinct, state)

    def _run(self, group: Group, conditions: Iterable[Condition], state: Any) -> None:
        self._running.append(_Running(group, list(conditions), state))
        self._listeners.update({name: [] for names in group.conditions for name in names})

    def unsubscribe(self, name: str) -> None:
        """End a condition and everybody's interest in it."""
        if name not in self._listeners:
            raise UsageError(f"no condition named '{name}' runs. {did_you_mean(name, self._listeners) or ''}")
        self._detecting.require_leaf(name)
        self._correlating.remove(name)
        del self._listeners[name]
        for running in self._running:
            for i, names in enumerate(running.group.conditions):
                running.rename(i, [other for other in names if other != name])
        self._running = [running for running in self._running if any(running.group.conditions)]
        named = (Subscribe, Detect, Correlate)
        kept = [s for s in self._app.statements if not (isinstance(s, named) and s.name == name)]
        self._app = App(kept, file=self._app.file)
        if name in self._detecting.names:
            self._detecting.run(check(self._app, self._base).components, self._topics.values())

    def _silence(self, subscription: Subscription) -> None:
        listeners = self._listeners.get(subscription.name, [])
        if subscription in listeners:
            listeners.remove(subscription)

    # --- events ---

    def push(self, event: Event) -> list[Notification]:
        """Take one event; what it starts or ends is delivered and returned."""
        topic = self._topic(event.topic)
        event = self._admitted(topic, event)
        self._sequence = max(self._sequence, event.sequence + 1)
        latest = self._reached[topic.name] = max(self._reached.get(topic.name, BEGINNING), event.time)
        out: list[Notification] = []
        for running in self._running:
            group = running.group
            if group.topic.name == topic.name:
                running.state, passed = group.machine.react(running.state, event)
                out += group.addressed(passed)
                out += self._advance(running, latest - (group.wait or 0))
        return self._deliver(out + self._detecting.push(event) + self._correlating.push(event))

    def push_batch(self, topic: str, batch: pa.RecordBatch) -> list[Notification]:
        """Take a batch in the order of its rows; for each condition in turn, what it starts or ends."""
        known = self._topic(topic)
        batch = self._numbered(conform(known, batch))
        latest = reached(batch)
        if latest is not None:
            self._reached[topic] = max(self._reached.get(topic, BEGINNING), latest)
        out: list[Notification] = []
        for running in self._running:
            group = running.group
            if group.topic.name == topic:
                until = self._reached.get(topic, BEGINNING) - (group.wait or 0)
                running.state, passed = group.machine.step(running.state, batch, until)
                out += group.addressed(transitions(known, passed))
        out += self._detecting.push_batch(known, batch)
        return self._deliver(out + self._correlating.push_batch(known, batch))

    def run(self, events: Iterable[Event]) -> Iterator[Notification]:
        """Push every event, let time run out, and yield the notifications as they come."""
        for event in events:
            yield from self.push(event)
        yield from self.finish()

    def advance(self, until: Instant) -> list[Notification]:
        """Tell the engine that event time has come this far, though no event says so."""
        out: list[Notification] = []
        for running in self._running:
            name = running.group.topic.name
            self._reached[name] = max(self._reached.get(name, BEGINNING), until)
            out += self._advance(running, self._reached[name] - (running.group.wait or 0))
        return self._deliver(out + self._detecting.advance(until) + self._correlating.advance(until))

    def finish(self) -> list[Notification]:
        """Nothing more will come: process what ordered conditions still hold back, and let components
        come as far as the last event."""
        out = [n for running in self._running for n in self._advance(running, NEVER)]
        return self._deliver(out + self._detecting.finish() + self._correlating.finish())

    def _advance(self, running: _Running, until: Instant) -> list[Notification]:
        if running.group.wait is None:
            return []
        running.state, passed = running.group.machine.advance(running.state, until)
        return list(running.group.addressed(passed))

    def _topic(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            hint = did_you_mean(name, self._topics) or f"There is {', '.join(self._topics) or 'none'}."
            raise UsageError(f"no topic named '{name}'. {hint}")
        return topic

    def _admitted(self, topic: Topic, event: Event) -> Event:
        """The event with declared kinds and a sequence number."""
        if type(event.time) is int and not EARLIEST <= event.time <= LATEST:
            raise UsageError(f"an event's time must lie in the years 1 to 9999; {event.time} does not")
        if type(event.time) is not int:
            raise UsageError(
                f"an event's time must be whole microseconds since 1970, not {event.time!r}; "
                "holdfast.instant makes them of a datetime or of text"
            )
        if type(event.source) is not str or not event.source.strip():
            raise UsageError(f"an event's source must be text, not {event.source!r}")
        if type(event.sequence) is not int or not -(2**63) <= event.sequence < 2**63:
            raise UsageError(f"an event's sequence must be a 64-bit int, not {event.sequence!r}")
        location = None if event.location is None else _located(event.location)
        attributes = admitted(topic, event.attributes)
        numbered = event.sequence != UNNUMBERED
        if numbered and attributes is event.attributes and location is None:
            return event
        return Event(
            event.topic,
            event.time,
            event.source,
            attributes,
            event.sequence if numbered else self._sequence,
            location,
            event.place,
        )

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if "sequence" not in batch.schema.names:
            numbers = pa.array(np.arange(self._sequence, self._sequence + len(batch)))
            batch = batch.append_column("sequence", numbers)
        if len(batch):
            self._sequence = max(self._sequence, int(np.asarray(batch.column("sequence")).max()) + 1)
        return batch

    # --- delivery ---

    def _deliver(self, notifications: list[Notification]) -> list[Notification]:
        """Hand out what machines have said, after all of them have said it."""
        delivered: list[Notification] = []
        faults: list[Exception] = []
        for notification in notifications:
            if notification.status == "late":
                self._late.append(notification)
                self._late_counts[notification.subscription] += 1
                continue
            delivered.append(notification)
            for subscription in list(self._listeners.get(notification.subscription, ())):
                try:
                    subscription._callback(notification)
                except Exception as fault:  # one subscriber's fault is not another's
                    faults.append(fault)
        if faults:
            raise faults[0] if len(faults) == 1 else ExceptionGroup("subscribers failed", faults)
        return delivered

    @property
    def late(self) -> list[Notification]:
        """Late events of ordered conditions: the last ten thousand, oldest first."""
        return list(self._late)

    @property
    def late_counts(self) -> dict[str, int]:
        """How many events came too late, for each subscription that had some."""
        return dict(self._late_counts)

    def holding(self) -> list[Holding]:
        """The conditions that hold now, by subscription and scope."""
        found = [Holding(*row) for running in self._running for row in running.group.holding(running.state)]
        found += [Holding(*row) for row in self._detecting.holding()]
        return sorted(found, key=lambda h: (h.subscription, h.scope or ""))

    # --- keeping ---

    def snapshot(self) -> bytes:
        """Everything the engine remembers, as bytes.  Subscribers are not part of it."""
        whole = _Snapshot(
            [kept(running.group, running.conditions) for running in self._running],
            [running.group.machine.to_bytes(running.state) for running in self._running],
            self._reached,
            self._sequence,
            dict(self._late_counts),
            list(self._late),
            self._detecting.kept(),
            *self._correlating.kept(),
        )
        raw = msgspec.msgpack.encode(whole)
        return _seal(raw) + raw

    @classmethod
    def restore(cls, app: App | str, snapshot: bytes, *, base: Path | None = None) -> Engine:
        """An engine that goes on where the snapshot was taken: nothing is said again, nothing lost.

        Subscriptions that the snapshot does not know start afresh; those that the app no longer has
        are forgotten.  One that has the same name but another meaning is refused.
        """
        engine = cls(base=base)
        engine._app = _as_app(app)
        checked = check(engine._app, base)
        engine._topics = {topic.name: topic for topic in checked.topics}
        seal, raw = snapshot[:_SEALED], snapshot[_SEALED:]
        if seal != _seal(raw):
            raise UsageError("this is not a snapshot of an engine, or it is damaged")
        whole = msgspec.msgpack.decode(raw, type=_Snapshot)
        engine._reached, engine._sequence = dict(whole.reached), whole.sequence
        staying, new = resumed(whole.parts, checked.conditions)
        for part in staying:
            state = part.group.machine.from_bytes(whole.states[part.was], part.picked)
            engine._run(part.group, part.conditions, state)
        engine._start(new)
        if whole.components is not None:
            engine._detecting.resume(whole.components, checked.components, checked.topics)
        engine._detect(checked)
        engine._correlating.resume(whole.correlations, whole.correlated, checked.correlations)
        engine._listeners.update({name: [] for name in engine._correlating.names})
        engine._late_counts.update(whole.late_counts)
        engine._late.extend(whole.late)
        return engine


def _seal(raw: bytes) -> bytes:
    """What a snapshot begins with: its form, and a digest that tells whether it is whole."""
    return b"holdfast snapshot 2\n" + blake2b(raw, digest_size=16).digest()


_SEALED = len(_seal(b""))


class _Snapshot(msgspec.Struct):
    parts: list[Kept]
    states: list[bytes]
    reached: dict[str, Instant]
    sequence: int
    late_counts: dict[str, int]
    late: list[Notification]
    components: KeptComponents | None = None
    correlations: list[KeptCorrelations] = []
    correlated: dict[str, Instant] = {}


_ADMITTED_AS_IT_IS: dict[str, type | None] = {"float": float, "text": str, "bool": bool, "int": None}


def admitted(topic: Topic, attributes: Mapping[str, Value]) -> Mapping[str, Value]:
    """The attributes in their declared kinds, in the declared order; missing ones are ``None``."""
    declared = topic.attributes
    if len(attributes) == len(declared) and all(
        type(attributes.get(a.name)) is _ADMITTED_AS_IT_IS[a.kind] for a in declared
    ):
        return attributes
    for name in attributes:
        if name not in topic.by_name:
            has = ", ".join(a.name for a in declared)
            hint = did_you_mean(name, topic.by_name) or ""
            raise UsageError(f"topic '{topic.name}' has no '{name}'; it has {has}. {hint}".rstrip())
    return {a.name: _of_kind(topic, a, attributes.get(a.name)) for a in declared}


def _located(location: Sequence[float]) -> tuple[float, ...] | None:
    """The coordinates as floats, as far as there is no gap."""
    try:
        known = tuple(takewhile(lambda c: c == c, map(float, location)))
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"an event's location must be one to three numbers, not {location!r}") from None
    if len(location) > 3:
        raise UsageError(f"an event's location must be one to three numbers, not {location!r}")
    return known or None


def _of_kind(topic: Topic, attribute: Attribute, value: Value) -> Value:
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    match attribute.kind:
        case _ if value is None:
            return None
        case "text" if isinstance(value, str):
            return value
        case "bool" if isinstance(value, (bool, np.bool_)):
            return bool(value)
        case "float" if is_number and (not isinstance(value, int) or abs(value) < 2**1023):
            return float(value)
        case "int" if is_number and isinstance(value, (int, np.integer)) and -(2**63) <= value < 2**63:
            return int(value)
    raise UsageError(f"'{attribute.name}' of topic '{topic.name}' must be {attribute.kind}, not {value!r}")


def _as_app(app: App | str | None) -> App:
    """The app without its test cases, which an engine does not run."""
    known = App() if app is None else parse(app) if isinstance(app, str) else app
    if not any(isinstance(s, Case) for s in known.statements):
        return known
    return App([s for s in known.statements if not isinstance(s, Case)], text=known.text, file=known.file)
