"""Muting: what a condition tells is held back while a schedule, another condition or a storm says so.

Only delivery is held back, never evaluation.  When it ends, what holds is told as it is then, and what came
and went is summed up.  What happens at one moment is looked at together, so that a condition that starts with
its parent is not told before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import msgspec

from ..model.batch import reached, to_events
from ..model.event import Event, Status, Transition, Value
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.schedule import Schedule
from ..model.topic import Topic
from .machine import Batches, Hearing, Told
from .waiting import Waiting

Key = Callable[[Event], str | None]

_MOVED = frozenset(("raised", "lowered", "revised"))
"""What is said of a level that becomes another."""


@dataclass(frozen=True)
class During:
    """Muted by the clock."""

    schedule: Schedule


@dataclass(frozen=True)
class While:
    """Muted while the condition of ``topic`` holds in the scope that ``key`` finds for an event."""

    topic: Topic
    key: Key


@dataclass(frozen=True)
class Beyond:
    """Muted while more than ``most`` scopes hold, among those that ``key`` finds to be siblings."""

    most: int
    key: Key
    shown: Callable[[str], str | None]


Cause = During | While | Beyond


class Scope(msgspec.Struct):
    """What is known of a scope: whether it holds and since when, whether people believe so and since when,
    where it is in the eyes of each cause, and what was held back: what last, when, and how much is over."""

    keys: list[str | None]
    on: bool = False
    since: Instant | None = None
    believed: bool = False
    told: Instant | None = None
    last: Event | None = None
    status: str = ""
    at: Instant = BEGINNING
    gone: int = 0

    @property
    def is_idle(self) -> bool:
        return not (self.on or self.believed or self.last)


class State(msgspec.Struct):
    """Scopes that hold, are believed to, or have something held back; of each cause the parents that hold, or
    how many siblings do; what waits for its moment to be over; how far time has come; and when a schedule
    ends that holds something back."""

    scopes: dict[str, Scope]
    counts: list[dict[str, int]]
    waiting: Waiting
    latest: Instant = BEGINNING
    end: Instant | None = None


@dataclass(frozen=True)
class Mute(Hearing):
    """The machine.  Readings of ``topic`` tell what the condition has told; ``says`` are the attributes for
    status, scope and since.  What passes is told as events of ``tells``, what is summed up of ``name``."""

    topic: Topic
    name: str
    tells: str
    says: tuple[str, str, str]
    own: tuple[str, str, str]
    dropped: frozenset[str]
    causes: tuple[Cause, ...]
    wait: Duration

    strictest = None
    is_timed = True
    margin = None
    compacts = True

    @property
    def topics(self) -> dict[str, Topic]:
        parents = (cause.topic for cause in self.causes if isinstance(cause, While))
        return {topic.name: topic for topic in (self.topic, *parents)}

    def initial(self) -> State:
        return State({}, [{} for _ in self.causes], Waiting())

    # --- what it hears waits until its moment is over ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        state.latest = max(state.latest, event.time)
        rank = int(event.topic == self.topic.name)  # what mutes comes before what is muted
        return state, [] if state.waiting.add(event, rank) else list(self._taken(state, event))

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        if until != NEVER:
            state.latest = max(state.latest, until)
        bound = until if until in (BEGINNING, NEVER) else until - self.wait
        out: list[Transition] = []
        waiting = state.waiting
        while True:
            head, end = waiting.first, state.end
            if end is not None and end <= head and (end <= state.latest if until == NEVER else end < bound):
                waiting.passed(end)
                out += self._released(state, end, lambda _scope: True)
            elif head < bound:
                waiting.passed(head)
                out += self._taken(state, waiting.take())
            else:
                break
        waiting.passed(bound)
        return state, out

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        out: list[Transition] = []
        for topic, batch in batches.items():
            at = reached(batch)
            state.latest = max(state.latest, BEGINNING if at is None else at)
            for event in to_events(self.topics[topic], batch):
                state, said = self.react(state, event)
                out += said
        state, said = self.advance(state, until)
        return state, Told({}, out + said)

    # --- one thing after the other ---

    def _taken(self, state: State, event: Event) -> Iterator[Transition]:
        status, name = str(event.attributes[self.says[0]]), event.attributes[self.says[1]]
        if event.topic != self.topic.name:
            yield from self._of_parent(state, event, status, "" if name is None else str(name))
            return
        key = "" if name is None else f" {name}"
        scope = state.scopes.setdefault(key, Scope([]))
        if not scope.keys or status != "egress":
            scope.keys = [None if isinstance(one, During) else one.key(event) for one in self.causes]
        storms = [self._is_storm(state, i, scope) for i in range(len(self.causes))]
        self._turn(state, scope, event, status)
        never_told = status == "egress" and scope.last is not None and not scope.believed
        if never_told:
            self._hold_back(state, scope, event, status)
        yield from self._storms(state, storms, scope, event, also=never_told)
        if not never_told and self._is_muted(state, scope, self._now(state, event)):
            self._hold_back(state, scope, event, status)
        elif not never_told:
            if scope.last is not None and scope.gone:  # it was muted elsewhere
                own = (scope.gone, 1, int(scope.on))
                yield self._summary(scope.last, self._now(state, event), None, own)
            scope.believed, scope.last, scope.status, scope.gone = scope.on, None, "", 0
            scope.told = event.time if status == "ingress" else scope.told
            yield self._transition(event, status, name, event.attributes[self.says[2]])
        if scope.is_idle:
            state.scopes.pop(key, 0)

    def _now(self, state: State, event: Event) -> Instant:
        """When an event is looked at: at its time, or when it comes too late for that."""
        return max(event.time, state.waiting.until)

    def _turn(self, state: State, scope: Scope, event: Event, status: str) -> None:
        """Whether a scope holds, and how many siblings do."""
        status = self._meant(event, status)
        if status not in ("ingress", "egress") or scope.on == (status == "ingress"):
            return
        scope.on = not scope.on
        scope.since = event.time if scope.on else scope.since
        for i, key in enumerate(scope.keys):
            if isinstance(self.causes[i], Beyond) and key is not None:
                left = state.counts[i].get(key, 0) + (1 if scope.on else -1)
                state.counts[i][key] = left
                if not left:
                    del state.counts[i][key]

    def _meant(self, event: Event, status: str) -> str:
        """A status; one that is revised starts or ends by that."""
        if status != "revised":
            return status
        return "egress" if event.attributes[self.says[2]] is None else "ingress"

    def _hold_back(self, state: State, scope: Scope, event: Event, status: str) -> None:
        scope.gone += status == "atomic" or (status == "egress" and not scope.believed)
        if status not in ("known", "unknown") or scope.status not in _MOVED:
            scope.status = status
        scope.last, scope.at = event, self._now(state, event)
        end = self._ends(scope)
        state.end = end if state.end is None else state.end if end is None else min(end, state.end)

    def _ends(self, scope: Scope) -> Instant | None:
        """When a schedule ends that holds a scope back."""
        schedules = (one.schedule for one in self.causes if isinstance(one, During))
        ends = (one.ends(scope.at) for one in schedules if one.is_on(scope.at))
        return min((end for end in ends if end != NEVER), default=None)

    def _storms(
        self, state: State, before: list[bool], scope: Scope, event: Event, *, also: bool
    ) -> Iterator[Transition]:
        """A storm that begins is told at once; one that is over lets go of what it held back, of the scope by
        which it is over ``also`` if that is not told by itself."""
        for i, (cause, key) in enumerate(zip(self.causes, scope.keys, strict=True)):
            if not isinstance(cause, Beyond) or (now := self._is_storm(state, i, scope)) == before[i]:
                continue
            at, count = self._now(state, event), state.counts[i].get(key or "", 0)
            if now:
                yield self._summary(event, at, cause.shown(key or ""), (0, count, count))
            else:
                there = partial(_is_there, i, key, but=None if also else scope)
                yield from self._released(state, at, there)

    def _of_parent(self, state: State, event: Event, status: str, key: str) -> Iterator[Transition]:
        status = self._meant(event, status)
        for i, cause in enumerate(self.causes):
            if not isinstance(cause, While) or cause.topic.name != event.topic:
                continue
            if status == "ingress":
                state.counts[i][key] = 1
            elif status == "egress" and state.counts[i].pop(key, 0):
                yield from self._released(state, self._now(state, event), partial(_is_there, i, key))

    def _is_storm(self, state: State, cause: int, scope: Scope) -> bool:
        beyond, key = self.causes[cause], scope.keys[cause]
        return (
            isinstance(beyond, Beyond) and key is not None and state.counts[cause].get(key, 0) > beyond.most
        )

    def _is_muted(self, state: State, scope: Scope, at: Instant) -> bool:
        for i, (cause, key) in enumerate(zip(self.causes, scope.keys, strict=True)):
            match cause:
                case During(schedule) if schedule.is_on(at):
                    return True
                case While() if key is not None and key in state.counts[i]:
                    return True
                case Beyond() if self._is_storm(state, i, scope):
                    return True
        return False

    # --- what was held back is let go ---

    def freed(self, state: State, was: Mute, at: Instant) -> list[Transition]:
        """What is told where causes have become others than those of a mute that ran: of whatever is no
        longer muted, and of storms that begin by that."""
        now = max(at, state.waiting.until)
        return [*self._risen(state, was, now), *self._released(state, now, lambda _scope: True)]

    def _risen(self, state: State, was: Mute, at: Instant) -> Iterator[Transition]:
        for cause, before, counts in zip(self.causes, was.causes, state.counts, strict=True):
            if isinstance(cause, Beyond) and isinstance(before, Beyond):
                for key, count in sorted(counts.items()):
                    if cause.most < count <= before.most:
                        nobody = Event(self.name, at, "")
                        yield self._summary(nobody, at, cause.shown(key), (0, count, count))

    def _released(self, state: State, at: Instant, concerned: Callable[[Scope], bool]) -> list[Transition]:
        """What is told when some scopes are no longer muted."""
        out: list[Transition] = []
        gone = scopes = 0
        last: Event | None = None
        free = []
        for name, one in state.scopes.items():
            if one.last is not None and concerned(one):
                one.at = max(one.at, at)
                if not self._is_muted(state, one, at):
                    free.append((name, one))
        for name, one in sorted(free, key=lambda pair: pair[0]):
            assert one.last is not None
            out += self._caught_up(one, at, name[1:] if name else None)
            if one.gone:
                gone, scopes = gone + one.gone, scopes + 1
                last = one.last if last is None or one.last.order > last.order else last
            one.believed, one.last, one.status, one.gone = one.on, None, "", 0
            if one.is_idle:
                del state.scopes[name]
        ends = (self._ends(one) for one in state.scopes.values() if one.last is not None)
        state.end = min((end for end in ends if end is not None), default=None)
        if last is not None:
            holding = sum(one.on for _, one in free)
            out.append(self._summary(last, at, None, (gone, scopes, holding)))
        return out

    def _caught_up(self, one: Scope, at: Instant, shown: str | None) -> Iterator[Transition]:
        """What people must hear of a scope so that they know how it is."""
        assert one.last is not None
        now = replace(one.last, time=at)
        if one.on != one.believed:
            since = one.since if one.on else one.told
            one.told = at if one.on else None
            yield self._transition(now, "ingress" if one.on else "egress", shown, since)
        elif one.on and one.status in _MOVED:
            yield self._transition(now, one.status, shown, one.since)

    def _transition(self, event: Event, status: str, scope: Value, since: Value) -> Transition:
        kept = {name: value for name, value in event.attributes.items() if name not in self.dropped}
        told = replace(event, topic=self.tells, attributes=kept)
        return Transition(
            told, cast("Status", status), cast("str | None", scope), cast("int | None", since), 0
        )

    def _summary(self, event: Event, at: Instant, scope: str | None, own: tuple[int, int, int]) -> Transition:
        attributes = dict(zip(self.own, own, strict=True))
        told = Event(self.name, at, event.source, attributes, event.sequence)
        return Transition(told, "summary", scope, None, 0)

    # --- the rest ---

    def due(self, state: State) -> Instant | None:
        first = min(state.waiting.first, NEVER if state.end is None else state.end)
        return None if first == NEVER else first + self.wait

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return []  # the condition itself says what holds

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.scopes and not state.waiting.held and not any(state.counts)

    def to_bytes(self, state: State) -> bytes:
        return msgspec.msgpack.encode(state)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return self.initial()
        return msgspec.msgpack.decode(raw, type=State)


def _is_there(cause: int, key: str | None, scope: Scope, but: Scope | None = None) -> bool:
    """Whether a scope, but for one, has its place in the eyes of a cause."""
    return scope.keys[cause] == key and scope is not but
