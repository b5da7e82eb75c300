"""The engine as a pure function of the log: entries in, notifications out.

The output of an entry depends only on that entry and the entries before it. The clock is read only to record
when a notification was created.
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

from ..definition.app import App
from ..definition.check import check, correcting
from ..definition.parse import parse
from ..errors import UsageError
from ..lang.condition import Checked
from ..lang.ops import ConditionStatement
from ..model.batch import conform
from ..model.event import TAKES_BACK, Notification, notification_id
from ..model.instant import Instant, show_instant
from ..model.topic import Topic
from ..plan.compile import conditions, operators, with_downstream
from ..plan.revise import find_changed_conditions, refusal, to_rebuild
from ..runtimes.local.engine import Engine, Holding
from .log.frame import Advance, DefinitionEntry, Entry, Pause, Readings, Unreadable
from .log.log import Appended
from .log.past import entries_before, is_whole
from .named import FOLDER, Copies
from .sources import SourceActivity
from .store import NotificationRow, ServiceSnapshot, to_row

log = logging.getLogger("holdfast.service")

History = Iterator[tuple[str, pa.RecordBatch] | Mapping[str, Instant]]
"""History for a revision: batches by topic, and watermarks."""

WITHDRAWN = "withdrawn"
"""The status of a condition that was active when its definition was removed or restarted."""


class DefinitionChange(NamedTuple):
    """The effects of a changed definition on the running conditions."""

    added: list[str]
    removed: list[str]
    changed: list[str]
    """Conditions whose meaning differs from before."""
    incompatible: list[str]
    """Changed conditions that cannot carry over their state."""
    holding: list[Holding]
    """Active scopes that would be withdrawn."""


class Core:
    """Runs a definition over the entries of a log.

    Call ``restore`` first if there is a snapshot; else the first definition in the log starts the engine.
    Then call ``take`` with every entry, in the order of the log, from one thread.
    """

    def __init__(
        self,
        base: Path,
        clock: Callable[[], Instant],
        log: Path | None = None,
        wait_for_log: Callable[[], object] = lambda: None,
    ) -> None:
        """Create a core that has no definition yet.

        `log` is the folder of the log; revisions rebuild conditions from its entries. `wait_for_log` blocks
        until no segment of the log is being sealed or removed.
        """
        self._base, self._clock, self._log, self._wait_for_log = base, clock, log, wait_for_log
        self._copies = (log or base) / FOLDER
        self.definition = ""
        self.files: Mapping[str, str] = {}
        """The digests of the files that the definition names, by name."""
        self.position = 0
        self._begin(Engine(base=base))
        self.sources = SourceActivity()
        self.readings: Counter[str] = Counter()
        self.definition_error: Exception | None = None
        """Why the latest definition in the log could not be run."""
        self.without_key: Counter[str] = Counter()
        """Readings without a value of a condition's key, which the condition ignores, by condition."""
        self.unread: Counter[str] = Counter()
        """Readings whose topic was not declared when they were evaluated, by topic."""

    def _begin(self, engine: Engine) -> None:
        self.engine = engine
        self.checked: Checked = check(engine.app, self._folder(self.files))
        self.topics: dict[str, Topic] = {topic.name: topic for topic in self.checked.topics}
        self.with_levels = frozenset(one.name for one in self.checked.conditions if one.has_levels)
        self.corrected = frozenset(one.name for one in correcting(engine.app))
        self.names = list(conditions(self.checked))
        """The names of the conditions."""
        self._conditions_by_key = _keys_of(self.checked)
        self.together = _topic_groups(self.checked)
        """Groups of topics with a common watermark, because one operator consumes all of them."""
        self.spread = max((one.delay for one in operators(self.checked)), default=0)
        """The largest ``wait`` of an ordered condition."""

    def _folder(self, files: Mapping[str, str]) -> Copies:
        return Copies(self._copies, self._base, files)

    def restore(self, snapshot: ServiceSnapshot) -> None:
        """Continue from a snapshot: replace the definition, the engine and the position."""
        self.definition, self.position, self.files = snapshot.definition, snapshot.position, snapshot.files
        folder = self._folder(self.files)
        self._begin(Engine.restore(parse(snapshot.definition), snapshot.engine, base=folder))

    def snapshot(self, origins: bytes = b"") -> ServiceSnapshot:
        return ServiceSnapshot(self.position, self.definition, self.engine.snapshot(), origins, self.files)

    def copy(self, snapshot: ServiceSnapshot | None) -> Core:
        """Return a core that continues from a snapshot of this one, for use in another thread.

        Without a snapshot the new core is empty.
        """
        other = Core(self._base, self._clock, self._log, self._wait_for_log)
        if snapshot is not None:
            other.restore(snapshot)
        return other

    def rewind(self, other: Core) -> None:
        """Replace the state of this core by that of another one. Counters keep their values."""
        self.definition, self.position, self.files = other.definition, other.position, other.files
        self._begin(other.engine)

    def take(self, appended: Appended) -> list[NotificationRow]:
        """Evaluate an entry and return the notifications, ordered by time.

        If it raises, the state is undefined: call ``restore`` or ``rewind`` before the next entry.
        """
        if appended.position < self.position:
            return []
        assert appended.position == self.position, "the log has a gap"
        self.position = appended.after
        match appended.entry:
            case Readings(topic, batch):
                return self._read(topic, batch, appended.position)
            case Advance(until):
                return self._to_rows(self.engine.advance_topics(until), appended.position)
            case Pause(topics, until):
                self.engine.pause(topics, until)
                return []
            case DefinitionEntry() as definition:
                return self._run_definition(definition, appended.position)
            case Unreadable():
                return []

    def _read(self, topic: str, batch: pa.RecordBatch, position: int) -> list[NotificationRow]:
        try:
            known = self.topics[topic]
            fitting = conform(known, batch)
        except (KeyError, UsageError):  # the topic was removed or changed
            self.unread[topic] += len(batch)
            return []
        groups = self._to_rows(self.engine.push_conformed(known, fitting), position)
        self.readings[topic] += len(batch)
        self.sources.add(topic, fitting)
        for column, names in self._conditions_by_key.get(topic, {}).items():
            if missing := _missing(fitting, column):
                self.without_key.update({f"{name}: no {column}": missing for name in names})
        return groups

    def _to_rows(self, notifications: Sequence[Notification], position: int) -> list[NotificationRow]:
        """Return notifications as rows with ids, in the order in which they are sent.

        Retractions come first, the latest of them first; the others are sorted by time.
        """
        now, by_time = self._clock(), sorted(notifications, key=lambda n: n.order)
        some = [n for n in reversed(by_time) if n.status in TAKES_BACK.values()]
        some += (n for n in by_time if n.status not in TAKES_BACK.values())
        some += self._add_corrections(some)
        return [
            to_row(n, now, self._id(n, position), has_level=n.subscription in self.with_levels) for n in some
        ]

    def _add_corrections(self, some: Iterable[Notification]) -> list[Notification]:
        """Return ``known`` notifications for scopes whose last notification contradicts the current state.

        A correction can emit a notification for an earlier time last. Subscribers would then believe that
        state.
        """
        last = {(n.subscription, n.scope): n for n in some if n.subscription in self.corrected}
        names = {name for name, _ in last}
        active = {one[:2]: one.since for one in self.engine.holding(names)} if last else {}
        return [
            n._replace(status="known", since=active.get(place))
            for place, n in last.items()
            if active.get(place) != _active_since(n)
        ]

    def _id(self, n: Notification, position: int) -> str | None:
        """Return the id of a notification of a corrected condition, or ``None`` for the usual id.

        A correction can emit the same transition again, so the id includes the log position.
        """
        if n.subscription not in self.corrected:
            return None
        source = f"{n.event.source} {n.event.sequence}"
        return notification_id(n.subscription, n.scope, n.status, n.event.time, source, position)

    def _run_definition(self, definition: DefinitionEntry, position: int) -> list[NotificationRow]:
        """Run a definition from the log and return the notifications.

        Entries stay in the log for ever. A definition that cannot be run therefore changes nothing, now and
        at every replay of the log.
        """
        self.definition_error = None
        try:
            return self._define(definition, position)
        except Exception as error:
            log.exception("a definition in the log cannot be taken: the one before it goes on")
            self.definition_error = error
            return []

    def _define(self, definition: DefinitionEntry, position: int) -> list[NotificationRow]:
        active = {one[:2]: one for one in self.engine.holding()}
        self._wait_for_log()
        change = self.change(definition)
        """The effects of another definition."""
        restarts = with_downstream(self._check(definition), {*definition.restart, *change.incompatible})
        definition = replace(definition, restart=tuple(sorted(restarts)))
        gone = {*change.removed, *restarts}
        engine, revised = self._revise(definition)
        rows = [
            *(
                _withdrawal_row(one, definition.at, position)
                for one in active.values()
                if one.subscription in gone
            ),
            *(
                _revision_row(n, active.get((n.subscription, n.scope)), definition.at, position)
                for n in revised
            ),
        ]
        self.definition, self.files = definition.text, definition.files
        self._begin(engine)
        return rows

    def _revise(
        self, definition: DefinitionEntry, *, with_history: bool = True
    ) -> tuple[Engine, list[Notification]]:
        """Return an engine that runs another definition, and the transitions of the scopes that change.

        Conditions are rebuilt from the log, unless `with_history` is false. This core does not change.
        """
        app, folder = parse(definition.text), self._folder(definition.files)
        engine = Engine.restore(parse(self.definition), self.engine.snapshot(), base=self._folder(self.files))
        restarts = with_downstream(check(app, folder), definition.restart)
        staying = [s for s in app.statements if s.subject not in restarts]
        revised = App(staying, file=app.file)
        past, whole = self._history(check(revised, folder)) if with_history else (None, False)
        rows = engine.revise(revised, past, whole=whole, base=folder)
        if definition.restart:
            rows += engine.revise(app)
        return engine, rows

    def _history(self, checked: Checked) -> tuple[History | None, bool]:
        """Return the history in the log for a definition, and whether the history is complete.

        The history is ``None`` if there is no log.
        """
        if self._log is None or not self.position:
            return None, False
        entries = entries_before(self._log, self.position, _topic_groups(checked))
        return _to_history(entries, checked.topics), self._is_whole

    def forecast(self, definition: DefinitionEntry) -> dict[str, dict[str, int]]:
        """Count the scopes that would start, end or become unknown under another definition, by
        subscription.
        """
        self._wait_for_log()
        counts: dict[str, Counter[str]] = {}
        for one in self._revise(definition)[1]:
            word = one.status if one.status != "revised" else "ends" if one.since is None else "starts"
            counts.setdefault(one.subscription, Counter())[word] += 1
        return {name: dict(statuses) for name, statuses in counts.items()}

    def change(self, definition: DefinitionEntry) -> DefinitionChange:
        """Return the effects that another definition would have, without running it."""
        other = self._check(definition)
        was, will_be = conditions(self.checked), conditions(other)
        removed = [name for name in was if name not in will_be]
        changes = find_changed_conditions(self.checked, other)
        incompatible = self._incompatible(changes, other)
        if incompatible and self._is_whole:
            incompatible = [name for name in incompatible if name not in to_rebuild(self.checked, other)]
        lost = {*removed, *with_downstream(other, {*definition.restart, *incompatible})}
        return DefinitionChange(
            [name for name in will_be if name not in was],
            removed,
            changes,
            incompatible,
            [one for one in self.engine.holding() if one.subscription in lost],
        )

    def _check(self, definition: DefinitionEntry) -> Checked:
        return check(parse(definition.text), self._folder(definition.files))

    def _incompatible(self, names: Iterable[str], other: Checked) -> list[str]:
        """Return the conditions whose state can be replaced only by a rebuild from the whole log."""
        return [name for name in names if refusal(name, self.checked, other) is not None]

    @property
    def _is_whole(self) -> bool:
        """Whether the log still has every reading that was ever evaluated."""
        return self._log is not None and self.position > 0 and is_whole(self._log)

    def require_change(self, definition: DefinitionEntry) -> DefinitionChange:
        """Return the effects of a definition. Refuse one that cannot replace the running definition.

        Call this before the definition enters the log.
        """
        change = self.change(definition)
        if stuck := [name for name in change.incompatible if name not in definition.restart]:
            names = " and ".join(f"'{name}'" for name in stuck)
            raise UsageError(
                f"{names} would mean something else than now and cannot keep what is known of it: give it "
                "another name, or let it begin afresh (restart); what holds of it is then withdrawn"
            )
        rebuilt = self._incompatible(
            change.changed, self._check(definition)
        )  # these are rebuilt from the log
        self._revise(replace(definition, restart=(*definition.restart, *rebuilt)), with_history=False)
        return change


def _keys_of(checked: Checked) -> dict[str, dict[str, list[str]]]:
    """Return the conditions by topic and key column, to count readings that have no value in a key column."""
    groups: dict[str, dict[str, list[str]]] = {}
    for name, one in conditions(checked).items():
        topic = getattr(one, "topic", None)
        for column in {column for level in getattr(one, "keys", ()) for column in level} - {"source"}:
            if isinstance(topic, Topic):
                groups.setdefault(topic.name, {}).setdefault(column, []).append(name)
    return groups


def _missing(batch: pa.RecordBatch, column: str) -> int:
    """Return the number of readings without a value in a column."""
    if column not in batch.schema.names:
        return len(batch)
    missing: int = batch.column(column).null_count
    return missing


def _active_since(n: Notification) -> Instant | None:
    """Return the start of a condition that a notification reports as active.

    Returns ``None`` if the notification reports that the condition is not active.
    """
    match n.status:
        case "ingress":
            return n.event.time
        case "reopened":
            return n.since
    return None


def _topic_groups(checked: Checked) -> list[set[str]]:
    """Return groups of topics that share an operator, directly or through derived topics.

    Within a group the order of readings in the log matters.
    """
    groups: list[set[str]] = []
    for one in operators(checked):
        topics = {*one.topics, *(topic.name for topic in one.links.derived_topics.values())}
        touching = [some for some in groups if some & topics]
        groups = [some for some in groups if not some & topics] + [topics.union(*touching)]
    return groups


def _to_history(entries: Iterable[Entry], topics: Iterable[Topic]) -> History:
    """Yield log entries as a history, without readings of topics that the definition does not declare."""
    known = {topic.name: topic for topic in topics}
    for entry in entries:
        match entry:
            case Advance(until):
                yield until
            case Readings(topic, batch) if topic in known:
                with suppress(UsageError):  # its attributes have changed
                    yield topic, conform(known[topic], batch)


def _revision_row(n: Notification, before: Holding | None, at: Instant, position: int) -> NotificationRow:
    """Return the row of a notification that a revision caused.

    Its id includes the log position, because the same transition may have been emitted before for the same
    reading.
    """
    id = notification_id(n.subscription, n.scope, n.status, at, n.event.source, position)
    one = to_row(n, at, id)
    return one if n.since is not None or before is None else one._replace(since=before.since)


def _withdrawal_row(holding: Holding, at: Instant, position: int) -> NotificationRow:
    name, scope, since, *_ = holding
    id = notification_id(name, scope, WITHDRAWN, at, "", position)
    line: dict[str, Any] = {
        "id": id, "subscription": name, "scope": scope, "status": WITHDRAWN, "time": show_instant(at),
        "since": show_instant(since), "topic": None, "source": None, "location": None, "attributes": {},
    }  # fmt: skip
    return NotificationRow(0, id, name, scope, WITHDRAWN, at, since, at, json.dumps(line, ensure_ascii=False))


def statements(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each subscription of a definition with its name and lines.

    The lines are the number of its first line and that of the line after its last, both from 0.
    """
    app = parse(text)
    starts = sorted((s.at.line, getattr(s, "name", "")) for s in app.statements if s.at is not None)
    named = {s.name for s in app.statements if isinstance(s, ConditionStatement)}
    lines = text.splitlines()
    for i, (line, name) in enumerate(starts):
        end = starts[i + 1][0] if i + 1 < len(starts) else len(lines) + 1
        while end > line + 1 and _is_blank_or_comment(lines[end - 2]):
            end -= 1
        if name in named:
            yield name, line - 1, end - 1


def _is_blank_or_comment(line: str) -> bool:
    """Whether a line is blank or a comment.

    Such lines before a statement do not belong to the statement before them.
    """
    return not line.strip() or line.lstrip().startswith("#")
