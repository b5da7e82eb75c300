"""Levels: states of one topic in the same scopes, the highest of which is the level of the scope.

Each level is a state with a bit of its own, kept by the machine inside; what that says of one event moves
the level at most once, so an event is told once however many levels it leaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ..model.batch import to_events
from ..model.event import Event, Status, Transition
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.topic import Topic
from .machine import Batches, Machine, Mask, Survey, Told, mattering, transitions


class Height(msgspec.Struct, array_like=True):
    """Where a scope stands: the bits of its levels, since when it has some, and since when this one."""

    word: int
    began: Instant
    since: Instant


class State(NamedTuple):
    """The states of the machines inside; ``heights`` has the scopes that have a level."""

    inner: list[Any]
    heights: dict[str | None, Height]


@dataclass(frozen=True)
class Levels:
    """The machine.  Condition ``k`` of ``inside[i]`` is that of levels ``bits[i][k]``; ``names``, the lowest
    first.  What is told is of ``name``; it says what the level is, and was, in ``says``."""

    inside: tuple[Machine, ...]
    bits: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    name: str
    says: tuple[str, str]

    margin = None

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.inside[0].topics

    @property
    def strictest(self) -> Duration | None:
        return self.inside[0].strictest

    @property
    def is_timed(self) -> bool:
        return any(one.is_timed for one in self.inside)

    @property
    def compacts(self) -> bool:
        return len(self.inside) == 1 and self.inside[0].compacts

    def initial(self) -> State:
        return State([one.initial() for one in self.inside], {})

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        return state, self._said(state, lambda one, own: one.react(own, event))

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        return state, self._said(state, lambda one, own: one.advance(own, until))

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        if len(self.inside) == 1:
            state.inner[0], told = self.inside[0].step(state.inner[0], batches, until)
            said = transitions(self.topics, told)
            return state, Told({}, self._moved(state.heights, self._numbered(0, said)))
        out: list[Transition] = []  # what one event does to all of them is one change
        for topic, batch in batches.items():
            for event in to_events(self.topics[topic], batch):
                out += self.react(state, event)[1]
            progress = {topic: batch.slice(0, 0)}  # how far time has come with what was reduced away
            for i, one in enumerate(self.inside):
                state.inner[i], _ = one.step(state.inner[i], progress, BEGINNING)
        return state, Told({}, out + self.advance(state, until)[1])

    def _said(
        self, state: State, move: Callable[[Machine, Any], tuple[Any, list[Transition]]]
    ) -> list[Transition]:
        """What the machines inside say when each of them moves, as changes of level."""
        said: list[Transition] = []
        for i, one in enumerate(self.inside):
            state.inner[i], some = move(one, state.inner[i])
            said += self._numbered(i, some)
        if len(self.inside) > 1:
            late = [told for told in said if told.status == "late"][: len(said) // len(self.inside)]
            said = late + sorted((t for t in said if t.status != "late"), key=_in_time)
        return self._moved(state.heights, said)

    def _numbered(self, inside: int, said: Iterable[Transition]) -> Iterable[Transition]:
        """Transitions of a machine inside, with numbers that tell them from those of others."""
        if not inside:
            return said
        before = sum(map(len, self.bits[:inside]))
        return [t if t.condition < 0 else t._replace(condition=before + t.condition) for t in said]

    @cached_property
    def _bits(self) -> list[int]:
        return [bit for bits in self.bits for bit in bits]

    def _moved(self, heights: dict[str | None, Height], said: Iterable[Transition]) -> list[Transition]:
        """What the states inside have said, as changes of level: what concerns one event and scope is one."""
        out: list[Transition] = []
        turned, last = 0, None
        for told in said:
            if told.status == "late":
                out.append(told)
                continue
            if last is not None and not _is_further(last, told):
                self._turn(heights, last, turned, out)
                turned = 0
            turned, last = turned | self._bits[told.condition], told
        if last is not None:
            self._turn(heights, last, turned, out)
        return out

    def _turn(
        self, heights: dict[str | None, Height], told: Transition, turned: int, out: list[Transition]
    ) -> None:
        """Turn the bits of a scope; if that moves its level, say so."""
        event, scope = told.event, told.scope
        before = heights.get(scope)
        was, word = (before.word if before else 0), (before.word if before else 0) ^ turned
        if before is None:
            heights[scope] = before = Height(word, event.time, event.time)
        since, began = before.since, before.began
        low, high = was.bit_length(), word.bit_length()
        before.word = word
        if not word:
            del heights[scope]
        if low == high:
            return
        before.since = event.time
        status: Status = "ingress" if not low else "egress" if not high else _DIRECTION[high > low]
        own = {
            name: self.names[level - 1] if level else None
            for name, level in zip(self.says, (high, low), strict=True)
        }
        told_event = replace(event, topic=self.name, attributes={**event.attributes, **own})
        held = None if not low else began if not high else since
        out.append(Transition(told_event, status, scope, held, 0))

    # --- a stretch of history alone: what the states inside can do without ---

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        if self.compacts:
            return self.inside[0].reduce(batches, closed=closed, latest=latest)
        return mattering(self, batches, latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        found: Mask = np.logical_or.reduce([one.matters(topic, batch) for one in self.inside])
        return found

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        if self.compacts:
            matters, outside = self.inside[0].survey(topic, batch, closed=closed)
            return Survey(matters, np.min(outside, keepdims=True))
        outside = np.concatenate([one.survey(topic, batch).outside for one in self.inside])
        return Survey(self.matters(topic, batch), np.min(outside, keepdims=True))

    # --- what holds, and keeping it ---

    def due(self, state: State) -> Instant | None:
        wanted = (one.due(own) for one, own in zip(self.inside, state.inner, strict=True))
        return min((at for at in wanted if at is not None), default=None)

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return [(0, scope, height.began) for scope, height in state.heights.items()]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        trios = zip(self.inside, self.bits, state.inner, strict=True)
        return all(one.is_fresh(own, i) for one, bits, own in trios for i in range(len(bits)))

    def to_bytes(self, state: State) -> bytes:
        kept = [one.to_bytes(own) for one, own in zip(self.inside, state.inner, strict=True)]
        return msgspec.msgpack.encode((kept, list(state.heights.items())))

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return self.initial()
        kept, heights = msgspec.msgpack.decode(raw, type=tuple[list[bytes], list[tuple[str | None, Height]]])
        return State([one.from_bytes(own) for one, own in zip(self.inside, kept, strict=True)], dict(heights))


_DIRECTION: tuple[Status, Status] = ("lowered", "raised")


def _is_further(last: Transition, told: Transition) -> bool:
    """Whether a transition is of the event and the scope of the last one, and of a further state."""
    return (
        told.condition > last.condition and told.scope == last.scope and told.event.order == last.event.order
    )


def _in_time(told: Transition) -> tuple[object, ...]:
    return (*told.event.order, told.scope or "", told.condition)
