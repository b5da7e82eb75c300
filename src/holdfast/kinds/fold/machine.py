"""The machine of folds: if too many siblings are active, the cell around them is reported in their place.

A member is a scope of the folded condition. It lies in a leaf, which is active while a member in it is
active. Leaves lie in cells, and cells in larger cells. A cell is active while more than ``most`` of its
direct children are active, until fewer than ``fewer`` are. The machine reports the largest active cells, and
the members outside of them. A name that enters this set starts; a name that leaves it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import pyarrow as pa

from ...engine.machine import Batches, Emission, Traits
from ...engine.operator import order_keys
from ...engine.waiting import PendingEvents
from ...model.batch import from_events, to_events
from ...model.event import Event, Status, Transition
from ...model.instant import Instant
from ...model.outline import outline
from ...model.space import Point
from ...model.topic import Topic
from ..derived import DerivedMachine

Path = tuple[str, ...]
"""The leaf in which a member lies, and the cells around the leaf, the innermost first."""


class FoldMember(msgspec.Struct):
    """An active member: the event that started it, and its path."""

    event: Event
    path: Path


class FoldCell(msgspec.Struct):
    """The members of a cell, and whether the cell is active.

    ``inside`` has the number of active members by direct child, ``members`` all members in the cell.
    """

    inside: dict[str, int] = {}
    members: dict[str, None] = {}
    holds: bool = False


class FoldState(msgspec.Struct):
    """The state of a fold.

    It has the active members, the cells around them, and the waiting events. ``reported`` has the reported
    names with their start and size.
    """

    members: dict[str, FoldMember]
    cells: dict[str, FoldCell]
    reported: dict[str, tuple[Instant, int]]
    waiting: PendingEvents


@dataclass(frozen=True)
class FoldMachine(DerivedMachine[FoldState]):
    """The machine of one fold.

    Events of ``topic`` have status, scope and start in the attributes ``columns``. ``paths`` returns the
    paths of the events of a batch, and ``corners`` the points of an event for the outline. Names of cells
    start with ``CELL``, names of members with ``MEMBER``.
    """

    topic: Topic
    name: str
    own: tuple[str, ...]
    most: int
    fewer: int
    paths: Callable[[pa.RecordBatch], Sequence[Path]]
    corners: Callable[[Event], Sequence[Point]]
    dropped: frozenset[str]
    waits: bool
    """Whether events may be out of order and therefore wait for the watermark."""

    state_type = FoldState

    @cached_property
    def traits(self) -> Traits:
        return Traits(uses_watermark=self.waits)

    @property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    def initial(self) -> FoldState:
        return FoldState({}, {}, {}, PendingEvents())

    # --- input ---

    def process(self, state: FoldState, events: Sequence[Event]) -> Iterator[Transition]:
        for event in events:
            (path,) = self.paths(from_events(self.topic, [event]))
            yield from self._process(state, event, path)

    def step(self, state: FoldState, batches: Batches, watermark: Instant) -> tuple[FoldState, Emission]:
        batch = batches.get(self.topic.name)
        if self.waits:
            return super().step(state, batches, watermark)
        left, emitted, causes = self.process_left(state), list[Transition](), list[bytes]()
        if batch is not None and len(batch):
            rows = zip(to_events(self.topic, batch), self.paths(batch), order_keys(batch), strict=True)
            for event, path, key in rows:
                emitted += self._process(state, event, path)
                causes += [key] * (len(emitted) - len(causes))
        return state, self.in_order(left, causes, emitted)

    def _process(self, state: FoldState, event: Event, path: Path) -> Iterator[Transition]:
        """Apply one derived event, whose member has the given path."""
        status, scope, _ = self.read(event)
        name = MEMBER + scope
        if status == "ingress" and name not in state.members:
            yield from self._start(state, name, FoldMember(event, path))
        elif status == "egress" and name in state.members:
            yield from self._end(state, name, event)

    # --- members and cells ---

    def _start(self, state: FoldState, name: str, member: FoldMember) -> Iterator[Transition]:
        """Add a member, and yield the changes of reports."""
        state.members[name] = member
        child, *around = member.path
        for cell in around:
            state.cells.setdefault(cell, FoldCell()).members[name] = None
        turned: list[str] = []
        for cell in around:
            held = state.cells[cell]
            held.inside[child] = held.inside.get(child, 0) + 1
            if held.holds or len(held.inside) <= self.most:
                break
            held.holds, child = True, cell
            turned.append(cell)
        inside = set(state.cells[turned[-1]].members if turned else {name})
        before = self._reported_names(state, inside - {name}, turned)
        yield from self._changes(state, before, self._reported_names(state, inside), member.event)
        reported = self._reported_name(state, name)
        (since, size), now = state.reported[reported], len(_inside(state, reported))
        if reported.startswith(CELL) and now >= 2 * size:  # twice as many members as at the last report
            state.reported[reported] = since, now
            yield self._transition(state, member.event, reported, "joined", since)

    def _end(self, state: FoldState, name: str, event: Event) -> Iterator[Transition]:
        """Remove a member, and yield the changes of reports."""
        reported = self._reported_name(state, name)
        child, *around = state.members.pop(name).path
        for cell in around:
            del state.cells[cell].members[name]
        turned: list[str] = []
        for cell in around:
            held = state.cells[cell]
            held.inside[child] -= 1
            if held.inside[child]:
                break
            del held.inside[child]
            if not held.holds or len(held.inside) >= self.fewer:
                break
            held.holds, child = False, cell
            turned.append(cell)
        inside = state.cells[turned[-1]].members if turned else {}
        before = {reported, *self._reported_names(state, inside, turned)}
        goes_on = {reported} if reported in state.cells and state.cells[reported].holds else set()
        yield from self._changes(state, before, self._reported_names(state, inside) | goes_on, event)
        for cell in around:
            if not state.cells[cell].members:
                del state.cells[cell]

    # --- reports ---

    def _reported_name(self, state: FoldState, name: str, turned: Collection[str] = ()) -> str:
        """Return the name under which a member is reported: the largest active cell around it, or its own
        name.

        With `turned`, return the name before these cells changed.
        """
        around = reversed(state.members[name].path[1:])
        return next((cell for cell in around if state.cells[cell].holds != (cell in turned)), name)

    def _reported_names(self, state: FoldState, names: Iterable[str], turned: Sequence[str] = ()) -> set[str]:
        """Return the names under which members are reported."""
        return {self._reported_name(state, name, turned) for name in names}

    def _changes(self, state: FoldState, was: set[str], now: set[str], event: Event) -> Iterator[Transition]:
        """Yield an end for each name that is no longer reported, and a start for each new name."""
        for name in sorted(was - now):
            since, _ = state.reported.pop(name)
            yield self._transition(state, event, name, "egress", since, self._into(state, name))
        for name in sorted(now - state.reported.keys()):
            state.reported[name] = event.time, len(_inside(state, name))
            member = state.members.get(name)
            if member is None or member.event is event:
                yield self._transition(state, event, name, "ingress", None)
            else:  # it started before it is reported
                restarted = replace(member.event, time=event.time)
                yield self._transition(state, restarted, name, "ingress", member.event.time)

    def _into(self, state: FoldState, name: str) -> str | None:
        """Return the cell that replaces a name which ends although its members stay active."""
        around = self._reported_names(state, _inside(state, name))
        into = around.pop() if len(around) == 1 else ""
        return into[1:] if into.startswith(CELL) else None

    def _transition(
        self,
        state: FoldState,
        event: Event,
        name: str,
        status: Status,
        since: Instant | None,
        into: str | None = None,
    ) -> Transition:
        inside, around = _inside(state, name), None
        if name.startswith(CELL) and status != "egress":
            spots = (self.corners(state.members[member].event) for member in inside)
            around = outline(point for spot in spots for point in spot)
        result = self.derive(event, self.name, len(inside), around, into)
        return Transition(result, status, name[1:] or None, since, 0)

    # --- snapshots ---

    def active(self, state: FoldState) -> list[tuple[int, str | None, Instant]]:
        return [(0, name[1:] or None, since) for name, (since, _) in state.reported.items()]

    def is_initial(self, state: FoldState, condition: int) -> bool:
        return not state.members and not state.waiting.held


def _inside(state: FoldState, name: str) -> Collection[str]:
    """Return the members in a cell, or the active member with this name."""
    if name in state.cells:
        return state.cells[name].members
    return (name,) if name in state.members else ()


CELL, MEMBER = "#", "."
"""Prefixes of the names of cells and of members. A member can therefore not be mistaken for a cell."""
