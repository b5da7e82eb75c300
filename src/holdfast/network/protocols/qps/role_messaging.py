"""The roles of a physical node, and the messages to the holders of roles.

`physical` (the search for a holder) and `succession` (the transfer of a role) build on this module. Change
here how a message reaches the holder of a role.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace as changed

from ....model.instant import Instant
from ....model.protocol import Effect, Input, Route
from ....model.space import Point
from .broker import QpsBroker
from .envelope import (
    NodeEnvelope,
    NodeMessage,
    RoleHeartbeat,
    RoleTables,
    RoleVacant,
    SeekEnvelope,
    SoughtMessage,
    cause_of,
)
from .mapping import Resources, RoleMapping
from .message import At, QpsMessage, RoutedPublication
from .state import QpsState
from .tree import QuadScope

Role = tuple[str, QuadScope]
"""The role of a logical broker, as topic and scope."""


@dataclass(frozen=True, slots=True)
class KnownHolder:
    """The holder of a role, with the start of its turn and the time of its last heartbeat."""

    at: At
    turn: Instant
    last_heartbeat: Instant


@dataclass(slots=True)
class OwnRole:
    """A role that this node has."""

    original: float
    """The fit of the node when it got the role."""
    copied: tuple[QpsMessage, ...] = ()
    """The rows of its tables of which nearby nodes have a copy."""


@dataclass(slots=True)
class RoleHandover:
    """A hand-over in progress. After the tables are sent, messages that would change them wait."""

    to: At | None = None
    """The node that received the tables; ``None`` before they are sent."""
    sent: tuple[QpsMessage, ...] = ()
    waiting: list[QpsMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UndeliveredEvent:
    """An event for a node that did not answer, with the number of attempts."""

    at: At
    event: RoutedPublication
    tries: int


@dataclass(slots=True)
class PhysicalState:
    """The state of a physical node: the broker's state, and the known roles."""

    broker: QpsState
    resources: Resources = field(default_factory=Resources)
    holders: dict[Role, KnownHolder] = field(default_factory=dict)
    """The mapping table: the holder of each role."""
    own_roles: dict[Role, OwnRole] = field(default_factory=dict)
    """The roles of this node."""
    handovers: dict[Role, RoleHandover] = field(default_factory=dict)
    """The hand-overs of roles that this node wants to give up."""
    incoming_tables: dict[Role, dict[int, RoleTables]] = field(default_factory=dict)
    """Received tables whose other parts are missing."""
    copies: dict[Role, dict[int, RoleTables]] = field(default_factory=dict)
    """Copies of tables of nearby brokers."""
    undelivered_events: list[UndeliveredEvent] = field(default_factory=list)
    """Events for nodes that did not answer."""

    @property
    def latest(self) -> Instant:
        """The time of the latest event that this node published."""
        return self.broker.latest


class RoleMessaging:
    """Base class that handles one input of a physical node, with helpers to reach the holders of roles."""

    def __init__(self, broker: QpsBroker, state: PhysicalState, now: Instant) -> None:
        self.broker, self.state, self.now = broker, state, now
        self.deployment, self.at = broker.deployment, broker.at
        assert self.deployment.mapping is not None
        self.mapping: RoleMapping = self.deployment.mapping
        self.effects: list[Effect] = []
        self.own_messages: deque[NodeMessage] = deque()

    def to_broker(self, given: Input) -> None:
        """Pass an input to the logical layer and send its messages."""
        self.state.broker, effects = self.broker.handle(self.state.broker, given)
        self.carry_out(effects)

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Send messages. Replace routes to logical brokers by searches for the holders of their roles."""
        for effect in effects:
            if isinstance(effect, Route):
                role = role_of(effect.message)
                if role is not None and effect.to == self.address(role):
                    self.seek(role, effect.message)
                else:
                    self.direct(effect.to, effect.message)
            else:
                self.effects.append(effect)

    def direct(self, at: Point, message: NodeMessage, tries: int = 0, left: tuple[At, ...] = ()) -> None:
        """Send a message to the node at a point."""
        place = (float(at[0]), float(at[1]))
        if place == self.at:
            self.own_messages.append(message)
        else:
            self.effects.append(Route(place, NodeEnvelope(place, message, tries, left), cause_of(message)))

    def seek(self, role: Role, message: SoughtMessage, left: tuple[At, ...] = ()) -> None:
        """Send a message to the holder of a role; search for the holder if it is unknown. [F45]"""
        known, is_notice = self.state.holders.get(role), isinstance(message, RoleHeartbeat | RoleVacant)
        if role in self.state.own_roles and not is_notice:
            self.own_messages.append(message)
        elif known is not None and known.at not in left and not is_notice:
            self.direct(known.at, message, left=left)
        else:
            seek = self.with_candidate(role, SeekEnvelope(message, left=left))
            self.effects.append(Route(self.address(role), seek, cause_of(message)))

    def address(self, role: Role) -> Point:
        """Return the point of the logical broker that a role belongs to."""
        return self.deployment.tree.address(*role)

    def with_candidate(self, role: Role, given: SeekEnvelope) -> SeekEnvelope:
        """Offer this node as candidate if it fits better than the present candidate.

        Where nodes are chosen by resources, only nodes without a role in the tree offer themselves.
        """
        suits = self.suits(role)
        busy = not self.mapping.nearest and any(topic == role[0] for topic, _ in self.state.own_roles)
        if busy or self.at in given.left or (given.candidate is not None and suits <= given.suits):
            return given
        return changed(given, candidate=self.at, suits=suits)

    def is_nearer(self, role: Role, at: At, than: At) -> bool:
        """Whether a role belongs to ``at`` rather than to ``than``, because ``at`` is nearer."""
        point = self.address(role)
        return self.mapping.nearest and math.dist(at, point) < math.dist(than, point)

    def suits(self, role: Role) -> float:
        """Return the fit of this node for a role."""
        return self.mapping.suit(self.state.resources, math.dist(self.at, self.address(role)))


def role_of(message: NodeMessage) -> Role | None:
    """Return the role to which a message is addressed; ``None`` for other messages."""
    return None if message.to is None else (message.topic, message.to)
