"""The machine of overlaps: intervals that overlap or follow one another, near in time and space.

The machine consumes starts and ends of conditions, never readings. It stores active intervals. Of ended
intervals it stores only the last one of each scope, as long as another interval may still relate to it. All
events of one timestamp are processed together.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import merge
from itertools import accumulate, product
from operator import add, itemgetter
from typing import NamedTuple

import msgspec

from ...engine.machine import Batches, Emission, Traits
from ...engine.waiting import PendingEvents
from ...model.allen import Allen
from ...model.batch import to_events
from ...model.event import Event, Status, Transition, Value
from ...model.instant import BEGINNING, NEVER, Duration, Instant, show_instant
from ...model.space import Point
from ...model.topic import Topic
from ..derived import DerivedMachine

Cell = tuple[str | None, tuple[int, ...]]
"""The key of an interval, and its cell in the grid."""
AXES = 3
"""The number of coordinates by which locations are indexed. Distances use all coordinates."""


class ActiveInterval(msgspec.Struct, frozen=True):
    """An interval of a scope: its start, its location, and its end if it has ended.

    ``key`` is the key that related intervals share; ``per`` has the attributes of which it consists.
    """

    start: Instant
    at: Point | None
    key: str | None
    per: tuple[str | int | float | bool | None, ...]
    end: Instant = NEVER


class IntervalShelf:
    """An index of intervals of one condition, one for each scope.

    It finds intervals by key, location, and start or (if ``ended``) end.
    """

    def __init__(self, near: float, ended: bool) -> None:
        self.near, self.ended = near, ended
        self.by_scope: dict[str, ActiveInterval] = {}
        self.cells: dict[Cell, list[tuple[Instant, str]]] = {}
        self.times: list[tuple[Instant, str]] = []

    def put(self, scope: str, interval: ActiveInterval) -> None:
        """Add an interval. It replaces an earlier interval of its scope."""
        self.pop(scope)
        self.by_scope[scope] = interval
        entry = (self._time_of(interval), scope)
        insort(self.cells.setdefault(self._cell(interval), []), entry)
        if self.ended:
            insort(self.times, entry)

    def pop(self, scope: str) -> ActiveInterval | None:
        """Remove and return the interval of a scope, or return `None`."""
        interval = self.by_scope.pop(scope, None)
        if interval is not None:
            entry, cell = (self._time_of(interval), scope), self._cell(interval)
            _remove(self.cells[cell], entry)
            if not self.cells[cell]:
                del self.cells[cell]
            if self.ended:
                _remove(self.times, entry)
        return interval

    def forget(self, until: Instant) -> None:
        """Drop the intervals that ended at or before a time. Requires ``ended``."""
        while self.times and self.times[0][0] <= until:
            self.pop(self.times[0][1])

    def found(self, of: ActiveInterval, low: Instant, high: Instant) -> Iterator[tuple[str, ActiveInterval]]:
        """Yield the scopes and intervals near another interval, with a start between ``low`` and ``high``,
        exclusive.

        If the index is of ended intervals, the end is compared instead of the start.
        """
        square = _square(of.at, self.near)
        steps = product((-1, 0, 1), repeat=len(square)) if of.key is not None else ()
        for step in steps:
            entries = self.cells.get((of.key, tuple(map(add, square, step))), ())
            for time, scope in entries[bisect_left(entries, (low + 1, "")) :]:
                if time >= high:
                    break
                interval = self.by_scope[scope]
                if self.near == math.inf or distance(of.at, interval.at) < self.near:
                    yield scope, interval

    def _time_of(self, interval: ActiveInterval) -> Instant:
        """Return the time by which an interval is indexed."""
        return interval.end if self.ended else interval.start

    def _cell(self, interval: ActiveInterval) -> Cell:
        return interval.key, _square(interval.at, self.near)


def _remove(entries: list[tuple[Instant, str]], entry: tuple[Instant, str]) -> None:
    """Remove an entry from a sorted list."""
    del entries[bisect_left(entries, entry)]


def _square(at: Point | None, near: float) -> tuple[int, ...]:
    """Return the cell of a point in a grid.

    The cells are twice as wide as the maximal distance, so that rounding cannot lead beyond the next cell.
    """
    if near == math.inf or at is None:
        return ()
    return tuple(math.floor(at[i] / near / 2) if i < len(at) else 0 for i in range(AXES))


def distance(p: Point | None, q: Point | None) -> float:
    """Return the distance of two points; infinite if a point is missing.

    A coordinate that only one point has counts as 0 for the other point.
    """
    if p is None or q is None:
        return math.inf
    size = max(len(p), len(q))
    return math.dist((*p, *[0.0] * (size - len(p))), (*q, *[0.0] * (size - len(q))))


class OverlapStep(NamedTuple):
    """A start, an end, or both, of a scope of a condition at one timestamp.

    The fields are in the order by which steps are sorted.
    """

    starts: bool
    source: str
    sequence: int
    member: int
    scope: str
    ends: bool
    event: Event


@dataclass
class OverlapState:
    """The state of an overlap: for each condition its active intervals, and ended ones that may still be
    related."""

    holds: list[IntervalShelf]
    over: list[IntervalShelf]
    waiting: PendingEvents = field(default_factory=PendingEvents)


class _StoredOverlaps(msgspec.Struct):
    """The format of snapshots: active and ended intervals of each condition by scope, and waiting events."""

    holds: list[dict[str, ActiveInterval]]
    over: list[dict[str, ActiveInterval]]
    waiting: PendingEvents


@dataclass(frozen=True)
class OverlapMachine(DerivedMachine[OverlapState]):
    """The machine of one overlap.

    Events of ``members`` have status, scope and start in the attributes ``columns``. ``groups`` return the
    key that related intervals share. Its own events have for each member the scope and both ends, in
    attributes named by ``labels``.
    """

    members: tuple[Topic, ...]
    name: str
    labels: tuple[tuple[str, str, str], ...]
    relation: Allen
    within: Duration | None
    near: float
    groups: tuple[Callable[[Event], str | None], ...]
    per: tuple[str, ...]
    shown: Callable[[Sequence[str]], str | None]

    waits = True
    traits = Traits(uses_watermark=True)

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {topic.name: topic for topic in self.members}

    def initial(self) -> OverlapState:
        holds, over = ([IntervalShelf(self.near, ended) for _ in self.members] for ended in (False, True))
        return OverlapState(holds, over)

    # --- input: events wait until the watermark has passed their time ---

    def step(
        self, state: OverlapState, batches: Batches, watermark: Instant
    ) -> tuple[OverlapState, Emission]:
        """Process a batch of each topic, then advance to the watermark.

        Events of several topics are merged by the latest time before each event, so that late events stay in
        their position. Standings consumed at a start carry the time of that start.
        """
        dated: list[list[tuple[Instant, Event]]] = []
        for topic, batch in batches.items():
            events = list(to_events(self.topics[topic], batch))
            dated.append(list(zip(accumulate((event.time for event in events), max), events, strict=True)))
        out: list[Transition] = []
        for _, event in merge(*dated, key=itemgetter(0)):
            out += self.react(state, event)[1]
        return state, Emission({}, out + self.advance(state, watermark)[1])

    # --- one timestamp ---

    def process(self, state: OverlapState, events: Sequence[Event]) -> Iterator[Transition]:
        """Process the events of one timestamp.

        Ends come before starts: an interval that ends when another starts does not overlap it.
        """
        at = max(event.time for event in events)
        steps = list(filter(None, map(self._step_of, events)))
        turns = sorted(self._lasting(state, steps), key=lambda turn: turn[:-1])
        if self.relation == "overlapping":
            for turn in turns:
                yield from self._together(state, turn)
            return
        ended = [(turn, interval) for turn in turns if turn.ends and (interval := self._end(state, turn))]
        began = [(turn, interval) for turn in turns if turn.starts and (interval := self._began(state, turn))]
        for shelf in state.over:
            shelf.forget(at - (self.within or 1))
        yield from self._decide(state, at, ended, began)

    def _step_of(self, event: Event) -> OverlapStep | None:
        """Return a derived event as a step, or `None` if it neither starts nor ends an interval."""
        status, *_ = self.read(event)
        starts, ends = status in ("ingress", "atomic"), status in ("egress", "atomic")
        if not (starts or ends):
            return None
        member, name = self.member_of(event)
        return OverlapStep(starts, event.source, event.sequence, member, name, ends, event)

    def member_of(self, event: Event) -> tuple[int, str]:
        """Return the number of the condition of a derived event, and its scope."""
        return list(self.topics).index(event.topic), self.read(event)[1]

    def _lasting(self, state: OverlapState, turns: Sequence[OverlapStep]) -> Iterator[OverlapStep]:
        """Yield the steps of one timestamp that remain.

        A scope that starts and ends at the same time has not been active, unless its condition is momentary.
        """
        ends: dict[tuple[int, str], OverlapStep] = {}
        starts: dict[tuple[int, str], OverlapStep] = {}
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

    def _interval(self, turn: OverlapStep) -> ActiveInterval:
        """Return the interval that a step starts."""
        event = turn.event
        at = event.location if event.location and all(map(math.isfinite, event.location)) else None
        end = event.time if turn.ends else NEVER
        per = tuple(event.attributes.get(name) for name in self.per)
        return ActiveInterval(event.time, at, self.groups[turn.member](event), per, end)

    def _end(self, state: OverlapState, turn: OverlapStep) -> ActiveInterval | None:
        """End an interval and return it. Store it if others may still relate to it."""
        if turn.starts:
            interval: ActiveInterval | None = self._interval(turn)
        else:
            held = state.holds[turn.member].pop(turn.scope)
            interval = None if held is None else msgspec.structs.replace(held, end=turn.event.time)
        relates_later = self.relation == "ends" or (self.relation == "before" and not turn.member)
        if interval is not None and relates_later:
            state.over[turn.member].put(turn.scope, interval)
        return interval

    def _began(self, state: OverlapState, turn: OverlapStep) -> ActiveInterval | None:
        """Start an interval and return it; return `None` if its scope is already active."""
        shelf = state.holds[turn.member]
        if turn.scope in shelf.by_scope:
            return None
        interval = self._interval(turn)
        if not turn.ends:
            shelf.put(turn.scope, interval)
        return interval

    # --- overlapping intervals ---

    def _together(self, state: OverlapState, turn: OverlapStep) -> Iterator[Transition]:
        """Yield the combinations of active intervals that a step starts or ends."""
        interval = self._end(state, turn) if turn.ends else self._began(state, turn)
        for chosen in () if interval is None else self._choices(state, {turn.member: (turn.scope, interval)}):
            since = max(member.start for _, member in chosen) if turn.ends else None
            yield self._emit(turn.event, chosen, "egress" if turn.ends else "ingress", since)

    def _choices(
        self, state: OverlapState, fixed: dict[int, tuple[str, ActiveInterval]]
    ) -> Iterator[list[tuple[str, ActiveInterval]]]:
        """Yield all combinations with one active interval of each other condition. All intervals are near one
        another."""
        if len(fixed) == len(self.members):
            yield [fixed[i] for i in range(len(self.members))]
            return
        free = next(i for i in range(len(self.members)) if i not in fixed)
        (_, first), *others = fixed.values()
        for scope, interval in state.holds[free].found(first, *self._starting_near(first)):
            if all(self._are_near(interval, other) for _, other in others):
                yield from self._choices(state, {**fixed, free: (scope, interval)})

    def _starting_near(self, interval: ActiveInterval) -> tuple[Instant, Instant]:
        """Return the bounds, exclusive, between which intervals near another interval start."""
        if self.within is None:
            return BEGINNING, NEVER
        return interval.start - self.within, interval.start + self.within

    def _are_near(self, a: ActiveInterval, b: ActiveInterval) -> bool:
        """Whether two intervals are near one another in time and space."""
        low, high = self._starting_near(a)
        return low < b.start < high and (self.near == math.inf or distance(a.at, b.at) < self.near)

    # --- relations of two conditions ---

    def _decide(
        self,
        state: OverlapState,
        at: Instant,
        ended: Sequence[tuple[OverlapStep, ActiveInterval]],
        began: Sequence[tuple[OverlapStep, ActiveInterval]],
    ) -> Iterator[Transition]:
        """Yield the pairs whose relation is decided at this timestamp."""
        if self.relation == "before":
            for turn, interval in began:
                if turn.member == 1:
                    earlier = state.over[0].found(interval, at - (self.within or 1), at)
                    yield from self._pairs(turn, interval, earlier)
            return
        for turn, interval in ended:
            if self.relation == "ends":
                yield from self._pairs(turn, interval, self._ends_with(state, turn, interval))
            elif turn.member == 0:
                later = state.holds[1].found(interval, *self._second(interval))
                yield from self._pairs(turn, interval, later)

    def _ends_with(
        self, state: OverlapState, turn: OverlapStep, interval: ActiveInterval
    ) -> Iterator[tuple[str, ActiveInterval]]:
        """Yield the intervals that ended together with `interval`, and that started before or after it as
        ``ends`` requires.

        Of ends at one timestamp, the pair is reported with the first condition.
        """
        is_first, width = turn.member == 0, self.within or 1
        others, end = state.over[1 - turn.member], interval.end
        for scope, other in others.found(interval, end - width, end + is_first):
            first, second = (interval, other) if is_first else (other, interval)
            is_point = first.start == first.end
            if second.start < first.start < second.end + is_point:
                yield scope, other

    def _second(self, a: ActiveInterval) -> tuple[Instant, Instant]:
        """Return the bounds, exclusive, between which the second interval must start if the first one ends
        before it."""
        width = NEVER if self.within is None else self.within
        match self.relation:
            case "overlaps":
                return a.start, min(a.end, a.start + width)
            case "during":
                return max(BEGINNING, a.start - width), a.start
            case _:
                width, is_point = self.within or 1, a.start == a.end
                return a.start - width, a.start + width if is_point else min(a.end, a.start + width)

    def _pairs(
        self, turn: OverlapStep, interval: ActiveInterval, others: Iterator[tuple[str, ActiveInterval]]
    ) -> Iterator[Transition]:
        """Yield a transition for each pair of `interval` with one of `others`."""
        for other in list(others):
            pair = [(turn.scope, interval), other]
            yield self._emit(turn.event, pair[:: 1 if turn.member == 0 else -1], "atomic", None)

    def _emit(
        self,
        event: Event,
        members: Sequence[tuple[str, ActiveInterval]],
        status: Status,
        since: Instant | None,
    ) -> Transition:
        attributes: dict[str, Value] = dict(zip(self.per, members[0][1].per, strict=True))
        for (scope, interval), (label, start, end) in zip(members, self.labels, strict=True):
            attributes[label] = scope or None
            attributes[start] = show_instant(interval.start)
            attributes[end] = None if interval.end == NEVER else show_instant(interval.end)
        result = replace(event, topic=self.name, attributes=attributes)
        return Transition(result, status, self.shown([scope for scope, _ in members]), since, 0)

    # --- snapshots ---

    def active(self, state: OverlapState) -> list[tuple[int, str | None, Instant]]:
        """Return the active combinations; only the relation `overlapping` has any."""
        if self.relation != "overlapping":
            return []
        return [
            (0, self.shown([scope for scope, _ in chosen]), max(member.start for _, member in chosen))
            for first in state.holds[0].by_scope.items()
            for chosen in self._choices(state, {0: first})
        ]

    def is_initial(self, state: OverlapState, condition: int) -> bool:
        return not state.waiting.held and not any(shelf.by_scope for shelf in (*state.holds, *state.over))

    def dump(self, state: OverlapState) -> bytes:
        holds, over = ([shelf.by_scope for shelf in shelves] for shelves in (state.holds, state.over))
        return msgspec.msgpack.encode(_StoredOverlaps(holds, over, state.waiting))

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> OverlapState:
        state = self.initial()
        if was is not None and was[0] is None:
            return state
        stored = msgspec.msgpack.decode(raw, type=_StoredOverlaps)
        for shelves, stored_intervals in ((state.holds, stored.holds), (state.over, stored.over)):
            for shelf, by_scope in zip(shelves, stored_intervals, strict=True):
                for scope, interval in by_scope.items():
                    shelf.put(scope, interval)
        state.waiting = stored.waiting
        return state
