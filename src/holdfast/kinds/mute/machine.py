"""The machine of mutes: it withholds notifications of a condition during a schedule, another condition or a
storm.

A mute affects only delivery, never evaluation. When it ends, the present state of each scope is reported, and
a summary counts the intervals that were withheld completely. All events of one timestamp are processed
together, so that a condition that starts with its parent is not reported before the parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from ...engine.machine import Batches, Emission, Traits
from ...engine.waiting import PendingEvents
from ...model.batch import latest_time
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.topic import Topic
from ..derived import DerivedMachine
from .condition import ClockCause

Key = Callable[[Event], str | None]
"""A function that returns the label of the scope that an event lies in, or `None`."""

_MOVED = frozenset(("raised", "lowered", "revised"))
"""Statuses of changes from one level to another, and of revisions."""


@dataclass(frozen=True)
class MuteWhile:
    """A cause: the condition of ``topic`` is active in the scope that ``key`` returns for an event."""

    topic: Topic
    key: Key


@dataclass(frozen=True)
class MuteBeyond:
    """A cause: more than ``most`` scopes with the same ``key`` are active. ``shown`` converts a key to its
    label."""

    most: int
    key: Key
    shown: Callable[[str], str | None]


Cause = ClockCause | MuteWhile | MuteBeyond


class Scope(msgspec.Struct):
    """The state of one scope of a muted condition.

    ``on`` and ``since`` say whether it is active and since when. ``believed`` and ``announced`` are the state
    that was last reported. ``keys`` has its key for each cause. ``last``, ``status`` and ``at`` describe the
    last withheld event, and ``gone`` counts the withheld intervals.
    """

    keys: list[str | None]
    on: bool = False
    since: Instant | None = None
    believed: bool = False
    announced: Instant | None = None
    last: Event | None = None
    status: str = ""
    at: Instant = BEGINNING
    gone: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether the scope is inactive and nothing is withheld, so that its state can be dropped."""
        return not (self.on or self.believed or self.last)


class MuteState(msgspec.Struct):
    """The state of a mute.

    ``scopes`` are active, reported as active, or withheld. ``counts`` has for each cause the active parents,
    or the numbers of active siblings. ``end`` is the next end of a schedule that withholds an event.
    """

    scopes: dict[str, Scope]
    counts: list[dict[str, int]]
    waiting: PendingEvents
    latest: Instant = BEGINNING
    end: Instant | None = None


@dataclass(frozen=True)
class MuteMachine(DerivedMachine[MuteState]):
    """The machine of one muted condition.

    Events of ``topic`` have status, scope and start in the attributes ``columns``. Notifications that pass
    are events of ``output_topic``; summaries are events of ``name``.
    """

    topic: Topic
    name: str
    output_topic: str
    own: tuple[str, ...]
    dropped: frozenset[str]
    causes: tuple[Cause, ...]
    wait: Duration

    state_type = MuteState
    waits = True
    traits = Traits(uses_watermark=True, compacts=True)

    @property
    def topics(self) -> dict[str, Topic]:
        parents = (cause.topic for cause in self.causes if isinstance(cause, MuteWhile))
        return {topic.name: topic for topic in (self.topic, *parents)}

    def initial(self) -> MuteState:
        return MuteState({}, [{} for _ in self.causes], PendingEvents())

    # --- input: events wait until the watermark has passed their time ---

    def react(self, state: MuteState, event: Event) -> tuple[MuteState, list[Transition]]:
        state.latest = max(state.latest, event.time)
        return super().react(state, event)

    def enqueue(self, state: MuteState, event: Event) -> bool:
        rank = int(event.topic == self.topic.name)  # events of parents precede those of the muted condition
        return state.waiting.add(event, rank) is not None

    def advance(self, state: MuteState, watermark: Instant) -> tuple[MuteState, list[Transition]]:
        """Advance to the watermark: process waiting events and the ends of schedules, in order of time."""
        if watermark != NEVER:
            state.latest = max(state.latest, watermark)
        bound = watermark if watermark in (BEGINNING, NEVER) else watermark - self.wait
        out: list[Transition] = []
        waiting = state.waiting
        while True:
            head, end = waiting.first, state.end
            limit = state.latest + 1 if watermark == NEVER else bound
            if end is not None and end <= head and end < limit:
                waiting.drop_before(end)
                out += self._release(state, end, lambda _scope: True)
            elif head < bound:
                waiting.drop_before(head)
                out += self.process(state, [waiting.take()])
            else:
                break
        waiting.drop_before(bound)
        return state, out

    def step(self, state: MuteState, batches: Batches, watermark: Instant) -> tuple[MuteState, Emission]:
        latest = (at for batch in batches.values() if (at := latest_time(batch)) is not None)
        state.latest = max(state.latest, *latest, BEGINNING)
        return super().step(state, batches, watermark)

    # --- one event ---

    def process(self, state: MuteState, events: Sequence[Event]) -> Iterator[Transition]:
        for event in events:
            yield from self._process(state, event)

    def _process(self, state: MuteState, event: Event) -> Iterator[Transition]:
        """Apply one event of the muted condition or of a parent."""
        status, name = str(event.attributes[self.columns[0]]), event.attributes[self.columns[1]]
        if event.topic != self.topic.name:
            yield from self._of_parent(state, event)
            return
        key = "" if name is None else f" {name}"
        scope = state.scopes.setdefault(key, Scope([]))
        if not scope.keys or status != "egress":
            scope.keys = [None if isinstance(c, ClockCause) else c.key(event) for c in self.causes]
        storms = [self._is_storm(state, i, scope) for i in range(len(self.causes))]
        self._turn(state, scope, event)
        is_unannounced = status == "egress" and scope.last is not None and not scope.believed
        if is_unannounced:
            self._hold_back(state, scope, event, status)
        yield from self._storms(state, storms, scope, event, also=is_unannounced)
        if not is_unannounced and self._is_muted(state, scope, self._now(state, event)):
            self._hold_back(state, scope, event, status)
        elif not is_unannounced:
            if scope.last is not None and scope.gone:  # events were withheld in another place
                totals = (scope.gone, 1, int(scope.on))
                yield self._summary(scope.last, self._now(state, event), None, totals)
            scope.believed, scope.last, scope.status, scope.gone = scope.on, None, "", 0
            scope.announced = event.time if status == "ingress" else scope.announced
            yield self._transition(event, status, name, event.attributes[self.columns[2]])
        if scope.is_idle:
            state.scopes.pop(key, 0)

    def _now(self, state: MuteState, event: Event) -> Instant:
        """Return the time at which an event is processed: its own time, or the watermark if it is late."""
        return max(event.time, state.waiting.until)

    def _turn(self, state: MuteState, scope: Scope, event: Event) -> None:
        """Update whether a scope is active, and the number of its active siblings."""
        status = self.read(event)[0]
        if status not in ("ingress", "egress") or scope.on == (status == "ingress"):
            return
        scope.on = not scope.on
        scope.since = event.time if scope.on else scope.since
        for i, key in enumerate(scope.keys):
            if isinstance(self.causes[i], MuteBeyond) and key is not None:
                left = state.counts[i].get(key, 0) + (1 if scope.on else -1)
                state.counts[i][key] = left
                if not left:
                    del state.counts[i][key]

    def _hold_back(self, state: MuteState, scope: Scope, event: Event, status: str) -> None:
        """Withhold an event, and update the next end of a schedule."""
        scope.gone += status == "atomic" or (status == "egress" and not scope.believed)
        if status not in ("known", "unknown") or scope.status not in _MOVED:
            scope.status = status
        scope.last, scope.at = event, self._now(state, event)
        end = self._ends(scope)
        state.end = end if state.end is None else state.end if end is None else min(end, state.end)

    def _ends(self, scope: Scope) -> Instant | None:
        """Return the end of the schedule that withholds a scope, or `None`."""
        schedules = (cause.schedule for cause in self.causes if isinstance(cause, ClockCause))
        ends = (schedule.ends(scope.at) for schedule in schedules if schedule.is_on(scope.at))
        return min((end for end in ends if end != NEVER), default=None)

    def _storms(
        self, state: MuteState, before: list[bool], scope: Scope, event: Event, *, also: bool
    ) -> Iterator[Transition]:
        """Report a storm that starts; release the scopes of a storm that ends.

        The current scope is released only if ``also`` is set, because otherwise it is reported by itself.
        """
        for i, (cause, key) in enumerate(zip(self.causes, scope.keys, strict=True)):
            if not isinstance(cause, MuteBeyond) or (now := self._is_storm(state, i, scope)) == before[i]:
                continue
            at, count = self._now(state, event), state.counts[i].get(key or "", 0)
            if now:
                yield self._summary(event, at, cause.shown(key or ""), (0, count, count))
            else:
                is_there = partial(_is_there, i, key, but=None if also else scope)
                yield from self._release(state, at, is_there)

    def _of_parent(self, state: MuteState, event: Event) -> Iterator[Transition]:
        """Apply an event of a parent. The end of a parent releases the scopes that it withheld."""
        status, key, _ = self.read(event)
        for i, cause in enumerate(self.causes):
            if not isinstance(cause, MuteWhile) or cause.topic.name != event.topic:
                continue
            if status == "ingress":
                state.counts[i][key] = 1
            elif status == "egress" and state.counts[i].pop(key, 0):
                yield from self._release(state, self._now(state, event), partial(_is_there, i, key))

    def _is_storm(self, state: MuteState, cause: int, scope: Scope) -> bool:
        """Whether more siblings of a scope are active than a cause allows."""
        beyond, key = self.causes[cause], scope.keys[cause]
        if not isinstance(beyond, MuteBeyond) or key is None:
            return False
        return state.counts[cause].get(key, 0) > beyond.most

    def _is_muted(self, state: MuteState, scope: Scope, at: Instant) -> bool:
        """Whether any cause withholds a scope at a time."""
        for i, (cause, key) in enumerate(zip(self.causes, scope.keys, strict=True)):
            match cause:
                case ClockCause(schedule) if schedule.is_on(at):
                    return True
                case MuteWhile() if key is not None and key in state.counts[i]:
                    return True
                case MuteBeyond() if self._is_storm(state, i, scope):
                    return True
        return False

    # --- release ---

    def release_unmuted(self, state: MuteState, was: MuteMachine, at: Instant) -> list[Transition]:
        """Release the scopes that are no longer muted after a revision.

        Also report storms that start because of the revision. `was` is the machine before the revision.
        """
        now = max(at, state.waiting.until)
        return [*self._raise(state, was, now), *self._release(state, now, lambda _scope: True)]

    def _raise(self, state: MuteState, was: MuteMachine, at: Instant) -> Iterator[Transition]:
        """Yield summaries for storms that start because a revision allows fewer siblings."""
        for cause, before, counts in zip(self.causes, was.causes, state.counts, strict=True):
            if isinstance(cause, MuteBeyond) and isinstance(before, MuteBeyond):
                for key, count in sorted(counts.items()):
                    if cause.most < count <= before.most:
                        event = Event(self.name, at, "")
                        yield self._summary(event, at, cause.shown(key), (0, count, count))

    def _release(self, state: MuteState, at: Instant, concerned: Callable[[Scope], bool]) -> list[Transition]:
        """Report the scopes among `concerned` that are no longer muted, and a summary of their withheld
        intervals."""
        out: list[Transition] = []
        gone = scopes = 0
        last: Event | None = None
        free = []
        for name, scope in state.scopes.items():
            if scope.last is not None and concerned(scope):
                scope.at = max(scope.at, at)
                if not self._is_muted(state, scope, at):
                    free.append((name, scope))
        for name, scope in sorted(free, key=lambda pair: pair[0]):
            assert scope.last is not None
            out += self._caught_up(scope, at, name[1:] if name else None)
            if scope.gone:
                gone, scopes = gone + scope.gone, scopes + 1
                last = scope.last if last is None or scope.last.order > last.order else last
            scope.believed, scope.last, scope.status, scope.gone = scope.on, None, "", 0
            if scope.is_idle:
                del state.scopes[name]
        ends = (self._ends(scope) for scope in state.scopes.values() if scope.last is not None)
        state.end = min((end for end in ends if end is not None), default=None)
        if last is not None:
            holding = sum(scope.on for _, scope in free)
            out.append(self._summary(last, at, None, (gone, scopes, holding)))
        return out

    def _caught_up(self, scope: Scope, at: Instant, shown: str | None) -> Iterator[Transition]:
        """Yield the notifications that bring the reported state of a scope up to its real state."""
        assert scope.last is not None
        now = replace(scope.last, time=at)
        if scope.on != scope.believed:
            since = scope.since if scope.on else scope.announced
            scope.announced = at if scope.on else None
            yield self._transition(now, "ingress" if scope.on else "egress", shown, since)
        elif scope.on and scope.status in _MOVED:
            yield self._transition(now, scope.status, shown, scope.since)

    def _transition(self, event: Event, status: Any, scope: Any, since: Any) -> Transition:
        return Transition(self.derive(event, self.output_topic), status, scope, since, 0)

    def _summary(self, event: Event, at: Instant, scope: str | None, totals: Sequence[int]) -> Transition:
        """Return a summary with the given totals, in the order of the attributes `own`."""
        attributes = dict(zip(self.own, totals, strict=True))
        summary = Event(self.name, at, event.source, attributes, event.sequence)
        return Transition(summary, "summary", scope, None, 0)

    # --- snapshots ---

    def due(self, state: MuteState) -> Instant | None:
        first = min(state.waiting.first, NEVER if state.end is None else state.end)
        return None if first == NEVER else first + self.wait

    def is_initial(self, state: MuteState, condition: int) -> bool:
        return not state.scopes and not state.waiting.held and not any(state.counts)


def _is_there(cause: int, key: str | None, scope: Scope, but: Scope | None = None) -> bool:
    """Whether a scope other than ``but`` has the given key for a cause."""
    return scope.keys[cause] == key and scope is not but
