"""The components of an engine at work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from ...compilers.detector import Detection, detection, meaning
from ...errors import UsageError
from ...lang.condition import Component
from ...machines.detector.detector import State
from ...machines.detector.knowledge import Knowledge, of_event
from ...model.batch import plain, reached, to_events
from ...model.event import Event, Notification, Transition
from ...model.instant import NEVER, Instant
from ...model.topic import Topic


class Kept(msgspec.Struct):
    """What is remembered of components: their names and meanings, the machine's state, and the latest
    reading of every source."""

    names: list[str]
    meanings: list[str]
    state: bytes
    latest: dict[str, dict[str, Knowledge]]


class Detecting:
    """Components over live events; they may come and go.

    The latest reading of every source is kept, of every topic while there are components, for those
    that come later.  [F75]
    """

    def __init__(self) -> None:
        self._group = detection((), ())
        self._state: State = self._group.machine.initial()
        self._latest: dict[str, dict[str, Knowledge]] = {}

    @property
    def names(self) -> list[str]:
        """The components that run, by their numbers."""
        return [component.name for component in self._group.components]

    def run(self, components: Sequence[Component], topics: Iterable[Topic], *, replacing: str = "") -> None:
        """From now on these: those that ran go on, but for one that is replaced by its name.  [F53]"""
        before: Detection = self._group
        numbers = {name: i for i, name in enumerate(self.names) if name != replacing}
        self._group = detection(components, topics)
        known = [k for of in self._latest.values() for k in of.values()]
        known += before.machine.latest(self._state)
        was = [numbers.get(component.name) for component in components]
        self._state = self._group.machine.adopted(self._state, was, known)

    def require_leaf(self, name: str) -> None:
        """Refuse to end a component on which another builds."""
        above = [c.name for c in self._group.components if any(t.name == name for t in c.listens)]
        if above:
            raise UsageError(f"'{above[0]}' builds on '{name}'; end it first")

    def latest(self, name: str) -> list[Notification]:
        """The last event of a component, of each of its scopes: what a newcomer is told.  [F75]"""
        number = self.names.index(name)
        said = self._group.machine.last(self._state, number)
        return list(self._group.addressed(said))

    # --- events ---

    def push(self, event: Event) -> list[Notification]:
        """Take one event; what it starts or ends."""
        if not self._group.components:
            return []
        self._remember([event])
        if event.topic not in self._group.machine.topics:
            return []
        self._state, late = self._group.machine.react(self._state, event)
        return self._said(late) + self.advance(self._state.reached)

    def push_batch(self, topic: Topic, batch: pa.RecordBatch) -> list[Notification]:
        """Take a batch; what it starts or ends."""
        if not self._group.components or not len(batch):
            return []
        self._remember(to_events(topic, batch.take(pa.array(_last_rows(batch)))))
        if topic.name not in self._group.machine.topics:
            return []
        latest = reached(batch)
        until = self._state.reached if latest is None else max(self._state.reached, latest)
        self._state, said = self._group.machine.step(self._state, {topic.name: batch}, until)
        return self._said(said)

    def advance(self, until: Instant) -> list[Notification]:
        """Let event time come so far."""
        self._state, said = self._group.machine.advance(self._state, max(until, self._state.reached))
        return self._said(said)

    def finish(self) -> list[Notification]:
        """Nothing more will come: evaluate as far as the last event."""
        self._state, said = self._group.machine.advance(self._state, NEVER)
        return self._said(said)

    def _said(self, passed: Iterable[Transition]) -> list[Notification]:
        return list(self._group.addressed(passed))

    def _remember(self, events: Iterable[Event]) -> None:
        for event in events:
            known = self._latest.setdefault(event.topic, {})
            before = known.get(event.source)
            if before is None or before.time <= event.time:
                known[event.source] = of_event(event)

    def holding(self) -> list[tuple[str, str | None, Instant]]:
        """What holds now: (name, scope, since)."""
        return list(self._group.holding(self._state))

    # --- keeping ---

    def kept(self) -> Kept:
        """Everything that is remembered."""
        meanings = [meaning(component) for component in self._group.components]
        return Kept(self.names, meanings, self._group.machine.to_bytes(self._state), self._latest)

    def resume(self, kept: Kept, components: Sequence[Component], topics: Iterable[Topic]) -> None:
        """Go on where it was kept; one that means something else under its name is refused."""
        meant = dict(zip(kept.names, kept.meanings, strict=True))
        for component in components:
            if meant.get(component.name, meaning(component)) != meaning(component):
                raise UsageError(
                    f"'{component.name}' means something else than when its state was kept. "
                    "Give the new component a name of its own, or start without the old state."
                )
        self._latest = kept.latest
        self._group = detection(components, topics)
        state = self._group.machine.from_bytes(kept.state)
        was = [kept.names.index(c.name) if c.name in kept.names else None for c in components]
        known = [k for of in self._latest.values() for k in of.values()]
        self._state = self._group.machine.adopted(state, was, known)


def _last_rows(batch: pa.RecordBatch) -> list[int]:
    """The last row of each source."""
    codes = plain(batch.column("source")).dictionary_encode().indices
    last = np.full(len(batch), -1)
    last[np.asarray(codes)] = np.arange(len(batch))
    return [int(row) for row in last if row >= 0]
