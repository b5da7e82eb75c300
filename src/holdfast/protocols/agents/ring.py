"""Two publishers and the distance between them: range rings and parallel lines.  [B53–B57, B67]

Each of the two agents has a ring around its publisher's last known position; as long as both stay inside
theirs, the distance cannot have come where it matters.  Who leaves its ring says so, with the position of
the other that it knows and the ring that follows from both.  The other looks with its *current* reading: only
then is anything reported.  If it is still inside the ring that it is given, it is silent; else it answers
with its own position, in the same way.  When both leave at once they know it by the numbers of their
messages, and both reckon from the two new positions.

As printed (``printed``), the one who leaves judges by the other's last report, and of two rings that cross on
the way the smaller one counts: both miss meetings, and report some that never were.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from ...model.relation import Point, Relation, apart, whole
from .talk import Knowledge, Reading, Report, Say, Wants, latest, room, tests


class Moved(msgspec.Struct, frozen=True, tag=True):
    """I am here; you were there, as far as I know; so you may move so far.  ``turns`` counts starts and ends,
    ``bit`` is what holds; ``count`` and ``seen`` number what each of the two has said."""

    count: int
    seen: int
    reading: Reading
    used: Reading | None
    radius: float
    turns: int
    bit: int | None


@dataclass
class Ring:
    """The agent of one of two.  ``share`` is its part of the room between them, by how much its publisher
    moves.  ``is_first`` is whether its publisher is listed first; it reports."""

    name: str
    partner: str
    relation: Relation
    is_first: bool
    share: float = 0.5
    is_line: bool = False
    printed: bool = False
    enlarged: float = 1.0
    """How much larger a ring is, with its leading edge where it was and its centre moved back."""

    mine: Reading | None = None
    centre: Reading | None = None
    theirs: Reading | None = None
    radius: float = math.inf
    count: int = 0
    seen: int = 0
    turns: int = 0
    bit: int | None = 0
    is_apart: bool = False
    """Whether the other cannot be reached."""
    hears: ClassVar[tuple[type, ...]] = (Moved,)

    @property
    def reports(self) -> bool:
        return self.is_first

    # --- what it is given ---

    def read(self, reading: Reading) -> Wants:
        self.mine = reading
        if self.is_apart or not self._is_outside():
            return []
        if self.printed:
            return self._leave_as_printed()
        return self._speak()

    def hear(self, _sender: str, message: Moved) -> Wants:
        crossed = message.seen < self.count
        self.theirs, self.seen = message.reading, message.count
        wants = self._adopted(message)
        if self.mine is None:
            return wants
        if self.centre is None:
            return wants + self._speak()
        here = self.centre if crossed else self.mine
        if self.printed:
            return wants + self._heard_as_printed(message, crossed)
        turned = self._turned({self.name: here, self.partner: self.theirs})
        if turned is not None:
            return wants + turned + self._speak()
        self.radius = self._room() if crossed else message.radius
        return wants + (self._speak() if self.mine != self.centre and self._is_outside() else [])

    def lost(self, _other: str) -> Wants:
        """Nobody knows now whether it holds; whoever of the two reaches the subscriber says so."""
        was = self.bit
        self.bit, self.theirs, self.centre, self.radius = None, None, None, math.inf
        self.count = self.seen = 0
        self.turns += 1
        self.is_apart = True
        return [] if was is None else [Report("unknown", self.name, self.mine, math.nan)]

    def found(self, _other: str) -> Wants:
        self.is_apart = False
        return self._speak() if self.mine is not None else []

    def renew(self, _other: str) -> Wants:
        """``theirs`` stays, so that a start or an end that the other has not received is reported by it."""
        self.centre, self.radius = None, math.inf
        self.count = self.seen = 0
        return self.found(_other)

    def knowledge(self) -> Knowledge:
        return Knowledge(self.turns, self.bit)

    def adopt(self, knowledge: Knowledge) -> None:
        self.turns, self.bit = knowledge.turns, knowledge.bit

    def doubt(self) -> None:
        self.bit, self.turns = None, self.turns + 1

    def reset(self, relation: Relation) -> Wants:
        self.relation = relation
        return [] if self.mine is None or self.is_apart else self._speak()

    # --- rings ---

    def _is_outside(self) -> bool:
        """Whether its publisher has left the room that it has; leaving is ``>=``."""
        assert self.mine is not None
        if self.centre is None:
            return True
        if self.theirs is None:
            return False
        if self.radius <= 0:
            return True
        if self.is_line and self._approaches():
            return _along(self.centre.at, self.theirs.at, self.mine.at) >= self.radius
        middle, radius = self.centre.at, self.radius
        if self.enlarged > 1 and self._approaches():
            back = (self.enlarged - 1) * self.radius
            middle, radius = _moved(self.centre.at, self.theirs.at, -back), self.radius + back
        return apart(middle, self.mine.at) >= radius

    def _approaches(self) -> bool:
        """Whether only coming nearer can make a difference."""
        return self.bit == 0 and self.relation.enter.within.low <= 0

    def _room(self, share: float | None = None) -> float:
        """How far its publisher may move, from where it was when both last knew."""
        if self.theirs is None or self.centre is None:
            return math.inf
        distance = apart(self.centre.at, self.theirs.at)
        return room(distance, self.relation, self.bit) * (self.share if share is None else share)

    def _speak(self) -> Wants:
        assert self.mine is not None
        self.centre = self.mine
        self.count += 1
        self.radius = self._room()
        given = self._room(1 - self.share)
        said = Moved(self.count, self.seen, self.mine, self.theirs, given, self.turns, self.bit)
        return [Say(self.partner, said)]

    # --- what holds ---

    def _turned(self, both: dict[str, Reading]) -> Wants | None:
        """What is reported if the relationship starts or ends with these two readings."""
        a, b = both.values()
        value, error = apart(a.at, b.at), a.error + b.error
        for bit, test in tests(self.relation, self.bit):
            if test.within.holds(value, error):
                self.bit, self.turns = bit, self.turns + 1
                return self._reported(both, value)
        return None

    def _adopted(self, message: Moved) -> Wants:
        """The other has seen a start or an end that this one has not."""
        if message.turns <= self.turns:
            return []
        self.turns, self.bit = message.turns, message.bit
        if message.used is None or self.bit is None:
            return []
        both = {self.name: message.used, self.partner: message.reading}
        return self._reported(both, apart(message.used.at, message.reading.at))

    def _reported(self, both: dict[str, Reading], value: float) -> Wants:
        if not self.is_first:
            return []
        by, reading = latest({name: both[name] for name in (self.name, self.partner)})
        return [Report("ingress" if self.bit else "egress", by, reading, value)]

    # --- as printed ---

    def _leave_as_printed(self) -> Wants:
        """The one who leaves judges by the other's last report."""
        if self.theirs is None:
            return self._speak()
        assert self.mine is not None
        said = self._turned({self.name: self.mine, self.partner: self.theirs}) or []
        return said + self._speak()

    def _heard_as_printed(self, message: Moved, crossed: bool) -> Wants:
        """Of two rings that cross, the smaller one counts."""
        if message.used is None:
            self.radius = self._room()
        else:
            self.radius = min(self.radius, message.radius) if crossed else message.radius
        return self._leave_as_printed() if self.mine != self.centre and self._is_outside() else []


def _along(start: Point, to: Point, at: Point) -> float:
    """How far a point is along the way from one to another."""
    way = apart(start, to)
    if way == 0:
        return math.inf
    axes = zip(whole(start), whole(to), whole(at), strict=True)
    return sum((q - p) * (x - p) for p, q, x in axes) / way


def _moved(start: Point, to: Point, by: float) -> Point:
    """A point moved towards another."""
    way = apart(start, to)
    if way == 0:
        return start
    return tuple(p + (q - p) * by / way for p, q in zip(whole(start), whole(to), strict=True))


def pair(relation: Relation, a: str, b: str, *, share: float = 0.5, **how: bool | float) -> tuple[Ring, Ring]:
    """The two agents of a pair; ``share`` is the first one's part of the room."""
    options = dict(how)
    return (
        Ring(a, b, relation, True, share, **options),  # type: ignore[arg-type]
        Ring(b, a, relation, False, 1 - share, **options),  # type: ignore[arg-type]
    )
