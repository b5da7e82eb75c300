"""The physical layer: a node with its broker and the roles of logical brokers. [F33, F44–F49]

A message to a logical broker searches for the holder of the role on its way to the broker's point. Nodes on
the path know the holder, or offer themselves. The logical layer is independent of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ....model.protocol import Asked, Effect, Fired, Input, Onward, Passing, Received, Started
from ....model.space import Point
from .broker import QpsBroker
from .deployment import QpsDeployment
from .envelope import (
    Envelope,
    NodeEnvelope,
    NodeMessage,
    RoleHeartbeat,
    RoleMessage,
    RoleOffer,
    RoleTables,
    RoleTaken,
    RoleVacant,
    SeekEnvelope,
)
from .mapping import Resources
from .message import At, QpsMessage, RoutedPublication
from .role_messaging import KnownHolder, PhysicalState, UndeliveredEvent, role_of
from .state import LogicalBroker
from .succession import RoleSuccession


@dataclass(frozen=True)
class PhysicalNode:
    """The machine of a node whose roles as logical broker can move to other nodes."""

    deployment: QpsDeployment
    place: Point
    peeks: ClassVar = True

    def __post_init__(self) -> None:
        self.deployment.tree.inside(self.place)

    @cached_property
    def broker(self) -> QpsBroker:
        """The machine of the logical layer."""
        return QpsBroker(self.deployment, self.place)

    def initial(self) -> PhysicalState:
        """Return the state of the machine before its first input."""
        return PhysicalState(self.broker.initial())

    def handle(self, state: PhysicalState, given: Input) -> tuple[PhysicalState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        turn = _PhysicalStep(self.broker, state, given.now)
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
        while turn.own_messages:
            turn.on_own_message(turn.own_messages.popleft())
        return state, turn.effects


class _PhysicalStep(RoleSuccession):
    """Handles one input of a physical node."""

    def on_message(self, given: Envelope) -> None:
        """Handle a message that has arrived."""
        match given:
            case NodeEnvelope(at, message, tries, left) if at != self.at:
                self._on_astray(at, message, tries, left)
            case NodeEnvelope(_, message, _, left):
                self._forget(message, left)
                self.own_messages.append(message)
            case SeekEnvelope():
                self._on_search_end(given)
            case RoleHeartbeat():
                self.on_heartbeat(given)
            case RoleTables():
                self.on_copy(given)
            case _:
                self.to_broker(Received(self.now, "", given))

    def on_passing(self, given: Envelope) -> None:
        """Inspect a message on its way through this node, which may know the holder or fit the role better.
        [F45]
        """
        if isinstance(given, SeekEnvelope) and (given := self._inspect(given)) is None:  # type: ignore[assignment]
            return
        self.effects.append(Onward(given))

    def _inspect(self, given: SeekEnvelope) -> SeekEnvelope | None:
        """Inspect a search; return the search to forward, or ``None`` if it ends here."""
        message, role = given.message, role_of(given.message)
        assert role is not None
        if isinstance(message, RoleHeartbeat):
            self.on_heartbeat(message)
            claimed = role in self.state.own_roles and self.is_nearer(role, self.at, message.at)
            return None if claimed else given
        if isinstance(message, RoleVacant):  # the sender keeps the role until then
            return self.with_candidate(role, given)
        self._forget(message, given.left)
        known = self.state.holders.get(role)
        if role not in self.state.own_roles:
            self.adopt_role(role, given.left)
        if role in self.state.own_roles:
            self.own_messages.append(message)
        elif known is not None:
            self.direct(known.at, message, left=given.left)
        else:
            return self.with_candidate(role, given)
        return None

    def _forget(self, message: NodeMessage, left: tuple[At, ...]) -> None:
        """Forget the holder of a role if it is among ``left``."""
        role = role_of(message)
        if role is not None and role in self.state.holders and self.state.holders[role].at in left:
            del self.state.holders[role]

    def _on_search_end(self, given: SeekEnvelope) -> None:
        """Handle a search that has reached the node nearest to the broker's point: give the role to the best
        candidate.
        """
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

    def on_own_message(self, message: NodeMessage) -> None:
        """Dispatch a message that is addressed to this node."""
        match message:
            case RoleVacant():
                self.direct(message.at, RoleOffer(*message.role, self.at))
            case RoleOffer():
                self.on_offer(message)
            case RoleTables():
                self.on_tables(message)
            case RoleTaken():
                self.on_taken(message.role, message.at, message.turn)
            case RoleHeartbeat():
                self.on_heartbeat(message)
            case _:
                self._for_role(message)

    def _for_role(self, message: QpsMessage) -> None:
        """Handle a message for a role: process it, queue it during a hand-over, or forward it."""
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
        elif not isinstance(message, RoutedPublication):  # an event does not need a broker to exist
            self.take_role(role, LogicalBroker(*role, turn=self.now))
            self.to_broker(Received(self.now, "", message))

    def _on_astray(self, at: At, message: NodeMessage, tries: int, left: tuple[At, ...]) -> None:
        """Handle a message for a node that does not answer. [F49]

        The message lists all nodes that did not answer. Otherwise two nodes that each know the other as
        holder would send it back and forth.
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
