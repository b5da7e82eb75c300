"""So many of a group around one of it: each two watch their distance, each counts who is near, and a chair
tells it once.  [B59]

Two participants keep one another's last told position; each may move half of what their distance is from
where it matters, and tells the other when it has.  So both know on which side of every bound they are: that
somebody has come near, and that somebody is near no more.  Each counts its own; when a count passes the
quorum, in either direction, the chair is told.  It asks all where they are *now*, and reports only what is
so: of one move the chair may hear one pair before another, and would tell of a group that was never apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from ...model.relation import Relation, apart, radius
from .centre import Here, Where
from .mediated import Above
from .talk import Knowledge, Reading, Report, Say, Wants, latest, tests

Sides = tuple[bool, ...]
"""Of each bound, whether something is below it: the lower bounds not included, the upper ones included."""


class Spot(msgspec.Struct, frozen=True, tag=True):
    """I am here; from where we both were you know how far you may go unsaid.  One who ``asks`` does not know
    where the other is."""

    reading: Reading
    asks: bool


class Tally(msgspec.Struct, frozen=True, tag=True):
    """On which side of each bound the circle around me is that holds a quorum; not known while I have yet to
    hear somebody."""

    sides: Sides | None


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Tell me of every reading, or do so no more: what is measured is not certain enough."""

    closely: bool


def bounds(relation: Relation) -> tuple[float, ...]:
    """Where the measure matters."""
    enter, leave = relation.enter.within, relation.exit.within
    return enter.low, enter.high, leave.low, leave.high


def sides(value: float, relation: Relation) -> Sides:
    """On which side of each bound a number is."""
    low, high, least, most = bounds(relation)
    return value < low, value <= high, value < least, value <= most


def room(value: float, relation: Relation) -> float:
    """How far a number is from all bounds; a little less, so that rounding never hides that it came there."""
    far = min(abs(value - bound) for bound in bounds(relation))
    return max(0.0, far - 1e-12 * (abs(value) + far)) if math.isfinite(far) else far


@dataclass
class Pair:
    """What one knows of another: where it was told to be, and where oneself was."""

    centre: Reading | None = None
    theirs: Reading | None = None

    @property
    def distance(self) -> float | None:
        if self.centre is None or self.theirs is None:
            return None
        return apart(self.centre.at, self.theirs.at)


@dataclass
class Participant:
    """The agent of one of a group; it counts if the circle may be around it."""

    name: str
    chair: str
    others: tuple[str, ...]
    relation: Relation
    counts: bool
    mine: Reading | None = None
    answered: Reading | None = None
    pairs: dict[str, Pair] = field(default_factory=dict)
    told: Sides | None = None
    closely: bool = False
    is_apart: bool = False
    """Whether the chair cannot be reached."""
    reports: ClassVar[bool] = False
    hears: ClassVar[tuple[type, ...]] = (Spot, Where, Watch)

    def __post_init__(self) -> None:
        self.pairs = {other: Pair() for other in self.others}

    def read(self, reading: Reading) -> Wants:
        self.mine = reading
        wants = [said for other, pair in self.pairs.items() for said in self._left(other, pair)]
        if self.closely:
            wants += self._here()
        return wants + self._tallied()

    def hear(self, sender: str, message: Spot | Where | Watch) -> Wants:
        match message:
            case Where(round):
                return self._here(round)
            case Watch(closely):
                self.closely = closely
                return self._here() if closely and self.mine != self.answered else []
        pair = self.pairs[sender]
        pair.theirs = message.reading
        if message.asks:
            return self._speak(sender, pair) + self._tallied()
        is_new = self.mine != pair.centre
        return (self._left(sender, pair) if is_new else []) + self._tallied()

    def _here(self, round: int = 0) -> Wants:
        if self.mine is None or self.is_apart:
            return []
        self.answered = self.mine
        return [Say(self.chair, Here(self.mine, round))]

    def _left(self, other: str, pair: Pair) -> Wants:
        """Tell another where this one is, if it has left the room that the two have; leaving is ``>=``."""
        if pair.centre is None or self.mine is None:
            return self._speak(other, pair)
        if pair.theirs is None:
            return []  # it was asked, and has yet to answer
        distance = apart(pair.centre.at, pair.theirs.at)
        is_inside = apart(pair.centre.at, self.mine.at) < room(distance, self.relation) / 2
        return [] if is_inside else self._speak(other, pair)

    def _speak(self, other: str, pair: Pair) -> Wants:
        if self.mine is None:
            return []
        pair.centre = self.mine
        return [Say(other, Spot(self.mine, pair.theirs is None))]

    def _tallied(self, *, again: bool = False) -> Wants:
        """Tell the chair on which side of each bound this one's circle is, if that is news."""
        if not self.counts or self.is_apart:
            return []
        now = self._sides()
        is_news, self.told = now != self.told, now
        if not is_news and not (again and now is not None):
            return []
        return [Say(self.chair, Tally(now))]

    def _sides(self) -> Sides | None:
        distances = [distance for pair in self.pairs.values() if (distance := pair.distance) is not None]
        if len(distances) < len(self.pairs):
            return None
        return sides(sorted(distances)[self.relation.quorum - 2], self.relation)

    def lost(self, other: str) -> Wants:
        if other == self.chair:
            self.is_apart, self.closely = True, False
            return []
        self.pairs[other] = Pair()
        return self._tallied()

    def found(self, other: str) -> Wants:
        if other == self.chair:
            self.is_apart = False
            return self._tallied(again=True)
        self.pairs[other] = Pair()
        return self._speak(other, self.pairs[other]) + self._tallied()

    def renew(self, other: str) -> Wants:
        if other == self.chair:
            self.closely = False
        return self.found(other)

    def knowledge(self) -> Knowledge:
        """What is reported is known to the chair."""
        return Knowledge(0, 0)

    def adopt(self, _knowledge: Knowledge) -> None:
        """What is reported is known to the chair."""

    def doubt(self) -> None:
        """What is reported is the chair's business."""

    def reset(self, relation: Relation) -> Wants:
        self.relation = relation
        wants = [said for other, pair in self.pairs.items() for said in self._left(other, pair)]
        return wants + self._tallied(again=True)


@dataclass
class Chair(Above):
    """The agent that reports; ``members`` are all, ``counters`` those whose circles count."""

    name: str
    members: tuple[str, ...]
    counters: tuple[str, ...]
    relation: Relation
    tallies: dict[str, Sides] = field(default_factory=dict)
    known: dict[str, Reading] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    missed: bool = False
    """Whether a count came while all were asked."""
    closely: bool = False
    round: int = 0
    bit: int | None = 0
    turns: int = 0
    hears: ClassVar[tuple[type, ...]] = (Here, Tally)

    def hear(self, sender: str, message: Here | Tally) -> Wants:
        if isinstance(message, Tally):
            if message.sides is None:
                self.tallies.pop(sender, None)
            elif sender in self.counters:
                self.tallies[sender] = message.sides
            return self._weigh()
        if not message.round:
            return self._weigh()
        if message.round != self.round or sender not in self.asked:
            return []
        self.known[sender] = message.reading
        self.asked.discard(sender)
        return [] if self.asked else self._settled()

    def _weigh(self) -> Wants:
        """By what is counted, may it start or end now?  Then ask all where they are."""
        if self.asked:
            self.missed = True
            return []
        if not self._may_turn():
            return self._watch(False)
        self.asked, self.missed = set(self.members), False
        self.round += 1
        return [Say(name, Where(self.round)) for name in self.members]

    def _may_turn(self) -> bool:
        if len(self.tallies) < len(self.counters):
            return False
        low, high, least, most = (any(side) for side in zip(*self.tallies.values(), strict=True))
        inside = {self.relation.enter: not low and high, self.relation.exit: not least and most}
        return any(inside[test] for _, test in tests(self.relation, self.bit))

    def _settled(self) -> Wants:
        """Everybody is known: does it hold?"""
        readings = {name: self.known[name] for name in self.members}
        around = self.relation.around
        where = None if around is None else self.members.index(around)
        value = radius([reading.at for reading in readings.values()], self.relation.quorum, where)
        errors = sorted((reading.error for reading in readings.values()), reverse=True)
        for bit, test in tests(self.relation, self.bit):
            if test.within.holds(value, sum(errors[:2])):
                self.bit, self.turns = bit, self.turns + 1
                by, reading = latest(readings)
                report = Report("ingress" if bit else "egress", by, reading, value)
                return [report, *self._weigh()]
        uncertain = self._watch(self.relation.accuracy is not None)
        return [*uncertain, *(self._weigh() if self.missed else ())]

    def _watch(self, closely: bool) -> Wants:
        """Have all tell of every reading while it may have turned, and errors leave it open."""
        if closely == self.closely:
            return []
        self.closely = closely
        return [Say(name, Watch(closely)) for name in self.members]

    def renew(self, other: str) -> Wants:
        self.tallies.pop(other, None)
        self.closely = False
        return super().renew(other)

    def reset(self, relation: Relation) -> Wants:
        self.relation = relation
        return self._weigh()


def counting(relation: Relation, members: tuple[str, ...]) -> tuple[list[Participant], Chair]:
    """The agents of a group, and its chair, which is beside whom the circle is around, or the first."""
    counters = members if relation.around is None else (relation.around,)
    name = f"{counters[0]}@"
    participants = []
    for one in members:
        others = members if one in counters else counters
        partners = tuple(other for other in others if other != one)
        participants.append(Participant(one, name, partners, relation, one in counters))
    return participants, Chair(name, members, counters, relation)
