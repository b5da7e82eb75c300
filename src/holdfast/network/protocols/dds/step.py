"""The base class of a node's roles.

One object handles one input. It has the node's deployment, its state and the time, and collects effects in
order. Change here the helpers that all roles need, for example how a message or a timer becomes an effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from ....model.instant import Duration, Instant
from ....model.protocol import Deliver, Effect, Peer, Send, SetTimer
from .deployment import DdsDeployment
from .message import DdsMessage, DdsSubscribe, DdsUnsubscribe, cause_of
from .modes import MODES
from .registry import SubscriptionTable
from .request import SubscriberLapsed, SubscriptionRegistered
from .state import DdsState


class DdsStep:
    """Handles one input of a node and collects the effects."""

    def __init__(self, deployment: DdsDeployment, me: Peer, state: DdsState, now: Instant) -> None:
        self.deployment, self.me, self.state, self.now = deployment, me, state, now
        self.mode = MODES[deployment.mode]
        self.effects: deque[Effect] = deque()
        self.emit = self.effects.append

    def send(self, to: Peer, message: DdsMessage) -> None:
        """Send a message to a node."""
        self.emit(Send(to, message, cause_of(message)))

    def send_to_all(self, nodes: Iterable[Peer], message: DdsMessage) -> None:
        """Send a message to several nodes."""
        for node in nodes:
            self.send(node, message)

    def set_timer(self, name: str, delay: Duration) -> None:
        """Set a timer that fires after ``delay`` µs."""
        self.emit(SetTimer(name, self.now + delay))

    def register(self, table: SubscriptionTable, wish: DdsSubscribe | DdsUnsubscribe) -> bool:
        """Apply a subscription or its end to a table; if it is new, inform the host and return true. [D44]"""
        is_new = table.apply(wish, self.now)
        if is_new:
            self.emit(Deliver(SubscriptionRegistered(table.topic.name, wish.subscriber, wish.version)))
        return is_new

    def remove_lapsed(self, table: SubscriptionTable) -> Iterator[Peer]:
        """Remove readers whose lease is over, so that no sample waits for them.

        Report and yield the subscribers that have no reader left.
        """
        if (lease := self.deployment.discovery.lease) is None:
            return
        lapsed = table.remove_lapsed(self.now, lease)
        self.state.counted["lapsed"] += len(lapsed)
        for subscriber in lapsed:
            self.emit(Deliver(SubscriberLapsed(table.topic.name, subscriber)))
            yield subscriber
