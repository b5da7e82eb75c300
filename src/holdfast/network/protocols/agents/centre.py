"""A group and its centre: the mediator stores all positions and gives each member the same room.  [B58]

If the farthest member is at distance M from the centre and the condition changes at R, each member may move
|M - R| / 2: then the centre has moved less than that too, and the farthest member by less than |M - R|. A
member that leaves its ring reports to the mediator, which asks all others for their positions and sends new
rings.

As printed in the thesis (``printed``), a ring is the distance of a member from the edge of the region around
the centre, and the mediator decides by the last reported positions. The centre moves with every member, so a
group can gather unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from ....model.relation import Relation, apart, centre, spread
from .mediated import MediatedAgent, MediatorAgent
from .talk import AgentOutputs, AgentReading, AgentReport, SendToAgent, latest, next_tests, room_to_change


class GroupPosition(msgspec.Struct, frozen=True, tag="Here"):
    """A member's position: it left its ring or was asked; ``round`` is the number of the question, or 0."""

    reading: AgentReading
    round: int = 0


class PositionRequest(msgspec.Struct, frozen=True, tag="Where"):
    """Asks a member for its position."""

    round: int


class GroupRing(msgspec.Struct, frozen=True, tag="Room"):
    """The position that the mediator knows, and how far the member may move from there."""

    reading: AgentReading
    radius: float


@dataclass
class GroupMember(MediatedAgent):
    """The agent of one member of a group."""

    name: str
    mediator: str
    current: AgentReading | None = None
    centre: AgentReading | None = None
    radius: float = 0.0
    is_waiting: bool = False
    """Whether it has reported its position and waits for a ring."""
    accepts: ClassVar[tuple[type, ...]] = (PositionRequest, GroupRing)

    def on_reading(self, reading: AgentReading) -> AgentOutputs:
        self.current = reading
        if self.is_waiting or (self.centre and apart(self.centre.at, reading.at) < self.radius):
            return []
        return self._send_value(0)

    def _send_value(self, round: int) -> AgentOutputs:
        if self.current is None:
            return []
        self.is_waiting = True
        return [SendToAgent(self.mediator, GroupPosition(self.current, round))]

    def on_message(self, _sender: str, message: PositionRequest | GroupRing) -> AgentOutputs:
        if isinstance(message, PositionRequest):
            return self._send_value(message.round)
        self.centre, self.radius, self.is_waiting = message.reading, message.radius, False
        if self.current is None or self.current == self.centre:
            return []
        return self.on_reading(self.current)


@dataclass
class GroupMediator(MediatorAgent):
    """The agent that knows all positions; it runs beside the first member."""

    name: str
    members: tuple[str, ...]
    relation: Relation
    printed: bool = False
    last_values: dict[str, AgentReading] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    round: int = 0
    bit: int | None = 0
    turns: int = 0
    accepts: ClassVar[tuple[type, ...]] = (GroupPosition,)

    def on_message(self, sender: str, message: GroupPosition) -> AgentOutputs:
        self.last_values[sender] = message.reading
        if self.awaited and not self.printed:
            if message.round == self.round:
                self.awaited.discard(sender)
            return [] if self.awaited else self._evaluate()
        if message.round or len(self.last_values) < len(self.members):
            return []
        return self._evaluate() if self.printed else self._ask_all(sender)

    def _ask_all(self, known: str | None = None) -> AgentOutputs:
        """Ask all members for their positions, except one that is known."""
        self.awaited = {name for name in self.members if name != known}
        self.round += 1
        asking: AgentOutputs = [
            SendToAgent(name, PositionRequest(self.round)) for name in self.members if name in self.awaited
        ]
        return asking or self._evaluate()

    def _evaluate(self) -> AgentOutputs:
        """Evaluate the condition on all positions, report a change, and send new rings."""
        points = [self.last_values[name].at for name in self.members]
        value, wants = spread(points), AgentOutputs()
        errors = [self.last_values[name].error for name in self.members]
        for bit, test in next_tests(self.relation, self.bit):
            if test.within.holds(value, max(errors) + sum(errors) / len(errors)):
                self.bit, self.turns = bit, self.turns + 1
                by, reading = latest({name: self.last_values[name] for name in self.members})
                wants.append(AgentReport("ingress" if self.bit else "egress", by, reading, value))
                break
        middle = centre(points)
        for name, point in zip(self.members, points, strict=True):
            radius = room_to_change(value, self.relation, self.bit) / 2
            if self.printed:
                edge = self.relation.exit.within.low if self.bit else self.relation.enter.within.high
                radius = abs(apart(point, middle) - edge)
            wants.append(SendToAgent(name, GroupRing(self.last_values[name], radius)))
        return wants

    def change_relation(self, relation: Relation) -> AgentOutputs:
        self.relation = relation
        return [] if len(self.last_values) < len(self.members) else self._ask_all()


def group(
    relation: Relation, members: tuple[str, ...], *, printed: bool = False
) -> list[GroupMember | GroupMediator]:
    """Build the agents of a group; the mediator's name is that of the first member with a mark."""
    name = f"{members[0]}@"
    return [*(GroupMember(one, name) for one in members), GroupMediator(name, members, relation, printed)]
