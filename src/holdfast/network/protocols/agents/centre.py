"""A group and its centre: the mediator stores all positions and gives each member the same room. [B58]

If the farthest member is at distance M from the centre and the condition changes at R, each member may move
|M - R| / 2. Then the centre moves by less than that, and the farthest member's distance changes by less than
|M - R|. A member that leaves its ring reports to the mediator. The mediator asks all other members for their
positions and sends new rings.

As printed in the thesis (``printed``), a ring is the distance of a member from the edge of the region around
the centre, and the mediator decides by the last reported positions. The centre moves with every member, so a
group can gather without a report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from ....model.relation import Relation, apart, centre, spread
from .mediated import MediatedAgent, MediatorAgent
from .talk import AgentOutputs, AgentReading, AgentReport, SendToAgent, latest, room_to_change


class GroupPosition(msgspec.Struct, frozen=True, tag="Here"):
    """A member's position, sent when it left its ring or was asked. ``round`` is the number of the question,
    or 0.
    """

    reading: AgentReading
    round: int = 0


class PositionRequest(msgspec.Struct, frozen=True, tag="Where"):
    """Asks a member for its position."""

    round: int


class GroupRing(msgspec.Struct, frozen=True, tag="Room"):
    """The position that the mediator knows, and the radius in which the member may move without a report."""

    reading: AgentReading
    radius: float


@dataclass
class GroupMember(MediatedAgent):
    """The agent of one member of a group, which reports when the member leaves its ring."""

    name: str
    mediator: str
    current: AgentReading | None = None
    centre: AgentReading | None = None
    radius: float = 0.0
    is_waiting: bool = False
    """Whether the member has reported its position and waits for a ring."""
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
    """The agent that knows all positions. It runs beside the first member."""

    accepts: ClassVar[tuple[type, ...]] = (GroupPosition,)
    question = PositionRequest

    def on_message(self, sender: str, message: GroupPosition) -> AgentOutputs:
        self.last_values[sender] = message.reading
        if self.awaited and not self.printed:
            if message.round == self.round:
                self.awaited.discard(sender)
            return [] if self.awaited else self._evaluate()
        if message.round or not self.knows_all:
            return []
        return self._evaluate() if self.printed else self._ask_all(sender)

    def _evaluate(self) -> AgentOutputs:
        readings = {name: self.last_values[name] for name in self.members}
        points, errors = ([r.at for r in readings.values()], [r.error for r in readings.values()])
        value, middle, wants = spread(points), centre(points), AgentOutputs()
        if self.change_bit(value, max(errors) + sum(errors) / len(errors)):
            wants.append(AgentReport(self.status, *latest(readings), value))
        for name, reading in readings.items():
            radius = room_to_change(value, self.relation, self.bit) / 2
            if self.printed:
                edge = self.relation.exit.within.low if self.bit else self.relation.enter.within.high
                radius = abs(apart(reading.at, middle) - edge)
            wants.append(SendToAgent(name, GroupRing(reading, radius)))
        return wants


def group(
    relation: Relation, members: tuple[str, ...], *, printed: bool = False
) -> list[GroupMember | GroupMediator]:
    """Build the agents of a group. The mediator's name is the name of the first member with a mark."""
    top = f"{members[0]}@"
    return [*(GroupMember(name, top) for name in members), GroupMediator(top, members, relation, printed)]
