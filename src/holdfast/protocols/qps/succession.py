"""How a role comes to a node, and leaves it: hand-over, heartbeats, copies, and what nodes do for others
that failed.  [F46, F47, F49]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...model.instant import Instant
from ...model.protocol import Effect, Input, Nearby, SetTimer
from ...model.space import Point
from . import tables
from .deployment import Deployment
from .envelope import Here, Offer, Tables, Taken, Vacant, Word, cause_of
from .forwarding import kept
from .mapping import Mapping
from .message import At, Gone, Message, Publication, Source
from .state import Logical
from .tree import Scope

if TYPE_CHECKING:
    from .physical import Physical, PhysicalState, Role


@dataclass(frozen=True, slots=True)
class Known:
    """Who acts for a broker, since when, and when that was heard."""

    at: At
    turn: Instant
    heard: Instant


@dataclass(slots=True)
class Held:
    """A role of this node."""

    original: float
    """How well it suited when it got it."""
    copied: tuple[Message, ...] = ()
    """What the nodes near by have of its tables."""


@dataclass(slots=True)
class Giving:
    """A role that is to go: once its tables are sent, what would change them waits."""

    to: At | None = None
    """Who was sent them."""
    sent: tuple[Message, ...] = ()
    waiting: list[Message] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Stored:
    """An event for a node that did not answer, so often."""

    at: At
    event: Publication
    tries: int


class Succession:
    """That part of a turn."""

    machine: Physical
    state: PhysicalState
    now: Instant
    deployment: Deployment
    mapping: Mapping
    at: At
    effects: list[Effect]

    # What the other part has.

    def to_broker(self, given: Input) -> None: ...
    def carry_out(self, effects: list[Effect]) -> None: ...
    def direct(
        self, at: Point, message: Message | Word, tries: int = 0, left: tuple[At, ...] = ()
    ) -> None: ...
    def seek(self, role: Role, message: Any, left: tuple[At, ...] = ()) -> None: ...
    def suits(self, role: Role) -> float:
        raise NotImplementedError

    def is_nearer(self, role: Role, at: At, than: At) -> bool:
        raise NotImplementedError

    # --- having a role ---

    def begins(self, role: Role, logical: Logical) -> None:
        """This node acts for a broker now."""
        self.state.known.pop(role, None)
        self.state.broker.logical[role] = logical
        self.state.held[role] = Held(self.suits(role))
        self._beat(role, logical)

    def _resumes(self, role: Role, logical: Logical) -> None:
        """It does, in place of another: those who send to the broker get to know."""
        self.begins(role, logical)
        moved = self.machine.broker.forwarding.moved_here(self.state.broker, logical, self.now)
        self.carry_out(list(moved))
        self._copies(role, self.state.held[role], logical)  # it may fail before it looks

    def _beat(self, role: Role, logical: Logical) -> None:
        self.seek(role, Here(*role, self.at, logical.turn))

    def heard_of(self, given: Here) -> None:
        """Somebody acts for a broker: of two, the nearer one where roles belong to the nearest node, else the
        later one.  [F47]"""
        role, known = (given.topic, given.to), self.state.known.get((given.topic, given.to))
        if role in self.state.held and self.is_nearer(role, self.at, given.at):
            self._claims(role, given)
        elif role in self.state.held:
            self.yielded(role, given.at, given.turn)
        elif given.at != self.at and (known is None or (known.turn, known.at) <= (given.turn, given.at)):
            heard = self.now if known is None else max(self.now, known.heard)
            self.state.known[role] = Known(given.at, given.turn, heard)
            copy = next(iter(self.state.copies.get(role, {}).values()), None)
            if copy is not None and copy.turn < given.turn:
                del self.state.copies[role]

    def judged(self, given: Here) -> None:
        """Heartbeats of all who act for a broker meet here: the earlier of two hears of the later.

        Where roles belong to the nearest node and that is this one, it offers to take the role.
        """
        role = (given.topic, given.to)
        if self.is_nearer(role, self.at, given.at):
            if role not in self.state.held:
                self.direct(given.at, Offer(*role, self.at))
            return
        if role in self.state.held:
            other = (self.state.broker.logical[role].turn, self.at)
        elif role in self.state.known:
            other = (self.state.known[role].turn, self.state.known[role].at)
        else:
            return
        first, last = sorted([other, (given.turn, given.at)])
        if first[1] not in (last[1], self.at):
            self.direct(first[1], Here(*role, last[1], last[0]))

    def _claims(self, role: Role, given: Here) -> None:
        """Another node acts for a broker that is this one's: it hears so, under a turn that is later."""
        logical = self.state.broker.logical[role]
        if logical.turn <= given.turn:
            logical.turn = max(self.now, given.turn + 1)
            self._resumes(role, logical)
        self.direct(given.at, Here(*role, self.at, logical.turn))

    def checks_later(self) -> None:
        when = self.deployment.after(self.now, self.mapping.check, self.state.broker.chance)
        self.effects.append(SetTimer("check", when))

    def checked(self) -> None:
        """Compare, and say that one is there; forget who has not.  [F46, F47]"""
        state = self.state
        self.checks_later()
        old = self.now - 3 * self.mapping.check
        state.known = {role: known for role, known in state.known.items() if known.heard >= old}
        for role, held in list(state.held.items()):
            logical = state.broker.logical[role]
            if logical.empty:
                del state.held[role], state.broker.logical[role]
                state.giving.pop(role, None)
                continue
            if role not in state.giving and self.mapping.compare(held.original, self.suits(role)):
                self._gives(role)
                self.seek(role, Vacant(*role, self.at), left=(self.at,))
            self._beat(role, logical)  # also while nobody takes it: it is here still
            self._copies(role, held, logical)

    # --- hand-over ---

    def _handed(self, role: Role, logical: Logical, rows: tuple[Message, ...]) -> Iterable[Tables]:
        some, version = tables.parts(rows, self.mapping.room), max(logical.version, self.now)
        for number, part in enumerate(some):
            yield Tables(*role, self.at, logical.turn, version, number, len(some), part)

    def _gives(self, role: Role) -> Giving:
        giving = self.state.giving[role] = Giving()
        self.effects.append(SetTimer(_giving(role), self.now + self.mapping.patience))
        return giving

    def given(self, offer: Offer) -> None:
        """Role transfer: a successor is found, and gets the tables."""
        role = (offer.topic, offer.to)
        giving = self.state.giving.get(role)
        if giving is None and role in self.state.held and self.is_nearer(role, offer.at, self.at):
            giving = self._gives(role)
        if giving is None or giving.to is not None:
            return
        logical = self.state.broker.logical[role]
        giving.to, giving.sent = offer.at, tuple(tables.rows(logical))
        for part in self._handed(role, logical, giving.sent):
            self.direct(offer.at, part)

    def taken_over(self, given: Tables) -> None:
        """Parallel subscribe and unsubscribe: who sends to the broker hears that it is here now, of one word
        that takes the place of the old."""
        role, state = (given.topic, given.to), self.state
        logical = self._whole(state.coming, given)
        if logical is None:
            return
        if role in state.held:  # both acted for a while
            for message in tables.said(logical):
                self.direct(self.at, message)
            for event in logical.latest.values():
                kept(state.broker.logical[role].latest, event)
            if not logical.empty:  # brokers below may have heard from the other that something is over
                own = state.broker.logical[role]
                self.carry_out(list(self.machine.broker.forwarding.ask_anew(state.broker, own, self.now)))
        else:
            logical.turn = max(self.now, given.turn + 1)
            self._resumes(role, logical)
        self.direct(given.at, Taken(*role, self.at, state.broker.logical[role].turn))

    def _whole(self, kept: dict[Role, dict[int, Tables]], given: Tables) -> Logical | None:
        """A broker by its tables, once all parts have come."""
        role = (given.topic, given.to)
        some = _with_part(kept.get(role, {}), given)
        if len(some) < given.parts:
            kept[role] = some
            return None
        kept.pop(role, None)
        rows = (row for number in sorted(some) for row in some[number].rows)
        return tables.logical(role, rows, given.turn, given.version, self.now)

    def yielded(self, role: Role, at: At, turn: Instant) -> None:
        """Clean-up: another node acts for the broker.  What came meanwhile goes there."""
        state = self.state
        if role not in state.held:
            return
        logical = state.broker.logical[role]
        if (turn, at) <= (logical.turn, self.at):
            return
        giving = state.giving.pop(role, Giving())
        sent = giving.sent if giving.to == at else ()
        del state.held[role], state.broker.logical[role]
        state.known[role] = Known(at, turn, self.now + 3 * self.mapping.check)
        rows = tuple(logical.latest.values()) if sent else tuple(tables.rows(logical))
        missed = tuple(row for row in rows if row not in sent)
        for part in self._handed(role, logical, missed) if missed else ():
            self.direct(at, part)
        for message in giving.waiting:
            self.direct(at, message)
        self.effects.append(Nearby(Here(*role, at, turn), "here"))

    def kept(self, timer: str) -> None:
        """Nobody took it in time: it stays here."""
        role = next((role for role in self.state.giving if _giving(role) == timer), None)
        if role is not None:
            for message in self.state.giving.pop(role).waiting:
                self.direct(self.at, message)

    # --- failures ---

    def _copies(self, role: Role, held: Held, logical: Logical) -> None:
        """The nodes near by get the tables if they have changed."""
        rows = tuple(tables.rows(logical))
        if rows != held.copied:
            held.copied = rows
            self.effects += [Nearby(part, cause_of(part)) for part in self._handed(role, logical, rows)]

    def copied(self, given: Tables) -> None:
        role = (given.topic, given.to)
        if role not in self.state.held:
            self.state.copies[role] = _with_part(self.state.copies.get(role, {}), given)
            self.heard_of(Here(given.topic, given.to, given.at, given.turn))

    def adopted(self, role: Role, left: tuple[At, ...]) -> None:
        """Take the role of a node that failed, if one has its tables."""
        some = self.state.copies.get(role, {})
        last = next(iter(some.values()), None)
        if last is None or last.at not in left or len(some) < last.parts:
            return
        del self.state.copies[role]
        rows = (row for number in sorted(some) for row in some[number].rows)
        self._resumes(role, tables.logical(role, rows, last.turn + 1, last.version, self.now))

    def stored(self, event: Stored) -> None:
        """An event for a node that does not answer is kept, and brought again later."""
        self.state.stored.append(event)
        if len(self.state.stored) == 1:
            self.effects.append(SetTimer("stored", self.now + self.mapping.patience))

    def retried(self) -> None:
        """Bring stored events again; who never answers is said to be gone."""
        stored, self.state.stored = self.state.stored, []
        for each in stored:
            source = each.event.source
            if each.tries < self.mapping.tries:
                self.direct(each.at, each.event, each.tries + 1)
            elif source.scope is not None:
                self.direct(source.at, Gone(each.event.topic, Source(each.at), source.scope))


def _with_part(some: dict[int, Tables], given: Tables) -> dict[int, Tables]:
    """Parts that belong together, with one more; those of other tables are old."""
    same = (given.at, given.turn, given.version, given.parts)
    kept = {n: t for n, t in some.items() if (t.at, t.turn, t.version, t.parts) == same}
    return {**kept, given.part: given}


def _giving(role: tuple[str, Scope]) -> str:
    return f"giving/{role[0]}/{role[1]}"
