"""The base class of a node's roles: one input with the node's state, and the collected effects.

Change here the helpers that both roles need. The roles are in `client_broker` and `forwarding`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from ....model.instant import Instant
from ....model.protocol import Effect, Route
from ....model.space import Point
from .area import Area, difference, intersection
from .deployment import QpsDeployment
from .message import At, QpsMessage, cause_of
from .request_table import AreaRequest
from .state import QpsState
from .tree import QuadScope

Request = TypeVar("Request", bound=AreaRequest)


class QpsStep:
    """Base class that handles one input of a node and collects the effects."""

    def __init__(self, deployment: QpsDeployment, at: At, state: QpsState, now: Instant) -> None:
        self.deployment, self.at, self.state, self.now = deployment, at, state, now
        self.tree = deployment.tree
        self.effects: deque[Effect] = deque()
        self.emit = self.effects.append

    def send(self, to: Point, message: QpsMessage) -> None:
        """Send a message to the node nearest to a point."""
        self.emit(Route(to, message, cause_of(message)))

    def send_to_broker(self, scope: QuadScope, message: QpsMessage) -> None:
        """Send a message to the logical broker of a scope."""
        self.send(self.tree.address(message.topic, scope), message)

    def version(self) -> Instant:
        """Return a version above all earlier ones of this node."""
        return self.state.version(self.now)

    def stricter(
        self, requests: Iterable[Request], area: Area, epsilon: float, fulfil: bool
    ) -> list[Request]:
        """Return the requested parts for which new terms are stricter, with the stricter terms. [F40]"""
        found = []
        for old in requests:
            tight = self.deployment.compliance == "guaranteed" and epsilon < old.epsilon
            if (tight or fulfil > old.fulfil) and (part := intersection(old.area, area)):
                strict = epsilon if tight else old.epsilon
                found.append(replace(old, area=part, epsilon=strict, fulfil=old.fulfil or fulfil))
        return found


def requests_outside(requests: Iterable[Request], area: Area) -> list[Request]:
    """Return the parts of requests outside of an area."""
    remaining = ((difference(request.area, area), request) for request in requests)
    return [replace(request, area=rest) for rest, request in remaining if rest]
