"""Levels: states of one topic in the same scopes, the highest of which is the level of the scope.

Each level is a state with a bit of its own, kept by the machine inside; what that says of one event moves
the level at most once, so an event is told once however many levels it leaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ..model.event import Event, Status, Transition
from ..model.instant import NEVER, Duration, Instant
from ..model.topic import Topic
from .machine import Batches, Machine, Mask, Survey, Told, transitions


class Height(msgspec.Struct, array_like=True):
    """Where a scope stands: the bits of its levels, since when it has some, and since when this one."""

    word: int
    began: Instant
    since: Instant


class State(NamedTuple):
    """``heights`` has the scopes that have a level."""

    inner: Any
    heights: dict[str | None, Height]


@dataclass(frozen=True)
class Levels:
    """The machine.  Condition ``i`` of ``inner`` is that of the levels ``bits[i]``; ``names`` are theirs, the
    lowest first.  What is told is of ``name``, and says ``says[0]`` it is and ``says[1]`` it was."""

    inner: Machine
    bits: tuple[int, ...]
    names: tuple[str, ...]
    name: str
    says: tuple[str, str]

    margin = None

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.inner.topics

    @property
    def strictest(self) -> Duration | None:
        return self.inner.strictest

    @property
    def is_timed(self) -> bool:
        return self.inner.is_timed

    @property
    def compacts(self) -> bool:
        return self.inner.compacts

    def initial(self) -> State:
        return State(self.inner.initial(), {})

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        inner, said = self.inner.react(state.inner, event)
        return state._replace(inner=inner), self._moved(state.heights, said)

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        inner, said = self.inner.advance(state.inner, until)
        return state._replace(inner=inner), self._moved(state.heights, said)

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        inner, told = self.inner.step(state.inner, batches, until)
        said = transitions(self.inner.topics, told)
        return state._replace(inner=inner), Told({}, self._moved(state.heights, said))

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
            turned, last = turned | self.bits[told.condition], told
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
        return self.inner.reduce(batches, closed=closed, latest=latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        return self.inner.matters(topic, batch)

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        matters, outside = self.inner.survey(topic, batch, closed=closed)
        return Survey(matters, np.min(outside, keepdims=True))

    # --- what holds, and keeping it ---

    def due(self, state: State) -> Instant | None:
        return self.inner.due(state.inner)

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return [(0, scope, height.began) for scope, height in state.heights.items()]

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        return all(self.inner.is_fresh(state.inner, i) for i in range(len(self.bits)))

    def to_bytes(self, state: State) -> bytes:
        return msgspec.msgpack.encode((self.inner.to_bytes(state.inner), list(state.heights.items())))

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return self.initial()
        inner, heights = msgspec.msgpack.decode(raw, type=tuple[bytes, list[tuple[str | None, Height]]])
        return State(self.inner.from_bytes(inner), dict(heights))


_DIRECTION: tuple[Status, Status] = ("lowered", "raised")


def _is_further(last: Transition, told: Transition) -> bool:
    """Whether a transition is of the event and the scope of the last one, and of a further state."""
    return (
        told.condition > last.condition and told.scope == last.scope and told.event.order == last.event.order
    )
