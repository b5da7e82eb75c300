"""Evaluation of subscriptions on the subscriber's own node, as events arrive and by the node's clock."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.event import Event, Notification
from ...model.instant import Instant
from ..sim.clock import Entry
from ..sim.node import Node
from .account import NodeSubscription, RunAccount
from .conditions import Evaluator, ScenarioDefinition


class Sinks:
    """Evaluates subscriptions on their nodes. The watermark is the node's clock minus an allowance for
    delayed events.
    """

    def __init__(
        self, definition: ScenarioDefinition, subscriptions: Iterable[NodeSubscription], account: RunAccount
    ) -> None:
        self._definition, self._account, self._allowance = definition, account, account.allowance
        self.subscriptions = tuple(subscriptions)
        self._watches: dict[NodeSubscription, Evaluator | None] = {}
        self._timers: dict[NodeSubscription, tuple[Instant, Entry]] = {}

    def boot(self, node: Node) -> None:
        """Reset the subscriptions of a node that starts or restarts."""
        here = [sub for sub in self.subscriptions if sub.node == node.id]
        served = self._definition.operators() if here else {}
        for sub in here:
            self._watches[sub] = None if sub.plain else Evaluator(served[sub.name], sub.name)
            self._timers.pop(sub, None)

    def on_event(self, node: Node, event: Event) -> None:
        """Process an event that arrived at a node, for all subscriptions of the node."""
        for sub in self.subscriptions:
            if sub.node == node.id and event.topic in sub.topics and sub.at(event.time):
                self.take(node, sub, event)

    def take(self, node: Node, sub: NodeSubscription, event: Event) -> None:
        """Process an event for one subscription; report its notifications and set its next timer."""
        if (watch := self._watches[sub]) is None:
            self._notify(sub, [Notification(sub.name, event, "atomic", None, None)])
        else:
            self._notify(sub, watch.react(event))
            self._set_timer(node, sub, watch)

    def _notify(self, sub: NodeSubscription, notifications: Iterable[Notification]) -> None:
        for notification in notifications:
            self._account.notify(sub, notification)

    def _set_timer(self, node: Node, sub: NodeSubscription, watch: Evaluator) -> None:
        """Set a timer for the time at which the machine is due. It replaces a later timer."""
        if (due := watch.due) is None:
            return
        at = max(due + self._allowance, node.now) + 1
        timer = self._timers.get(sub)
        if timer is None or at < timer[0]:
            if timer is not None:
                node.cancel(timer[1])
            self._timers[sub] = at, node.at(at, lambda _: self._on_timer(node, sub, watch))

    def _on_timer(self, node: Node, sub: NodeSubscription, watch: Evaluator) -> None:
        self._timers.pop(sub, None)
        self._notify(sub, watch.advance(node.now - self._allowance))
        self._set_timer(node, sub, watch)
