"""Counts over states: so many scopes of a condition hold at once, within a room, a region, or everywhere.

It hears what the condition has told, never a reading: it costs transitions alone.  Where that comes by time,
not in its order, it waits until a moment is over.  A member belongs to the
scope in which it started, wherever it ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..model.batch import times, to_events, values
from ..model.count import Quota, Unknown
from ..model.event import Event, Status, Transition, Value
from ..model.instant import BEGINNING, NEVER, Instant
from ..model.topic import Topic
from .machine import Batches, Hearing, Told
from .waiting import Held, Waiting


class Group(msgspec.Struct, dict=True):
    """Who holds in a scope, each since when, the first one first; who is unknown there; since when the count
    itself holds and with whom it began, and whether that is known; whether an edit has left that open, until
    so many hold that it must, or must not."""

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
        """How many hold of whom nobody knows."""
        return len(self.on.keys() & self.unknown.keys())

    def has(self, member: str) -> bool:
        return member in self.on or member in self.unknown

    def turn(self, member: str, status: str, at: Instant) -> bool:
        """Let a member be as it says; whether it has begun to hold, or has ended."""
        both, held = self.both, member in self.on
        was = held and member in self.unknown
        match status:
            case "ingress":
                self.on.setdefault(member, at)
            case "egress":
                self.on.pop(member, None)
            case "unknown":
                self.unknown[member] = True
        if status != "unknown":  # whoever speaks is known
            self.unknown.pop(member, None)
        holds = member in self.on
        self.__dict__["both"] = both - was + (holds and member in self.unknown)
        return holds != held


class Since(msgspec.Struct):
    """What has changed in a state since it was last asked: of which scopes which members, and whether each
    has begun to hold or has ended, the last to do so last; who has begun to wait and still does, and before
    which instant nobody does who waited then; and up to when moments were over."""

    members: dict[str, dict[str, bool]] = {}
    come: list[Held] = []
    before: Instant = BEGINNING
    until: Instant = BEGINNING

    def touch(self, key: str, member: str, moves: bool) -> None:
        some = self.members.setdefault(key, {})
        if moves:
            some.pop(member, None)
        some[member] = moves or some.get(member, False)

    def passed(self, until: Instant) -> None:
        """Nobody waits any longer before an instant."""
        self.come = [held for held in self.come if held[0] >= until]
        self.before = max(self.before, until)


class State(msgspec.Struct, omit_defaults=True):
    """The scopes in which there is somebody, and where each of them is; and what waits.  A state that notes
    what changes has that in ``since``."""

    groups: dict[str, Group]
    where: dict[str, str]
    waiting: Waiting
    since: Since | None = None


class Said(NamedTuple):
    """What a count says, beside the event that made it."""

    status: Status
    group: str
    since: Instant | None
    own: tuple[int, int | None, str | None]


@dataclass(frozen=True)
class Count(Hearing):
    """The machine.  Readings of ``topic`` tell in the attributes ``says`` a status, whose it is, and since
    when it holds; ``group`` and ``grouping`` give the key of the scope in which an event and those of a batch
    lie.  ``members`` are those that are expected, with their scopes; without them everybody counts."""

    topic: Topic
    name: str
    says: tuple[str, str, str]
    own: tuple[str, str, str]
    quota: Quota
    joined: bool
    dead: Unknown
    group: Callable[[Event], str | None]
    grouping: Callable[[pa.RecordBatch], tuple[NDArray[np.int32], Sequence[str]]]
    shown: Callable[[str], str | None]
    dropped: frozenset[str]
    """The attributes that are not told on."""
    members: Mapping[str, str] | None
    totals: Mapping[str, int]
    is_timed: bool
    """Whether what it hears is not said in order of time, and so waits until its moment is over."""

    strictest = None
    margin = None
    compacts = True

    @property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    def initial(self) -> State:
        return State({}, {}, Waiting())

    # --- what it hears ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        if self.is_timed and (held := state.waiting.add(event)):
            if state.since is not None:
                state.since.come.append(held)
            return state, []
        return state, [*self._no_longer_waiting(state), *self._taken(state, event)]

    def _no_longer_waiting(self, state: State) -> list[Transition]:
        """What waited when that was needed, which an edit has changed."""
        return self.advance(state, NEVER)[1] if not self.is_timed and state.waiting.held else []

    def _taken(self, state: State, event: Event) -> list[Transition]:
        status, member, since = (event.attributes.get(name) for name in self.says)
        turned = _turned(str(status), since)
        said = self._heard(state, turned, _member(member), event.time, lambda: self.group(event))
        return [self._transition(event, one) for one in said]

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        batch = batches.get(self.topic.name)
        if self.is_timed:
            out: list[Transition] = []
            for event in () if batch is None else to_events(self.topic, batch):
                state, told = self.react(state, event)
                out += told
            state, told = self.advance(state, until)
            return state, Told({}, out + told)
        waited = self._no_longer_waiting(state)
        if batch is None or not len(batch):
            return state, Told({}, waited)
        codes, keys = self.grouping(batch)
        statuses, members, since = (values(batch.column(name)) for name in self.says)
        rows: list[int] = []
        said: list[Said] = []
        for i, at in enumerate(times(batch).tolist()):
            key = keys[codes[i]] if codes[i] >= 0 else None
            status = _turned(statuses[i], since[i])
            for one in self._heard(state, status, _member(members[i]), at, partial(_same, key)):
                rows.append(i)
                said.append(one)
        if not rows:
            return state, Told({}, waited)
        events = to_events(self.topic, batch.take(pa.array(rows)))
        pairs = zip(events, said, strict=True)
        return state, Told({}, waited + [self._transition(*pair) for pair in pairs])

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        out: list[Transition] = []
        if state.since is not None and state.waiting.first < until:
            state.since.passed(until)
        while state.waiting.first < until:
            out += self._taken(state, state.waiting.take())
        state.waiting.passed(until)
        return state, out

    def _transition(self, event: Event, said: Said) -> Transition:
        kept: dict[str, Value] = {
            name: value for name, value in event.attributes.items() if name not in self.dropped
        }
        told = replace(event, topic=self.name, attributes=kept | dict(zip(self.own, said.own, strict=True)))
        return Transition(told, said.status, self.shown(said.group), said.since, 0)

    # --- who holds ---

    def _heard(
        self, state: State, status: str, member: str, at: Instant, key: Callable[[], str | None]
    ) -> Iterator[Said]:
        if status not in _HEARD or (self.members is not None and member not in self.members):
            return
        found = state.where.get(member)
        if found is None:
            found = key() if self.members is None else self.members[member]
        if found is None:
            return
        group = state.groups.get(found) or Group()
        joins = status == "ingress" and member not in group.on
        moves = group.turn(member, status, at)
        if state.since is not None:
            state.since.touch(found, member, moves)
        if group.has(member):
            state.where[member] = found
        else:
            state.where.pop(member, None)
        yield from self._judged(found, group, at, joins)
        if group.is_idle:
            state.groups.pop(found, None)
        else:
            state.groups[found] = group

    def _judged(self, key: str, group: Group, at: Instant, joins: bool) -> Iterator[Said]:
        is_dead, sure, total = self._counted(key, group)
        holding = group.began is not None
        if group.undecided and len(self.outcomes(key, group)) > 1:
            return
        holds = self.quota.holds(holding, sure, total)
        own = (sure, total if self.members is not None else None)
        if group.undecided:
            group.undecided, group.known = False, True
            if holds == holding:
                yield Said("known", key, group.began, (*own, group.first))
                return
        elif self.dead == "spreads":
            known = self.is_known(key, group)
            if known != group.known:
                group.known = known
                yield Said("known" if known else "unknown", key, group.began, (*own, group.first))
            if not known:
                return
        if holds and not holding:
            group.began, group.first = at, next(m for m in group.on if m not in is_dead)
            yield Said("ingress", key, None, (*own, group.first))
        elif holding and not holds:
            began, first = group.began, group.first
            group.began = group.first = None
            yield Said("egress", key, began, (*own, first))
        elif holding and joins and self.joined:
            yield Said("joined", key, group.began, (*own, group.first))

    def _counted(self, key: str, group: Group) -> tuple[Collection[str], int, int]:
        """Who of a scope counts as unknown, how many hold for sure, and of how many."""
        is_dead: Collection[str] = group.unknown.keys() if self.dead != "kept" else ()
        sure = len(group.on) - (group.both if self.dead != "kept" else 0)
        total = self.totals.get(key, 0) - (len(is_dead) if self.dead == "left" else 0)
        return is_dead, sure, total

    def is_known(self, key: str, group: Group) -> bool:
        """Whether a scope is as it is, whatever is so of members of whom nobody knows."""
        is_dead, sure, total = self._counted(key, group)
        most = sure + len(is_dead) if self.dead == "spreads" else sure
        holding = group.began is not None
        return self.quota.holds(holding, sure, total) == self.quota.holds(holding, most, total)

    def outcomes(self, key: str, group: Group) -> set[bool]:
        """Whether a scope may hold, whatever it did before, and whatever is so of members of whom nobody
        knows, where that matters."""
        is_dead, sure, total = self._counted(key, group)
        most = sure + len(is_dead) if self.dead == "spreads" else sure
        return {self.quota.holds(bit, n, total) for bit in (False, True) for n in (sure, most)}

    def awaited(self, state: State) -> set[str]:
        """The members of whom something waits."""
        return {_member(event.attributes.get(self.says[1])) for *_, event in state.waiting.held}

    # --- what holds, and keeping it ---

    def due(self, state: State) -> Instant | None:
        return None if state.waiting.first == NEVER else state.waiting.first

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return [
            (0, self.shown(key), group.began)
            for key, group in state.groups.items()
            if group.began is not None
        ]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return [(0, self.shown(key), group.began) for key, group in state.groups.items() if not group.known]

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.groups and not state.waiting.held

    def to_bytes(self, state: State) -> bytes:
        return msgspec.msgpack.encode(msgspec.structs.replace(state, since=None))

    def noting(self, state: State) -> State:
        state.since = Since(until=state.waiting.until)
        return state

    def noted(self, state: State) -> bytes | None:
        since, waiting = state.since, state.waiting
        if since is None:
            return None
        self.noting(state)
        if since == state.since:
            return b""
        some = [_moved(key, state.groups.get(key) or Group(), who) for key, who in since.members.items()]
        return msgspec.msgpack.encode(_Noted(some, since.come, since.before, waiting.arrived, waiting.until))

    def renewed(self, state: State, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return state
        if len(msgspec.msgpack.decode(raw, type=list[msgspec.Raw])) == 2:
            return _with_whole(state, raw)
        noted = msgspec.msgpack.decode(raw, type=_Noted)
        for moved in noted.groups:
            _move(state, moved)
        held = [*(one for one in state.waiting.held if one[0] >= noted.before), *noted.come]
        heapq.heapify(held)
        state.waiting = Waiting(held, noted.arrived, noted.until)
        return state

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return self.initial()
        return msgspec.msgpack.decode(raw, type=State)


class _Moved(msgspec.Struct, array_like=True):
    """A scope as it is now, and of its members those of whom something has changed: whether each has begun to
    hold or has ended, since when it holds, and whether that is unknown."""

    key: str
    began: Instant | None
    first: str | None
    known: bool
    undecided: bool
    members: list[tuple[str, bool, Instant | None, bool]]


class _Noted(msgspec.Struct, array_like=True):
    """What has changed: scopes, who has begun to wait, before which instant nobody does who waited then, how
    many came to wait, and up to when moments are over."""

    groups: list[_Moved]
    come: list[Held]
    before: Instant
    arrived: int
    until: Instant


def _moved(key: str, group: Group, members: Mapping[str, bool]) -> _Moved:
    some = [(who, moves, group.on.get(who), who in group.unknown) for who, moves in members.items()]
    return _Moved(key, group.began, group.first, group.known, group.undecided, some)


def _move(state: State, moved: _Moved) -> None:
    """Let a scope be as it is now; a member may have come to it from another, or gone there."""
    group = state.groups.get(moved.key) or Group()
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


def _with_whole(state: State, raw: bytes) -> State:
    """The state with what an earlier version has noted: scopes whole, and all that waits."""
    groups, state.waiting = msgspec.msgpack.decode(raw, type=tuple[list[tuple[str, Group | None]], Waiting])
    for key, _ in groups:  # all that were there go before any comes: a member may have moved
        gone = state.groups.pop(key, None) or Group()
        for member in (*gone.on, *gone.unknown):
            state.where.pop(member, None)
    for key, group in groups:
        if group is not None:
            state.groups[key] = group
            state.where |= dict.fromkeys((*group.on, *group.unknown), key)
    return state


_HEARD = frozenset(("ingress", "egress", "unknown", "known"))


def _turned(status: str, since: Value) -> str:
    """A status; one that is revised starts or ends by that."""
    if status != "revised":
        return status
    return "egress" if since is None else "ingress"


def _same(key: str | None) -> str | None:
    return key


def _member(scope: Value) -> str:
    """A member's name; of a condition that has one scope for everything, none."""
    return "" if scope is None else str(scope)
