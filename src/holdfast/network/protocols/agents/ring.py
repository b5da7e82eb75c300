"""The distance of two publishers, monitored with range rings or parallel lines. [B53–B57, B67]

Each of the two agents has a ring around its publisher's last exchanged position. While both publishers stay
inside, the distance cannot pass a bound. An agent whose publisher leaves its ring sends its position, the
partner's position that it used, and the partner's new ring. The partner decides with its *current* reading,
and only then reports. If its publisher is still inside the new ring, it sends nothing. Otherwise it answers
with its own position in the same way. When both leave at once, they detect it by the numbers of their
messages and use the two new positions.

As printed in the thesis (``printed``), the agent that leaves decides by the partner's last report. Of two
rings that cross on the way, the smaller one counts. Both variants miss meetings and report meetings that
never happened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from ....model.relation import Point, Relation, apart, whole
from .talk import AgentOutputs, AgentReading, AgentReport, ReportingAgent, SendToAgent, latest, room_to_change


class RingMove(msgspec.Struct, frozen=True, tag="Moved"):
    """The sender's position, the partner's position that it used, and the radius of the partner's new ring.

    ``turns`` counts starts and ends, and ``bit`` is the current state. ``count`` and ``seen`` number the
    messages of the two agents.
    """

    count: int
    seen: int
    reading: AgentReading
    used: AgentReading | None
    radius: float
    turns: int
    bit: int | None


@dataclass
class RingAgent(ReportingAgent):
    """The agent of one member of a pair.

    ``share`` is its part of the room between the members, in proportion to volatility. If ``is_first``, its
    publisher is listed first and this agent reports.
    """

    name: str
    partner: str
    relation: Relation
    is_first: bool
    share: float = 0.5
    is_line: bool = False
    printed: bool = False
    enlarged: float = 1.0
    """The factor by which a ring is enlarged. Its leading edge stays, and its centre moves back."""

    current: AgentReading | None = None
    own_sent: AgentReading | None = None
    other_sent: AgentReading | None = None
    radius: float = math.inf
    sent_count: int = 0
    received_count: int = 0
    turns: int = 0
    bit: int | None = 0
    is_unreachable: bool = False
    """Whether the partner cannot be reached."""
    accepts: ClassVar[tuple[type, ...]] = (RingMove,)

    @property
    def reports(self) -> bool:
        return self.is_first

    # --- what it is given ---

    def on_reading(self, reading: AgentReading) -> AgentOutputs:
        self.current = reading
        if self.is_unreachable or not self._is_outside():
            return []
        if self.printed:
            return self._leave_as_printed()
        return self._send_position()

    def on_message(self, _sender: str, message: RingMove) -> AgentOutputs:
        crossed = message.seen < self.sent_count
        self.other_sent, self.received_count = message.reading, message.count
        wants = self._adopt_change(message)
        if self.current is None:
            return wants
        if self.own_sent is None:
            return wants + self._send_position()
        here = self.own_sent if crossed else self.current
        if self.printed:
            return wants + self._apply_ring_as_printed(message, crossed)
        reports = self._change_reports({self.name: here, self.partner: self.other_sent})
        if reports is not None:
            return wants + reports + self._send_position()
        self.radius = self._room() if crossed else message.radius
        return wants + (self._send_position() if self.current != self.own_sent and self._is_outside() else [])

    def on_lost(self, _other: str) -> AgentOutputs:
        """Report the relationship as unknown. Both agents report, because the subscriber may be able to reach
        only one.
        """
        bit_before = self.bit
        self.bit, self.other_sent, self.own_sent, self.radius = None, None, None, math.inf
        self.sent_count = self.received_count = 0
        self.turns += 1
        self.is_unreachable = True
        return [] if bit_before is None else [AgentReport("unknown", self.name, self.current, math.nan)]

    def on_found(self, _other: str) -> AgentOutputs:
        self.is_unreachable = False
        return self._send_position() if self.current is not None else []

    def on_partner_changed(self, _other: str) -> AgentOutputs:
        """Restart the exchange of positions with a new instance of the partner.

        ``other_sent`` stays, so that the partner reports a change that it has not received.
        """
        self.own_sent, self.radius = None, math.inf
        self.sent_count = self.received_count = 0
        return self.on_found(_other)

    def change_relation(self, relation: Relation) -> AgentOutputs:
        self.relation = relation
        return [] if self.current is None or self.is_unreachable else self._send_position()

    # --- rings ---

    def _is_outside(self) -> bool:
        """Whether the publisher has left its room. Equality (``>=``) counts as leaving."""
        assert self.current is not None
        if self.own_sent is None:
            return True
        if self.other_sent is None:
            return False
        if self.radius <= 0:
            return True
        if self.is_line and self._approaches():
            return _distance_along(self.own_sent.at, self.other_sent.at, self.current.at) >= self.radius
        middle, radius = self.own_sent.at, self.radius
        if self.enlarged > 1 and self._approaches():
            back = (self.enlarged - 1) * self.radius
            middle, radius = _move_towards(self.own_sent.at, self.other_sent.at, -back), self.radius + back
        return apart(middle, self.current.at) >= radius

    def _approaches(self) -> bool:
        """Whether the state can change only if the two publishers come nearer."""
        return self.bit == 0 and self.relation.enter.within.low <= 0

    def _room(self, share: float | None = None) -> float:
        """Return the distance by which the publisher may move from its last exchanged position."""
        if self.other_sent is None or self.own_sent is None:
            return math.inf
        distance = apart(self.own_sent.at, self.other_sent.at)
        return room_to_change(distance, self.relation, self.bit) * (self.share if share is None else share)

    def _send_position(self) -> AgentOutputs:
        """Send the current position with the partner's new ring."""
        assert self.current is not None
        self.own_sent = self.current
        self.sent_count += 1
        self.radius = self._room()
        numbers, used = (self.sent_count, self.received_count), self.other_sent
        radius = self._room(1 - self.share)
        move = RingMove(*numbers, self.current, used, radius, self.turns, self.bit)
        return [SendToAgent(self.partner, move)]

    # --- what holds ---

    def _change_reports(self, both: dict[str, AgentReading]) -> AgentOutputs | None:
        """Return the report if the relationship starts or ends with these two readings; otherwise
        ``None``.
        """
        a, b = both.values()
        value = apart(a.at, b.at)
        return self._report(both, value) if self.change_bit(value, a.error + b.error) else None

    def _adopt_change(self, message: RingMove) -> AgentOutputs:
        """Take over a start or an end that only the partner has detected."""
        if message.turns <= self.turns:
            return []
        self.turns, self.bit = message.turns, message.bit
        if message.used is None or self.bit is None:
            return []
        both = {self.name: message.used, self.partner: message.reading}
        return self._report(both, apart(message.used.at, message.reading.at))

    def _report(self, both: dict[str, AgentReading], value: float) -> AgentOutputs:
        """Return the report of the current state; empty if the partner reports."""
        if not self.is_first:
            return []
        return [AgentReport(self.status, *latest(both), value)]

    # --- as printed ---

    def _leave_as_printed(self) -> AgentOutputs:
        """Decide by the partner's last report, then send the position."""
        if self.other_sent is None:
            return self._send_position()
        assert self.current is not None
        reports = self._change_reports({self.name: self.current, self.partner: self.other_sent}) or []
        return reports + self._send_position()

    def _apply_ring_as_printed(self, message: RingMove, crossed: bool) -> AgentOutputs:
        """Apply the partner's ring. Of two rings that cross on the way, the smaller one counts."""
        if message.used is None:
            self.radius = self._room()
        else:
            self.radius = min(self.radius, message.radius) if crossed else message.radius
        return self._leave_as_printed() if self.current != self.own_sent and self._is_outside() else []


def _distance_along(start: Point, to: Point, at: Point) -> float:
    """Return the distance of a point from the start, projected on the line to another point."""
    way = apart(start, to)
    if way == 0:
        return math.inf
    axes = zip(whole(start), whole(to), whole(at), strict=True)
    return sum((q - p) * (x - p) for p, q, x in axes) / way


def _move_towards(start: Point, to: Point, by: float) -> Point:
    """Return a point moved by a distance towards another point."""
    way = apart(start, to)
    if way == 0:
        return start
    return tuple(p + (q - p) * by / way for p, q in zip(whole(start), whole(to), strict=True))


def ring_pair(
    relation: Relation, a: str, b: str, *, share: float = 0.5, **how: Any
) -> tuple[RingAgent, RingAgent]:
    """Build the two agents of a pair. ``share`` is the first agent's part of the room."""
    first = RingAgent(a, b, relation, True, share, **how)
    return first, RingAgent(b, a, relation, False, 1 - share, **how)
