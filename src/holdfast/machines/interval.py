"""Correlation of states: conditions that hold at once, or one after another, near to one another in time and
space.

It hears starts and ends, never a reading, and remembers what holds now; of what is over only the last of each
scope, for as long as another may still relate to it.  What happens at one moment is looked at together.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import merge
from itertools import accumulate, product
from operator import itemgetter
from typing import NamedTuple

import msgspec

from ..model.allen import Allen
from ..model.batch import to_events
from ..model.event import Event, Status, Transition, Value
from ..model.instant import BEGINNING, NEVER, Duration, Instant, show_instant
from ..model.space import Point
from ..model.topic import Topic
from .machine import Batches, Hearing, Told
from .waiting import Waiting

Cell = tuple[str | None, tuple[int, ...]]
AXES = 3
"""By so many coordinates places are found; further ones still count for distances."""


class Interval(msgspec.Struct, frozen=True):
    """A stretch in which a scope of a condition holds: from when, where it started, with whom it can meet and
    what that was called, and when it ended if it has."""

    start: Instant
    at: Point | None
    key: str | None
    per: tuple[str | int | float | bool | None, ...]
    end: Instant = NEVER


class Shelf:
    """Stretches of one condition, one for each scope, found by their key, place and one of their ends."""

    def __init__(self, near: float, ended: bool) -> None:
        self.near, self.ended = near, ended
        self.by_scope: dict[str, Interval] = {}
        self.cells: dict[Cell, list[tuple[Instant, str]]] = {}
        self.moments: list[tuple[Instant, str]] = []

    def put(self, scope: str, one: Interval) -> None:
        """Add a stretch in the place of an earlier one of its scope."""
        self.pop(scope)
        self.by_scope[scope] = one
        entry = (self._moment(one), scope)
        insort(self.cells.setdefault(self._cell(one), []), entry)
        if self.ended:
            insort(self.moments, entry)

    def pop(self, scope: str) -> Interval | None:
        """Take out the stretch of a scope."""
        one = self.by_scope.pop(scope, None)
        if one is not None:
            entry, cell = (self._moment(one), scope), self._cell(one)
            _remove(self.cells[cell], entry)
            if not self.cells[cell]:
                del self.cells[cell]
            if self.ended:
                _remove(self.moments, entry)
        return one

    def forget(self, until: Instant) -> None:
        """Take out what ended by then."""
        while self.moments and self.moments[0][0] <= until:
            self.pop(self.moments[0][1])

    def found(self, of: Interval, low: Instant, high: Instant) -> Iterator[tuple[str, Interval]]:
        """Those that are near a stretch and start, or have ended, after ``low`` and before ``high``."""
        for cell in self._around(of) if of.key is not None else ():
            entries = self.cells.get(cell, ())
            for moment, scope in entries[bisect_left(entries, (low + 1, "")) :]:
                if moment >= high:
                    break
                one = self.by_scope[scope]
                if self.near == math.inf or distance(of.at, one.at) < self.near:
                    yield scope, one

    def _moment(self, one: Interval) -> Instant:
        return one.end if self.ended else one.start

    def _cell(self, one: Interval) -> Cell:
        return one.key, _square(one.at, self.near)

    def _around(self, one: Interval) -> Iterator[Cell]:
        square = _square(one.at, self.near)
        for step in product((-1, 0, 1), repeat=len(square)):
            yield one.key, tuple(a + b for a, b in zip(square, step, strict=True))


def _remove(entries: list[tuple[Instant, str]], entry: tuple[Instant, str]) -> None:
    del entries[bisect_left(entries, entry)]


def _square(at: Point | None, near: float) -> tuple[int, ...]:
    """The cell of a grid twice as wide as one may be apart, so that rounding cannot lead beyond the next."""
    if near == math.inf or at is None:
        return ()
    return tuple(math.floor(at[i] / near / 2) if i < len(at) else 0 for i in range(AXES))


def distance(p: Point | None, q: Point | None) -> float:
    """How far two points are apart; a coordinate that only one of them has counts as 0 for the other."""
    if p is None or q is None:
        return math.inf
    size = max(len(p), len(q))
    return math.dist((*p, *[0.0] * (size - len(p))), (*q, *[0.0] * (size - len(q))))


class Turn(NamedTuple):
    """What happens to a scope of a condition at a moment: a start, an end, or both; in the order in which
    that is looked at."""

    starts: bool
    source: str
    sequence: int
    member: int
    scope: str
    ends: bool
    event: Event


@dataclass
class State:
    """For each condition what holds, and what is over and may still matter; and what waits."""

    holds: list[Shelf]
    over: list[Shelf]
    waiting: Waiting = field(default_factory=Waiting)


class _Kept(msgspec.Struct):
    holds: list[dict[str, Interval]]
    over: list[dict[str, Interval]]
    waiting: Waiting


@dataclass(frozen=True)
class Intervals(Hearing):
    """The machine.  Readings of ``members`` tell in the attributes ``says`` a status, whose it is, and since
    when it holds; ``groups`` give the key that those must share that meet.  What is told has of each member
    its scope and its ends, in attributes that ``labels`` name."""

    members: tuple[Topic, ...]
    name: str
    says: tuple[str, str, str]
    labels: tuple[tuple[str, str, str], ...]
    relation: Allen
    within: Duration | None
    near: float
    groups: tuple[Callable[[Event], str | None], ...]
    per: tuple[str, ...]
    shown: Callable[[Sequence[str]], str | None]

    strictest = None
    is_timed = True
    margin = None
    compacts = False

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {topic.name: topic for topic in self.members}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {topic.name: i for i, topic in enumerate(self.members)}

    def initial(self) -> State:
        holds, over = ([Shelf(self.near, ended) for _ in self.members] for ended in (False, True))
        return State(holds, over)

    # --- what it hears waits until its moment is over ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        return state, [] if state.waiting.add(event) else list(self._moment(state, event.time, [event]))

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        out: list[Transition] = []
        waiting = state.waiting
        while (at := waiting.first) < until:
            out += self._moment(state, at, waiting.moment())
        waiting.passed(until)
        return state, out

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        out: list[Transition] = []
        for event in self._in_turn(batches):
            state, said = self.react(state, event)
            out += said
        state, said = self.advance(state, until)
        return state, Told({}, out + said)

    def _in_turn(self, batches: Batches) -> Iterator[Event]:
        """The events of each topic as they came, those of several by how far time had come: what is late is
        taken at once, and who holds already is told to one that begins with the time since when."""
        come = []
        for topic, batch in batches.items():
            events = list(to_events(self.topics[topic], batch))
            come.append(list(zip(accumulate((one.time for one in events), max), events, strict=True)))
        return (event for _, event in merge(*come, key=itemgetter(0)))

    # --- a moment ---

    def _moment(self, state: State, at: Instant, events: Sequence[Event]) -> Iterator[Transition]:
        """Ends come before starts: what ends as another starts does not hold with it."""
        heard = list(filter(None, map(self._turn, events)))
        turns = sorted(self._lasting(state, heard), key=lambda turn: turn[:-1])
        if self.relation == "overlapping":
            for turn in turns:
                yield from self._together(state, turn)
            return
        ended = [(turn, one) for turn in turns if turn.ends and (one := self._ended(state, turn))]
        began = [(turn, one) for turn in turns if turn.starts and (one := self._began(state, turn))]
        for shelf in state.over:
            shelf.forget(at - (self.within or 1))
        yield from self._decided(state, at, ended, began)

    def _turn(self, event: Event) -> Turn | None:
        status, _, since = (event.attributes.get(name) for name in self.says)
        if status == "revised":  # it starts or ends by that
            status = "egress" if since is None else "ingress"
        starts, ends = status in ("ingress", "atomic"), status in ("egress", "atomic")
        if not (starts or ends):
            return None
        member, name = self.speaker(event)
        return Turn(starts, event.source, event.sequence, member, name, ends, event)

    def speaker(self, event: Event) -> tuple[int, str]:
        """Which condition an event tells of, by number, and which scope of it."""
        scope = event.attributes.get(self.says[1])
        return self._numbers[event.topic], "" if scope is None else str(scope)

    def _lasting(self, state: State, turns: Sequence[Turn]) -> Iterator[Turn]:
        """What a moment comes to, in each scope: what starts and ends in it has not been, unless that is all
        that it can do."""
        ends: dict[tuple[int, str], Turn] = {}
        starts: dict[tuple[int, str], Turn] = {}
        for turn in turns:
            of = turn.member, turn.scope
            holds = of in starts or (turn.scope in state.holds[turn.member].by_scope and of not in ends)
            if turn.starts and turn.ends:
                yield turn
            elif turn.starts and not holds:
                starts[of] = turn
            elif turn.ends and holds and starts.pop(of, None) is None:
                ends[of] = turn
        yield from (*ends.values(), *starts.values())

    def _interval(self, turn: Turn) -> Interval:
        event = turn.event
        at = event.location if event.location and all(map(math.isfinite, event.location)) else None
        end = event.time if turn.ends else NEVER
        per = tuple(event.attributes.get(name) for name in self.per)
        return Interval(event.time, at, self.groups[turn.member](event), per, end)

    def _ended(self, state: State, turn: Turn) -> Interval | None:
        """The stretch that ends, which is over then."""
        if turn.starts:
            one: Interval | None = self._interval(turn)
        else:
            held = state.holds[turn.member].pop(turn.scope)
            one = None if held is None else msgspec.structs.replace(held, end=turn.event.time)
        if one is not None and (self.relation == "ends" or (self.relation == "before" and not turn.member)):
            state.over[turn.member].put(turn.scope, one)
        return one

    def _began(self, state: State, turn: Turn) -> Interval | None:
        shelf = state.holds[turn.member]
        if turn.scope in shelf.by_scope:
            return None
        one = self._interval(turn)
        if not turn.ends:
            shelf.put(turn.scope, one)
        return one

    # --- what holds at once ---

    def _together(self, state: State, turn: Turn) -> Iterator[Transition]:
        one = self._ended(state, turn) if turn.ends else self._began(state, turn)
        for chosen in () if one is None else self._choices(state, {turn.member: (turn.scope, one)}):
            since = max(member.start for _, member in chosen) if turn.ends else None
            yield self._told(turn.event, chosen, "egress" if turn.ends else "ingress", since)

    def _choices(
        self, state: State, fixed: dict[int, tuple[str, Interval]]
    ) -> Iterator[list[tuple[str, Interval]]]:
        """All ways to choose what holds of the other conditions, near to one another."""
        if len(fixed) == len(self.members):
            yield [fixed[i] for i in range(len(self.members))]
            return
        free = next(i for i in range(len(self.members)) if i not in fixed)
        (_, first), *others = fixed.values()
        for scope, one in state.holds[free].found(first, *self._starting_near(first)):
            if all(self._agree(one, other) for _, other in others):
                yield from self._choices(state, {**fixed, free: (scope, one)})

    def _starting_near(self, one: Interval) -> tuple[Instant, Instant]:
        if self.within is None:
            return BEGINNING, NEVER
        return one.start - self.within, one.start + self.within

    def _agree(self, a: Interval, b: Interval) -> bool:
        low, high = self._starting_near(a)
        return low < b.start < high and (self.near == math.inf or distance(a.at, b.at) < self.near)

    # --- what is known of two at one moment ---

    def _decided(
        self,
        state: State,
        at: Instant,
        ended: Sequence[tuple[Turn, Interval]],
        began: Sequence[tuple[Turn, Interval]],
    ) -> Iterator[Transition]:
        """The pairs of which this moment decides that they are related."""
        if self.relation == "before":
            for turn, one in began:
                if turn.member == 1:
                    yield from self._pairs(turn, one, state.over[0].found(one, at - (self.within or 1), at))
            return
        for turn, one in ended:
            if self.relation == "ends":
                yield from self._pairs(turn, one, self._ended_with(state, turn, one))
            elif turn.member == 0:
                yield from self._pairs(turn, one, state.holds[1].found(one, *self._second(one)))

    def _ended_with(self, state: State, turn: Turn, one: Interval) -> Iterator[tuple[str, Interval]]:
        """Those that have ended with one, and started before or after it, as it is the first or the second;
        what ends at one moment is told with the first."""
        is_first, width = turn.member == 0, self.within or 1
        for scope, other in state.over[1 - turn.member].found(one, one.end - width, one.end + is_first):
            first, second = (one, other) if is_first else (other, one)
            is_moment = first.start == first.end
            if second.start < first.start < second.end + is_moment:
                yield scope, other

    def _second(self, a: Interval) -> tuple[Instant, Instant]:
        """Between which instants the second starts, when the first ends before it."""
        width = NEVER if self.within is None else self.within
        match self.relation:
            case "overlaps":
                return a.start, min(a.end, a.start + width)
            case "during":
                return max(BEGINNING, a.start - width), a.start
            case _:
                width, is_moment = self.within or 1, a.start == a.end
                return a.start - width, a.start + width if is_moment else min(a.end, a.start + width)

    def _pairs(
        self, turn: Turn, one: Interval, others: Iterator[tuple[str, Interval]]
    ) -> Iterator[Transition]:
        for other in list(others):
            pair = [(turn.scope, one), other]
            yield self._told(turn.event, pair[:: 1 if turn.member == 0 else -1], "atomic", None)

    def _told(
        self, event: Event, members: Sequence[tuple[str, Interval]], status: Status, since: Instant | None
    ) -> Transition:
        attributes: dict[str, Value] = dict(zip(self.per, members[0][1].per, strict=True))
        for (scope, one), (label, start, end) in zip(members, self.labels, strict=True):
            attributes[label] = scope or None
            attributes[start] = show_instant(one.start)
            attributes[end] = None if one.end == NEVER else show_instant(one.end)
        told = replace(event, topic=self.name, attributes=attributes)
        return Transition(told, status, self.shown([scope for scope, _ in members]), since, 0)

    # --- what holds, and keeping it ---

    def due(self, state: State) -> Instant | None:
        return None if state.waiting.first == NEVER else state.waiting.first

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        if self.relation != "overlapping":
            return []
        return [
            (0, self.shown([scope for scope, _ in chosen]), max(one.start for _, one in chosen))
            for first in state.holds[0].by_scope.items()
            for chosen in self._choices(state, {0: first})
        ]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.waiting.held and not any(shelf.by_scope for shelf in (*state.holds, *state.over))

    def to_bytes(self, state: State) -> bytes:
        holds, over = ([shelf.by_scope for shelf in some] for some in (state.holds, state.over))
        return msgspec.msgpack.encode(_Kept(holds, over, state.waiting))

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        state = self.initial()
        if was is not None and was[0] is None:
            return state
        kept = msgspec.msgpack.decode(raw, type=_Kept)
        for shelves, some in ((state.holds, kept.holds), (state.over, kept.over)):
            for shelf, mine in zip(shelves, some, strict=True):
                for scope, one in mine.items():
                    shelf.put(scope, one)
        state.waiting = kept.waiting
        return state
