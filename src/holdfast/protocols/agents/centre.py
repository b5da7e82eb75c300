"""A group and its centre: a mediator knows where all were, and gives each of them the same room.  [B58]

If the farthest is M from the centre and M matters at R, each may move |M - R| / 2: then the centre has moved
less than that as well, and the farthest by less than |M - R|.  Who leaves its ring tells the mediator, which
asks the others where they are now, and gives all of them new rings.

As printed (``printed``), a ring is how far its owner is from the edge of the region around the centre, and
the mediator judges by what was reported last: the centre moves with everybody, and a group gathers unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from ...model.relation import Relation, apart, centre, spread
from .mediated import Above, Below
from .talk import Reading, Report, Say, Wants, latest, room, tests


class Here(msgspec.Struct, frozen=True, tag=True):
    """I am here: I left my ring, or was asked (``round`` says which question)."""

    reading: Reading
    round: int = 0


class Where(msgspec.Struct, frozen=True, tag=True):
    """Where are you now?"""

    round: int


class Room(msgspec.Struct, frozen=True, tag=True):
    """You were here, and may move so far from there."""

    reading: Reading
    radius: float


@dataclass
class Member(Below):
    """The agent of one of a group."""

    name: str
    mediator: str
    mine: Reading | None = None
    centre: Reading | None = None
    radius: float = 0.0
    has_told: bool = False
    """Whether it has told where it is, and waits for its ring."""
    hears: ClassVar[tuple[type, ...]] = (Where, Room)

    def read(self, reading: Reading) -> Wants:
        self.mine = reading
        if self.has_told or (self.centre and apart(self.centre.at, reading.at) < self.radius):
            return []
        return self._tell(0)

    def _tell(self, round: int) -> Wants:
        if self.mine is None:
            return []
        self.has_told = True
        return [Say(self.mediator, Here(self.mine, round))]

    def hear(self, _sender: str, message: Where | Room) -> Wants:
        if isinstance(message, Where):
            return self._tell(message.round)
        self.centre, self.radius, self.has_told = message.reading, message.radius, False
        if self.mine is None or self.mine == self.centre:
            return []
        return self.read(self.mine)


@dataclass
class Mediator(Above):
    """The agent that knows where all were; it lives beside the first of them."""

    name: str
    members: tuple[str, ...]
    relation: Relation
    printed: bool = False
    known: dict[str, Reading] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    round: int = 0
    bit: int | None = 0
    turns: int = 0
    hears: ClassVar[tuple[type, ...]] = (Here,)

    def hear(self, sender: str, message: Here) -> Wants:
        self.known[sender] = message.reading
        if self.asked and not self.printed:
            if message.round == self.round:
                self.asked.discard(sender)
            return [] if self.asked else self._settled()
        if message.round or len(self.known) < len(self.members):
            return []
        return self._settled() if self.printed else self._ask(sender)

    def _ask(self, known: str | None = None) -> Wants:
        """Where is everybody now?  Of one it is known."""
        self.asked = {name for name in self.members if name != known}
        self.round += 1
        asking: Wants = [Say(name, Where(self.round)) for name in self.members if name in self.asked]
        return asking or self._settled()

    def _settled(self) -> Wants:
        """Everybody is known: does it hold, and how far may they move?"""
        points = [self.known[name].at for name in self.members]
        value, wants = spread(points), Wants()
        errors = [self.known[name].error for name in self.members]
        for bit, test in tests(self.relation, self.bit):
            if test.within.holds(value, max(errors) + sum(errors) / len(errors)):
                self.bit, self.turns = bit, self.turns + 1
                by, reading = latest({name: self.known[name] for name in self.members})
                wants.append(Report("ingress" if self.bit else "egress", by, reading, value))
                break
        middle = centre(points)
        for name, point in zip(self.members, points, strict=True):
            radius = room(value, self.relation, self.bit) / 2
            if self.printed:
                edge = self.relation.exit.within.low if self.bit else self.relation.enter.within.high
                radius = abs(apart(point, middle) - edge)
            wants.append(Say(name, Room(self.known[name], radius)))
        return wants

    def reset(self, relation: Relation) -> Wants:
        self.relation = relation
        return [] if len(self.known) < len(self.members) else self._ask()


def group(relation: Relation, members: tuple[str, ...], *, printed: bool = False) -> list[Member | Mediator]:
    """The agents of a group; the mediator's name is that of the first with a mark."""
    name = f"{members[0]}@"
    return [*(Member(one, name) for one in members), Mediator(name, members, relation, printed)]
