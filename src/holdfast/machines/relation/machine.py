"""Relationships: a state filter over what is measured of the latest readings of each tie.  [B53–B72]

Readings of one instant are taken together, once time has passed it: then every tie that has one of their
sources is measured and tested.  What two sources say at one moment has no order, so nothing is told of a
mixture of old and new.  A test that must hold for some time is told when it has, unless a reading of that
moment speaks against it.  A reading that is older than its source's latest says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.relate import BEST, DISTANCE, NOT, RADIUS, SPREAD, TOTAL, relate
from ...model.batch import reached, times, to_events
from ...model.event import Event, Status, Transition, Value
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.qos import Late
from ...model.relation import Member, Pairs, Relation
from ...model.topic import Topic
from ..machine import Batches, Mask, Survey, Told, mattering
from .roaming import Grid, with_new, without_rest
from .rows import Rows, Slot, joined, read, rows_of, says_something, value_of
from .state import State, kept, resumed
from .ties import Bits, Ints, Layout, Members

KINDS = {"distance": DISTANCE, "spread": SPREAD, "radius": RADIUS, "total": TOTAL, "best": BEST}
MANY = 1 << 20
"""How many measurements are made before what they tell is put away."""

_SIDES: tuple[Status, Status] = ("ingress", "egress")


@dataclass(frozen=True)
class Relations:
    """The machine of one relationship, between whom it may be; ``name`` is the topic of what it tells."""

    name: str
    relation: Relation
    topics: Mapping[str, Topic]
    slots: tuple[Slot, ...]
    wait: Duration
    late: Late
    waits: bool
    """Whether a reading that comes after its time is late; else it is taken as it comes."""

    is_timed = True
    margin = None
    compacts = False

    @property
    def strictest(self) -> Duration | None:
        return self.wait if self.waits and self.late == "drop" else None

    @cached_property
    def listed(self) -> dict[tuple[int, str], int]:
        """The numbers of members that are known beforehand."""
        ties = self.relation.ties
        named: Iterable[tuple[int, str]]
        if isinstance(ties, Pairs):
            each = (zip(repeat(slot), some) for slot, some in self._sides(ties))
            named = chain.from_iterable(zip(*each, strict=True))
        else:
            named = ((self._slot(m), m.source) for tie in ties or () for m in tie.members)
        return {name: number for number, name in enumerate(dict.fromkeys(named))}

    def _sides(self, ties: Pairs) -> list[tuple[int, tuple[str, ...]]]:
        """The slots of the two of each pair, and their sources."""
        sides = zip(ties.topics, (ties.first, ties.second), strict=True)
        return [(self._slot(Member(topic, "")), some) for topic, some in sides]

    @cached_property
    def _found(self) -> list[tuple[pa.StringArray, Ints]]:
        """The sources of each slot that are known beforehand, and their numbers."""
        some: list[tuple[list[str], list[int]]] = [([], []) for _ in self.slots]
        for (slot, source), number in self.listed.items():
            sources, numbers = some[slot]
            sources.append(source)
            numbers.append(number)
        return [(pa.array(a, pa.string()), np.array([*b, -1], np.int64)) for a, b in some]

    def _numbers(self, slot: int, sources: pa.Array) -> Ints:
        """The number of each source in a slot, -1 if it is nobody's."""
        names, numbers = self._found[slot]
        at = pc.index_in(sources, value_set=names.cast(sources.type)).fill_null(-1)
        return numbers[at.to_numpy(zero_copy_only=False)]

    def _slot(self, member: Member) -> int:
        return self.slots.index(Slot(member.topic, member.attribute, self._accuracy(member)))

    def _accuracy(self, member: Member) -> str | None:
        return self.relation.accuracy if member.attribute is None else None

    @cached_property
    def layout(self) -> Layout:
        """The ties that are known beforehand."""
        if isinstance(self.relation.ties, Pairs):
            sides = [
                [self.listed[slot, one] for one in some] for slot, some in self._sides(self.relation.ties)
            ]
            return Layout.of_pairs(np.array(sides, np.int64).T, len(self.listed))
        ties = []
        for tie in self.relation.ties or ():
            if tie.terms:
                parts = enumerate(tie.terms)
                ties.append(
                    [(self._number(t.member), t.scale, t.reciprocal, i) for i, terms in parts for t in terms]
                )
            else:
                ties.append([(self._number(m), float(self._is_centre(m)), False, 0) for m in tie.members])
        return Layout.of(ties, len(self.listed))

    def _is_centre(self, member: Member) -> bool:
        """Whether a radius may be around it."""
        return self.relation.around in (None, member.source)

    def _number(self, member: Member) -> int:
        return self.listed[self._slot(member), member.source]

    @cached_property
    def _tests(self) -> tuple[NDArray[np.float64], Ints]:
        enter, leave = self.relation.enter, self.relation.exit
        bounds = (enter.within.low, enter.within.high, leave.within.low, leave.within.high)
        return np.array(bounds), np.array((enter.hold, leave.hold), np.int64)

    @property
    def _rest(self) -> int:
        return -1 if self.relation.kind == "best" else 0

    def initial(self) -> State:
        size = 0 if self.relation.ties is None else self.layout.size
        reach = self.relation.enter.within.high
        grid = Grid(max(reach * 1.001, 1e-6)) if self.relation.ties is None else None
        members, bits = Members.unheard(len(self.listed)), Bits.fresh(size, self._rest)
        names, sources = dict(self.listed), [source for _, source in self.listed]
        none = np.zeros((0, 2), np.int64)
        return State(members, bits, names, sources, np.zeros(1, np.int64), none, grid, [], [])

    # --- readings ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        state.reached = max(state.reached, event.time)
        said: list[Transition] = []
        for number, slot in enumerate(self.slots):
            if slot.topic != event.topic or (value := value_of(slot, event)) is None:
                continue
            if (member := self._named(state, number, event.source)) < 0:
                continue
            if event.time >= state.passed:
                state.single.append((event.time, member, event.sequence, value))
            elif self.strictest is not None:
                return state, [Transition(event, "late", None, None, 0)]
            else:
                said += self._taken(state, rows_of([(event.time, member, event.sequence, value)]))
        return state, said

    def _named(self, state: State, number: int, source: str) -> int:
        """The number of a member; where all sources are, a new one if it is not known."""
        found = state.names.get((number, source), -1)
        if found < 0 and self.relation.ties is None:
            found = state.names[number, source] = len(state.names)
            state.sources.append(source)
        return found

    def _members(self, state: State, slot: int, sources: pa.Array) -> Ints:
        if self.relation.ties is not None:
            return self._numbers(slot, sources)
        return np.array([self._named(state, slot, source) for source in sources.to_pylist()], np.int64)

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        said: list[Transition] = []
        for topic, batch in batches.items():
            at = reached(batch)
            state.reached = state.reached if at is None else max(state.reached, at)
            said += self._received(state, topic, batch)
        return state, Told({}, said + self._advanced(state, until))

    def _received(self, state: State, topic: str, batch: pa.RecordBatch) -> list[Transition]:
        """Keep the readings that time has not passed; what is said of the others."""
        late = times(batch) < state.passed
        said: list[Transition] = []
        missed: dict[int, list[Rows]] = {}
        for number, slot in enumerate(self.slots):
            if slot.topic != topic or not len(batch):
                continue
            rows = read(number, slot, batch, partial(self._members, state))
            speaks = says_something(rows)
            if (speaks & ~late).any():
                state.held.append(rows.take(speaks & ~late))
            for row in np.flatnonzero(speaks & late).tolist():
                missed.setdefault(row, []).append(rows.take(np.array([row])))
        for row, some in sorted(missed.items()):
            if self.strictest is None:
                said += [one for rows in some for one in self._taken(state, rows)]
            else:
                (event,) = to_events(self.topics[topic], batch.slice(row, 1))
                said.append(Transition(event, "late", None, None, 0))
        return said

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        return state, self._advanced(state, until)

    def _advanced(self, state: State, until: Instant) -> list[Transition]:
        """Let time come as far as ``until``: take what it has passed, in order; tell what has held long
        enough."""
        if until == NEVER:
            passed, certain = NEVER, state.reached + 1
        else:
            passed = certain = max(state.passed, until if until == BEGINNING else until - self.wait)
        said: list[Transition] = []
        if state.single:
            state.held.append(rows_of(state.single))
            state.single = []
        if state.held and min(int(rows.times.min()) for rows in state.held) < passed:
            rows = joined(state.held)
            ready = rows.times < passed
            state.held = [] if ready.all() else [rows.take(~ready)]
            said = self._taken(state, rows.take(ready).in_order())
        state.passed = max(state.passed, certain)
        said += self._completed(state, state.passed)
        said.sort(key=lambda one: (one.event.time, one.status == "ingress", one.scope or ""))
        return said

    def _taken(self, state: State, rows: Rows) -> list[Transition]:
        """Take readings in order, so many at a time that what they tell has room."""
        said: list[Transition] = []
        if len(state.members.latest) < len(state.names):
            state.members = state.members.grown(max(len(state.names), 2 * len(state.members.latest)))
        start = 0
        while start < len(rows.times):
            end = self._portion(rows, start)
            said += self._related(state, rows.take(slice(start, end)))
            start = end
        return said

    def _portion(self, rows: Rows, start: int) -> int:
        """Up to where rows are taken at once: whole instants."""
        end = start + MANY
        if end >= len(rows.times):
            return len(rows.times)
        return int(np.searchsorted(rows.times, rows.times[end], side="right"))

    def _related(self, state: State, rows: Rows) -> list[Transition]:
        layout = self.layout
        if state.grid is not None:
            layout = self._approached(state, state.grid, rows)
        touching = layout.touch_starts[rows.members + 1] - layout.touch_starts[rows.members]
        room = 2 * int(touching.sum()) + 2
        ties, status = np.zeros((room, 2), np.int64), np.zeros(room, np.int64)
        at, who, number, since = (np.zeros(room, np.int64) for _ in range(4))
        value = np.zeros(room)
        bounds, holds = self._tests
        known, bits = state.members, state.bits
        with np.errstate(invalid="ignore", over="ignore"):
            count = relate(
                rows.times, rows.members, rows.sequences, rows.values, KINDS[self.relation.kind],
                bounds, holds, self.relation.by, self.relation.quorum, layout.starts, layout.entries,
                layout.scales, layout.reciprocal, layout.choices, layout.touch_starts, layout.touches,
                known.latest, known.points, known.numbers, known.stamps, state.clock,
                *bits.columns, ties, status, at, who, number, since, value,
            )  # fmt: skip
        columns = [column[:count].tolist() for column in (ties, status, at, who, number, since, value)]
        said = [self._said(state, *row) for row in zip(*columns, strict=True)] if count else []
        if state.grid is not None:
            state.pairs, state.bits = without_rest(state.pairs, state.bits)
        return said

    def _approached(self, state: State, grid: Grid, rows: Rows) -> Layout:
        """The ties of all sources that hold, may hold soon, or come near."""
        size = len(state.members.latest)
        grid.make_room(size)
        sides = np.full(size, -1)
        if len(self.slots) > 1:
            for (slot, _), member in state.names.items():
                sides[member] = slot
        near = grid.near(rows, sides, self.relation.enter.within.high)
        if len(near):
            state.pairs, state.bits = with_new(state.pairs, state.bits, self._by_role(state, near, sides))
        return Layout.of_pairs(state.pairs, size)

    def _by_role(self, state: State, near: Ints, sides: Ints) -> Ints:
        """Pairs in the order of their roles; of one topic, by name."""
        if len(self.slots) > 1:
            swapped = sides[near[:, 0]] > sides[near[:, 1]]
        else:
            names = state.sources
            swapped = np.array([names[a] > names[b] for a, b in near.tolist()])
        return np.where(swapped[:, None], near[:, ::-1], near)

    def _completed(self, state: State, passed: Instant) -> list[Transition]:
        """What has held long enough by now."""
        bits, (_, holds) = state.bits, self._tests
        if not holds.any() or not len(bits.bits) or self.relation.kind == "best":
            return []
        due = np.flatnonzero((bits.began != NOT) & (bits.began + holds[bits.bits] < passed))
        said = []
        for t in due.tolist():
            side = int(bits.bits[t])
            at, by, number = (
                int(bits.began[t] + holds[side]),
                int(bits.began_by[t]),
                int(bits.began_number[t]),
            )
            value = float(bits.measured[t])
            said.append(self._said(state, [t, 0], side, at, by, number, int(bits.since[t]), value))
            bits.bits[t], bits.began[t] = 1 - side, NOT
            bits.since[t] = NOT if side else at
            bits.since_by[t], bits.since_number[t], bits.since_value[t] = by, number, value
        if state.grid is not None and len(due):
            state.pairs, state.bits = without_rest(state.pairs, state.bits)
        return said

    # --- what is said ---

    def _said(
        self,
        state: State,
        tie: list[int],
        side: int,
        at: Instant,
        who: int,
        number: int,
        since: Instant,
        value: float,
    ) -> Transition:
        scope, attributes = self._tie(state, *tie)
        event = Event(self.name, at, state.sources[who], {**attributes, **self._measure(value)}, number)
        return Transition(event, _SIDES[side], scope, since if side else None, 0)

    def _measure(self, value: float) -> dict[str, Value]:
        return {self.relation.measure: value}

    def _tie(self, state: State, tie: int, choice: int) -> tuple[str | None, dict[str, Value]]:
        """The scope of a tie, and who its members are."""
        names, ties = self.relation.names, self.relation.ties
        if self.relation.kind == "best":
            return names[choice], {}
        if ties is None:
            a, b = (state.sources[member] for member in state.pairs[tie].tolist())
            return f"{a},{b}", dict(zip(names, (a, b), strict=True))
        if isinstance(ties, Pairs):
            a, b = ties.first[tie], ties.second[tie]
            return f"{a},{b}", dict(zip(names, (a, b), strict=True))
        return ties[tie].scope, dict(zip(names, ties[tie].pair, strict=True))

    # --- what can matter ---

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        found = np.zeros(len(batch), np.bool_)
        everybody = None if self.relation.ties is not None else lambda _, some: np.zeros(len(some), np.int64)
        for number, slot in enumerate(self.slots):
            if slot.topic == topic and len(batch):
                found |= says_something(read(number, slot, batch, everybody or self._numbers))
        return found

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        matters = self.matters(topic, batch)
        return Survey(matters, np.array([np.count_nonzero(~matters)]))

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        """A late reading that says nothing is not told, so what matters is all that stays."""
        return mattering(self, batches, BEGINNING)

    # --- state ---

    def due(self, state: State) -> Instant | None:
        waiting = [row[0] for row in state.single] + [int(rows.times.min()) for rows in state.held]
        bits, (_, holds) = state.bits, self._tests
        if holds.any() and self.relation.kind != "best" and (bits.began != NOT).any():
            begun = bits.began != NOT
            waiting.append(int((bits.began[begun] + holds[bits.bits[begun]]).min()))
        return min(waiting) + self.wait if waiting else None

    def _standing(self, state: State) -> Iterator[tuple[int, str | None, dict[str, Value]]]:
        """The ties that hold, with their scopes and members."""
        for tie in np.flatnonzero(state.bits.bits > self._rest).tolist():
            yield tie, *self._tie(state, tie, int(state.bits.bits[tie]))

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return [(0, scope, int(state.bits.since[tie])) for tie, scope, _ in self._standing(state)]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        """The start of each tie that holds."""
        found, bits = [], state.bits
        for tie, scope, attributes in self._standing(state):
            told = {**attributes, **self._measure(float(bits.since_value[tie]))}
            source, number = state.sources[int(bits.since_by[tie])], int(bits.since_number[tie])
            event = Event(self.name, int(bits.since[tie]), source, told, number)
            found.append(Transition(event, "ingress", scope, None, condition))
        return found

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        heard = (state.members.latest != NOT).any()
        return not (heard or state.held or state.single)

    def to_bytes(self, state: State) -> bytes:
        return kept(state)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        return resumed(self.initial(), raw, is_new=was is not None and was[0] is None)
