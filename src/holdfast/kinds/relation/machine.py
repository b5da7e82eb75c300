"""The machine of relations: a state filter over a value that is measured from the latest readings of each
tie. [B53–B72]

When the watermark has passed a timestamp, all readings of that timestamp are processed together. Every tie
with one of their sources is measured and tested. Readings of one timestamp have no order, so no measurement
mixes old and new readings.

A test with a minimum duration is reported when it has elapsed, unless a reading of that timestamp fails the
test. A reading that is older than the latest reading of its source is ignored.
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

from ...engine.carry_over import CarryOver, CarryOverMachine
from ...engine.key_codes import KeyCodes
from ...engine.machine import Batches, Emission, Relevance, Traits
from ...kernels.relate import BEST, DISTANCE, NOT, RADIUS, SPREAD, TOTAL, relate
from ...model.batch import latest_time, times, to_events
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.qos import Late
from ...model.relation import Pairs, Participant, Relation
from ...model.scope import split_values
from ...model.topic import Topic
from .output import EmittedRows, RelationEmitter, join_parts
from .roaming import RoamingGrid, with_new, without_rest
from .rows import Name, RelationRows, RoleSlot, has_known_member, join_rows, read, rows_of, value_of
from .state import RelationState, dump_state, load_state
from .ties import Bits, Ints, TieLayout, TieMembers

_Seed = tuple[str | None, str, int, float]
"""The seed of a carry-over: the scope of a tie, and the source, sequence number and value of the starting
reading."""
_encoded, _decoded = msgspec.msgpack.encode, msgspec.msgpack.decode

KINDS = {"distance": DISTANCE, "spread": SPREAD, "radius": RADIUS, "total": TOTAL, "best": BEST}
MANY = 1 << 20
"""The number of readings that are processed at a time, which bounds the size of output arrays."""


@dataclass(frozen=True)
class RelationMachine(CarryOverMachine):
    """The machine of one relation between declared members, or between all sources if ``relation.ties`` is
    ``None``.

    ``output`` is the topic of its events. ``slots`` are the values that it reads of each topic.
    """

    output: Topic
    relation: Relation
    topics: Mapping[str, Topic]
    slots: tuple[RoleSlot, ...]
    wait: Duration
    late: Late
    waits: bool
    """Whether readings before the watermark are late; if not, they are processed on arrival."""

    @cached_property
    def traits(self) -> Traits:
        drops = self.waits and self.late == "drop"
        return Traits(uses_watermark=True, lateness=self.wait if drops else None)

    @cached_property
    def member_numbers(self) -> dict[tuple[int, str], int]:
        """The number of each declared member, by slot and source."""
        ties = self.relation.ties
        named: Iterable[tuple[int, str]]
        if isinstance(ties, Pairs):
            by_side = (zip(repeat(slot), sources) for slot, sources in self._sides(ties))
            named = chain.from_iterable(zip(*by_side, strict=True))
        else:
            named = ((self._slot(m), m.source) for tie in ties or () for m in tie.members)
        return {name: number for number, name in enumerate(dict.fromkeys(named))}

    def _sides(self, ties: Pairs) -> list[tuple[int, tuple[str, ...]]]:
        """Return the slots of the first and of the second members of pairs, with their sources."""
        sides = zip(ties.topics, (ties.first, ties.second), strict=True)
        return [(self._slot(Participant(topic, "")), sources) for topic, sources in sides]

    @cached_property
    def _found(self) -> list[tuple[KeyCodes, Ints]]:
        """For each slot its declared sources and their member numbers."""
        by_slot: list[tuple[list[str], list[int]]] = [([], []) for _ in self.slots]
        for (slot, source), number in self.member_numbers.items():
            sources, numbers = by_slot[slot]
            sources.append(source)
            numbers.append(number)
        return [(KeyCodes.of(pa.array(a, pa.string())), np.array([*b, -1], np.int64)) for a, b in by_slot]

    def _numbers(self, slot: int, sources: pa.StringArray) -> Ints:
        """Return the member number of each source in a slot, -1 for other sources."""
        keys, numbers = self._found[slot]
        return numbers[keys.known(sources)]

    def _slot(self, member: Participant) -> int:
        """Return the index of a member's slot."""
        accuracy = self.relation.accuracy if member.attribute is None else None
        return self.slots.index(RoleSlot(member.topic, member.attribute, accuracy))

    @cached_property
    def layout(self) -> TieLayout:
        """The layout of the declared ties, in the form that the kernel requires."""
        if isinstance(self.relation.ties, Pairs):
            numbers, named = self.member_numbers, self._sides(self.relation.ties)
            sides = [[numbers[slot, source] for source in sources] for slot, sources in named]
            return TieLayout.of_pairs(np.array(sides, np.int64).T, len(self.member_numbers))
        ties = []
        for tie in self.relation.ties or ():
            if tie.terms:
                terms = [(i, term) for i, terms in enumerate(tie.terms) for term in terms]
                ties.append([(self._number(t.member), t.scale, t.reciprocal, i) for i, t in terms])
            else:
                around = self.relation.around  # the only centre of a radius, if one is named
                centres = [(m, float(around in (None, m.source))) for m in tie.members]
                ties.append([(self._number(member), centre, False, 0) for member, centre in centres])
        return TieLayout.of(ties, len(self.member_numbers))

    def _number(self, member: Participant) -> int:
        return self.member_numbers[self._slot(member), member.source]

    @cached_property
    def _tests(self) -> tuple[NDArray[np.float64], Ints]:
        """The bounds and the minimum durations of both tests, as the kernel requires them."""
        enter, leave = self.relation.enter, self.relation.exit
        bounds = (enter.within.low, enter.within.high, leave.within.low, leave.within.high)
        return np.array(bounds), np.array((enter.hold, leave.hold), np.int64)

    @property
    def _rest(self) -> int:
        """The bit of an inactive tie."""
        return -1 if self.relation.kind == "best" else 0

    @cached_property
    def _emitter(self) -> RelationEmitter:
        return RelationEmitter(self.output, self.relation)

    def initial(self) -> RelationState:
        clock, none = np.zeros(1, np.int64), np.zeros((0, 2), np.int64)
        if self.relation.ties is None:
            grid = RoamingGrid(max(self.relation.enter.within.high * 1.001, 1e-6))
            members, bits = TieMembers.empty(0), Bits.fresh(0, self._rest)
            return RelationState(members, bits, {}, [], clock, none, grid, [], [])
        members, bits = TieMembers.empty(len(self.member_numbers)), Bits.fresh(self.layout.size, self._rest)
        sources = [source for _, source in self.member_numbers]
        return RelationState(members, bits, self.member_numbers, sources, clock, none, None, [], [])

    # --- readings ---

    def react(self, state: RelationState, event: Event) -> tuple[RelationState, list[Transition]]:
        """Store one reading until the watermark has passed it.

        A reading that the watermark has already passed is emitted as late or, with `late apply`, processed at
        once.
        """
        state.latest = max(state.latest, event.time)
        emitted: list[Transition] = []
        for number, slot in enumerate(self.slots):
            if slot.topic != event.topic or (value := value_of(slot, event)) is None:
                continue
            if (member := self._number_of(state, number, event.source)) < 0:
                continue
            if event.time >= state.passed:
                state.single.append((event.time, member, event.sequence, value))
            elif self.traits.lateness is not None:
                return state, [Transition(event, "late", None, None, 0)]
            else:
                rows = rows_of([(event.time, member, event.sequence, value)])
                emitted += self._one_by_one(state, self._take(state, rows))
        return state, emitted

    def _number_of(self, state: RelationState, number: int, source: str) -> int:
        """Return the number of a member, -1 if it has none.

        If all sources take part, a new source gets a number.
        """
        found = state.names.get((number, source), -1)
        if found < 0 and self.relation.ties is None:
            found = state.names[number, source] = len(state.names)
            state.sources.append(source)
        return found

    def _members(self, state: RelationState, slot: int, sources: pa.Array) -> Ints:
        """Return the member number of each source in a slot."""
        if self.relation.ties is not None:
            return self._numbers(slot, sources)
        return np.array([self._number_of(state, slot, source) for source in sources.to_pylist()], np.int64)

    def step(
        self, state: RelationState, batches: Batches, watermark: Instant
    ) -> tuple[RelationState, Emission]:
        """Store the readings of a batch of each topic, then advance to the watermark."""
        late: list[Transition] = []
        for topic, batch in batches.items():
            at = latest_time(batch)
            state.latest = state.latest if at is None else max(state.latest, at)
            late += self._receive(state, topic, batch)
        emitted = join_parts(self._advance(state, watermark))
        if late:
            return state, Emission({}, late + self._in_order(state, emitted))
        if emitted is None:
            return state, Emission({})
        rows = self._emitter.rows(emitted, state.sources)
        return state, Emission({self.output.name: rows}, topics={self.output.name: self.output})

    def _receive(self, state: RelationState, topic: str, batch: pa.RecordBatch) -> list[Transition]:
        """Store the readings that the watermark has not passed; return the transitions of late ones."""
        late = times(batch) < state.passed
        emitted: list[Transition] = []
        missed: dict[int, list[RelationRows]] = {}
        for number, slot in enumerate(self.slots):
            if slot.topic != topic or not len(batch):
                continue
            rows = read(number, slot, batch, partial(self._members, state))
            is_relevant = has_known_member(rows)
            if (is_relevant & ~late).any():
                state.held.append(rows.only(is_relevant & ~late))
            for row in np.flatnonzero(is_relevant & late).tolist():
                missed.setdefault(row, []).append(rows.take(np.array([row])))
        for row, missed_rows in sorted(missed.items()):
            if self.traits.lateness is None:
                for rows in missed_rows:
                    emitted += self._one_by_one(state, self._take(state, rows))
            else:
                (event,) = to_events(self.topics[topic], batch.slice(row, 1))
                emitted.append(Transition(event, "late", None, None, 0))
        return emitted

    def advance(self, state: RelationState, watermark: Instant) -> tuple[RelationState, list[Transition]]:
        return state, self._in_order(state, join_parts(self._advance(state, watermark)))

    def _in_order(self, state: RelationState, rows: EmittedRows | None) -> list[Transition]:
        """Return the transitions of rows by time, with ends first, then by scope."""
        found = [] if rows is None else self._one_by_one(state, [rows])
        return sorted(found, key=lambda t: (t.event.time, t.status == "ingress", t.scope or ""))

    def _one_by_one(self, state: RelationState, parts: Iterable[EmittedRows]) -> list[Transition]:
        """Return the transitions of rows, in the order of the kernel."""
        return [transition for part in parts for transition in self._emitter.one_by_one(part, state.sources)]

    def _advance(self, state: RelationState, until: Instant) -> list[EmittedRows]:
        """Advance to ``until``. Process the readings before it in order, then elapsed minimum durations."""
        if until == NEVER:
            passed, certain = NEVER, state.latest + 1
        else:
            passed = certain = max(state.passed, until if until == BEGINNING else until - self.wait)
        emitted: list[EmittedRows] = []
        if state.single:
            state.held.append(rows_of(state.single))
            state.single = []
        if state.held and min(int(rows.times.min()) for rows in state.held) < passed:
            rows = join_rows(state.held)
            ready = rows.times < passed
            state.held = [] if ready.all() else [rows.take(~ready)]
            emitted = self._take(state, rows.only(ready).in_order())
        state.passed = max(state.passed, certain)
        return [*emitted, *self._complete(state, state.passed)]

    def _take(self, state: RelationState, rows: RelationRows) -> list[EmittedRows]:
        """Process sorted readings in portions, so that the output fits the arrays."""
        emitted: list[EmittedRows] = []
        if len(state.members.latest) < len(state.names):
            state.members = state.members.with_room(max(len(state.names), 2 * len(state.members.latest)))
        start = 0
        while start < len(rows.times):
            end = min(start + MANY, len(rows.times))
            if end < len(rows.times):  # readings of one timestamp are never split
                end = int(np.searchsorted(rows.times, rows.times[end], side="right"))
            emitted.append(self._relate(state, rows.take(slice(start, end))))
            start = end
        return emitted

    def _relate(self, state: RelationState, rows: RelationRows) -> EmittedRows:
        """Process sorted readings with the kernel, and return its output."""
        layout = self.layout
        if state.grid is not None:
            layout = self._near_ties(state, state.grid, rows)
        touching = layout.touch_starts[rows.members + 1] - layout.touch_starts[rows.members]
        room = 2 * int(touching.sum()) + 2
        ties, status = np.zeros((room, 2), np.int64), np.zeros(room, np.int64)
        at, members, number, since = (np.zeros(room, np.int64) for _ in range(4))
        value = np.zeros(room)
        bounds, holds = self._tests
        known, bits = state.members, state.bits
        with np.errstate(invalid="ignore", over="ignore"):
            count = relate(
                rows.times, rows.members, rows.sequences, rows.values, KINDS[self.relation.kind],
                bounds, holds, self.relation.by, self.relation.quorum, layout.starts, layout.entries,
                layout.scales, layout.reciprocal, layout.choices, layout.touch_starts, layout.touches,
                known.latest, known.points, known.numbers, known.stamps, state.clock,
                *bits, ties, status, at, members, number, since, value,
            )  # fmt: skip
        emitted = EmittedRows(ties, status, at, members, number, since, value)
        return self._forget_idle_ties(state, emitted.first(count))

    def _forget_idle_ties(self, state: RelationState, emitted: EmittedRows) -> EmittedRows:
        """Drop ties without state if all sources take part, and return the output.

        In the output, replace tie numbers by member numbers, because the numbers of ties change.
        """
        if state.grid is None:
            return emitted
        pairs = state.pairs[emitted.pairs[:, 0]]
        state.pairs, state.bits = without_rest(state.pairs, state.bits)
        return emitted._replace(pairs=pairs)

    def _near_ties(self, state: RelationState, grid: RoamingGrid, rows: RelationRows) -> TieLayout:
        """Return the layout of the ties that these rows can change, for a relation of all sources.

        These ties are active, count a minimum duration, or have members that come near one another in these
        rows.
        """
        size = len(state.members.latest)
        grid.make_room(size)
        sides = np.full(size, -1)
        if len(self.slots) > 1:
            for (slot, _), member in state.names.items():
                sides[member] = slot
        near = grid.near(rows, sides, self.relation.enter.within.high)
        if len(near):
            state.pairs, state.bits = with_new(state.pairs, state.bits, self._by_role(state, near, sides))
        return TieLayout.of_pairs(state.pairs, size)

    def _by_role(self, state: RelationState, near: Ints, sides: Ints) -> Ints:
        """Order the members of pairs by their roles, or by name if both roles have one topic."""
        if len(self.slots) > 1:
            swapped = sides[near[:, 0]] > sides[near[:, 1]]
        else:
            names = state.sources
            swapped = np.array([names[a] > names[b] for a, b in near.tolist()])
        return np.where(swapped[:, None], near[:, ::-1], near)

    def _complete(self, state: RelationState, passed: Instant) -> list[EmittedRows]:
        """Return the transitions whose minimum duration has elapsed before ``passed``."""
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
        pairs = np.stack([due, np.zeros_like(due)], axis=1)
        return [self._forget_idle_ties(state, EmittedRows(pairs, sides, at, by, numbers, since, values))]

    # --- pushdown ---

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        rows = np.zeros(len(batch), np.bool_)
        numbers: Name = self._numbers
        if self.relation.ties is None:  # every source is a member
            numbers = lambda _, sources: np.zeros(len(sources), np.int64)  # noqa: E731
        for number, slot in enumerate(self.slots):
            if slot.topic == topic and len(batch):
                rows |= has_known_member(read(number, slot, batch, numbers))
        return Relevance(rows, np.array([np.count_nonzero(~rows)]))

    # --- state ---

    def due(self, state: RelationState) -> Instant | None:
        waiting = [row[0] for row in state.single] + [int(rows.times.min()) for rows in state.held]
        bits, (_, holds) = state.bits, self._tests
        if holds.any() and self.relation.kind != "best" and (bits.began != NOT).any():
            counting = bits.began != NOT
            waiting.append(int((bits.began[counting] + holds[bits.bits[counting]]).min()))
        return min(waiting) + self.wait if waiting else None

    def _standing(self, state: RelationState) -> EmittedRows:
        """Return the starts of the active ties."""
        bits = state.bits
        ties = np.flatnonzero(bits.bits > self._rest)
        pairs = np.stack([ties, bits.bits[ties]], axis=1) if state.grid is None else state.pairs[ties]
        starts = (bits.since, bits.since_by, bits.since_number)
        since, by, numbers = (column[ties] for column in starts)
        return EmittedRows(pairs, np.zeros_like(ties), since, by, numbers, since, bits.since_value[ties])

    def active(self, state: RelationState) -> list[tuple[int, str | None, Instant]]:
        standing = self._standing(state)
        _, scopes = self._emitter.names_of(standing.pairs, state.sources)
        return [(0, scope, at) for scope, at in zip(scopes, standing.times.tolist(), strict=True)]

    def latest_transitions(self, state: RelationState, condition: int) -> list[Transition]:
        """Return the start of each active tie."""
        return self._one_by_one(state, [self._standing(state)])

    def carry_overs(self, state: RelationState, condition: int) -> dict[str | None, CarryOver]:
        """Return the active ties by scope, with the readings that started them."""
        standing = self._standing(state)
        _, scopes = self._emitter.names_of(standing.pairs, state.sources)
        starts = (standing.times, standing.by, standing.numbers, standing.values)
        found: dict[str | None, CarryOver] = {}
        for scope, at, by, number, value in zip(scopes, *(c.tolist() for c in starts), strict=True):
            found[scope] = CarryOver(at, _encoded((scope, state.sources[by], number, value)))
        return found

    def with_carry_overs(
        self, state: RelationState, condition: int, bits: Iterable[CarryOver]
    ) -> RelationState:
        """Make the given ties active, with the start and the reading of another revision."""
        given = [(bit.since, *_decoded(bit.seed, type=_Seed)) for bit in bits]
        places = self._places(state, [scope for _, scope, *_ in given])
        for (since, _, by, number, value), place in zip(given, places, strict=True):
            if place is None:
                continue
            tie, bit = place
            known = (state.names.get((slot, by)) for slot in range(len(self.slots)))
            first = state.pairs[tie, 0] if state.grid is not None else self.layout.entries[0]
            member = next((number for number in known if number is not None), int(first))
            state.bits.bits[tie], state.bits.since[tie], state.bits.since_by[tie] = bit, since, member
            state.bits.since_number[tie], state.bits.since_value[tie] = number, value
        return state

    def wake(self, state: RelationState, condition: int, bits: Iterable[CarryOver]) -> RelationState:
        return state  # it has no lookaround

    def without(self, bit: CarryOver, attributes: Collection[str]) -> CarryOver:
        return bit  # its carry-overs have no attributes

    def _places(self, state: RelationState, scopes: Sequence[str | None]) -> list[tuple[int, int] | None]:
        """Return the tie and the bit of each scope; ``None`` for scopes that the relation does not have.

        If all sources take part, missing ties are added to the state.
        """
        relation = self.relation
        if relation.kind == "best":
            alternatives = {name: (0, number) for number, name in enumerate(relation.names)}
            return [alternatives.get(scope or "") for scope in scopes]
        if state.grid is None:
            every = np.arange(self.layout.size)
            _, known = self._emitter.names_of(np.stack([every, 0 * every], axis=1), state.sources)
            at = {scope: (tie, 1) for tie, scope in enumerate(known)}
            return [at.get(scope) for scope in scopes]
        slots, named = (0, len(self.slots) - 1), [split_values(scope or "", 2) for scope in scopes]
        number = partial(self._number_of, state)
        pairs = [None if pair is None else tuple(map(number, slots, pair)) for pair in named]
        given = np.array([pair for pair in pairs if pair is not None], np.int64).reshape(-1, 2)
        state.pairs, state.bits = with_new(state.pairs, state.bits, given)
        if len(state.members.latest) < len(state.names):
            state.members = state.members.with_room(len(state.names))
        ties = {tuple(pair): tie for tie, pair in enumerate(state.pairs.tolist())}
        return [None if pair is None else (ties[pair], 1) for pair in pairs]

    def is_initial(self, state: RelationState, condition: int) -> bool:
        any_reported = (state.members.latest != NOT).any()
        return not (any_reported or state.held or state.single)

    def dump(self, state: RelationState) -> bytes:
        return dump_state(state)

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> RelationState:
        return load_state(self.initial(), raw, is_new=was is not None and was[0] is None)
