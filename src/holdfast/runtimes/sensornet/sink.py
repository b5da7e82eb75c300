"""Subscriptions that are evaluated on the subscriber's own node: as events come, and by its clock."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.event import Event, Notification
from ...model.instant import Instant
from ...sim.clock import Entry
from ...sim.node import Node
from .account import Account, Wish
from .conditions import Definition, Watch


class Sinks:
    """What some wishes are told.  Time is let come as far as the clock shows, less an allowance: by then
    what was published earlier has come."""

    def __init__(self, definition: Definition, wishes: Iterable[Wish], account: Account) -> None:
        self._definition, self._account, self._allowance = definition, account, account.allowance
        self.wishes = tuple(wishes)
        self._watches: dict[Wish, Watch | None] = {}
        self._alarms: dict[Wish, tuple[Instant, Entry]] = {}

    def boot(self, node: Node) -> None:
        """A node starts, and knows nothing."""
        here = [wish for wish in self.wishes if wish.node == node.id]
        served = self._definition.operators() if here else {}
        for wish in here:
            self._watches[wish] = None if wish.plain else Watch(served[wish.name], wish.name)
            self._alarms.pop(wish, None)

    def came(self, node: Node, event: Event) -> None:
        """An event has come to a node, for all who want it there."""
        for wish in self.wishes:
            if wish.node == node.id and event.topic in wish.topics and wish.at(event.time):
                self.take(node, wish, event)

    def take(self, node: Node, wish: Wish, event: Event) -> None:
        """An event has come for a wish."""
        if (watch := self._watches[wish]) is None:
            self._tell(wish, [Notification(wish.name, event, "atomic", None, None)])
        else:
            self._tell(wish, watch.react(event))
            self._wait(node, wish, watch)

    def _tell(self, wish: Wish, told: Iterable[Notification]) -> None:
        for each in told:
            self._account.tell(wish, each)

    def _wait(self, node: Node, wish: Wish, watch: Watch) -> None:
        """Wake up when the machine wants it, unless that will be so already; not at a later time as well."""
        if (due := watch.due) is None:
            return
        at = max(due + self._allowance, node.now) + 1
        later = self._alarms.get(wish)
        if later is None or at < later[0]:
            if later is not None:
                node.cancel(later[1])
            self._alarms[wish] = at, node.at(at, lambda _: self._wake(node, wish, watch))

    def _wake(self, node: Node, wish: Wish, watch: Watch) -> None:
        self._alarms.pop(wish, None)
        self._tell(wish, watch.advance(node.now - self._allowance))
        self._wait(node, wish, watch)
