"""The inputs and outputs of agents, and the interface that all strategies share."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import msgspec

from ....model.event import Event
from ....model.instant import Instant
from ....model.relation import Participant, Point, ReadingRange, Relation, Test


class AgentReading(NamedTuple):
    """A reading of a publisher, with its maximal ``error``: a point, or a number as a point on a line."""

    time: Instant
    sequence: int
    at: Point
    error: float = 0.0


def reading_of(member: Participant, accuracy: str | None, event: Event) -> AgentReading | None:
    """Convert an event to a reading of an agent's member, by the rules of the relation machine.

    Return ``None`` if the event is of another source, or if a required value is missing.
    """
    if (event.topic, event.source) != (member.topic, member.source):
        return None
    stamp, attributes, location = (event.time, event.sequence), event.attributes, event.location
    if member.attribute is not None:
        value = _number(attributes.get(member.attribute))
        return None if value is None else AgentReading(*stamp, (value,))
    error = 0.0 if accuracy is None else _number(attributes.get(accuracy))
    if not location or not all(map(math.isfinite, location)) or error is None or not 0 <= error < math.inf:
        return None
    return AgentReading(*stamp, location, error)


def _number(value: Any) -> float | None:
    """Return a value as a float; ``None`` unless it is a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float(value) if is_number else None


class SuccessorNotice(msgspec.Struct, frozen=True, tag="Successor"):
    """Names the instance that continues for this agent with its knowledge."""

    name: str


class LeadClaim(msgspec.Struct, frozen=True, tag="Claim"):
    """Claims the lead among the instances of an agent, with a number."""

    number: int


class RelayedReading(msgspec.Struct, frozen=True, tag="Relayed"):
    """A reading that another instance received."""

    reading: AgentReading


class LeadHandover(msgspec.Struct, frozen=True, tag="Lead"):
    """Hands the lead over, with the latest reading and the knowledge of the relationship."""

    reading: AgentReading | None
    knowledge: AgentKnowledge | None


class SiblingLeave(msgspec.Struct, frozen=True, tag="Leave"):
    """Announces that the sender's publisher sends no more readings."""


SiblingMessage = LeadClaim | RelayedReading | LeadHandover | SiblingLeave | SuccessorNotice


class KnowledgeLost(msgspec.Struct, frozen=True, tag="Doubt"):
    """Announces that the knowledge of another instance of this agent is lost."""


class SendToAgent(NamedTuple):
    """Output: send a message to another agent."""

    to: str
    message: msgspec.Struct


class AgentReport(NamedTuple):
    """Output: report to the subscriber that a relationship starts, ends or is unknown.

    ``by`` is the member whose reading caused the report.
    """

    status: str
    by: str
    reading: AgentReading | None
    value: float
    alternative: str | None = None
    """The alternative, for the best of several sums; otherwise ``None``."""


class AgentKnowledge(msgspec.Struct, frozen=True):
    """The knowledge that an agent needs to continue for another instance.

    ``turns`` is the number of starts and ends. ``bit`` is the current state (for the best of several sums,
    the alternative), or ``None`` if it is unknown. ``doubted`` are the alternatives that may have been
    reported.
    """

    turns: int
    bit: int | None
    doubted: tuple[int, ...] = ()


class RunCode(NamedTuple):
    """Output: call shipped code. Its outputs follow later."""

    call: str
    arguments: tuple[Any, ...] = ()


AgentOutputs = list[SendToAgent | AgentReport | RunCode]


class Agent:
    """The base class of agents. Its methods change the agent, so hosts must not share an agent.

    The defaults are those of an agent that reports to a mediator and stores nothing about reports.
    """

    name: str
    accepts: ClassVar[tuple[type, ...]]
    """The types of messages that it accepts from other agents."""

    @property
    def reports(self) -> bool:
        """Whether this agent reports starts and ends."""
        return False

    def on_reading(self, _reading: AgentReading) -> AgentOutputs:
        """Process a reading of the agent's publisher; return the outputs."""
        return []

    def on_message(self, _sender: str, _message: Any) -> AgentOutputs:
        """Process a message of another agent; return the outputs."""
        raise NotImplementedError

    def on_lost(self, _other: str) -> AgentOutputs:
        """Handle the loss of another agent. The state of the relationship is then unknown."""
        raise NotImplementedError

    def on_found(self, _other: str) -> AgentOutputs:
        """Handle that another agent can be reached again, and restart the exchange of messages. [B69]"""
        return []

    def on_partner_changed(self, other: str) -> AgentOutputs:
        """Restart the exchange with another instance of a partner. The state of the relationship
        stays known.
        """
        return self.on_found(other)

    def knowledge(self) -> AgentKnowledge | None:
        """Return the knowledge for a successor; ``None`` if only this agent can use its knowledge."""
        return AgentKnowledge(0, 0)

    def adopt(self, _knowledge: AgentKnowledge) -> None:
        """Continue with the knowledge of another instance."""

    def mark_unknown(self) -> None:
        """Mark the state as unknown, because earlier agents existed."""

    def change_relation(self, _relation: Relation) -> AgentOutputs:
        """Change the relationship. Earlier reports stay valid. [B64]"""
        return []


class ReportingAgent(Agent):
    """An agent that stores whether the relationship is active.

    ``bit`` is the state, ``None`` if unknown. ``turns`` counts its changes.
    """

    relation: Relation
    bit: int | None
    turns: int

    @property
    def reports(self) -> bool:
        return True

    @property
    def status(self) -> str:
        """The status of a report about the last change."""
        return "ingress" if self.bit else "egress"

    def change_bit(self, value: float, error: float = 0.0) -> bool:
        """Change the state if a value, known up to ``error``, starts or ends the relationship; return whether
        it did.
        """
        for bit, test in next_tests(self.relation, self.bit):
            if test.within.holds(value, error):
                self.bit, self.turns = bit, self.turns + 1
                return True
        return False

    def knowledge(self) -> AgentKnowledge:
        return AgentKnowledge(self.turns, self.bit)

    def adopt(self, knowledge: AgentKnowledge) -> None:
        self.turns, self.bit = knowledge.turns, knowledge.bit

    def mark_unknown(self) -> None:
        self.bit, self.turns = None, self.turns + 1


def next_tests(relation: Relation, bit: int | None) -> list[tuple[int, Test]]:
    """Return the possible next bits with their tests; both bits if the current one is unknown."""
    ways = {0: (1, relation.enter), 1: (0, relation.exit)}
    return list(ways.values()) if bit is None else [ways[bit]]


def room_to_change(value: float, relation: Relation, bit: int | None) -> float:
    """Return the distance of a measure from the nearest bound; 0 if the measure is unknown."""
    if value != value:
        return 0.0
    return min(distance_to(value, test.within) for _, test in next_tests(relation, bit))


def distance_to(value: float, within: ReadingRange) -> float:
    """Return the distance of a number from a range, slightly reduced so that rounding never hides a
    crossing.
    """
    far = max(within.low - value, value - within.high, 0.0)
    return max(0.0, far - 1e-12 * (abs(value) + far))


def latest(readings: dict[str, AgentReading]) -> tuple[str, AgentReading]:
    """Return the member with the latest reading; of equal times, the member that is listed last."""
    name = max(readings, key=lambda one: (readings[one].time, list(readings).index(one)))
    return name, readings[name]
