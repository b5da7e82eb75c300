"""The engine: evaluation of live events in this process, one by one or in batches.

The engine defines the behaviour of live evaluation; the other runtimes must give equal results. Its methods
must not be called from two threads at once.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ...definition.app import App
from ...definition.check import check
from ...definition.parse import as_app
from ...engine.graph import Step, Watermarks, notifications
from ...engine.standing import standings
from ...errors import UsageError, did_you_mean
from ...lang.condition import Checked
from ...lang.ops import Case, ConditionStatement, DeclareTable
from ...model.batch import conform, latest_time, to_events
from ...model.event import Event, Notification
from ...model.folder import Folder
from ...model.instant import (
    YEAR_2000,
    Instant,
    show_instant,
    unit_of_epoch,
)
from ...model.topic import Topic
from ...plan.compile import builds_on, meanings
from ...plan.resume import Resumed
from .admission import INSTANT, with_sequence
from .revision import History, KnownHistory, revise
from .running import RunningDefinition, last_rows
from .snapshot import Snapshot, seal, unseal

Callback = Callable[[Notification], Any]

LATE_KEPT = 10_000
"""The number of late events that are stored; all of them are counted."""


class Holding(NamedTuple):
    """An active condition in one scope, with the start of its interval."""

    subscription: str
    scope: str | None
    since: Instant
    known: bool = True
    """Whether the state is known now, or was at the last reading."""
    level: str | None = None
    """The level, for conditions with levels."""


class Subscription:
    """A subscriber of an engine.

    Without a callback, notifications are queued; iteration removes them from the queue.
    """

    def __init__(self, engine: Engine, name: str, callback: Callback | None) -> None:
        self.name = name
        self._engine = engine
        self._waiting: deque[Notification] = deque()
        self._callback = callback or self._waiting.append

    def __iter__(self) -> Iterator[Notification]:
        """Yield the queued notifications; ends when the queue is empty."""
        while self._waiting:
            yield self._waiting.popleft()

    def cancel(self) -> None:
        """Stop the notifications of this subscriber. The condition continues for other subscribers."""
        self._engine._silence(self)


class Engine:
    """An engine that evaluates the conditions of a definition over live events.

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

    def __init__(
        self,
        app: App | str | None = None,
        *,
        base: Folder | None = None,
        lets: Mapping[str, float | int | str | bool] | None = None,
        tables: Mapping[str, Any] | None = None,
        remember: bool = False,
    ) -> None:
        """Start a definition.

        ``base`` is the folder of the files that it names; ``lets`` replaces values of ``let``. ``tables``
        replaces the files of tables. With ``remember`` the engine stores the latest reading of every source,
        which ``revise`` then uses.
        """
        self._app = _as_app(app)
        self._base, self._lets, self._tables = base, lets, dict(tables or {})
        self._running = RunningDefinition(remember=remember)
        self._listeners: dict[str, list[Subscription]] = {}
        self._startup_notifications: list[Notification] = []
        """Notifications of new counts that were emitted while the engine was restored and not yet
        delivered."""
        self._sequence = 0
        self._late: deque[Notification] = deque(maxlen=LATE_KEPT)
        self._late_counts: Counter[str] = Counter()
        self._has_warned = False
        self._current = self._check(self._app)
        self._running.start(self._current)
        self._listen()

    def _check(self, app: App) -> Checked:
        return check(app, self._base, self._lets, self._tables)

    def _listen(self) -> None:
        """Recreate the lists of subscribers for the conditions that run now.

        Existing subscribers are retained.
        """
        self._listeners = {name: self._listeners.get(name, []) for name in self._running.names}

    # --- subscriptions ---

    @property
    def app(self) -> App:
        """The running definition, including conditions that were subscribed to later."""
        return self._app

    @property
    def subscriptions(self) -> list[str]:
        """The names of the running conditions."""
        return list(self._listeners)

    def subscribe(self, what: str, callback: Callback | None = None) -> Subscription:
        """Subscribe to a running condition by its name, or to a new one by its definition.

        A new condition starts with the next event. A condition over other conditions starts from their
        current states and may emit at once. If an equal filter runs and nothing is active there, the two
        share its state; the results are the same. A condition that requires the latest events gets them at
        its start. It emits its last notification at once if it runs already, and a new one replaces another
        of the same name.
        """
        if not isinstance(what, str):
            raise UsageError(f"subscribe to a condition by its name or its definition, not to {what!r:.60}")
        _require_callback(callback)
        name, started = what.strip(), list[Notification]()
        if name not in self._listeners:
            if name.isidentifier():
                hint = did_you_mean(name, self._listeners) or "Give its definition to start it."
                raise UsageError(f"no condition named '{name}' runs. {hint}")
            name, started = self._define(what)
        subscription = Subscription(self, name, callback)
        self._listeners[name].append(subscription)
        self._hand_out(started)
        for notification in list(self._running.last_notifications(name)):
            subscription._callback(notification)
        return subscription

    def _define(self, text: str) -> tuple[str, list[Notification]]:
        added = _as_app(text)
        if text.lstrip().startswith(("[", "{")):  # unnamed, as in the papers: use any free name
            free = next(name for i in count(1) if (name := f"state_{i}") not in self._listeners)
            added = App(
                [replace(s, name=free) if isinstance(s, ConditionStatement) else s for s in added.statements]
            )
        joined = {
            name
            for operator, _ in self._running.operators
            if operator.joins
            for name in operator.subscriptions
        }
        replaced = {s.name for s in added.statements if isinstance(s, ConditionStatement)} & joined
        staying = [
            s for s in self._app.statements if not (isinstance(s, ConditionStatement) and s.name in replaced)
        ]
        whole = App((*staying, *added.statements), file=self._app.file)
        checked = self._check(whole)
        meant = meanings(checked)
        fresh = [name for name in meant if name not in self._listeners or name in replaced]
        if len(fresh) != 1:
            raise UsageError("give one new subscription at a time, under a name that is not yet used")
        with self._running.transaction():
            self._running.share(fresh[0], meant[fresh[0]])
            started = self._running.start(checked, *self._running.stored_records(gone=replaced))
        self._app, self._current = whole, checked
        self._listen()
        return fresh[0], started

    def revise(
        self,
        app: App | str,
        history: History | None = None,
        *,
        whole: bool = True,
        base: Folder | None = None,
    ) -> list[Notification]:
        """Replace the running definition.

        Unchanged conditions continue, new ones start, and changed ones carry over their scopes. Each scope
        that changes is reported once: as ``revised``, with ``since`` if it is active now, or as ``unknown``
        until the next reading that decides its state.

        With a ``history`` there are no unknown scopes: new and changed conditions are then as if they had run
        from the beginning. The history has the events that the engine received, in their order, and the
        instants to which it was advanced. Events are single, or in batches with the names of their topics
        (``replay(…).readings()`` gives those of files). If the history is only the latest part and not
        ``whole``, it decides those scopes that earlier events cannot affect. ``base`` is the folder of the
        definition's files.
        """
        return self._revise(_as_app(app), self._tables, history, whole, base)

    def _revise(
        self,
        new: App,
        tables: dict[str, Any],
        history: History | None,
        whole: bool,
        base: Folder | None = None,
    ) -> list[Notification]:
        after = check(new, base or self._base, self._lets, tables)
        with self._running.transaction():
            changes = revise(self._running, self._current, after, KnownHistory(history, whole, self._alike))
        self._app, self._tables, self._current, self._base = new, tables, after, base or self._base
        self._listen()
        return self._hand_out([*self._take_startup_notifications(), *changes])

    def _alike(self, checked: Checked) -> Engine:
        """Return a new engine with the same settings, for another definition. It has processed no event."""
        fresh = Engine(base=self._base)
        fresh._has_warned = True  # times of a history that is processed again
        fresh._running.start(checked)
        return fresh

    def unsubscribe(self, name: str) -> None:
        """Remove a condition and all its subscribers."""
        if name not in self._listeners:
            raise UsageError(f"no condition named '{name}' runs. {did_you_mean(name, self._listeners) or ''}")
        if above := builds_on(self._check(self._app), name):
            raise UsageError(f"'{above[0]}' builds on '{name}'; end it first")
        statements = [
            s for s in self._app.statements if not (isinstance(s, ConditionStatement) and s.name == name)
        ]
        left = App(statements, file=self._app.file)
        checked = self._check(left)
        with self._running.transaction():
            self._running.start(checked, *self._running.stored_records())
        self._app, self._current = left, checked
        self._listen()

    def take_table(
        self, name: str, data: Any = None, history: History | None = None, *, whole: bool = True
    ) -> list[Notification]:
        """Replace the rows of a table by an Arrow table or data frame, or by the present content of its file.

        Scopes whose row is unchanged continue. The others are handled and reported as by ``revise``: from
        their old state, the last reading and a history.
        """
        declared = {s.name for s in self._app.statements if isinstance(s, DeclareTable)}
        if name not in declared:
            raise UsageError(f"there is no table '{name}'. {did_you_mean(name, declared) or ''}".rstrip())
        return self._revise(self._app, {**self._tables, name: data}, history, whole)

    def _silence(self, subscription: Subscription) -> None:
        listeners = self._listeners.get(subscription.name, [])
        if subscription in listeners:
            listeners.remove(subscription)

    # --- events ---

    def push(self, event: Event) -> list[Notification]:
        """Process one event. Deliver its notifications to subscribers and return them."""
        if not isinstance(event, Event):
            raise UsageError(f"push takes a holdfast.Event, not {event!r:.60}")
        topic = self._topic(event.topic)
        event = with_sequence(topic, event, self._sequence)
        if event.time < _EARLY:
            self._suspect(event.time)
        self._sequence = max(self._sequence, event.sequence + 1)
        running = self._running
        running.watermarks.advance(topic.name, event.time)
        if running.remembers:
            running.remember(topic.name, [event])
        return self._deliver(running.graph.push(running.states, event, running.watermarks))

    def push_batch(self, topic: str, batch: pa.RecordBatch) -> list[Notification]:
        """Process a batch in the order of its rows. Return the notifications, ordered by condition."""
        known = self._topic(topic)
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            raise UsageError(f"a batch is a pyarrow RecordBatch or Table, not {type(batch).__name__}")
        return self.push_conformed(known, conform(known, batch))

    def push_conformed(self, known: Topic, batch: pa.RecordBatch) -> list[Notification]:
        """Process a batch that ``conform`` returned for the topic.

        Otherwise like ``push_batch``, without its checks.
        """
        topic, batch, running = known.name, self._with_sequence(batch), self._running
        latest = latest_time(batch)
        if latest is not None and latest < _EARLY:
            self._suspect(latest)
        if latest is not None:
            running.watermarks.advance(topic, latest)
            if running.remembers:
                running.remember(topic, to_events(known, batch.take(pa.array(last_rows(batch)))))
        return self._deliver(running.graph.run(running.states, {topic: batch}, running.watermarks).steps)

    def run(self, events: Iterable[Event]) -> Iterator[Notification]:
        """Push every event, then call ``finish``. Yield the notifications as they are emitted."""
        for event in events:
            yield from self.push(event)
        yield from self.finish()

    def advance(self, until: Instant) -> list[Notification]:
        """Advance the watermark of all topics to an instant without an event.

        Return the notifications of timers.
        """
        if type(until) is not int:
            raise UsageError(f"time comes to an instant, {INSTANT}, not to {until!r:.60}")
        if until < _EARLY:
            self._suspect(until)
        return self.advance_topics(dict.fromkeys(self._running.topics, until))

    def pause(self, topics: Iterable[str], until: Mapping[str, Instant] = MappingProxyType({})) -> None:
        """Stop the timers of states over these topics, because some of their readings are delayed.

        The clocks of the scopes later continue from the last readings. `until` has the watermarks of topics
        at the pause. `ordered` states do not need a pause. To resume a topic, call the method again without
        it.
        """
        self._running.pause(topics, until)

    def advance_topics(self, until: Mapping[str, Instant]) -> list[Notification]:
        """Advance the watermark of each given topic without an event. Return the notifications of timers."""
        running = self._running
        for name in running.topics.keys() & until.keys():
            running.watermarks.advance(name, until[name])
        return self._deliver(running.graph.advance(running.states, running.watermarks))

    def finish(self) -> list[Notification]:
        """Process all events that wait for the watermark, and advance it to the last event.

        Call this when no more events come.
        """
        running = self._running
        return self._deliver(running.graph.run(running.states, {}, running.watermarks, final=True).steps)

    @property
    def paused(self) -> frozenset[str]:
        """The topics whose timers are stopped, as set by ``pause``."""
        return self._running.watermarks.paused

    @property
    def watermarks(self) -> Mapping[str, Instant]:
        """The watermark of each topic in microseconds since 1970."""
        return self._running.watermarks.topics

    @property
    def due(self) -> Instant | None:
        """The event time that the watermark must pass before the engine emits without an event.

        A caller with a clock then calls ``advance``. ``None`` if only events can make the engine emit.
        """
        return self._running.due()

    def _suspect(self, at: Instant) -> None:
        """Warn once about a time in seconds or milliseconds where microseconds are expected.

        The warning applies to the first events, or after events of recent years. A clock that starts from
        zero passes the same numbers later without an error.
        """
        watermarks = self._running.watermarks.topics
        ours = not watermarks or max(watermarks.values()) >= YEAR_2000
        if not self._has_warned and ours and (unit := unit_of_epoch(at)) is not None:
            self._has_warned = True
            warnings.warn(
                f"{at} is {show_instant(at)} in microseconds, and {show_instant(at * unit.factor)} in "
                f"{unit.name}: an engine counts microseconds; multiply by {unit.factor:_}, or use "
                "holdfast.instant",
                stacklevel=3,
            )

    def _topic(self, name: str) -> Topic:
        topics = self._running.topics
        topic = topics.get(name) if isinstance(name, str) else None
        if topic is None:
            hint = did_you_mean(name, topics) or f"There is {', '.join(topics) or 'none'}."
            raise UsageError(f"no topic named '{name}'. {hint}")
        return topic

    def _with_sequence(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if "sequence" not in batch.schema.names:
            numbers = pa.array(np.arange(self._sequence, self._sequence + len(batch)))
            batch = batch.append_column("sequence", numbers)
        if len(batch):
            self._sequence = max(self._sequence, int(np.asarray(batch.column("sequence")).max()) + 1)
        return batch

    # --- delivery ---

    def _deliver(self, steps: list[Step]) -> list[Notification]:
        """Return the notifications of all steps, and deliver them after all operators have run."""
        if not steps and not self._startup_notifications:
            return []
        return self._hand_out([*self._take_startup_notifications(), *notifications(steps)])

    def _take_startup_notifications(self) -> list[Notification]:
        """Return, once, the notifications that new counts emitted while the engine was restored."""
        started, self._startup_notifications = self._startup_notifications, []
        return started

    def _hand_out(self, notifications: list[Notification]) -> list[Notification]:
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
                except Exception as fault:  # an error of one subscriber must not affect another
                    faults.append(fault)
        if faults:
            raise faults[0] if len(faults) == 1 else ExceptionGroup("subscribers failed", faults)
        return delivered

    @property
    def late(self) -> list[Notification]:
        """The late events of ordered conditions: the last ten thousand, oldest first."""
        return list(self._late)

    @property
    def late_counts(self) -> dict[str, int]:
        """The number of late events of each condition. Conditions without late events are left out."""
        return dict(self._late_counts)

    def holding(self, of: Collection[str] | None = None) -> list[Holding]:
        """Return the active conditions by name and scope.

        If `of` is given, only conditions with these names.
        """
        found = [
            Holding(*key, standing.since, standing.known, standing.level)
            for operator, state in self._running.operators
            if of is None or operator.serves(of)
            for key, standing in standings(operator, state).items()
            if standing.since is not None and (of is None or key[0] in of)
        ]
        return sorted(found, key=lambda h: (h.subscription, h.scope or ""))

    def unknown(self) -> list[tuple[str, str | None]]:
        """Return the unknown scopes, each as the names of condition and scope."""
        rows = [row for operator, state in self._running.operators for row in operator.unknown(state)]
        return sorted(((name, scope) for name, scope, _ in rows), key=lambda row: (row[0], row[1] or ""))

    # --- snapshots ---

    def snapshot(self) -> bytes:
        """Return the state of the engine as bytes. Subscribers are not part of it."""
        running = self._running
        whole = Snapshot(
            [operator.record for operator, _ in running.operators],
            [operator.machine.dump(state) for operator, state in running.operators],
            running.watermarks.topics,
            self._sequence,
            dict(self._late_counts),
            list(self._late),
            running.latest,
            self._startup_notifications,
            running.always_remembers,
            paused=sorted(running.watermarks.paused),
        )
        raw = msgspec.msgpack.encode(whole)
        return seal(raw) + raw

    @classmethod
    def restore(
        cls,
        app: App | str,
        snapshot: bytes,
        *,
        base: Folder | None = None,
        lets: Mapping[str, float | int | str | bool] | None = None,
        tables: Mapping[str, Any] | None = None,
    ) -> Engine:
        """Restore an engine from a snapshot. No notification is repeated or lost.

        Conditions that the snapshot does not have start; those that the app no longer has are dropped. A
        condition with the same name but another meaning is refused. A new count starts from the current state
        of its condition; if it is active at once, the next push returns that. An engine that stored the
        latest readings continues to do so.
        """
        engine = cls(base=base)
        engine._app, engine._lets, engine._tables = _as_app(app), lets, dict(tables or {})
        engine._current = checked = engine._check(engine._app)
        whole = unseal(snapshot)
        running = engine._running
        running.latest, engine._sequence = whole.latest, whole.sequence
        running.always_remembers = whole.remembers
        running.watermarks = Watermarks(whole.watermarks, paused=frozenset(whole.paused))
        engine._late_counts.update(whole.late_counts)
        engine._late.extend(whole.late)

        def state_of(resumed: Resumed) -> Any:
            if resumed.before is None:
                return None
            return resumed.operator.machine.load(whole.states[resumed.before], resumed.was)

        emitted = running.start(checked, whole.kept, state_of)
        engine._startup_notifications = [*whole.startup_notifications, *emitted]
        engine._listen()
        return engine


_EARLY = YEAR_2000 // 1_000 * 4
"""Later times are no milliseconds of recent years."""


def _require_callback(callback: Any) -> None:
    """Refuse a callback that cannot be called with one argument, a notification."""
    if callback is None:
        return
    if not callable(callback):
        raise UsageError(f"a callback is a function of one notification, not {callback!r:.60}")
    with suppress(ValueError):  # functions in C may have no signature
        try:
            inspect.signature(callback).bind(None)
        except TypeError as error:
            raise UsageError(f"a callback is called with one notification: {error}") from None


def _as_app(app: App | str | None) -> App:
    """Return a definition without its test cases, which an engine does not run.

    ``None`` is an empty definition.
    """
    known = App() if app is None else as_app(app)
    if not any(isinstance(s, Case) for s in known.statements):
        return known
    return App([s for s in known.statements if not isinstance(s, Case)], text=known.text, file=known.file)
