"""The correlations of an engine at work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa

from ...compilers.correlation import Correlator, correlators, meaning
from ...errors import UsageError
from ...lang.condition import Correlated
from ...machines.correlation.machine import State
from ...model.batch import reached
from ...model.event import Event, Notification
from ...model.instant import BEGINNING, NEVER, Instant
from ...model.topic import Topic


class Kept(msgspec.Struct):
    """What is remembered of a machine: what its correlations meant, whom they served, and its state."""

    meanings: list[str]
    names: list[tuple[str, ...]]
    state: bytes


@dataclass
class _Running:
    group: Correlator
    state: State

    def serve(self, number: int, names: Iterable[str]) -> None:
        """Tell these subscriptions of one correlation."""
        served = list(self.group.names)
        served[number] = tuple(names)
        self.group = replace(self.group, names=tuple(served))

    def advance(self, until: Instant) -> list[Notification]:
        self.state, out = self.group.machine.advance(self.state, until)
        return list(self.group.addressed(out))


class Correlating:
    """Correlations over live events; they may come and go.  A new one starts with the next event."""

    def __init__(self, correlations: Iterable[Correlated] = ()) -> None:
        self._running: list[_Running] = []
        self._reached: dict[str, Instant] = {}
        self._start(correlations)

    @property
    def names(self) -> list[str]:
        """The correlations that run."""
        return [name for one in self._running for names in one.group.names for name in names]

    def add(self, correlation: Correlated) -> None:
        """Start a correlation, on an equal one's machine where that makes no difference."""
        for one in self._running:
            for i, other in enumerate(one.group.correlations):
                if meaning(other) == meaning(correlation) and one.group.machine.is_fresh(one.state, i):
                    one.serve(i, [*one.group.names[i], correlation.name])
                    return
        self._start([correlation])

    def _start(self, correlations: Iterable[Correlated]) -> None:
        for group in correlators(correlations):
            running = _Running(group, group.machine.initial())
            running.advance(self._latest(group))  # time has come so far for all
            self._running.append(running)

    def remove(self, name: str) -> None:
        """End a correlation."""
        for one in self._running:
            for i, names in enumerate(one.group.names):
                one.serve(i, [other for other in names if other != name])
        self._running = [one for one in self._running if any(one.group.names)]

    # --- events ---

    def push(self, event: Event) -> list[Notification]:
        """Take one event; what takes part by now."""
        self._reached[event.topic] = max(self._reached.get(event.topic, BEGINNING), event.time)
        out: list[Notification] = []
        for one in self._running:
            if event.topic in one.group.machine.topics:
                one.state, late = one.group.machine.react(one.state, event)
                out += one.group.addressed(late)
                out += one.advance(self._latest(one.group))
        return out

    def push_batch(self, topic: Topic, batch: pa.RecordBatch) -> list[Notification]:
        """Take a batch; what takes part by now."""
        latest = reached(batch)
        if latest is None:
            return []
        self._reached[topic.name] = max(self._reached.get(topic.name, BEGINNING), latest)
        out: list[Notification] = []
        for one in self._running:
            if topic.name in one.group.machine.topics:
                until = self._latest(one.group)
                one.state, told = one.group.machine.step(one.state, {topic.name: batch}, until)
                out += one.group.addressed(told)
        return out

    def _latest(self, group: Correlator) -> Instant:
        """How far the time of the topics that a machine listens to has come."""
        return max((self._reached.get(topic, BEGINNING) for topic in group.machine.topics), default=BEGINNING)

    def advance(self, until: Instant) -> list[Notification]:
        """Let event time come so far."""
        for one in self._running:
            for topic in one.group.machine.topics:
                self._reached[topic] = max(self._reached.get(topic, BEGINNING), until)
        return [n for one in self._running for n in one.advance(self._latest(one.group))]

    def finish(self) -> list[Notification]:
        """Nothing more will come: look at what ordered correlations still hold back."""
        return [n for one in self._running for n in one.advance(NEVER)]

    # --- keeping ---

    def kept(self) -> tuple[list[Kept], dict[str, Instant]]:
        """Everything that is remembered: machines, and how far the time of each topic has come."""
        parts = [
            Kept(
                [meaning(correlation) for correlation in one.group.correlations],
                list(one.group.names),
                one.group.machine.to_bytes(one.state),
            )
            for one in self._running
        ]
        return parts, self._reached

    def resume(
        self, parts: Iterable[Kept], times: dict[str, Instant], correlations: Iterable[Correlated]
    ) -> None:
        """Go on where it was kept; one that means something else under its name is refused."""
        self._reached = dict(times)
        missing = {one.name: one for one in correlations}
        self._running = []
        for part in parts:
            picked, names = [], []
            for number, mine in enumerate(part.names):
                staying = [missing.pop(name) for name in mine if name in missing]
                for one in staying:
                    if meaning(one) != part.meanings[number]:
                        raise UsageError(
                            f"'{one.name}' means something else than when its state was kept. "
                            "Give the new correlation a name of its own, or start without the old state."
                        )
                if staying:
                    picked.append((number, staying[0]))
                    names.append(tuple(one.name for one in staying))
            if picked:
                numbers = [number for number, _ in picked]
                (group,) = correlators([one for _, one in picked])
                group = replace(group, names=tuple(names))
                self._running.append(_Running(group, group.machine.from_bytes(part.state, numbers)))
        self._start(missing.values())
