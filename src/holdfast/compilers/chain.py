"""Conditions that hear others, as one operator with all that they build on: for hosts that run one condition
at a time, far from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ..machines.machine import Batches, Mask, Survey, Told, mattering, transitions
from ..model.batch import concatenate
from ..model.batch import reached as progress
from ..model.event import Event, Transition
from ..model.instant import BEGINNING, NEVER, Instant
from ..model.topic import Topic
from .operator import Operator, until

States = list[Any]


def alone(operators: Sequence[Operator], name: str) -> Operator:
    """The operator that tells a subscription, with those inside that it hears."""
    (last,) = [one for one in operators if name in (n for names in one.told_to for n in names)]
    needed = [last]
    for one in needed:
        below = (o for o in operators if any(t.name in one.heard for t in o.followed.values()))
        needed += [o for o in below if not any(o is n for n in needed)]
    if len(needed) == 1:
        return last
    chain = Chain(tuple(one for one in operators if any(one is n for n in needed)))
    lower = [one for one in chain.operators if not one.heard]
    return replace(
        last,
        machine=chain,
        listens=(tuple(dict.fromkeys(t for one in lower for topics in one.listens for t in topics)),),
        looks_at=_united(one.looks_at for one in lower),
        keyed=None,
        stage=0,
        heard=frozenset(),
        followed={},
    )


def overheard(
    operators: Sequence[Operator],
    history: Iterable[tuple[str, pa.RecordBatch]],
    reached: Mapping[str, Instant],
) -> dict[str, pa.RecordBatch]:
    """What conditions that have heard a history have told those who hear them, as readings by topic, when
    time has come as far as it has."""
    states, latest, found = [one.machine.initial() for one in operators], dict[str, Instant](), Heard()

    def look(heard: dict[str, pa.RecordBatch]) -> None:
        for i, one in enumerate(operators):
            mine = {name: batch for name, batch in heard.items() if name in one.topics}
            pairs = zip(operators, states, strict=True)
            awaited = [other.unsaid(own) for other, own in pairs if other.is_awaited(one)]
            now = one.looks(until(latest, one.clock, BEGINNING), awaited)
            if mine or one.machine.is_timed:
                states[i], told = one.machine.step(states[i], mine, now)
                said = one.retold(told)
                _gather(heard, said)
                for topic, batch in said.items():
                    found.setdefault(topic, []).append(batch)

    for topic, batch in history:
        latest[topic] = max(latest.get(topic, BEGINNING), progress(batch) or BEGINNING)
        look({topic: batch})
    latest |= {topic: max(at, latest.get(topic, BEGINNING)) for topic, at in reached.items()}
    look({})
    return {topic: concatenate(some) for topic, some in found.items()}


Heard = dict[str, list[pa.RecordBatch]]


def _united(columns: Iterable[Mapping[str, frozenset[str]]]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for some in columns:
        for topic, names in some.items():
            found[topic] = found.get(topic, frozenset()) | names
    return found


@dataclass(frozen=True)
class Chain:
    """Machines of which the later ones hear the earlier ones; what the last one says is told."""

    operators: tuple[Operator, ...]

    strictest: None = field(default=None, init=False)
    margin: None = field(default=None, init=False)
    compacts: bool = field(default=False, init=False)

    @cached_property
    def topics(self) -> dict[str, Topic]:
        lower = (one for one in self.operators if not one.heard)
        return {name: topic for one in lower for name, topic in one.topics.items()}

    @property
    def is_timed(self) -> bool:
        return any(one.machine.is_timed for one in self.operators)

    @property
    def _last(self) -> Any:
        return self.operators[-1].machine

    def initial(self) -> States:
        return [one.machine.initial() for one in self.operators]

    def react(self, state: States, event: Event) -> tuple[States, list[Transition]]:
        def take(one: Operator, state: Any) -> tuple[Any, list[Transition]]:
            return one.machine.react(state, event) if event.topic in one.topics else (state, [])

        return self._passed(state, take, BEGINNING)

    def advance(self, state: States, until: Instant) -> tuple[States, list[Transition]]:
        return self._passed(state, lambda one, own: one.machine.advance(own, until), until)

    def _passed(
        self,
        states: States,
        first: Callable[[Operator, Any], tuple[Any, list[Transition]]],
        until: Instant,
    ) -> tuple[States, list[Transition]]:
        """What is said when those that hear nobody do something first."""
        heard: dict[str, pa.RecordBatch] = {}
        out: list[Transition] = []
        for i, one in enumerate(self.operators):
            if one.heard:
                states[i], told = self._hears(one, states[i], heard, self._looks(one, states, until))
            else:
                states[i], said = first(one, states[i])
                told = Told({}, said)
            _gather(heard, one.retold(told))
            out = transitions(one.topics, told)
        return states, out

    def _looks(self, one: Operator, states: States, until: Instant) -> Instant:
        """How far one that hears others looks when time has come so far."""
        pairs = zip(self.operators, states, strict=True)
        return one.looks(until, (other.unsaid(own) for other, own in pairs if other.is_awaited(one)))

    @staticmethod
    def _hears(one: Operator, state: Any, heard: Batches, until: Instant) -> tuple[Any, Told]:
        mine = {name: batch for name, batch in heard.items() if name in one.topics}
        told: tuple[Any, Told] = one.machine.step(state, mine, until)
        return told

    def step(self, state: States, batches: Batches, until: Instant) -> tuple[States, Told]:
        heard, told = dict(batches), Told({})
        for i, one in enumerate(self.operators):
            now = self._looks(one, state, until) if one.heard else until
            state[i], told = self._hears(one, state[i], heard, now)
            _gather(heard, one.retold(told))
        return state, Told({}, transitions(self.operators[-1].topics, told))

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        return mattering(self, batches, latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        lower = [one.machine for one in self.operators if topic in one.topics]
        found: Mask = np.logical_or.reduce([machine.matters(topic, batch) for machine in lower])
        return found

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        return Survey(self.matters(topic, batch), np.zeros(1, np.int64))

    def due(self, state: States) -> Instant | None:
        pairs = zip(self.operators, state, strict=True)
        found = (one.due(own) for one, own in pairs)
        return min((at for at in found if at is not None), default=None)

    def holding(self, state: States) -> list[tuple[int, str | None, Instant]]:
        found: list[tuple[int, str | None, Instant]] = self._last.holding(state[-1])
        return found

    def unknown(self, state: States) -> list[tuple[int, str | None, Instant | None]]:
        found: list[tuple[int, str | None, Instant | None]] = self._last.unknown(state[-1])
        return found

    def last(self, state: States, condition: int) -> list[Transition]:
        return []

    def inform(self, state: States, condition: int, latest: Sequence[Event]) -> States:
        return state

    def is_fresh(self, state: States, condition: int) -> bool:
        pairs = zip(self.operators, state, strict=True)
        return all(one.machine.is_fresh(own, i) for one, own in pairs for i in range(len(one.names)))

    def to_bytes(self, state: States) -> bytes:
        pairs = zip(self.operators, state, strict=True)
        return msgspec.msgpack.encode([one.machine.to_bytes(own) for one, own in pairs])

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> States:
        if was is not None and was[0] is None:
            return self.initial()
        kept = msgspec.msgpack.decode(raw, type=list[bytes])
        return [one.machine.from_bytes(own) for one, own in zip(self.operators, kept, strict=True)]


def _gather(heard: dict[str, pa.RecordBatch], more: Mapping[str, pa.RecordBatch]) -> None:
    for topic, batch in more.items():
        heard[topic] = concatenate([heard[topic], batch]) if topic in heard else batch
