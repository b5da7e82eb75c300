"""The engine as a function of the log: entries in, notifications out.

What is said of an entry depends on the entries before it and on nothing else: no clock is read here
but to note when something was said.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from ..compilers.edit import anew, changed, upward
from ..compilers.families import conditions, hindrance, operators
from ..errors import UsageError
from ..lang.app import App
from ..lang.check import check, correcting
from ..lang.condition import Checked
from ..lang.ops import Defined, Mute, Statement
from ..lang.parse import parse
from ..model.batch import conform
from ..model.event import TAKES_BACK, Notification, notification_id
from ..model.instant import Instant, show_instant
from ..model.topic import Topic
from ..runtimes.local.engine import Engine, Holding
from .log.frame import Advance, Definition, Entry, Pause, Readings, Unreadable
from .log.log import Appended
from .log.past import before, is_whole
from .named import FOLDER, Copies
from .sources import Sources
from .store import Snapshot, Told, told

log = logging.getLogger("holdfast.service")

Heard = Iterator[tuple[str, pa.RecordBatch] | Mapping[str, Instant]]
"""What another definition would have heard: readings of topics, and how far time has come."""

WITHDRAWN = "withdrawn"
"""The status of a condition that held when its definition was taken away or began afresh."""


class Change(NamedTuple):
    """What a changed definition does to what runs."""

    added: list[str]
    removed: list[str]
    changed: list[str]
    """Those that mean something else than before."""
    afresh: list[str]
    """Of these, those that cannot keep what is known of their scopes."""
    holding: list[Holding]
    """What holds now and would be withdrawn."""


class Core:
    """Runs a definition over the entries of a log."""

    def __init__(
        self,
        base: Path,
        clock: Callable[[], Instant],
        log: Path | None = None,
        still: Callable[[], object] = lambda: None,
    ) -> None:
        """``log`` is the folder of the log: what it still has settles what an edit leaves open; ``still``
        comes back when nobody seals or removes files there."""
        self._base, self._clock, self._log, self._still = base, clock, log, still
        self._kept = (log or base) / FOLDER
        self.definition = ""
        self.files: Mapping[str, str] = {}
        """The files that the definition names, as they are kept."""
        self.position = 0
        self._begin(Engine(base=base))
        self.sources = Sources()
        self.readings: Counter[str] = Counter()
        self.refused: Exception | None = None
        """Why the latest definition in the log could not be taken."""
        self.without_key: Counter[str] = Counter()
        """Readings that lack what a condition is kept apart by, and so mean nothing to it, by condition."""
        self.unread: Counter[str] = Counter()
        """Readings of topics that were not declared when their turn came."""

    def _begin(self, engine: Engine) -> None:
        self.engine = engine
        self.checked: Checked = check(engine.app, self._folder(self.files))
        self.topics: dict[str, Topic] = {topic.name: topic for topic in self.checked.topics}
        self.leveled = frozenset(one.name for one in self.checked.leveled)
        self.corrected = frozenset(one.name for one in correcting(engine.app))
        self.names = list(conditions(self.checked))
        """The conditions."""
        self._per = _keys_of(self.checked)
        self.together = _together(self.checked)
        """The topics that are evaluated together."""
        self.spread = max((one.behind for one in operators(self.checked)), default=0)
        """How much disorder is waited for."""

    def _folder(self, files: Mapping[str, str]) -> Copies:
        return Copies(self._kept, self._base, files)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on where a snapshot was taken."""
        self.definition, self.position, self.files = snapshot.definition, snapshot.position, snapshot.files
        folder = self._folder(self.files)
        self._begin(Engine.restore(parse(snapshot.definition), snapshot.engine, base=folder))

    def snapshot(self, origins: bytes = b"") -> Snapshot:
        return Snapshot(self.position, self.definition, self.engine.snapshot(), origins, self.files)

    def copy(self, snapshot: Snapshot | None) -> Core:
        """Another that goes on where this one has taken a snapshot, and may do so in another thread; without
        one it begins."""
        other = Core(self._base, self._clock, self._log, self._still)
        if snapshot is not None:
            other.restore(snapshot)
        return other

    def rewind(self, other: Core) -> None:
        """Have the state of another; what was counted stays."""
        self.definition, self.position, self.files = other.definition, other.position, other.files
        self._begin(other.engine)

    def take(self, appended: Appended) -> list[Told]:
        """Process an entry; what it starts or ends, by time.  Where that raises, the state is that of neither
        before nor after: ``restore`` or ``rewind`` it."""
        if appended.position < self.position:
            return []
        assert appended.position == self.position, "the log has a gap"
        self.position = appended.after
        match appended.entry:
            case Readings(topic, batch):
                return self._read(topic, batch, appended.position)
            case Advance(until):
                return self._told(self.engine.reach(until), appended.position)
            case Pause(topics, until):
                self.engine.pause(topics, until)
                return []
            case Definition() as definition:
                return self._taken(definition, appended.position)
            case Unreadable():
                return []

    def _read(self, topic: str, batch: pa.RecordBatch, position: int) -> list[Told]:
        try:
            known = self.topics[topic]
            fitting = conform(known, batch)
        except (KeyError, UsageError):  # the topic has gone, or has other attributes now
            self.unread[topic] += len(batch)
            return []
        found = self._told(self.engine.push_conformed(known, fitting), position)
        self.readings[topic] += len(batch)
        self.sources.hear(topic, fitting)
        for column, names in self._per.get(topic, {}).items():
            if missing := _missing(fitting, column):
                self.without_key.update({f"{name}: no {column}": missing for name in names})
        return found

    def _told(self, notifications: Sequence[Notification], position: int) -> list[Told]:
        """What is taken back comes first, the latest of it first of all; the rest by time."""
        now, by_time = self._clock(), sorted(notifications, key=lambda n: n.order)
        some = [n for n in reversed(by_time) if n.status in TAKES_BACK.values()]
        some += (n for n in by_time if n.status not in TAKES_BACK.values())
        some += self._last_words(some)
        return [told(n, now, self._id(n, position), has_level=n.subscription in self.leveled) for n in some]

    def _last_words(self, some: Iterable[Notification]) -> list[Notification]:
        """What is so now, of scopes of which the last word says something else: it is of an earlier time."""
        last = {(n.subscription, n.scope): n for n in some if n.subscription in self.corrected}
        names = {name for name, _ in last}
        held = {one[:2]: one.since for one in self.engine.holding(names)} if last else {}
        return [
            n._replace(status="known", since=held.get(place))
            for place, n in last.items()
            if held.get(place) != _held_since(n)
        ]

    def _id(self, n: Notification, position: int) -> str | None:
        """What is corrected may be told again: its id says where in the log that was."""
        if n.subscription not in self.corrected:
            return None
        source = f"{n.event.source} {n.event.sequence}"
        return notification_id(n.subscription, n.scope, n.status, n.event.time, source, position)

    def _taken(self, definition: Definition, position: int) -> list[Told]:
        """Run another definition.  It is in the log for ever: one that cannot be taken leaves all as it was,
        now and whenever the log is heard again."""
        self.refused = None
        try:
            return self._define(definition, position)
        except Exception as error:
            log.exception("a definition in the log cannot be taken: the one before it goes on")
            self.refused = error
            return []

    def _define(self, definition: Definition, position: int) -> list[Told]:
        held = {one[:2]: one for one in self.engine.holding()}
        self._still()
        change = self.change(definition)
        afresh = upward(self._checked(definition), {*definition.restart, *change.afresh})
        definition = replace(definition, restart=tuple(sorted(afresh)))
        gone = {*change.removed, *afresh}
        engine, revised = self._redefined(definition)
        said = [
            *(_withdrawn(one, definition.at, position) for one in held.values() if one.subscription in gone),
            *(_revised(n, held.get((n.subscription, n.scope)), definition.at, position) for n in revised),
        ]
        self.definition, self.files = definition.text, definition.files
        self._begin(engine)
        return said

    def _redefined(self, definition: Definition, *, hears: bool = True) -> tuple[Engine, list[Notification]]:
        """An engine that runs another definition, and what is to be said of scopes that change by it, when
        it hears the log again."""
        app, folder = parse(definition.text), self._folder(definition.files)
        engine = Engine.restore(parse(self.definition), self.engine.snapshot(), base=self._folder(self.files))
        afresh = upward(check(app, folder), definition.restart)
        staying = [s for s in app.statements if _name(s) not in afresh]
        revised = App(staying, file=app.file)
        past, whole = self._past(check(revised, folder)) if hears else (None, False)
        said = engine.revise(revised, past, whole=whole, base=folder)
        if definition.restart:
            said += engine.revise(app)
        return engine, said

    def _past(self, checked: Checked) -> tuple[Heard | None, bool]:
        """What the log has of the time before now, as another definition would have heard it, and whether
        that is all."""
        if self._log is None or not self.position:
            return None, False
        entries = before(self._log, self.position, _together(checked))
        return _fitting(entries, checked.topics), self._is_whole

    def forecast(self, definition: Definition) -> dict[str, dict[str, int]]:
        """How many scopes of each subscription would start, end or become unknown by another definition."""
        self._still()
        counts: dict[str, Counter[str]] = {}
        for one in self._redefined(definition)[1]:
            word = one.status if one.status != "revised" else "ends" if one.since is None else "starts"
            counts.setdefault(one.subscription, Counter())[word] += 1
        return {name: dict(mine) for name, mine in counts.items()}

    def change(self, definition: Definition) -> Change:
        """What another definition would do."""
        other = self._checked(definition)
        was, will_be = conditions(self.checked), conditions(other)
        removed = [name for name in was if name not in will_be]
        changes = changed(self.checked, other)
        afresh = self._hindered(changes, other)
        if afresh and self._is_whole:
            afresh = [name for name in afresh if name not in anew(self.checked, other)]
        lost = {*removed, *upward(other, {*definition.restart, *afresh})}
        return Change(
            [name for name in will_be if name not in was],
            removed,
            changes,
            afresh,
            [one for one in self.engine.holding() if one.subscription in lost],
        )

    def _checked(self, definition: Definition) -> Checked:
        return check(parse(definition.text), self._folder(definition.files))

    def _hindered(self, names: Iterable[str], other: Checked) -> list[str]:
        """Those that cannot keep what is known of their scopes, unless they hear the whole log again."""
        return [name for name in names if hindrance(name, self.checked, other) is not None]

    @property
    def _is_whole(self) -> bool:
        """Whether the log has all that was heard."""
        return self._log is not None and self.position > 0 and is_whole(self._log)

    def require_change(self, definition: Definition) -> Change:
        """Refuse a definition that cannot take the place of the one that runs, before it is in the log."""
        change = self.change(definition)
        if stuck := [name for name in change.afresh if name not in definition.restart]:
            names = " and ".join(f"'{name}'" for name in stuck)
            raise UsageError(
                f"{names} would mean something else than now and cannot keep what is known of it: give it "
                "another name, or let it begin afresh (restart); what holds of it is then withdrawn"
            )
        heard = self._hindered(change.changed, self._checked(definition))  # the log says how they go on
        self._redefined(replace(definition, restart=(*definition.restart, *heard)), hears=False)
        return change


def _keys_of(checked: Checked) -> dict[str, dict[str, list[str]]]:
    """By topic and column the conditions that readings without a value there mean nothing to."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, one in conditions(checked).items():
        topic = getattr(one, "topic", None)
        for column in {column for level in getattr(one, "keys", ()) for column in level} - {"source"}:
            if isinstance(topic, Topic):
                found.setdefault(topic.name, {}).setdefault(column, []).append(name)
    return found


def _missing(batch: pa.RecordBatch, column: str) -> int:
    """How many readings have no value in a column."""
    if column not in batch.schema.names:
        return len(batch)
    missing: int = batch.column(column).null_count
    return missing


def _name(statement: Statement) -> str | None:
    """The condition that a statement defines, if it does."""
    if isinstance(statement, Mute):
        return f"mute {statement.target}"
    return statement.name if isinstance(statement, Defined) else None


def _held_since(n: Notification) -> Instant | None:
    """Since when a condition holds by what is told of it, if it does."""
    match n.status:
        case "ingress":
            return n.event.time
        case "reopened":
            return n.since
    return None


def _together(checked: Checked) -> list[set[str]]:
    """The topics that one operator hears, itself or through others: what came of them first matters."""
    found: list[set[str]] = []
    for one in operators(checked):
        mine = {*one.topics, *(topic.name for topic in one.followed.values())}
        joined = [some for some in found if some & mine]
        found = [some for some in found if not some & mine] + [mine.union(*joined)]
    return found


def _fitting(entries: Iterable[Entry], topics: Iterable[Topic]) -> Heard:
    """Entries as a history; what a definition cannot read it would not have heard."""
    known = {topic.name: topic for topic in topics}
    for entry in entries:
        match entry:
            case Advance(until):
                yield until
            case Readings(topic, batch) if topic in known:
                with suppress(UsageError):  # it has other attributes now
                    yield topic, conform(known[topic], batch)


def _revised(n: Notification, before: Holding | None, at: Instant, position: int) -> Told:
    """What an edit makes of a scope.  It has an id by its place in the log: the reading may be an old one,
    of which the same was said before."""
    id = notification_id(n.subscription, n.scope, n.status, at, n.event.source, position)
    one = told(n, at, id)
    return one if n.since is not None or before is None else one._replace(since=before.since)


def _withdrawn(holding: Holding, at: Instant, position: int) -> Told:
    name, scope, since, *_ = holding
    id = notification_id(name, scope, WITHDRAWN, at, "", position)
    line: dict[str, Any] = {
        "id": id, "subscription": name, "scope": scope, "status": WITHDRAWN, "time": show_instant(at),
        "since": show_instant(since), "topic": None, "source": None, "location": None, "attributes": {},
    }  # fmt: skip
    return Told(0, id, name, scope, WITHDRAWN, at, since, at, json.dumps(line, ensure_ascii=False))


def statements(text: str) -> Iterator[tuple[str, int, int]]:
    """The subscriptions of a definition with the lines on which they stand: name, first, one after last."""
    app = parse(text)
    begun = sorted((s.at.line, getattr(s, "name", "")) for s in app.statements if s.at is not None)
    named = {s.name for s in app.statements if isinstance(s, Defined)}
    lines = text.splitlines()
    for i, (line, name) in enumerate(begun):
        end = begun[i + 1][0] if i + 1 < len(begun) else len(lines) + 1
        while end > line + 1 and _is_between(lines[end - 2]):
            end -= 1
        if name in named:
            yield name, line - 1, end - 1


def _is_between(line: str) -> bool:
    """Whether a line before a statement belongs to none before it: blank, or a comment."""
    return not line.strip() or line.lstrip().startswith("#")
