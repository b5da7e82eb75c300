"""Relationships: a state filter over what is measured of the latest readings of each tie.  [B53–B72]

Readings of one instant are taken together, once time has passed it: then every tie that has one of their
sources is measured and tested.  What two sources say at one moment has no order, so nothing is told of a
mixture of old and new.  A test that must hold for some time is told when it has, unless a reading of that
moment speaks against it.  A reading that is older than its source's latest says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, repeat

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.relate import BEST, DISTANCE, NOT, RADIUS, SPREAD, TOTAL, relate
from ...model.batch import reached, times, to_events
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.qos import Late
from ...model.relation import Member, Pairs, Relation
from ...model.scope import unlisted
from ...model.topic import Topic
from ..inherited import Bit
from ..keys import Keys
from ..machine import Batches, Mask, Survey, Told, mattering
from .roaming import Grid, with_new, without_rest
from .rows import Rows, Slot, joined, read, rows_of, says_something, value_of
from .state import State, kept, resumed
from .telling import Said, Telling
from .telling import joined as joined_said
from .ties import Bits, Ints, Layout, Members

_Seed = tuple[str | None, str, int, float]
"""The scope of a tie, and the source, number and value of what started it."""
_encoded, _decoded = msgspec.msgpack.encode, msgspec.msgpack.decode

KINDS = {"distance": DISTANCE, "spread": SPREAD, "radius": RADIUS, "total": TOTAL, "best": BEST}
MANY = 1 << 20
"""How many measurements are made before what they tell is put away."""


@dataclass(frozen=True)
class Relations:
    """The machine of one relationship, between whom it may be; ``told`` is the topic of what it tells."""

    told: Topic
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
    def _found(self) -> list[tuple[Keys, Ints]]:
        """The sources of each slot that are known beforehand, and their numbers."""
        some: list[tuple[list[str], list[int]]] = [([], []) for _ in self.slots]
        for (slot, source), number in self.listed.items():
            sources, numbers = some[slot]
            sources.append(source)
            numbers.append(number)
        return [(Keys.of(pa.array(a, pa.string())), np.array([*b, -1], np.int64)) for a, b in some]

    def _numbers(self, slot: int, sources: pa.StringArray) -> Ints:
        """The number of each source in a slot, -1 if it is nobody's."""
        keys, numbers = self._found[slot]
        return numbers[keys.known(sources)]

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

    @cached_property
    def _telling(self) -> Telling:
        return Telling(self.told, self.relation)

    @cached_property
    def _sources(self) -> list[str]:
        """The sources of members that are known beforehand."""
        return [source for _, source in self.listed]

    def initial(self) -> State:
        clock, none = np.zeros(1, np.int64), np.zeros((0, 2), np.int64)
        if self.relation.ties is None:
            grid = Grid(max(self.relation.enter.within.high * 1.001, 1e-6))
            return State(Members.unheard(0), Bits.fresh(0, self._rest), {}, [], clock, none, grid, [], [])
        members, bits = Members.unheard(len(self.listed)), Bits.fresh(self.layout.size, self._rest)
        return State(members, bits, self.listed, self._sources, clock, none, None, [], [])

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
                rows = rows_of([(event.time, member, event.sequence, value)])
                said += self._one_by_one(state, self._taken(state, rows))
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
        late: list[Transition] = []
        for topic, batch in batches.items():
            at = reached(batch)
            state.reached = state.reached if at is None else max(state.reached, at)
            late += self._received(state, topic, batch)
        said = joined_said(self._advanced(state, until))
        if late:
            return state, Told({}, late + self._in_order(state, said))
        if said is None:
            return state, Told({})
        rows = self._telling.rows(said, state.sources)
        return state, Told({self.told.name: rows}, topics={self.told.name: self.told})

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
                state.held.append(rows.only(speaks & ~late))
            for row in np.flatnonzero(speaks & late).tolist():
                missed.setdefault(row, []).append(rows.take(np.array([row])))
        for row, some in sorted(missed.items()):
            if self.strictest is None:
                said += [one for rows in some for one in self._one_by_one(state, self._taken(state, rows))]
            else:
                (event,) = to_events(self.topics[topic], batch.slice(row, 1))
                said.append(Transition(event, "late", None, None, 0))
        return said

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        return state, self._in_order(state, joined_said(self._advanced(state, until)))

    def _in_order(self, state: State, said: Said | None) -> list[Transition]:
        """What is told by time, ends first, and by scope."""
        found = [] if said is None else self._one_by_one(state, [said])
        return sorted(found, key=lambda one: (one.event.time, one.status == "ingress", one.scope or ""))

    def _one_by_one(self, state: State, said: Iterable[Said]) -> list[Transition]:
        return [told for some in said for told in self._telling.one_by_one(some, state.sources)]

    def _advanced(self, state: State, until: Instant) -> list[Said]:
        """Let time come as far as ``until``: take what it has passed, in order; tell what has held long
        enough."""
        if until == NEVER:
            passed, certain = NEVER, state.reached + 1
        else:
            passed = certain = max(state.passed, until if until == BEGINNING else until - self.wait)
        said: list[Said] = []
        if state.single:
            state.held.append(rows_of(state.single))
            state.single = []
        if state.held and min(int(rows.times.min()) for rows in state.held) < passed:
            rows = joined(state.held)
            ready = rows.times < passed
            state.held = [] if ready.all() else [rows.take(~ready)]
            said = self._taken(state, rows.only(ready).in_order())
        state.passed = max(state.passed, certain)
        return [*said, *self._completed(state, state.passed)]

    def _taken(self, state: State, rows: Rows) -> list[Said]:
        """Take readings in order, so many at a time that what they tell has room."""
        said: list[Said] = []
        if len(state.members.latest) < len(state.names):
            state.members = state.members.grown(max(len(state.names), 2 * len(state.members.latest)))
        start = 0
        while start < len(rows.times):
            end = self._portion(rows, start)
            said.append(self._related(state, rows.take(slice(start, end))))
            start = end
        return said

    def _portion(self, rows: Rows, start: int) -> int:
        """Up to where rows are taken at once: whole instants."""
        end = start + MANY
        if end >= len(rows.times):
            return len(rows.times)
        return int(np.searchsorted(rows.times, rows.times[end], side="right"))

    def _related(self, state: State, rows: Rows) -> Said:
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
        said = Said(ties, status, at, who, number, since, value)
        return self._remembered(state, said.first(count))

    def _remembered(self, state: State, said: Said) -> Said:
        """Where all sources are watched, ties of which nothing must be remembered are forgotten, and what was
        said is of their members."""
        if state.grid is None:
            return said
        whom = state.pairs[said.whom[:, 0]]
        state.pairs, state.bits = without_rest(state.pairs, state.bits)
        return said._replace(whom=whom)

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

    def _completed(self, state: State, passed: Instant) -> list[Said]:
        """What has held long enough by now."""
        bits, (_, holds) = state.bits, self._tests
        if not holds.any() or not len(bits.bits) or self.relation.kind == "best":
            return []
        due = np.flatnonzero((bits.began != NOT) & (bits.began + holds[bits.bits] < passed))
        if not len(due):
            return []
        sides, by, numbers = bits.bits[due], bits.began_by[due], bits.began_number[due]
        at, since, values = bits.began[due] + holds[sides], bits.since[due], bits.measured[due]
        bits.bits[due], bits.began[due] = 1 - sides, NOT
        bits.since[due] = np.where(sides == 1, NOT, at)
        bits.since_by[due], bits.since_number[due], bits.since_value[due] = by, numbers, values
        whom = np.stack([due, np.zeros_like(due)], axis=1)
        return [self._remembered(state, Said(whom, sides, at, by, numbers, since, values))]

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

    def _standing(self, state: State) -> Said:
        """The starts of the ties that hold."""
        bits = state.bits
        ties = np.flatnonzero(bits.bits > self._rest)
        whom = np.stack([ties, bits.bits[ties]], axis=1) if state.grid is None else state.pairs[ties]
        starts = (bits.since, bits.since_by, bits.since_number)
        since, by, numbers = (column[ties] for column in starts)
        return Said(whom, np.zeros_like(ties), since, by, numbers, since, bits.since_value[ties])

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        standing = self._standing(state)
        _, scopes = self._telling.named(standing.whom, state.sources)
        return [(0, scope, at) for scope, at in zip(scopes, standing.times.tolist(), strict=True)]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        """The start of each tie that holds."""
        return self._one_by_one(state, [self._standing(state)])

    def bits(self, state: State, condition: int) -> dict[str | None, Bit]:
        """The ties that hold: by their scopes, with the readings that started them."""
        said = self._standing(state)
        _, scopes = self._telling.named(said.whom, state.sources)
        columns = zip(scopes, said.by.tolist(), said.numbers.tolist(), said.values.tolist(), strict=True)
        seeds = [_encoded((scope, state.sources[by], number, value)) for scope, by, number, value in columns]
        return {
            scope: Bit(at, seed) for scope, at, seed in zip(scopes, said.times.tolist(), seeds, strict=True)
        }

    def with_bits(self, state: State, condition: int, bits: Iterable[Bit]) -> State:
        given = [(bit.since, *_decoded(bit.seed, type=_Seed)) for bit in bits]
        places = self._places(state, [scope for _, scope, *_ in given])
        for (since, _, by, number, value), place in zip(given, places, strict=True):
            if place is None:
                continue
            tie, bit = place
            known = (state.names.get((slot, by)) for slot in range(len(self.slots)))
            first = state.pairs[tie, 0] if state.grid is not None else self.layout.entries[0]
            member = next((one for one in known if one is not None), int(first))
            state.bits.bits[tie], state.bits.since[tie], state.bits.since_by[tie] = bit, since, member
            state.bits.since_number[tie], state.bits.since_value[tie] = number, value
        return state

    def roused(self, state: State, condition: int, bits: Iterable[Bit]) -> State:
        return state  # it looks back over nothing

    def without(self, bit: Bit, attributes: Collection[str]) -> Bit:
        return bit  # it knows of none

    def _places(self, state: State, scopes: Sequence[str | None]) -> list[tuple[int, int] | None]:
        """The tie and the bit of each scope, if there are such; where all sources are watched, there are."""
        relation = self.relation
        if relation.kind == "best":
            alternatives = {name: (0, number) for number, name in enumerate(relation.names)}
            return [alternatives.get(scope or "") for scope in scopes]
        if state.grid is None:
            whom = np.stack([np.arange(self.layout.size), np.zeros(self.layout.size, np.int64)], axis=1)
            _, known = self._telling.named(whom, state.sources)
            at = {scope: (tie, 1) for tie, scope in enumerate(known)}
            return [at.get(scope) for scope in scopes]
        slots, named = (0, len(self.slots) - 1), [unlisted(scope or "", 2) for scope in scopes]
        pairs = [
            None if pair is None else tuple(self._named(state, *one) for one in zip(slots, pair, strict=True))
            for pair in named
        ]
        some = np.array([pair for pair in pairs if pair is not None], np.int64).reshape(-1, 2)
        state.pairs, state.bits = with_new(state.pairs, state.bits, some)
        if len(state.members.latest) < len(state.names):
            state.members = state.members.grown(len(state.names))
        ties = {tuple(pair): tie for tie, pair in enumerate(state.pairs.tolist())}
        return [None if pair is None else (ties[pair], 1) for pair in pairs]

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        heard = (state.members.latest != NOT).any()
        return not (heard or state.held or state.single)

    def to_bytes(self, state: State) -> bytes:
        return kept(state)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        return resumed(self.initial(), raw, is_new=was is not None and was[0] is None)
