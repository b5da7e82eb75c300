"""Levels: states of one topic in the same scopes, the highest of which is the level of the scope.

Each level is a state with a bit of its own, kept by the machine inside; what that says of one event moves
the level at most once, so an event is told once however many levels it leaps.  The level is known where the
highest that holds for sure stands above all of which nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ..model.batch import to_events
from ..model.event import Event, Status, Transition
from ..model.instant import NEVER, Duration, Instant
from ..model.scope import once_listed
from ..model.topic import Topic
from .guard.machine import Guard
from .machine import Batches, Machine, Mask, Noting, Pausing, Survey, Told, can_pause, mattering, transitions


class Height(msgspec.Struct, array_like=True):
    """Where a scope stands: the bits of its levels, since when it has some, and since when this one; the
    bits of those of which nobody knows, and which level was told last while that leaves the level open."""

    word: int
    began: Instant
    since: Instant
    unsure: int = 0
    told: int = 0

    @property
    def known(self) -> bool:
        """Whether the level is."""
        return not self.unsure or (self.word & ~self.unsure).bit_length() > self.unsure.bit_length()

    @property
    def level(self) -> int:
        """The number of the level, from 1 on, as people know it; 0 if it has none."""
        return self.word.bit_length() if self.known else self.told


class State(NamedTuple):
    """The states of the machines inside; ``heights`` has the scopes that have a level, or might.  A state
    that notes what changes has in ``turned`` the scopes that have turned."""

    inner: list[Any]
    heights: dict[str | None, Height]
    turned: set[str | None] | None = None


@dataclass(frozen=True)
class Levels:
    """The machine.  Condition ``k`` of ``inside[i]`` is that of levels ``bits[i][k]``; ``names``, the lowest
    first.  What is told is of ``name``; it says what the level is, and was, in ``says``.  Where scopes are
    forgotten, ``forgets``, they are so when they become unknown."""

    inside: tuple[Machine, ...]
    bits: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    name: str
    says: tuple[str, str]
    forgets: bool = False

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
    def pauses(self) -> bool:
        return all(map(can_pause, self.inside))

    def resume(self, state: State, until: Instant) -> State:
        for i, one in enumerate(self.inside):
            if isinstance(one, Pausing):
                state.inner[i] = one.resume(state.inner[i], until)
        return state

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
            return state, Told({}, self._moved(state, self._numbered(0, said)))
        out: list[Transition] = []  # what one event does to all of them is one change
        for topic, batch in batches.items():
            for event in to_events(self.topics[topic], batch):
                out += self.react(state, event)[1]
        progress = {topic: batch.slice(0, 0) for topic, batch in batches.items()}

        def passed(one: Machine, own: Any) -> tuple[Any, list[Transition]]:
            """How far time has come, also with what was reduced away."""
            own, told = one.step(own, progress, until)
            return own, transitions(self.topics, told)

        return state, Told({}, out + self._said(state, passed))

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
        return self._moved(state, said)

    def _numbered(self, inside: int, said: Iterable[Transition]) -> Iterable[Transition]:
        """Transitions of a machine inside, with numbers that tell them from those of others."""
        if not inside:
            return said
        before = sum(map(len, self.bits[:inside]))
        return [t if t.condition < 0 else t._replace(condition=before + t.condition) for t in said]

    @cached_property
    def _bits(self) -> list[int]:
        return [bit for bits in self.bits for bit in bits]

    def _moved(self, state: State, said: Iterable[Transition]) -> list[Transition]:
        """What the states inside have said, as changes of level: what concerns one event and scope is one."""
        out: list[Transition] = []
        together: list[Transition] = []
        for told in said:
            if told.status == "late":
                out.append(told)
                continue
            if together and not _is_further(together[-1], told):
                out += self._turned(state, together)
                together = []
            together.append(told)
        return [*out, *self._turned(state, together)] if together else out

    def _turned(self, state: State, together: list[Transition]) -> Iterator[Transition]:
        """Let a scope be as what is said of one event makes it; if that moves its level, or whether it is
        known, say so."""
        (event, _, scope, _, _), heights = together[0], state.heights
        if state.turned is not None:
            state.turned.add(scope)
        before = heights.get(scope) or Height(0, event.time, event.time)
        if self.forgets and any(told.status == "unknown" for told in together):
            heights.pop(scope, None)
            if before.level:
                yield self._told(event, "unknown", scope, (before.level, before.level), before.began)
            return
        after = Height(before.word, before.began, before.since, before.unsure, before.level)
        for told in together:
            self._turn(after, told)
        low, high = before.level, after.level
        if low != high:
            after.since = event.time
            after.began = after.began if low else event.time
            since = None if not low else before.since if high else before.began
            way: Status = "ingress" if not low else "egress" if not high else _DIRECTION[high > low]
            yield self._told(event, way, scope, (high, low), since)
        elif before.known != after.known:
            way = "known" if after.known else "unknown"
            yield self._told(event, way, scope, (high, low), before.began if low else None)
        if after.word or after.unsure:
            heights[scope] = after
        else:
            heights.pop(scope, None)

    def _turn(self, height: Height, told: Transition) -> None:
        """Move the bits of a scope by what a state inside has said; whoever turns is known."""
        bits = self._bits[told.condition]
        match told.status:
            case "ingress":
                height.word |= bits
            case "egress":
                height.word &= ~bits
        if told.status == "unknown":
            height.unsure |= bits
        else:
            height.unsure &= ~bits

    def _told(
        self, event: Event, status: Status, scope: str | None, way: tuple[int, int], since: Instant | None
    ) -> Transition:
        return Transition(self.said(event, *way), status, scope, since, 0)

    def said(self, event: Event, high: int, low: int) -> Event:
        """An event as it is told, when it leads to a level from another."""
        own = {
            name: self.names[level - 1] if level else None
            for name, level in zip(self.says, (high, low), strict=True)
        }
        return replace(event, topic=self.name, attributes={**event.attributes, **own})

    # --- some scopes alone ---

    def taken_over(self, state: State, other: State, keys: tuple[Sequence[str], ...]) -> State:
        """A state that knows of some scopes what another knows, where all states inside are guards."""
        for i, one in enumerate(self.inside):
            assert isinstance(one, Guard)
            state.inner[i] = one.taken_over(state.inner[i], other.inner[i], keys)
        scopes = map(self.shown, keys[-1])
        state.heights.update({scope: other.heights[scope] for scope in scopes if scope in other.heights})
        return state

    def keys(self, state: State) -> list[str]:
        """The scopes of which there is something to know, where the states inside are guards."""
        found: list[str] = state.inner[0].keys.all().to_pylist()
        return found

    def shown(self, key: str) -> str | None:
        """A scope as people read it, where the states inside are guards."""
        first = self.inside[0]
        assert isinstance(first, Guard)
        return first.shown(key)

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
        return [(0, scope, height.began) for scope, height in state.heights.items() if height.level]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return [
            (0, scope, height.began if height.level else None)
            for scope, height in state.heights.items()
            if not height.known
        ]

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        trios = zip(self.inside, self.bits, state.inner, strict=True)
        return all(one.is_fresh(own, i) for one, bits, own in trios for i in range(len(bits)))

    def to_bytes(self, state: State) -> bytes:
        kept = [one.to_bytes(own) for one, own in zip(self.inside, state.inner, strict=True)]
        return msgspec.msgpack.encode(_Kept(kept, list(state.heights.items()), _FORM))

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return self.initial()
        kept = msgspec.msgpack.decode(raw, type=_Kept)
        inner = [one.from_bytes(own) for one, own in zip(self.inside, kept.inner, strict=True)]
        heights = dict(kept.heights)
        return State(inner, heights if kept.form == _FORM else self._rebuilt(inner, heights))

    # --- what has changed: what the machines inside say, and the scopes that have turned ---

    def noting(self, state: State) -> State:
        for i, one in enumerate(self.inside):
            if isinstance(one, Noting):
                state.inner[i] = one.noting(state.inner[i])
        return state._replace(turned=set())

    def noted(self, state: State) -> bytes | None:
        pairs = zip(self.inside, state.inner, strict=True)
        inner = [one.noted(own) if isinstance(one, Noting) else None for one, own in pairs]
        turned = list(state.turned or ())
        if state.turned:
            state.turned.clear()
        if any(raw is None for raw in inner):
            return None
        heights = [(scope, state.heights.get(scope)) for scope in turned]
        return msgspec.msgpack.encode((inner, heights)) if any(inner) or heights else b""

    def renewed(self, state: State, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return state
        inner, heights = msgspec.msgpack.decode(raw, type=_Noted)
        for i, (one, some) in enumerate(zip(self.inside, inner, strict=True)):
            assert isinstance(one, Noting)
            state.inner[i] = one.renewed(state.inner[i], some) if some else state.inner[i]
        for scope, height in heights:
            if height is None:
                state.heights.pop(scope, None)
            else:
                state.heights[scope] = height
        return state

    def _rebuilt(self, inner: Sequence[Any], told: Mapping[str | None, Height]) -> dict[str | None, Height]:
        """Where scopes stand by what the states inside know, given what was told of them before it was kept
        who is unknown, by names that two might have shared."""
        words, unsure, began = dict[str | None, int](), dict[str | None, int](), dict[str | None, Instant]()
        for one, bits, own in zip(self.inside, self.bits, inner, strict=True):
            for condition, scope, since in one.holding(own):
                words[scope] = words.get(scope, 0) | bits[condition]
                began[scope] = min(began.get(scope, since), since)
            for condition, scope, _ in one.unknown(own):
                unsure[scope] = unsure.get(scope, 0) | bits[condition]
        found = {}
        for scope in dict.fromkeys((*words, *unsure)):
            old = told.get(scope) or told.get(once_listed(scope))
            first = began.get(scope, 0)
            times = (old.began, old.since) if old and old.level else (first, first)
            height = Height(words.get(scope, 0), *times, unsure.get(scope, 0))
            found[scope] = height
            if not height.known and old:
                height.told = old.level
        return found


class _Kept(msgspec.Struct, array_like=True):
    """The states inside, and where scopes stand, as bytes."""

    inner: list[bytes]
    heights: list[tuple[str | None, Height]]
    form: int = 0


_Noted = tuple[list[bytes], list[tuple[str | None, Height | None]]]
"""What has changed in the states inside, and where scopes stand that have turned."""

_FORM = 1
"""The form of what is kept; at first, heights did not say who is unknown."""


_DIRECTION: tuple[Status, Status] = ("lowered", "raised")


def _is_further(last: Transition, told: Transition) -> bool:
    """Whether a transition is of the event and the scope of the last one, and of a further state."""
    return (
        told.condition > last.condition and told.scope == last.scope and told.event.order == last.event.order
    )


def _in_time(told: Transition) -> tuple[object, ...]:
    return (*told.event.order, told.scope or "", told.condition)
