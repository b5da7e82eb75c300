"""Folding of storms: where more than so many siblings hold, the cell around them is told in their place.

A member is a scope of the condition that it hears.  It lies in a leaf, which holds while a member in it does;
leaves lie in cells, and cells in cells.  A cell holds while more than ``most`` of what lies directly in it
does, until there are fewer than ``fewer``.  Told are the largest cells that hold, and the members in none:
what comes into the set of those starts, what goes out of it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa

from ..model.batch import from_events, to_events
from ..model.event import Event, Status, Transition, Value
from ..model.instant import NEVER, Instant
from ..model.outline import outline
from ..model.space import Point
from ..model.topic import Topic
from .machine import Batches, Hearing, Told
from .waiting import Waiting

Path = tuple[str, ...]
"""The leaf in which a member lies, and the cells around it, the innermost first."""


class Member(msgspec.Struct):
    """What holds: the event that started it, and where it lies."""

    event: Event
    path: Path


class Cell(msgspec.Struct):
    """What holds directly in a cell, the members anywhere in it, and whether the cell itself holds."""

    inside: dict[str, int] = {}
    members: dict[str, None] = {}
    holds: bool = False


class State(msgspec.Struct):
    """Members that hold, the cells around them, what is told with since when and for how many, and what
    waits."""

    members: dict[str, Member]
    cells: dict[str, Cell]
    told: dict[str, tuple[Instant, int]]
    waiting: Waiting


@dataclass(frozen=True)
class Fold(Hearing):
    """The machine.  Readings of ``topic`` tell in the attributes ``says`` a status, whose it is, and since
    when it holds; ``paths`` finds where the events of a batch lie, and ``corners`` the points around which
    that is.  Names of cells begin with ``CELL``, those of members with ``MEMBER``."""

    topic: Topic
    name: str
    says: tuple[str, str, str]
    own: tuple[str, str, str]
    most: int
    fewer: int
    paths: Callable[[pa.RecordBatch], Sequence[Path]]
    corners: Callable[[Event], Sequence[Point]]
    dropped: frozenset[str]
    is_timed: bool
    """Whether what it hears is not said in order of time, and so waits until its moment is over."""

    strictest = None
    margin = None
    compacts = False

    @property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    def initial(self) -> State:
        return State({}, {}, {}, Waiting())

    # --- what it hears ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        if self.is_timed and state.waiting.add(event):
            return state, []
        return state, [*self._no_longer_waiting(state), *self._taken(state, event, self._path(event))]

    def _no_longer_waiting(self, state: State) -> list[Transition]:
        """What waited when that was needed, which an edit has changed."""
        return self.advance(state, NEVER)[1] if not self.is_timed and state.waiting.held else []

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        out: list[Transition] = []
        while state.waiting.first < until:
            event = state.waiting.take()
            out += self._taken(state, event, self._path(event))
        state.waiting.passed(until)
        return state, out

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        batch = batches.get(self.topic.name)
        out = self._no_longer_waiting(state)
        if batch is not None and len(batch):
            events = to_events(self.topic, batch)
            for event, path in zip(events, self.paths(batch), strict=True):
                if not (self.is_timed and state.waiting.add(event)):
                    out += self._taken(state, event, path)
        state, said = self.advance(state, until)
        return state, Told({}, out + said)

    def _path(self, event: Event) -> Path:
        return self.paths(from_events(self.topic, [event]))[0]

    def _taken(self, state: State, event: Event, path: Path) -> Iterator[Transition]:
        status, scope, since = (event.attributes.get(name) for name in self.says)
        if status == "revised":  # it starts or ends by that
            status = "egress" if since is None else "ingress"
        name = MEMBER if scope is None else f"{MEMBER}{scope}"
        if status == "ingress" and name not in state.members:
            yield from self._started(state, name, Member(event, path))
        elif status == "egress" and name in state.members:
            yield from self._ended(state, name, event)

    # --- what holds ---

    def _started(self, state: State, name: str, member: Member) -> Iterator[Transition]:
        state.members[name] = member
        child, *around = member.path
        for cell in around:
            state.cells.setdefault(cell, Cell()).members[name] = None
        turned: list[str] = []
        for cell in around:
            held = state.cells[cell]
            held.inside[child] = held.inside.get(child, 0) + 1
            if held.holds or len(held.inside) <= self.most:
                break
            held.holds, child = True, cell
            turned.append(cell)
        inside = state.cells[turned[-1]].members if turned else {name: None}
        before = {self._teller(state, one, turned) for one in inside if one != name}
        yield from self._changed(state, before, self._tellers(state, inside), member.event)
        yield from self._grown(state, self._teller(state, name), member.event)

    def _ended(self, state: State, name: str, event: Event) -> Iterator[Transition]:
        teller = self._teller(state, name)
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
        before = {teller, *(self._teller(state, one, turned) for one in inside)}
        goes_on = {teller} if teller in state.cells and state.cells[teller].holds else set()
        yield from self._changed(state, before, self._tellers(state, inside) | goes_on, event)
        for cell in around:
            if not state.cells[cell].members:
                del state.cells[cell]

    # --- who is told of ---

    def _teller(self, state: State, name: str, turned: Collection[str] = ()) -> str:
        """What is told in the place of a member: the largest cell around it that holds, or itself; or what
        was, before some cells turned."""
        around = reversed(state.members[name].path[1:])
        return next((cell for cell in around if state.cells[cell].holds != (cell in turned)), name)

    def _tellers(self, state: State, names: Iterable[str]) -> set[str]:
        return {self._teller(state, name) for name in names}

    def _changed(self, state: State, before: set[str], after: set[str], event: Event) -> Iterator[Transition]:
        for name in sorted(before - after):
            since, _ = state.told.pop(name)
            yield self._said(state, event, name, "egress", since, self._into(state, name))
        for name in sorted(after - state.told.keys()):
            state.told[name] = (event.time, len(state.cells[name].members) if name.startswith(CELL) else 1)
            member = state.members.get(name)
            if member is None or member.event is event:
                yield self._said(state, event, name, "ingress", None)
            else:  # it has held for longer
                its = replace(member.event, time=event.time)
                yield self._said(state, its, name, "ingress", member.event.time)

    def _into(self, state: State, name: str) -> str | None:
        """The cell that is told from now on in the place of what holds on."""
        around = self._tellers(state, (name,) if name in state.members else _inside(state, name))
        into = around.pop() if len(around) == 1 else ""
        return into[1:] if into.startswith(CELL) else None

    def _grown(self, state: State, name: str, event: Event) -> Iterator[Transition]:
        """A cell that is told is told again when there are twice as many."""
        since, size = state.told[name]
        if name.startswith(CELL) and len(state.cells[name].members) >= 2 * size:
            state.told[name] = (since, len(state.cells[name].members))
            yield self._said(state, event, name, "joined", since)

    def _said(
        self,
        state: State,
        event: Event,
        name: str,
        status: Status,
        since: Instant | None,
        into: str | None = None,
    ) -> Transition:
        kept: dict[str, Value] = {n: v for n, v in event.attributes.items() if n not in self.dropped}
        inside = {name: None} if name in state.members else _inside(state, name)
        around = None
        if name.startswith(CELL) and status != "egress":
            spots = (self.corners(state.members[one].event) for one in inside)
            around = outline(point for some in spots for point in some)
        own = (len(inside), around, into)
        told = replace(event, topic=self.name, attributes=kept | dict(zip(self.own, own, strict=True)))
        return Transition(told, status, name[1:] or None, since, 0)

    # --- what is told, and keeping it ---

    def due(self, state: State) -> Instant | None:
        return None if state.waiting.first == NEVER else state.waiting.first

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return [(0, name[1:] or None, since) for name, (since, _) in state.told.items()]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.members and not state.waiting.held

    def to_bytes(self, state: State) -> bytes:
        return msgspec.msgpack.encode(state)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        if was is not None and was[0] is None:
            return self.initial()
        return msgspec.msgpack.decode(raw, type=State)


def _inside(state: State, cell: str) -> Mapping[str, None]:
    """The members in a cell."""
    return state.cells[cell].members if cell in state.cells else {}


CELL, MEMBER = "#", "."
"""How the names of cells and of members begin inside, so that no member is taken for a cell."""
