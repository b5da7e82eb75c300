"""The machine of a Quad-PubSub node, for its clients and as logical brokers. [F21–F43]

This module only dispatches inputs to the roles of the node. To add a request or a message, add it to the
tables below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from ....model.instant import Instant
from ....model.protocol import Asked, Effect, Fired, Input, Received, Route, SetTimer, Started
from ....model.space import Point
from . import message, request
from .client_broker import ClientStep
from .deployment import QpsDeployment
from .forwarding import RoleStep
from .message import MESSAGES, At, QpsMessage
from .state import QpsState
from .tree import QuadScope


@dataclass(frozen=True)
class QpsBroker:
    """The event broker of a node at a point of the deployment's space."""

    deployment: QpsDeployment
    place: Point

    def __post_init__(self) -> None:
        self.deployment.tree.inside(self.place)

    @property
    def at(self) -> At:
        """The address of the node, which is its position."""
        return (float(self.place[0]), float(self.place[1]))

    def initial(self) -> QpsState:
        """Return the state of the machine before its first input."""
        return QpsState()

    def handle(self, state: QpsState, given: Input) -> tuple[QpsState, list[Effect]]:
        """Handle one input. The node's messages to itself are handled at once, without the network."""
        step = self.step(state, given.now)
        step.on_input(given)
        effects: list[Effect] = []
        while step.effects:
            effect = step.effects.popleft()
            if isinstance(effect, Route) and effect.to == self.at and step.has_role(effect.message):
                step.on_message(effect.message)
            else:
                effects.append(effect)
        return state, effects

    def step(self, state: QpsState, now: Instant) -> BrokerStep:
        """Return the step that handles one input."""
        return BrokerStep(self.deployment, self.at, state, now)


class BrokerStep(ClientStep, RoleStep):
    """Handles one input of a node in both roles."""

    def has_role(self, given: QpsMessage) -> bool:
        """Whether this node still has the role to which a message to itself is addressed."""
        is_fixed = self.deployment.mapping is None or given.to is None
        return is_fixed or (given.topic, given.to) in self.state.logical

    def on_input(self, given: Input) -> None:
        """Dispatch an input to the role that handles it."""
        match given:
            case Started(_, seed):
                self.state.chance = Random(seed)
                self._set_renewal_timer()
                self._set_attendance_timer()
            case Asked(now, asked):
                if self.deployment.attendance is not None:
                    self.state.clients[asked.client] = now
                if not isinstance(asked, request.PresenceSign):
                    REQUESTS[type(asked)](self, asked)
            case Received(_, _, received):
                self.on_message(received)
            case Fired(_, timer):
                kind, _, about = timer.partition("/")
                self._on_timer(kind, about)

    def on_message(self, given: QpsMessage) -> None:
        """Dispatch a message by its destination: this node, or a logical broker.  [F38]"""
        if not isinstance(given, MESSAGES) or given.topic not in self.deployment.topics:
            return
        if given.to is not None:
            FOR_BROKER[type(given)](self, given, given.to)
        elif type(given) in FOR_NODE:
            FOR_NODE[type(given)](self, given)

    def _on_timer(self, kind: str, about: str) -> None:
        """Dispatch a timer by its kind."""
        match kind:
            case "attendance":
                self.remove_absent()
                self._set_attendance_timer()
            case "renewal":
                self._renew()
            case "coverage":
                topic, *numbers = about.rsplit("/", 3)
                if role := self.state.logical.get((topic, QuadScope(*map(int, numbers)))):
                    self.on_coverage_timer(role)
            case "covering":
                self.report_coverage(about)

    def _renew(self) -> None:
        """Repeat all requests, and drop logical brokers that have no entries."""
        self.renew_clients()
        for key, role in list(self.state.logical.items()):
            self.renew_role(role)
            if role.is_empty and self.deployment.mapping is None:  # with a mapping, roles end by its check
                del self.state.logical[key]
        self._set_renewal_timer()

    def _set_attendance_timer(self) -> None:
        """Set the timer for the next check of clients."""
        if self.deployment.attendance is not None:
            self.emit(SetTimer("attendance", self.now + self.deployment.attendance))

    def _set_renewal_timer(self) -> None:
        """Set the timer for the next repetition of requests."""
        if (every := self.deployment.renewal) is not None:
            self.emit(SetTimer("renewal", self.deployment.after(self.now, every, self.state.chance)))


REQUESTS: Mapping[type, Callable[[BrokerStep, Any], None]] = {
    request.QpsPublishRequest: BrokerStep.publish,
    request.QpsSubscribeRequest: BrokerStep.subscribe,
    request.QpsUnsubscribeRequest: BrokerStep.unsubscribe,
    request.QpsAdvertiseRequest: BrokerStep.advertise,
    request.QpsUnadvertiseRequest: BrokerStep.unadvertise,
}
FOR_NODE: Mapping[type, Callable[[BrokerStep, Any], None]] = {
    message.RoutedPublication: BrokerStep.deliver,
    message.QpsSubscribe: BrokerStep.on_leaf_request,
    message.QpsUnsubscribe: BrokerStep.on_leaf_request,
    message.AreaCoverage: BrokerStep.on_node_coverage,
}
FOR_BROKER: Mapping[type, Callable[[BrokerStep, Any, QuadScope], None]] = {
    message.RoutedPublication: BrokerStep.on_publication,
    message.QpsSubscribe: BrokerStep.on_subscribe,
    message.QpsUnsubscribe: BrokerStep.on_unsubscribe,
    message.AreaCoverage: BrokerStep.on_coverage,
    message.QpsAdvertise: BrokerStep.on_advertise,
    message.SubscriberGone: BrokerStep.on_gone,
}
