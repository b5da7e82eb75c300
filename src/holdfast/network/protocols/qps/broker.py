"""A node of Quad-PubSub as a protocol machine: for its clients, and as logical brokers.  [F21–F43]

It only dispatches inputs to the roles of the node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import assert_never

from ....model.instant import Instant
from ....model.protocol import Asked, Effect, Fired, Input, Received, Route, SetTimer, Started
from ....model.space import Point
from . import message, request
from .client_broker import ClientBroker
from .deployment import QpsDeployment
from .forwarding import BrokerRoles
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
        """The address of the node."""
        return (float(self.place[0]), float(self.place[1]))

    @property
    def forwarding(self) -> BrokerRoles:
        """The node's role as logical brokers."""
        return BrokerRoles(self.deployment, self.at)

    @property
    def hosting(self) -> ClientBroker:
        """The node's role for its clients."""
        return ClientBroker(self.deployment, self.at)

    def initial(self) -> QpsState:
        """Return the state before the first input."""
        return QpsState()

    def handle(self, state: QpsState, given: Input) -> tuple[QpsState, list[Effect]]:
        """Handle one input; messages of a node to itself are handled at once, without the network."""
        effects: list[Effect] = []
        waiting = deque(self._dispatch(state, given))
        while waiting:
            effect = waiting.popleft()
            if isinstance(effect, Route) and effect.to == self.at and self._has_role(state, effect.message):
                waiting.extend(self._on_message(state, effect.message, given.now))
            else:
                effects.append(effect)
        return state, effects

    def _has_role(self, state: QpsState, given: QpsMessage) -> bool:
        """Whether this node still has the role that a message to itself is for."""
        return self.deployment.mapping is None or given.to is None or (given.topic, given.to) in state.logical

    def _dispatch(self, state: QpsState, given: Input) -> Iterable[Effect]:
        """Dispatch an input."""
        match given:
            case Started(now, seed):
                state.chance = Random(seed)
                return chain(self._next_renewal(state, now), self._next_attendance(now))
            case Asked(now, asked):
                return self._on_request(state, asked, now)
            case Received(now, _, heard):
                return self._on_message(state, heard, now)
            case Fired(now, timer):
                kind, _, about = timer.partition("/")
                return self._on_timer(state, kind, about, now)
        return ()

    def _on_request(self, state: QpsState, asked: request.QpsRequest, now: Instant) -> Iterator[Effect]:
        """Dispatch a request of a client."""
        if self.deployment.attendance is not None:
            state.clients[asked.client] = now
        match asked:
            case request.QpsPublishRequest():
                return self.hosting.publish(state, asked, now)
            case request.QpsSubscribeRequest():
                return self.hosting.subscribe(state, asked, now)
            case request.QpsUnsubscribeRequest():
                return self.hosting.unsubscribe(state, asked, now)
            case request.QpsAdvertiseRequest():
                return self.hosting.advertise(state, asked, now)
            case request.QpsUnadvertiseRequest():
                return self.hosting.unadvertise(state, asked, now)
            case request.PresenceSign():
                return iter(())
        assert_never(asked)

    def _on_message(self, state: QpsState, given: QpsMessage, now: Instant) -> Iterator[Effect]:
        """Dispatch a message by its destination: this node, or a logical broker.  [F38]"""
        if not isinstance(given, MESSAGES) or given.topic not in self.deployment.topics:
            return iter(())
        return self._for_node(state, given, now) if given.to is None else self._for_broker(state, given, now)

    def _for_node(self, state: QpsState, given: QpsMessage, now: Instant) -> Iterator[Effect]:
        """Dispatch a message to this node."""
        match given:
            case message.RoutedPublication():
                return self.hosting.deliver(state, given, now)
            case message.QpsSubscribe() | message.QpsUnsubscribe():
                return self.hosting.on_leaf_request(state, given, now)
            case message.AreaCoverage():
                return self.hosting.on_coverage(state, given, now)
        return iter(())

    def _for_broker(self, state: QpsState, given: QpsMessage, now: Instant) -> Iterator[Effect]:
        """Dispatch a message to a logical broker."""
        to = given.to
        assert to is not None
        match given:
            case message.RoutedPublication():
                return self.forwarding.on_publication(state, given, to)
            case message.QpsSubscribe():
                return self.forwarding.on_subscribe(state, given, to, now)
            case message.QpsUnsubscribe():
                return self.forwarding.on_unsubscribe(state, given, to, now)
            case message.AreaCoverage():
                return self.forwarding.on_coverage(state, given, to, now)
            case message.QpsAdvertise():
                return self.forwarding.on_advertise(state, given, now)
            case message.SubscriberGone():
                return self.forwarding.on_gone(state, given, to, now)
        assert_never(given)

    def _on_timer(self, state: QpsState, kind: str, about: str, now: Instant) -> Iterator[Effect]:
        """Dispatch a timer."""
        match kind:
            case "attendance":
                yield from self.hosting.remove_absent(state, now)
                yield from self._next_attendance(now)
            case "renewal":
                yield from self._renew(state, now)
            case "coverage":
                topic, *numbers = about.rsplit("/", 3)
                role = state.logical.get((topic, QuadScope(*map(int, numbers))))
                yield from self.forwarding.on_coverage_timer(role, now) if role else ()
            case "covering":
                yield from self.hosting.report_coverage(state, about, now)

    def _renew(self, state: QpsState, now: Instant) -> Iterator[Effect]:
        """Repeat all requests, and drop logical brokers without entries."""
        yield from self.hosting.renew(state, now)
        for key, role in list(state.logical.items()):
            yield from self.forwarding.renew(state, role, now)
            if role.is_empty and self.deployment.mapping is None:  # with a mapping, roles end by its check
                del state.logical[key]
        yield from self._next_renewal(state, now)

    def _next_attendance(self, now: Instant) -> Iterator[Effect]:
        """Set the timer for the next check of clients."""
        if self.deployment.attendance is not None:
            yield SetTimer("attendance", now + self.deployment.attendance)

    def _next_renewal(self, state: QpsState, now: Instant) -> Iterator[Effect]:
        """Set the timer for the next repetition."""
        if (every := self.deployment.renewal) is not None:
            yield SetTimer("renewal", self.deployment.after(now, every, state.chance))
