"""The physical layer: a node with its broker and the roles of logical brokers.  [F33, F44–F49]

A message to a logical broker searches for the holder of the role on its way to the broker's point: nodes on
the path know the holder, or offer themselves. The logical layer is independent of this.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from msgspec.structs import replace as changed

from ....model.instant import Instant
from ....model.protocol import Asked, Effect, Fired, Input, Onward, Passing, Received, Route, Started
from ....model.space import Point
from .broker import QpsBroker
from .deployment import QpsDeployment
from .envelope import (
    Envelope,
    NodeEnvelope,
    RoleHeartbeat,
    RoleMessage,
    RoleOffer,
    RoleTables,
    RoleTaken,
    RoleVacant,
    SeekEnvelope,
    cause_of,
)
from .mapping import Resources, RoleMapping
from .message import At, QpsMessage, RoutedPublication
from .state import LogicalBroker, QpsState
from .succession import KnownHolder, OwnRole, RoleHandover, RoleSuccession, UndeliveredEvent
from .tree import QuadScope

Role = tuple[str, QuadScope]
"""A logical broker."""


@dataclass(slots=True)
class PhysicalState:
    """The broker's state, and the known roles."""

    broker: QpsState
    resources: Resources = field(default_factory=Resources)
    holders: dict[Role, KnownHolder] = field(default_factory=dict)
    """The mapping table: the holder of each role."""
    own_roles: dict[Role, OwnRole] = field(default_factory=dict)
    """The roles of this node."""
    handovers: dict[Role, RoleHandover] = field(default_factory=dict)
    """The roles that this node wants to hand over."""
    incoming_tables: dict[Role, dict[int, RoleTables]] = field(default_factory=dict)
    """Received tables with missing parts."""
    copies: dict[Role, dict[int, RoleTables]] = field(default_factory=dict)
    """Copies of tables of brokers near by."""
    undelivered_events: list[UndeliveredEvent] = field(default_factory=list)
    """Events for nodes that did not answer."""

    @property
    def latest(self) -> Instant:
        """The time of this node's latest event."""
        return self.broker.latest


@dataclass(frozen=True)
class PhysicalNode:
    """The machine of a node with a physical layer."""

    deployment: QpsDeployment
    place: Point
    peeks: ClassVar = True

    def __post_init__(self) -> None:
        self.deployment.tree.inside(self.place)

    @cached_property
    def broker(self) -> QpsBroker:
        """The logical layer."""
        return QpsBroker(self.deployment, self.place)

    @property
    def mapping(self) -> RoleMapping:
        """The policy for roles."""
        assert self.deployment.mapping is not None
        return self.deployment.mapping

    def initial(self) -> PhysicalState:
        """Return the state before the first input."""
        return PhysicalState(self.broker.initial())

    def handle(self, state: PhysicalState, given: Input) -> tuple[PhysicalState, list[Effect]]:
        """Handle one input: update the state and return the effects."""
        turn = _PhysicalStep(self, state, given.now)
        match given:
            case Started():
                turn.to_broker(given)
                turn.set_check_timer()
            case Asked(_, Resources() as resources):
                state.resources = resources
            case Received(_, _, heard):
                turn.on_message(heard)
            case Passing(_, _, heard):
                turn.on_passing(heard)
            case Fired(_, "check"):
                turn.check_roles()
            case Fired(_, "stored"):
                turn.retry_events()
            case Fired(_, timer) if timer.startswith("giving/"):
                turn.on_handover_timeout(timer)
            case _:
                turn.to_broker(given)
        turn.process_own()
        return state, turn.effects


class _PhysicalStep(RoleSuccession):
    """Handles one input."""

    def __init__(self, machine: PhysicalNode, state: PhysicalState, now: Instant) -> None:
        self.machine, self.state, self.now = machine, state, now
        self.deployment, self.mapping = machine.deployment, machine.mapping
        self.at = machine.broker.at
        self.effects: list[Effect] = []
        self._own_messages: deque[QpsMessage | RoleMessage] = deque()

    # --- the broker ---

    def to_broker(self, given: Input) -> None:
        """Pass an input to the logical layer and send its messages."""
        self.state.broker, effects = self.machine.broker.handle(self.state.broker, given)
        self.carry_out(effects)

    def carry_out(self, effects: list[Effect]) -> None:
        """Replace routes to logical brokers by searches for the holders of their roles."""
        for effect in effects:
            if isinstance(effect, Route):
                role = role_of(effect.message)
                if role is not None and effect.to == self.address(role):
                    self.seek(role, effect.message)
                else:
                    self.direct(effect.to, effect.message)
            else:
                self.effects.append(effect)

    def process_own(self) -> None:
        """Handle messages of this node to itself."""
        while self._own_messages:
            self._on_own_message(self._own_messages.popleft())

    # --- messages ---

    def direct(
        self, at: Point, message: QpsMessage | RoleMessage, tries: int = 0, left: tuple[At, ...] = ()
    ) -> None:
        """Send a message to the node at a point."""
        place = (float(at[0]), float(at[1]))
        if place == self.at:
            self._own_messages.append(message)
        else:
            self.effects.append(Route(place, NodeEnvelope(place, message, tries, left), cause_of(message)))

    def seek(
        self, role: Role, message: QpsMessage | RoleHeartbeat | RoleVacant, left: tuple[At, ...] = ()
    ) -> None:
        """Send a message to the holder of a role.  [F45]"""
        known = self.state.holders.get(role)
        if role in self.state.own_roles and not isinstance(message, RoleHeartbeat | RoleVacant):
            self._own_messages.append(message)
        elif (
            known is not None and known.at not in left and not isinstance(message, RoleHeartbeat | RoleVacant)
        ):
            self.direct(known.at, message, left=left)
        else:
            seek = self._with_candidate(role, SeekEnvelope(message, left=left))
            self.effects.append(Route(self.address(role), seek, cause_of(message)))

    def address(self, role: Role) -> Point:
        """Return the point of a logical broker."""
        return self.deployment.tree.address(*role)

    def on_message(self, given: Envelope) -> None:
        """Handle a message that has arrived."""
        match given:
            case NodeEnvelope(at, message, tries, left) if at != self.at:
                self._on_astray(at, message, tries, left)
            case NodeEnvelope(_, message, _, left):
                self._forget(message, left)
                self._own_messages.append(message)
            case SeekEnvelope():
                self._on_search_end(given)
            case RoleHeartbeat():
                self.on_heartbeat(given)
            case RoleTables():
                self.on_copy(given)
            case _:
                self.to_broker(Received(self.now, "", given))

    def on_passing(self, given: Envelope) -> None:
        """Inspect a message on its way through this node, which may know the holder or fit better.  [F45]"""
        if isinstance(given, SeekEnvelope) and (given := self._inspect(given)) is None:  # type: ignore[assignment]
            return
        self.effects.append(Onward(given))

    def _inspect(self, given: SeekEnvelope) -> SeekEnvelope | None:
        """Inspect a search; return it if it goes on, ``None`` if it ends here."""
        message, role = given.message, role_of(given.message)
        assert role is not None
        if isinstance(message, RoleHeartbeat):
            self.on_heartbeat(message)
            claimed = role in self.state.own_roles and self.is_nearer(role, self.at, message.at)
            return None if claimed else given
        if isinstance(message, RoleVacant):  # who looks for a successor acts still
            return self._with_candidate(role, given)
        self._forget(message, given.left)
        known = self.state.holders.get(role)
        if role not in self.state.own_roles:
            self.adopt_role(role, given.left)
        if role in self.state.own_roles:
            self._own_messages.append(message)
        elif known is not None:
            self.direct(known.at, message, left=given.left)
        else:
            return self._with_candidate(role, given)
        return None

    def _forget(self, message: QpsMessage | RoleMessage, left: tuple[At, ...]) -> None:
        """Forget the holder of a role if it is among ``left``."""
        role = role_of(message)
        if role is not None and role in self.state.holders and self.state.holders[role].at in left:
            del self.state.holders[role]

    def _with_candidate(self, role: Role, given: SeekEnvelope) -> SeekEnvelope:
        """Offer this node as candidate if it fits better than the best so far.

        Where nodes are chosen by resources, only nodes without a role in the tree offer themselves.
        """
        suits = self.suits(role)
        busy = not self.mapping.nearest and any(topic == role[0] for topic, _ in self.state.own_roles)
        if busy or self.at in given.left or (given.candidate is not None and suits <= given.suits):
            return given
        return changed(given, candidate=self.at, suits=suits)

    def is_nearer(self, role: Role, at: At, than: At) -> bool:
        """Whether a role belongs to ``at`` rather than to ``than``, because it is nearer."""
        point = self.address(role)
        return self.mapping.nearest and math.dist(at, point) < math.dist(than, point)

    def suits(self, role: Role) -> float:
        """Return how well this node fits a role."""
        away = self.machine.broker.forwarding.away(*role)
        return self.mapping.suit(self.state.resources, away)

    def _on_search_end(self, given: SeekEnvelope) -> None:
        """Handle a search that has reached the node nearest to the broker's point: the best candidate gets
        the role."""
        if isinstance(given.message, RoleHeartbeat):
            self.compare_heartbeats(given.message)
        if (left := self._inspect(given)) is None or isinstance(left.message, RoleHeartbeat):
            return
        message, role = left.message, role_of(left.message)
        assert role is not None
        chosen = left.candidate
        if isinstance(message, RoleVacant):
            if chosen is not None:
                self.direct(chosen, message)
            return
        chosen = chosen or self.at
        if chosen != self.at:
            self.state.holders[role] = KnownHolder(chosen, self.now, self.now)
        self.direct(chosen, message, left=left.left)

    def _on_own_message(self, message: QpsMessage | RoleMessage) -> None:
        """Handle a message for this node."""
        match message:
            case RoleVacant():
                self.direct(message.at, RoleOffer(message.topic, message.to, self.at))
            case RoleOffer():
                self.on_offer(message)
            case RoleTables():
                self.on_tables(message)
            case RoleTaken():
                self.on_taken((message.topic, message.to), message.at, message.turn)
            case RoleHeartbeat():
                self.on_heartbeat(message)
            case _:
                self._for_role(message)

    def _for_role(self, message: QpsMessage) -> None:
        """Handle a message for a role: process it, queue it during a hand-over, or pass it on."""
        role = role_of(message)
        state = self.state
        if role is None:
            self.to_broker(Received(self.now, "", message))
        elif role in state.own_roles:
            giving = state.handovers.get(role)
            if giving is not None and giving.to is not None and not isinstance(message, RoutedPublication):
                giving.waiting.append(message)
            else:
                self.to_broker(Received(self.now, "", message))
        elif role in state.holders and state.holders[role].at != self.at:
            self.direct(state.holders[role].at, message)
        elif not isinstance(
            message, RoutedPublication
        ):  # whoever is addressed as it is it; an event asks nothing
            self.take_role(role, LogicalBroker(*role, turn=self.now))
            self.to_broker(Received(self.now, "", message))

    def _on_astray(self, at: At, message: QpsMessage | RoleMessage, tries: int, left: tuple[At, ...]) -> None:
        """Handle a message for a node that does not answer.  [F49]

        The message lists all nodes that did not answer, or two nodes that each know of another would send it
        back and forth.
        """
        role = role_of(message)
        if isinstance(message, RoleMessage):
            return
        if role is None:
            if isinstance(message, RoutedPublication):
                self.store_event(UndeliveredEvent(at, message, tries))
            return
        left = (*left, at)
        self._forget(message, left)
        if role not in self.state.own_roles:
            self.adopt_role(role, left)
        self.seek(role, message, left)


def role_of(message: QpsMessage | RoleMessage) -> Role | None:
    """Return the role that a message is for, or ``None``."""
    return None if message.to is None else (message.topic, message.to)
