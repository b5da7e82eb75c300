"""The engine as a function of the log: entries in, notifications out.

What is said of an entry depends on the entries before it and on nothing else: no clock is read here
but to note when something was said.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ..compilers.families import meanings
from ..errors import UsageError
from ..lang.app import App
from ..lang.check import check
from ..lang.condition import Checked
from ..lang.ops import Defined
from ..lang.parse import parse
from ..model.batch import conform
from ..model.event import Notification, notification_id
from ..model.instant import Instant, show_instant
from ..model.topic import Topic
from ..runtimes.local.engine import Engine, Holding
from .log.frame import Advance, Definition, Readings
from .log.log import Appended
from .sources import Sources
from .store import Snapshot, Told, told

WITHDRAWN = "withdrawn"
"""The status of a condition that held when its definition was taken away or began afresh."""


class Change(NamedTuple):
    """What a changed definition does to what runs."""

    added: list[str]
    removed: list[str]
    changed: list[str]
    """Those that mean something else than before: they cannot keep what they know."""
    holding: list[Holding]
    """What holds now and would be withdrawn."""


class Core:
    """Runs a definition over the entries of a log."""

    def __init__(self, base: Path, clock: Callable[[], Instant]) -> None:
        self._base, self._clock = base, clock
        self.definition = ""
        self.position = 0
        self._begin(Engine(base=base))
        self.sources = Sources()
        self.readings: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        """Readings of topics that were not declared when their turn came."""

    def _begin(self, engine: Engine) -> None:
        self.engine = engine
        self.checked: Checked = check(engine.app, self._base)
        self.topics: dict[str, Topic] = {topic.name: topic for topic in self.checked.topics}

    def restore(self, snapshot: Snapshot) -> None:
        """Go on where a snapshot was taken."""
        self.definition, self.position = snapshot.definition, snapshot.position
        self._begin(Engine.restore(parse(snapshot.definition), snapshot.engine, base=self._base))

    def snapshot(self, origins: bytes) -> Snapshot:
        return Snapshot(self.position, self.definition, self.engine.snapshot(), origins)

    def take(self, appended: Appended) -> list[Told]:
        """Process an entry; what it starts or ends, by time."""
        if appended.position < self.position:
            return []
        assert appended.position == self.position, "the log has a gap"
        self.position = appended.after
        match appended.entry:
            case Readings(topic, batch):
                return self._read(topic, batch)
            case Advance(until):
                return self._told(self.engine.advance(until))
            case Definition() as definition:
                return self._define(definition, appended.position)

    def _read(self, topic: str, batch: pa.RecordBatch) -> list[Told]:
        try:
            fitting = conform(self.topics[topic], batch)
        except (KeyError, UsageError):  # the topic has gone, or has other attributes now
            self.unread[topic] += len(batch)
            return []
        self.readings[topic] += len(batch)
        self.sources.hear(topic, fitting)
        return self._told(self.engine.push_batch(topic, fitting))

    def _told(self, notifications: Sequence[Notification]) -> list[Told]:
        now = self._clock()
        return [told(n, now) for n in sorted(notifications, key=lambda n: n.order)]

    def _define(self, definition: Definition, position: int) -> list[Told]:
        change = self.change(definition.text)
        withdrawn = [h for h in change.holding if h.subscription in {*change.removed, *definition.restart}]
        self._begin(self._redefined(definition))
        self.definition = definition.text
        return [_withdrawn(h, definition.at, position) for h in withdrawn]

    def _redefined(self, definition: Definition) -> Engine:
        app = parse(definition.text)
        kept = self.engine.snapshot()
        if definition.restart:
            staying = [
                s for s in app.statements if not (isinstance(s, Defined) and s.name in definition.restart)
            ]
            kept = Engine.restore(App(staying, file=app.file), kept, base=self._base).snapshot()
        return Engine.restore(app, kept, base=self._base)

    def change(self, text: str) -> Change:
        """What another definition would do."""
        now, then = meanings(self.checked), meanings(check(parse(text), self._base))
        removed = [name for name in now if name not in then]
        changed = [name for name in now if name in then and now[name] != then[name]]
        lost = {*removed, *changed}
        return Change(
            [name for name in then if name not in now],
            removed,
            changed,
            [one for one in self.engine.holding() if one.subscription in lost],
        )

    def require_change(self, definition: Definition) -> Change:
        """Refuse a definition that cannot take the place of the one that runs, before it is in the log."""
        change = self.change(definition.text)
        if stuck := [name for name in change.changed if name not in definition.restart]:
            names = " and ".join(f"'{name}'" for name in stuck)
            raise UsageError(
                f"{names} would mean something else than now and cannot keep what is known of it: give it "
                "another name, or let it begin afresh (restart); what holds of it is then withdrawn"
            )
        self._redefined(definition)
        return change


def _withdrawn(holding: Holding, at: Instant, position: int) -> Told:
    name, scope, since, _ = holding
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
