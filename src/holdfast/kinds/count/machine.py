"""The machine of counts: a number of scopes of a condition is active at the same time, within a group of
scopes.

The machine consumes derived events, never readings, so its cost depends only on the number of transitions. If
timers make the condition emit out of order, its events wait until the watermark has passed their time. A
member stays in the group in which it started, even if its end has another group.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...engine.machine import Batches, Emission, Traits
from ...engine.operator import order_keys
from ...engine.waiting import Held, PendingEvents
from ...model.batch import times, to_events, values
from ...model.count import Quota, Unknown
from ...model.event import Event, Status, Transition
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from ..derived import DerivedMachine, effective_status, scope_name
from ..revision import Renumbering


class CountGroup(msgspec.Struct, dict=True):
    """The members of one group and the state of its count.

    ``on`` has the active members with their starts, in the order in which they became active. ``unknown`` has
    the unknown members. ``began`` and ``first`` are the start of the count and its first member. ``known`` is
    true if the state is certain. A group is ``undecided`` if a revision left it open, until enough members
    are active or inactive.
    """

    on: dict[str, Instant] = {}
    unknown: dict[str, bool] = {}
    began: Instant | None = None
    first: str | None = None
    known: bool = True
    undecided: bool = False

    @property
    def is_idle(self) -> bool:
        return not self.on and not self.unknown and self.began is None and self.known

    @cached_property
    def both(self) -> int:
        """The number of members that are both active and unknown."""
        return len(self.on.keys() & self.unknown.keys())

    def has(self, member: str) -> bool:
        """Whether the group has a member that is active or unknown."""
        return member in self.on or member in self.unknown

    def turn(self, member: str, status: str, at: Instant) -> bool:
        """Apply a status to a member. Return whether the member became active or inactive."""
        both, held = self.both, member in self.on
        was = held and member in self.unknown
        match status:
            case "ingress":
                self.on.setdefault(member, at)
            case "egress":
                self.on.pop(member, None)
            case "unknown":
                self.unknown[member] = True
        if status != "unknown":  # every other status makes the member known
            self.unknown.pop(member, None)
        holds = member in self.on
        self.__dict__["both"] = both - was + (holds and member in self.unknown)
        return holds != held


class CountChanges(msgspec.Struct):
    """The changes of a state since its last delta.

    ``members`` has the changed members by group, and whether each became active or inactive. ``come`` has the
    events that started to wait and still wait. No event before ``before`` waits. ``until`` is the watermark.
    """

    members: dict[str, dict[str, bool]] = {}
    come: list[Held] = []
    before: Instant = BEGINNING
    until: Instant = BEGINNING

    def touch(self, key: str, member: str, moves: bool) -> None:
        """Record a changed member; ``moves`` is true if it became active or inactive."""
        members = self.members.setdefault(key, {})
        if moves:
            members.pop(member, None)
        members[member] = moves or members.get(member, False)

    def drop_before(self, until: Instant) -> None:
        """Drop the waiting events before a time."""
        self.come = [held for held in self.come if held[0] >= until]
        self.before = max(self.before, until)


class CountState(msgspec.Struct, omit_defaults=True):
    """The state of a count: groups with members, the group of each member, and the waiting events.

    ``since`` has the changes if they are tracked.
    """

    groups: dict[str, CountGroup]
    where: dict[str, str]
    waiting: PendingEvents
    since: CountChanges | None = None


class CountOutput(NamedTuple):
    """One output of a count, without the event that caused it."""

    status: Status
    group: str
    since: Instant | None
    own: tuple[int, int | None, str | None]


@dataclass(frozen=True)
class CountMachine(DerivedMachine[CountState]):
    """The machine of one count.

    Events of ``topic`` have status, scope and start in the attributes ``columns``. ``group`` and ``grouping``
    return the key of the group of an event, and of the events of a batch. ``members`` are the expected
    members with their groups; `None` if every scope is a member.
    """

    topic: Topic
    name: str
    own: tuple[str, ...]
    quota: Quota
    joined: bool
    dead: Unknown
    group: Callable[[Event], str | None]
    grouping: Callable[[pa.RecordBatch], tuple[NDArray[np.int32], Sequence[str]]]
    shown: Callable[[str], str | None]
    dropped: frozenset[str]
    """The attributes of the event that the output does not have."""
    members: Mapping[str, str] | None
    totals: Mapping[str, int]
    waits: bool
    """Whether events may be out of order and therefore wait for the watermark."""

    state_type = CountState
    has_deltas = True

    @cached_property
    def traits(self) -> Traits:
        return Traits(uses_watermark=self.waits, compacts=True)

    @property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    def initial(self) -> CountState:
        return CountState({}, {}, PendingEvents())

    # --- input ---

    def enqueue(self, state: CountState, event: Event) -> bool:
        held = state.waiting.add(event)
        if held is not None and state.since is not None:
            state.since.come.append(held)
        return held is not None

    def process(self, state: CountState, events: Sequence[Event]) -> Iterator[Transition]:
        for event in events:
            status, member, _ = self.read(event)
            for outcome in self._update_members(state, status, member, event.time, self.group(event)):
                yield self._transition(event, outcome)

    def step(self, state: CountState, batches: Batches, watermark: Instant) -> tuple[CountState, Emission]:
        """Process a batch of derived events, then advance to the watermark.

        If events need not wait, only rows that change the output are converted to events.
        """
        batch = batches.get(self.topic.name)
        if self.waits:
            return super().step(state, batches, watermark)
        left = self.process_left(state)
        if batch is None or not len(batch):
            return state, Emission({}, left)
        codes, keys = self.grouping(batch)
        statuses, members, since = (values(batch.column(name)) for name in self.columns)
        rows: list[int] = []
        outcomes: list[CountOutput] = []
        for i, at in enumerate(times(batch).tolist()):
            key = keys[codes[i]] if codes[i] >= 0 else None
            status, member = effective_status(statuses[i], since[i]), scope_name(members[i])
            for outcome in self._update_members(state, status, member, at, key):
                rows.append(i)
                outcomes.append(outcome)
        if not rows:
            return state, Emission({}, left)
        causes = batch.take(pa.array(rows))
        pairs = zip(to_events(self.topic, causes), outcomes, strict=True)
        return state, self.in_order(left, order_keys(causes), [self._transition(*pair) for pair in pairs])

    def advance(self, state: CountState, watermark: Instant) -> tuple[CountState, list[Transition]]:
        if state.since is not None and state.waiting.first < watermark:
            state.since.drop_before(watermark)
        return super().advance(state, watermark)

    def _transition(self, event: Event, outcome: CountOutput) -> Transition:
        result = self.derive(event, self.name, *outcome.own)
        return Transition(result, outcome.status, self.shown(outcome.group), outcome.since, 0)

    # --- counting ---

    def _update_members(
        self, state: CountState, status: str, member: str, at: Instant, key: str | None
    ) -> Iterator[CountOutput]:
        """Apply a status to a member, and yield the output of its group."""
        if status not in _COUNTED or (self.members is not None and member not in self.members):
            return
        found = state.where.get(member)
        if found is None:
            found = key if self.members is None else self.members[member]
        if found is None:
            return
        group = state.groups.get(found) or CountGroup()
        joins = status == "ingress" and member not in group.on
        moves = group.turn(member, status, at)
        if state.since is not None:
            state.since.touch(found, member, moves)
        if group.has(member):
            state.where[member] = found
        else:
            state.where.pop(member, None)
        yield from self._judge(found, group, at, joins)
        if group.is_idle:
            state.groups.pop(found, None)
        else:
            state.groups[found] = group

    def _judge(self, key: str, group: CountGroup, at: Instant, joins: bool) -> Iterator[CountOutput]:
        """Yield the output of a group after a change of its members, and update the state of its count."""
        is_dead, sure, total = self._tally(key, group)
        holding = group.began is not None
        if group.undecided and len(self.outcomes(key, group)) > 1:
            return
        holds = self.quota.holds(holding, sure, total)
        attributes = (sure, total if self.members is not None else None)
        if group.undecided:
            group.undecided, group.known = False, True
            if holds == holding:
                yield CountOutput("known", key, group.began, (*attributes, group.first))
                return
        elif self.dead == "spreads":
            known = self.is_known(key, group)
            if known != group.known:
                group.known, status = known, _KNOWN[known]
                yield CountOutput(status, key, group.began, (*attributes, group.first))
            if not known:
                return
        if holds and not holding:
            group.began, group.first = at, next(m for m in group.on if m not in is_dead)
            yield CountOutput("ingress", key, None, (*attributes, group.first))
        elif holding and not holds:
            began, first = group.began, group.first
            group.began = group.first = None
            yield CountOutput("egress", key, began, (*attributes, first))
        elif holding and joins and self.joined:
            yield CountOutput("joined", key, group.began, (*attributes, group.first))

    def _tally(self, key: str, group: CountGroup) -> tuple[Collection[str], int, int]:
        """Return the members that count as unknown, the number of certainly active members, and the number of
        all members."""
        is_dead: Collection[str] = group.unknown.keys() if self.dead != "kept" else ()
        sure = len(group.on) - (group.both if self.dead != "kept" else 0)
        total = self.totals.get(key, 0) - (len(is_dead) if self.dead == "left" else 0)
        return is_dead, sure, total

    def is_known(self, key: str, group: CountGroup) -> bool:
        """Whether the state of a group is the same for every possible state of its unknown members."""
        is_dead, sure, total = self._tally(key, group)
        most = sure + len(is_dead) if self.dead == "spreads" else sure
        holding = group.began is not None
        return self.quota.holds(holding, sure, total) == self.quota.holds(holding, most, total)

    def outcomes(self, key: str, group: CountGroup) -> set[bool]:
        """Return the possible states of a group, for any earlier state and any state of its unknown
        members."""
        is_dead, sure, total = self._tally(key, group)
        most = sure + len(is_dead) if self.dead == "spreads" else sure
        return {self.quota.holds(bit, n, total) for bit in (False, True) for n in (sure, most)}

    def pending_members(self, state: CountState) -> set[str]:
        """Return the members with waiting events."""
        return {self.read(event)[1] for *_, event in state.waiting.held}

    # --- snapshots ---

    def active(self, state: CountState) -> list[tuple[int, str | None, Instant]]:
        found = ((key, group.began) for key, group in state.groups.items())
        return [(0, self.shown(key), began) for key, began in found if began is not None]

    def unknown(self, state: CountState) -> list[tuple[int, str | None, Instant | None]]:
        return [(0, self.shown(key), group.began) for key, group in state.groups.items() if not group.known]

    def is_initial(self, state: CountState, condition: int) -> bool:
        return not state.groups and not state.waiting.held

    def dump(self, state: CountState) -> bytes:
        return msgspec.msgpack.encode(msgspec.structs.replace(state, since=None))

    def track_changes(self, state: CountState) -> CountState:
        state.since = CountChanges(until=state.waiting.until)
        return state

    def delta(self, state: CountState) -> bytes | None:
        """Return the changes since the last call, encoded; see `Machine.delta`."""
        since, waiting = state.since, state.waiting
        if since is None:
            return None
        self.track_changes(state)
        if since == state.since:
            return b""
        groups = [_group_delta(state, *changed) for changed in since.members.items()]
        delta = _CountDelta(groups, since.come, since.before, waiting.arrived, waiting.until)
        return msgspec.msgpack.encode(delta)

    def apply_delta(self, state: CountState, raw: bytes, was: Renumbering | None = None) -> CountState:
        if was is not None and was[0] is None:
            return state
        changes = msgspec.msgpack.decode(raw, type=_CountDelta)
        for moved in changes.groups:
            _apply_group(state, moved)
        held = [event for event in state.waiting.held if event[0] >= changes.before] + changes.come
        heapq.heapify(held)
        state.waiting = PendingEvents(held, changes.arrived, changes.until)
        return state


class _GroupDelta(msgspec.Struct, array_like=True):
    """The present state of a group, with its changed members.

    Each changed member has its name, whether it became active or inactive, its start, and whether it is
    unknown.
    """

    key: str
    began: Instant | None
    first: str | None
    known: bool
    undecided: bool
    members: list[tuple[str, bool, Instant | None, bool]]


class _CountDelta(msgspec.Struct, array_like=True):
    """The format of deltas.

    It has changed groups and events that started to wait. No event before ``before`` waits. ``arrived`` is
    the number of all events that ever waited, ``until`` the watermark.
    """

    groups: list[_GroupDelta]
    come: list[Held]
    before: Instant
    arrived: int
    until: Instant


def _group_delta(state: CountState, key: str, changed: Mapping[str, bool]) -> _GroupDelta:
    """Return the present state of a group with its changed members."""
    group = state.groups.get(key) or CountGroup()
    members = [(name, moves, group.on.get(name), name in group.unknown) for name, moves in changed.items()]
    return _GroupDelta(key, group.began, group.first, group.known, group.undecided, members)


def _apply_group(state: CountState, moved: _GroupDelta) -> None:
    """Apply a changed group to a state. A member may have moved to this group from another group, or the
    reverse."""
    group = state.groups.get(moved.key) or CountGroup()
    for member, moves, since, unknown in moved.members:
        if moves:
            group.on.pop(member, None)
            if since is not None:
                group.on[member] = since
        if unknown:
            group.unknown[member] = True
        else:
            group.unknown.pop(member, None)
        if group.has(member):
            state.where[member] = moved.key
        elif state.where.get(member) == moved.key:
            del state.where[member]
    group.__dict__.pop("both", None)
    group.began, group.first, group.known = moved.began, moved.first, moved.known
    group.undecided = moved.undecided
    if group.is_idle:
        state.groups.pop(moved.key, None)
    else:
        state.groups[moved.key] = group


_COUNTED = frozenset(("ingress", "egress", "unknown", "known"))
"""The statuses of members that change a count."""
_KNOWN: tuple[Status, Status] = ("unknown", "known")
