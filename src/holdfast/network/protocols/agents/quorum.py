"""A quorum of a group within a circle: pairs monitor their distance, members count, and a chair reports.
[B59]

Two participants store each other's last position. Each may move half the distance from the nearest bound, and
then reports its position. So both know on which side of every bound their distance is. Each participant
counts its neighbours and informs the chair when the count passes the quorum. The chair then asks all
participants for their *current* positions, and reports only changes that these confirm. Otherwise, after one
move, the chair might learn of one pair before another and report a group that was never apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from ....model.relation import Relation, apart, radius
from .centre import GroupPosition, PositionRequest
from .mediated import MediatorAgent
from .talk import Agent, AgentOutputs, AgentReading, AgentReport, SendToAgent, latest, next_tests

Sides = tuple[bool, ...]
"""For each bound, whether a value is below it. Lower bounds are excluded, upper bounds included."""


class PairPosition(msgspec.Struct, frozen=True, tag="Spot"):
    """A participant's position. With ``asks`` it requests the position of the receiver."""

    reading: AgentReading
    asks: bool


class QuorumSides(msgspec.Struct, frozen=True, tag="Tally"):
    """The position of the sender's circle with a quorum, as the side of each bound; ``None`` while a position
    is missing.
    """

    sides: Sides | None


class CloseWatch(msgspec.Struct, frozen=True, tag="Watch"):
    """Asks participants to start or stop reporting every reading, because the measurement is too
    uncertain.
    """

    closely: bool


def bounds(relation: Relation) -> tuple[float, ...]:
    """Return the values at which the condition changes."""
    enter, leave = relation.enter.within, relation.exit.within
    return enter.low, enter.high, leave.low, leave.high


def sides_of(value: float, relation: Relation) -> Sides:
    """Return the side of each bound on which a value lies."""
    low, high, least, most = bounds(relation)
    return value < low, value <= high, value < least, value <= most


def room_to_bounds(value: float, relation: Relation) -> float:
    """Return the distance to the nearest bound, slightly reduced so that rounding never hides a crossing."""
    far = min(abs(value - bound) for bound in bounds(relation))
    return max(0.0, far - 1e-12 * (abs(value) + far)) if math.isfinite(far) else far


@dataclass
class PairDistance:
    """The knowledge of a participant about another one: its own last sent position and the other's
    position.
    """

    own_sent: AgentReading | None = None
    other_sent: AgentReading | None = None

    @property
    def distance(self) -> float | None:
        """The distance of the last exchanged positions; ``None`` while one is missing."""
        if self.own_sent is None or self.other_sent is None:
            return None
        return apart(self.own_sent.at, self.other_sent.at)


@dataclass
class QuorumMember(Agent):
    """The agent of one member. It counts neighbours if the circle may be around it."""

    name: str
    chair: str
    others: tuple[str, ...]
    relation: Relation
    counts: bool
    current: AgentReading | None = None
    last_answered: AgentReading | None = None
    pairs: dict[str, PairDistance] = field(default_factory=dict)
    sent_sides: Sides | None = None
    reports_all: bool = False
    is_apart: bool = False
    """Whether the chair cannot be reached at present."""
    accepts: ClassVar[tuple[type, ...]] = (PairPosition, PositionRequest, CloseWatch)

    def __post_init__(self) -> None:
        self.pairs = {other: PairDistance() for other in self.others}

    def on_reading(self, reading: AgentReading) -> AgentOutputs:
        self.current = reading
        wants = self._leave_messages()
        if self.reports_all:
            wants += self._position_message()
        return wants + self._sides_message()

    def on_message(self, sender: str, message: PairPosition | PositionRequest | CloseWatch) -> AgentOutputs:
        match message:
            case PositionRequest(round):
                return self._position_message(round)
            case CloseWatch(closely):
                self.reports_all = closely
                return self._position_message() if closely and self.current != self.last_answered else []
        pair = self.pairs[sender]
        pair.other_sent = message.reading
        if message.asks:
            return self._send_position(sender, pair) + self._sides_message()
        is_new = self.current != pair.own_sent
        return (self._leave_message(sender, pair) if is_new else []) + self._sides_message()

    def _position_message(self, round: int = 0) -> AgentOutputs:
        """Return the message with this member's position to the chair."""
        if self.current is None or self.is_apart:
            return []
        self.last_answered = self.current
        return [SendToAgent(self.chair, GroupPosition(self.current, round))]

    def _leave_messages(self) -> AgentOutputs:
        """Return the messages to all participants whose common room this member has left."""
        return [message for item in self.pairs.items() for message in self._leave_message(*item)]

    def _leave_message(self, other: str, pair: PairDistance) -> AgentOutputs:
        """Return a message to a participant if this member has left their common room. Equality (``>=``)
        counts as leaving.
        """
        if pair.own_sent is None or self.current is None:
            return self._send_position(other, pair)
        if pair.other_sent is None:
            return []  # it was asked, and has yet to answer
        distance = apart(pair.own_sent.at, pair.other_sent.at)
        is_inside = apart(pair.own_sent.at, self.current.at) < room_to_bounds(distance, self.relation) / 2
        return [] if is_inside else self._send_position(other, pair)

    def _send_position(self, other: str, pair: PairDistance) -> AgentOutputs:
        """Send this position to another participant."""
        if self.current is None:
            return []
        pair.own_sent = self.current
        return [SendToAgent(other, PairPosition(self.current, pair.other_sent is None))]

    def _sides_message(self, *, again: bool = False) -> AgentOutputs:
        """Return the message about this member's circle to the chair, if the circle has changed."""
        if not self.counts or self.is_apart:
            return []
        sides = self._sides()
        has_changed, self.sent_sides = sides != self.sent_sides, sides
        if not has_changed and not (again and sides is not None):
            return []
        return [SendToAgent(self.chair, QuorumSides(sides))]

    def _sides(self) -> Sides | None:
        """Return the sides of the radius of this member's circle; ``None`` if a position is missing."""
        distances = [distance for pair in self.pairs.values() if (distance := pair.distance) is not None]
        if len(distances) < len(self.pairs):
            return None
        return sides_of(sorted(distances)[self.relation.quorum - 2], self.relation)

    def on_lost(self, other: str) -> AgentOutputs:
        if other == self.chair:
            self.is_apart, self.reports_all = True, False
            return []
        self.pairs[other] = PairDistance()
        return self._sides_message()

    def on_found(self, other: str) -> AgentOutputs:
        if other == self.chair:
            self.is_apart = False
            return self._sides_message(again=True)
        self.pairs[other] = PairDistance()
        return self._send_position(other, self.pairs[other]) + self._sides_message()

    def on_partner_changed(self, other: str) -> AgentOutputs:
        if other == self.chair:
            self.reports_all = False
        return self.on_found(other)

    def change_relation(self, relation: Relation) -> AgentOutputs:
        self.relation = relation
        return self._leave_messages() + self._sides_message(again=True)


@dataclass
class QuorumChair(MediatorAgent):
    """The agent that reports. ``members`` are all participants, ``counters`` the participants whose circles
    count.
    """

    counters: tuple[str, ...] = ()
    sides_by_member: dict[str, Sides] = field(default_factory=dict)
    has_missed: bool = False
    """Whether a count arrived while the chair waited for positions."""
    is_close_watch: bool = False
    accepts: ClassVar[tuple[type, ...]] = (GroupPosition, QuorumSides)
    question = PositionRequest

    def on_message(self, sender: str, message: GroupPosition | QuorumSides) -> AgentOutputs:
        if isinstance(message, QuorumSides):
            if message.sides is None:
                self.sides_by_member.pop(sender, None)
            elif sender in self.counters:
                self.sides_by_member[sender] = message.sides
            return self._check_counts()
        if not message.round:
            return self._check_counts()
        if message.round != self.round or sender not in self.awaited:
            return []
        self.last_values[sender] = message.reading
        self.awaited.discard(sender)
        return [] if self.awaited else self._evaluate()

    def _check_counts(self) -> AgentOutputs:
        """Ask all members for their positions if the counts allow a change of the condition."""
        if self.awaited:
            self.has_missed = True
            return []
        if not self._may_change():
            return self._set_close_watch(False)
        self.has_missed = False
        return self._ask_all()

    def _may_change(self) -> bool:
        """Whether the counts allow the condition to start or end."""
        if len(self.sides_by_member) < len(self.counters):
            return False
        low, high, least, most = (any(side) for side in zip(*self.sides_by_member.values(), strict=True))
        inside = {self.relation.enter: not low and high, self.relation.exit: not least and most}
        return any(inside[test] for _, test in next_tests(self.relation, self.bit))

    def _evaluate(self) -> AgentOutputs:
        readings = {name: self.last_values[name] for name in self.members}
        around = self.relation.around
        where = None if around is None else self.members.index(around)
        value = radius([reading.at for reading in readings.values()], self.relation.quorum, where)
        errors = sorted((reading.error for reading in readings.values()), reverse=True)
        if self.change_bit(value, sum(errors[:2])):
            return [AgentReport(self.status, *latest(readings), value), *self._check_counts()]
        uncertain = self._set_close_watch(self.relation.accuracy is not None)
        return [*uncertain, *(self._check_counts() if self.has_missed else ())]

    def _set_close_watch(self, closely: bool) -> AgentOutputs:
        """Switch close watching on or off. It is needed while the accuracy leaves open whether the condition
        changed.
        """
        if closely == self.is_close_watch:
            return []
        self.is_close_watch = closely
        return [SendToAgent(name, CloseWatch(closely)) for name in self.members]

    def on_partner_changed(self, other: str) -> AgentOutputs:
        self.sides_by_member.pop(other, None)
        self.is_close_watch = False
        return super().on_partner_changed(other)

    def change_relation(self, relation: Relation) -> AgentOutputs:
        self.relation = relation
        return self._check_counts()


def quorum_agents(relation: Relation, members: tuple[str, ...]) -> tuple[list[QuorumMember], QuorumChair]:
    """Build the participants of a group and the chair, which runs beside the centre or the first member."""
    counters = members if relation.around is None else (relation.around,)
    name = f"{counters[0]}@"
    participants = []
    for member in members:
        others = members if member in counters else counters
        partners = tuple(other for other in others if other != member)
        participants.append(QuorumMember(member, name, partners, relation, member in counters))
    return participants, QuorumChair(name, members, relation, counters=counters)
