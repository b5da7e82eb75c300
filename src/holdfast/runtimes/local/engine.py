"""Conditions over events that come one by one or in batches, in this process.

The engine is the definition of live behaviour: other runtimes are faster or farther away.
It is not safe to push from two threads at once.
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

from ...compilers.edit import standings
from ...compilers.families import builds_on, meanings
from ...compilers.resume import Resumed
from ...errors import UsageError, did_you_mean
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked
from ...lang.ops import Case, DeclareTable, Defined, Subscribe
from ...lang.parse import as_app
from ...model.batch import conform, plain, reached, to_events
from ...model.event import Event, Notification
from ...model.folder import Folder
from ...model.instant import (
    YEAR_2000,
    Instant,
    counted_in,
    show_instant,
)
from ...model.topic import Topic
from .admission import INSTANT, numbered
from .revision import History, Known, revise
from .running import Heard, finished, passed_on
from .snapshot import Snapshot, opened, seal
from .works import Works

Callback = Callable[[Notification], Any]

LATE_KEPT = 10_000
"""How many late events stay readable; all of them are counted."""


class Holding(NamedTuple):
    """A condition that holds now."""

    subscription: str
    scope: str | None
    since: Instant
    known: bool = True
    """Whether that is known now, or was so when a reading came last."""
    level: str | None = None
    """The level, of levels."""


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

    def __init__(
        self,
        app: App | str | None = None,
        *,
        base: Folder | None = None,
        lets: Mapping[str, float | int | str | bool] | None = None,
        tables: Mapping[str, Any] | None = None,
        remember: bool = False,
    ) -> None:
        """``tables`` are in the place of files; ``remember`` keeps the latest reading of every source, by
        which ``revise`` can decide."""
        self._app = _as_app(app)
        self._base, self._lets, self._tables = base, lets, dict(tables or {})
        self._works = Works(remember=remember)
        self._listeners: dict[str, list[Subscription]] = {}
        self._begun: list[Notification] = []
        """What counts have said that the snapshot did not know, and nobody could hear yet."""
        self._sequence = 0
        self._late: deque[Notification] = deque(maxlen=LATE_KEPT)
        self._late_counts: Counter[str] = Counter()
        self._has_warned = False
        self._current = self._checked(self._app)
        self._works.run(self._current)
        self._listen()

    def _checked(self, app: App) -> Checked:
        return check(app, self._base, self._lets, self._tables)

    def _listen(self) -> None:
        """Have listeners of what runs now, and of nothing else."""
        self._listeners = {name: self._listeners.get(name, []) for name in self._works.names}

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

        A new condition starts with the next event; one that hears others knows who holds already, and if
        these are enough, tells at once that it holds. If an equal filter runs and nothing holds there, the
        two share its state; the answers are the same as if they did not. Where conditions build on one
        another, one that runs tells its last event at once; a new one knows the latest events, and one with
        the name of another takes its place.
        """
        if not isinstance(what, str):
            raise UsageError(f"subscribe to a condition by its name or its definition, not to {what!r:.60}")
        _require_callback(callback)
        name, begun = what.strip(), list[Notification]()
        if name not in self._listeners:
            if name.isidentifier():
                hint = did_you_mean(name, self._listeners) or "Give its definition to start it."
                raise UsageError(f"no condition named '{name}' runs. {hint}")
            name, begun = self._define(what)
        subscription = Subscription(self, name, callback)
        self._listeners[name].append(subscription)
        self._hand_out(begun)
        for notification in [n for running in self._works.running for n in running.last(name)]:
            subscription._callback(notification)
        return subscription

    def _define(self, text: str) -> tuple[str, list[Notification]]:
        added = _as_app(text)
        if text.lstrip().startswith(("[", "{")):  # nameless, as in the papers: any free name will do
            free = next(name for i in count(1) if (name := f"state_{i}") not in self._listeners)
            added = App([replace(s, name=free) if isinstance(s, Subscribe) else s for s in added.statements])
        operators = [one.operator for one in self._works.running]
        joined = {name for one in operators if one.joins for name in one.subscriptions}
        replaced = {s.name for s in added.statements if isinstance(s, Defined)} & joined
        staying = [s for s in self._app.statements if not (isinstance(s, Defined) and s.name in replaced)]
        whole = App((*staying, *added.statements), file=self._app.file)
        checked = self._checked(whole)
        meant = meanings(checked)
        fresh = [name for name in meant if name not in self._listeners or name in replaced]
        if len(fresh) != 1:
            raise UsageError("give one new subscription at a time, under a name that is not yet used")
        with self._works.whole_or_not_at_all():
            self._works.share(fresh[0], meant[fresh[0]])
            begun = self._works.go_on(checked, replaced)
        self._app, self._current = whole, checked
        self._listen()
        return fresh[0], begun

    def revise(
        self,
        app: App | str,
        history: History | None = None,
        *,
        whole: bool = True,
        base: Folder | None = None,
    ) -> list[Notification]:
        """Run another definition: what means the same goes on, what is new begins, and a state that means
        something else keeps what is known of its scopes.

        Of each scope that changes by it one notification tells: ``revised``, with ``since`` if it holds now;
        or ``unknown``, where the next reading that decides must be waited for.

        A ``history`` settles that: the events that the engine has had, as they came, one by one or as
        batches with the names of their topics (``replay(…).readings()`` gives those of files), and the
        instants to which it was told to advance.  Then whatever is new or changed is as if it had run from
        the beginning.  If the history is only the latest part and not ``whole``, it settles a scope where
        what was before cannot matter.  ``base`` is where the files are now that it names.
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
        with self._works.whole_or_not_at_all():
            told = revise(self._works, self._current, after, Known(history, whole, self._alike))
        self._app, self._tables, self._current, self._base = new, tables, after, base or self._base
        self._listen()
        return self._deliver(told)

    def _alike(self, checked: Checked) -> Engine:
        """An engine that has heard nothing yet."""
        fresh = Engine(base=self._base)
        fresh._has_warned = True  # of times that are heard again
        fresh._works.run(checked)
        return fresh

    def unsubscribe(self, name: str) -> None:
        """End a condition and everybody's interest in it."""
        if name not in self._listeners:
            raise UsageError(f"no condition named '{name}' runs. {did_you_mean(name, self._listeners) or ''}")
        if above := builds_on(self._checked(self._app), name):
            raise UsageError(f"'{above[0]}' builds on '{name}'; end it first")
        kept = [s for s in self._app.statements if not (isinstance(s, Defined) and s.name == name)]
        left = App(kept, file=self._app.file)
        checked = self._checked(left)
        with self._works.whole_or_not_at_all():
            self._works.go_on(checked)
        self._app, self._current = left, checked
        self._listen()

    def take_table(
        self, name: str, data: Any = None, history: History | None = None, *, whole: bool = True
    ) -> list[Notification]:
        """Go on with a changed table: an Arrow table or data frame, or its file as it is now.

        Who has the same row goes on as it was.  Of others the same is said as by ``revise``, which settles
        them by what held before, the last reading and a history.
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
        """Take one event; what it starts or ends is delivered and returned."""
        if not isinstance(event, Event):
            raise UsageError(f"push takes a holdfast.Event, not {event!r:.60}")
        topic = self._topic(event.topic)
        event = numbered(topic, event, self._sequence)
        if event.time < _EARLY:
            self._suspect(event.time)
        self._sequence = max(self._sequence, event.sequence + 1)
        works = self._works
        works.reach(topic.name, event.time)
        if works.remembers:
            works.remember(topic.name, [event])
        out: list[Notification] = []
        heard: Heard = {}
        for running in works.listening[topic.name]:
            if said := running.take(event, works.passed):
                out += works.addressed(running, said, heard)
        return self._deliver(out + works.passed_on(heard))

    def push_batch(self, topic: str, batch: pa.RecordBatch) -> list[Notification]:
        """Take a batch in the order of its rows; for each condition in turn, what it starts or ends."""
        known = self._topic(topic)
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            raise UsageError(f"a batch is a pyarrow RecordBatch or Table, not {type(batch).__name__}")
        return self.push_conformed(known, conform(known, batch))

    def push_conformed(self, known: Topic, batch: pa.RecordBatch) -> list[Notification]:
        """``push_batch`` of a batch that ``conform`` has returned for the topic."""
        topic, batch, works = known.name, self._numbered(batch), self._works
        latest = reached(batch)
        if latest is not None and latest < _EARLY:
            self._suspect(latest)
        if latest is not None:
            works.reach(topic, latest)
            if works.remembers:
                works.remember(topic, to_events(known, batch.take(pa.array(_last_rows(batch)))))
        listening = [one for one in works.running if topic in one.operator.topics or one.operator.heard]
        return self._deliver(list(passed_on(listening, {topic: batch}, works.passed)))

    def run(self, events: Iterable[Event]) -> Iterator[Notification]:
        """Push every event, let time run out, and yield the notifications as they come."""
        for event in events:
            yield from self.push(event)
        yield from self.finish()

    def advance(self, until: Instant) -> list[Notification]:
        """Tell the engine that event time has come this far, though no event says so."""
        if type(until) is not int:
            raise UsageError(f"time comes to an instant, {INSTANT}, not to {until!r:.60}")
        if until < _EARLY:
            self._suspect(until)
        return self.reach(dict.fromkeys(self._works.topics, until))

    def pause(self, topics: Iterable[str], until: Mapping[str, Instant] = MappingProxyType({})) -> None:
        """Let the timers of states over these topics wait, as some of their readings may wait somewhere, and
        those of others go on: of each scope from its last reading.  ``until`` is how far the event time of
        topics has come meanwhile.  ``ordered`` states need no such care."""
        self._works.pause(topics, until)

    def reach(self, until: Mapping[str, Instant]) -> list[Notification]:
        """Advance the watermark of each topic without an event; return what that emits."""
        works = self._works
        for name in works.topics.keys() & until.keys():
            works.reach(name, until[name])
        out: list[Notification] = []
        heard: Heard = {}
        for one in works.running:
            if one.operator.machine.is_timed and not one.operator.heard:
                out += works.addressed(one, one.advance(works.passed(one)), heard)
        return self._deliver(out + works.passed_on(heard))

    def finish(self) -> list[Notification]:
        """Nothing more will come: process what is still held back, and let time come as far as the last
        event."""
        return self._deliver(list(finished(self._works.running, self._works.reached)))

    @property
    def paused(self) -> frozenset[str]:
        """The topics over which timers wait."""
        return self._works.paused

    @property
    def reached(self) -> Mapping[str, Instant]:
        """How far the event time of each topic has come."""
        return self._works.reached

    @property
    def due(self) -> Instant | None:
        """The instant beyond which time must come before the engine says something by itself: whoever has
        a clock calls ``advance`` then.  ``None`` if only events can make it speak."""
        works = self._works
        wanted = (one.operator.due(one.state) for one in works.running if not works.is_paused(one))
        return min((at for at in wanted if at is not None), default=None)

    def _suspect(self, at: Instant) -> None:
        """Warn once of a time that counts seconds or milliseconds, where microseconds are meant.

        Only where nothing has come before, or what came before is of our days: a clock that starts from
        zero comes through the same numbers.
        """
        reached = self._works.reached
        ours = not reached or max(reached.values()) >= YEAR_2000
        if not self._has_warned and ours and (unit := counted_in(at)) is not None:
            self._has_warned = True
            warnings.warn(
                f"{at} is {show_instant(at)} in microseconds, and {show_instant(at * unit.factor)} in "
                f"{unit.name}: an engine counts microseconds; multiply by {unit.factor:_}, or use "
                "holdfast.instant",
                stacklevel=3,
            )

    def _topic(self, name: str) -> Topic:
        topics = self._works.topics
        topic = topics.get(name) if isinstance(name, str) else None
        if topic is None:
            hint = did_you_mean(name, topics) or f"There is {', '.join(topics) or 'none'}."
            raise UsageError(f"no topic named '{name}'. {hint}")
        return topic

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
        if self._begun:
            notifications, self._begun = [*self._begun, *notifications], []
        return self._hand_out(notifications)

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

    def holding(self, of: Collection[str] | None = None) -> list[Holding]:
        """The conditions that hold now, by subscription and scope; some of them alone, if they are named."""
        running = [one for one in self._works.running if of is None or one.operator.serves(of)]
        found = [
            Holding(*key, one.since, one.known, one.level)
            for each in running
            for key, one in standings(each.operator, each.state).items()
            if one.since is not None and (of is None or key[0] in of)
        ]
        return sorted(found, key=lambda h: (h.subscription, h.scope or ""))

    def unknown(self) -> list[tuple[str, str | None]]:
        """Where nobody knows now whether a condition holds: (subscription, scope)."""
        rows = [row for one in self._works.running for row in one.operator.unknown(one.state)]
        return sorted(((name, scope) for name, scope, _ in rows), key=lambda row: (row[0], row[1] or ""))

    # --- keeping ---

    def snapshot(self) -> bytes:
        """Everything the engine remembers, as bytes.  Subscribers are not part of it."""
        works = self._works
        whole = Snapshot(
            [one.operator.kept for one in works.running],
            [one.operator.machine.to_bytes(one.state) for one in works.running],
            works.reached,
            self._sequence,
            dict(self._late_counts),
            list(self._late),
            works.latest,
            self._begun,
            works.always_remembers,
            quotes=True,
            paused=sorted(works.paused),
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
        """An engine that goes on where the snapshot was taken: nothing is said again, nothing lost.  One that
        remembered the latest readings goes on to.

        Subscriptions that the snapshot does not know start afresh; those that the app no longer has
        are forgotten.  One that has the same name but another meaning is refused, and so are old snapshots
        of what hears of scopes by names that two may have had.  A new count knows who
        holds already; if these are enough, that is told with what is pushed next.
        """
        engine = cls(base=base)
        engine._app, engine._lets, engine._tables = _as_app(app), lets, dict(tables or {})
        engine._current = checked = engine._checked(engine._app)
        whole = opened(snapshot)
        works = engine._works
        works.reached, works.latest, engine._sequence = whole.reached, whole.latest, whole.sequence
        works.always_remembers = whole.remembers
        works.paused = frozenset(whole.paused)
        engine._late_counts.update(whole.late_counts)
        engine._late.extend(whole.late)

        def state_of(one: Resumed) -> Any:
            if one.before is None:
                return None
            return one.operator.machine.from_bytes(whole.states[one.before], one.was)

        engine._begun = [*whole.begun, *works.run(checked, whole.kept, state_of)]
        if not whole.quotes and (found := works.misnamed()) is not None:
            raise UsageError(
                f"this snapshot was taken by an earlier version of Holdfast, and '{found[0]}' knows in it a "
                f"scope as {found[1]}, by which two may be meant: restore it with that version, or start "
                "without it and push the history again"
            )
        engine._listen()
        return engine


_EARLY = YEAR_2000 // 1_000 * 4
"""Milliseconds of our days are fewer: what is later need not be looked at."""


def _require_callback(callback: Any) -> None:
    """Refuse what cannot be called with one notification."""
    if callback is None:
        return
    if not callable(callback):
        raise UsageError(f"a callback is a function of one notification, not {callback!r:.60}")
    with suppress(ValueError):  # not every function of C says what it takes
        try:
            inspect.signature(callback).bind(None)
        except TypeError as error:
            raise UsageError(f"a callback is called with one notification: {error}") from None


def _last_rows(batch: pa.RecordBatch) -> list[int]:
    """The last row of each source."""
    codes = plain(batch.column("source")).dictionary_encode().indices
    last = np.full(len(batch), -1)
    last[np.asarray(codes)] = np.arange(len(batch))
    return [int(row) for row in last if row >= 0]


def _as_app(app: App | str | None) -> App:
    """The app without its test cases, which an engine does not run."""
    known = App() if app is None else as_app(app)
    if not any(isinstance(s, Case) for s in known.statements):
        return known
    return App([s for s in known.statements if not isinstance(s, Case)], text=known.text, file=known.file)
