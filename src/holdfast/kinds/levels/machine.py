"""The machine of levels: states of one topic in the same scopes. The highest active state is the level of the
scope.

Each level is a state with its own bit in an inner machine. All transitions of inner machines at one event
form at most one change of level, so an event is emitted once even if it skips levels. The level is known if
the highest level that is certainly active is above all unknown levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ...engine.machine import Batches, Emission, Machine, Relevance, Traits, transitions
from ...model.batch import to_events
from ...model.event import Event, Status, Transition
from ...model.instant import Instant
from ...model.topic import Topic
from ..revision import Renumbering
from ..state.duration.machine import DurationMachine
from ..state.toggle import ScopeKeys


class Height(msgspec.Struct, array_like=True):
    """The levels of one scope.

    ``word`` has the bits of active levels, ``unsure`` the bits of unknown levels. ``began`` is the time since
    which any level is active, ``since`` the start of the current level. ``announced`` is the level that was
    last reported; it is used while the level is unknown.
    """

    word: int
    began: Instant
    since: Instant
    unsure: int = 0
    announced: int = 0

    @property
    def known(self) -> bool:
        """Whether the level is certain, because no unknown level is above the highest certain level."""
        return not self.unsure or (self.word & ~self.unsure).bit_length() > self.unsure.bit_length()

    @property
    def level(self) -> int:
        """The number of the reported level, from 1 on; 0 for none."""
        return self.word.bit_length() if self.known else self.announced


class LevelsState(NamedTuple):
    """The states of the inner machines, and the heights of scopes.

    ``heights`` has the scopes with an active or unknown level. ``turned`` has the changed scopes if changes
    are tracked.
    """

    inner: list[Any]
    heights: dict[str | None, Height]
    turned: set[str | None] | None = None


@dataclass(frozen=True)
class LevelsMachine(Machine[LevelsState]):
    """The machine of one statement of levels.

    Condition ``k`` of inner machine ``i`` sets the bits ``bits[i][k]``. ``names`` are the names of the
    levels, the lowest first. ``name`` is the topic of its events; they have the new level and the level
    before in `level_columns`. With ``forgets``, scopes are dropped when they become unknown.
    """

    inside: tuple[Machine[Any], ...]
    bits: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    name: str
    level_columns: tuple[str, str]
    forgets: bool = False

    has_deltas = True

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            uses_watermark=any(machine.traits.uses_watermark for machine in self.inside),
            compacts=len(self.inside) == 1 and self.inside[0].traits.compacts,
            lateness=self.inside[0].traits.lateness,
            pauses=all(machine.traits.pauses for machine in self.inside),
        )

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.inside[0].topics

    def resume(self, state: LevelsState, watermark: Instant) -> LevelsState:
        for i, machine in enumerate(self.inside):
            if machine.traits.pauses:
                state.inner[i] = machine.resume(state.inner[i], watermark)
        return state

    def initial(self) -> LevelsState:
        return LevelsState([machine.initial() for machine in self.inside], {})

    def react(self, state: LevelsState, event: Event) -> tuple[LevelsState, list[Transition]]:
        return state, self._level_changes(state, lambda machine, inner: machine.react(inner, event))

    def advance(self, state: LevelsState, watermark: Instant) -> tuple[LevelsState, list[Transition]]:
        return state, self._level_changes(state, lambda machine, inner: machine.advance(inner, watermark))

    def step(self, state: LevelsState, batches: Batches, watermark: Instant) -> tuple[LevelsState, Emission]:
        """Process a batch of each topic, then advance to the watermark.

        A single inner machine runs in columns. Several inner machines process one event after the other,
        because their transitions at one event form one change.
        """
        if len(self.inside) == 1:
            state.inner[0], emission = self.inside[0].step(state.inner[0], batches, watermark)
            emitted = transitions(self.topics, emission)
            return state, Emission({}, self._changes_of(state, self._renumber(0, emitted)))
        out: list[Transition] = []  # all transitions at one event form one change
        for topic, batch in batches.items():
            for event in to_events(self.topics[topic], batch):
                out += self.react(state, event)[1]
        progress = {topic: batch.slice(0, 0) for topic, batch in batches.items()}

        def advance_inner(machine: Machine[Any], inner_state: Any) -> tuple[Any, list[Transition]]:
            """Advance an inner machine to the watermark, which may be later than all rows because of
            pushdown.
            """
            inner_state, emission = machine.step(inner_state, progress, watermark)
            return inner_state, transitions(self.topics, emission)

        return state, Emission({}, out + self._level_changes(state, advance_inner))

    def _level_changes(
        self, state: LevelsState, move: Callable[[Machine[Any], Any], tuple[Any, list[Transition]]]
    ) -> list[Transition]:
        """Run a function on each inner machine; return the resulting changes of level."""
        emitted: list[Transition] = []
        for i, machine in enumerate(self.inside):
            state.inner[i], inner_transitions = move(machine, state.inner[i])
            emitted += self._renumber(i, inner_transitions)
        if len(self.inside) > 1:
            late = [t for t in emitted if t.status == "late"][: len(emitted) // len(self.inside)]
            others = [t for t in emitted if t.status != "late"]
            emitted = late + sorted(others, key=lambda t: (*t.event.order, t.scope or "", t.condition))
        return self._changes_of(state, emitted)

    def _renumber(self, inside: int, transitions: Iterable[Transition]) -> Iterable[Transition]:
        """Return the transitions of inner machine ``inside`` with numbers that are unique among all inner
        machines."""
        if not inside:
            return transitions
        before = sum(map(len, self.bits[:inside]))
        return [t if t.condition < 0 else t._replace(condition=before + t.condition) for t in transitions]

    @cached_property
    def _bits(self) -> list[int]:
        """The bits of each condition, by its unique number."""
        return [bit for bits in self.bits for bit in bits]

    def _changes_of(self, state: LevelsState, transitions: Iterable[Transition]) -> list[Transition]:
        """Return transitions of inner machines as changes of level, one for each event and scope."""
        out: list[Transition] = []
        together: list[Transition] = []
        for transition in transitions:
            if transition.status == "late":
                out.append(transition)
                continue
            if together and not _is_further(together[-1], transition):
                out += self._apply(state, together)
                together = []
            together.append(transition)
        return [*out, *self._apply(state, together)] if together else out

    def _apply(self, state: LevelsState, together: list[Transition]) -> Iterator[Transition]:
        """Apply the transitions of one scope at one event.

        Yield a transition if the level changes, or if it becomes known or unknown.
        """
        (event, _, scope, _, _), heights = together[0], state.heights
        if state.turned is not None:
            state.turned.add(scope)
        before = heights.get(scope) or Height(0, event.time, event.time)
        if self.forgets and any(transition.status == "unknown" for transition in together):
            heights.pop(scope, None)
            if before.level:
                yield self._transition(event, "unknown", scope, (before.level, before.level), before.began)
            return
        after = Height(before.word, before.began, before.since, before.unsure, before.level)
        for transition in together:
            self._turn(after, transition)
        low, high = before.level, after.level
        if low != high:
            after.since = event.time
            after.began = after.began if low else event.time
            since = None if not low else before.since if high else before.began
            way: Status = "raised" if high > low else "lowered"
            way = "ingress" if not low else "egress" if not high else way
            yield self._transition(event, way, scope, (high, low), since)
        elif before.known != after.known:
            way = "known" if after.known else "unknown"
            yield self._transition(event, way, scope, (high, low), before.began if low else None)
        if after.word or after.unsure:
            heights[scope] = after
        else:
            heights.pop(scope, None)

    def _turn(self, height: Height, transition: Transition) -> None:
        """Apply a transition to the bits of a scope."""
        bits = self._bits[transition.condition]
        match transition.status:
            case "ingress":
                height.word |= bits
            case "egress":
                height.word &= ~bits
        if transition.status == "unknown":
            height.unsure |= bits
        else:
            height.unsure &= ~bits

    def _transition(
        self, event: Event, status: Status, scope: str | None, way: tuple[int, int], since: Instant | None
    ) -> Transition:
        return Transition(self.with_level(event, *way), status, scope, since, 0)

    def with_level(self, event: Event, high: int, low: int) -> Event:
        """Return the event of a change from level `low` to level `high`; level 0 means none."""
        level_values = {
            name: self.names[level - 1] if level else None
            for name, level in zip(self.level_columns, (high, low), strict=True)
        }
        return replace(event, topic=self.name, attributes={**event.attributes, **level_values})

    def level(self, state: LevelsState, scope: str | None) -> str | None:
        height = state.heights.get(scope)
        return self.names[height.level - 1] if height and height.level else None

    # --- single scopes ---

    def replace_scopes(self, state: LevelsState, other: LevelsState, keys: ScopeKeys) -> LevelsState:
        """Replace the scopes `keys` by those of another state. All inner machines must be
        `DurationMachine`."""
        for i, machine in enumerate(self.inside):
            assert isinstance(machine, DurationMachine)
            state.inner[i] = machine.replace_scopes(state.inner[i], other.inner[i], keys)
        scopes = map(self.readable_scope, keys[-1])
        state.heights.update({scope: other.heights[scope] for scope in scopes if scope in other.heights})
        return state

    def keys(self, state: LevelsState) -> list[str]:
        """Return the keys of all scopes with state. All inner machines must be `DurationMachine`."""
        found: list[str] = state.inner[0].keys.all().to_pylist()
        return found

    def readable_scope(self, key: str) -> str | None:
        """Return the label of a scope's key. All inner machines must be `DurationMachine`."""
        first = self.inside[0]
        assert isinstance(first, DurationMachine)
        return first.readable_scope(key)

    # --- pushdown ---

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        inside = [machine.relevance(topic, batch) for machine in self.inside]
        outside = np.min(np.concatenate([part.outside for part in inside]), keepdims=True)
        satisfies = np.logical_or.reduce([part.satisfies for part in inside])
        if not self.traits.compacts:
            return Relevance(satisfies, outside)
        return Relevance(satisfies, outside, lambda: np.logical_or.reduce([part.decides for part in inside]))

    # --- snapshots ---

    def due(self, state: LevelsState) -> Instant | None:
        due = (machine.due(inner) for machine, inner in zip(self.inside, state.inner, strict=True))
        return min((at for at in due if at is not None), default=None)

    def active(self, state: LevelsState) -> list[tuple[int, str | None, Instant]]:
        return [(0, scope, height.began) for scope, height in state.heights.items() if height.level]

    def unknown(self, state: LevelsState) -> list[tuple[int, str | None, Instant | None]]:
        unknown = ((scope, height) for scope, height in state.heights.items() if not height.known)
        return [(0, scope, height.began if height.level else None) for scope, height in unknown]

    def is_initial(self, state: LevelsState, condition: int) -> bool:
        trios = zip(self.inside, self.bits, state.inner, strict=True)
        return all(m.is_initial(inner, i) for m, bits, inner in trios for i in range(len(bits)))

    def dump(self, state: LevelsState) -> bytes:
        parts = [machine.dump(inner) for machine, inner in zip(self.inside, state.inner, strict=True)]
        return msgspec.msgpack.encode(_StoredLevels(parts, list(state.heights.items())))

    def load(self, raw: bytes, was: Renumbering | None = None) -> LevelsState:
        if was is not None and was[0] is None:
            return self.initial()
        stored = msgspec.msgpack.decode(raw, type=_StoredLevels)
        inner = [machine.load(raw) for machine, raw in zip(self.inside, stored.inner, strict=True)]
        return LevelsState(inner, dict(stored.heights))

    # --- deltas ---

    def track_changes(self, state: LevelsState) -> LevelsState:
        for i, machine in enumerate(self.inside):
            if machine.has_deltas:
                state.inner[i] = machine.track_changes(state.inner[i])
        return state._replace(turned=set())

    def delta(self, state: LevelsState) -> bytes | None:
        pairs = zip(self.inside, state.inner, strict=True)
        inner = [machine.delta(inner_state) if machine.has_deltas else None for machine, inner_state in pairs]
        turned = list(state.turned or ())
        if state.turned:
            state.turned.clear()
        if any(raw is None for raw in inner):
            return None
        heights = [(scope, state.heights.get(scope)) for scope in turned]
        return msgspec.msgpack.encode((inner, heights)) if any(inner) or heights else b""

    def apply_delta(self, state: LevelsState, raw: bytes, was: Renumbering | None = None) -> LevelsState:
        if was is not None and was[0] is None:
            return state
        inner, heights = msgspec.msgpack.decode(raw, type=_LevelsDelta)
        for i, (machine, inner_delta) in enumerate(zip(self.inside, inner, strict=True)):
            assert machine.has_deltas
            if inner_delta:
                state.inner[i] = machine.apply_delta(state.inner[i], inner_delta)
        for scope, height in heights:
            if height is None:
                state.heights.pop(scope, None)
            else:
                state.heights[scope] = height
        return state


class _StoredLevels(msgspec.Struct, array_like=True):
    """The format of snapshots: the states of inner machines as bytes, and the levels of scopes."""

    inner: list[bytes]
    heights: list[tuple[str | None, Height]]


_LevelsDelta = tuple[list[bytes], list[tuple[str | None, Height | None]]]
"""The format of deltas: the deltas of inner machines, and the levels of changed scopes."""


def _is_further(last: Transition, transition: Transition) -> bool:
    """Whether a transition belongs to the same event and scope as the last one and has a later condition."""
    follows = transition.condition > last.condition and transition.scope == last.scope
    return follows and transition.event.order == last.event.order
