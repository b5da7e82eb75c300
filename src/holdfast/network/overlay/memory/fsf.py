"""A network of the filter-split-forward family in one process, with counts of its traffic. [J10, J11]

Every call is complete when it returns. Messages arrive in the order in which they were sent. With
``overtaking``, only messages of the same link stay in order, and the next link is chosen at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ....errors import InputError, Unsupported, UsageError, did_you_mean
from ....model.instant import BEGINNING, Duration
from ....model.protocol import Deliver, Joined, Left, Send
from ....model.space import Point
from ...protocols.fsf.message import (
    EventsFound,
    FsfAdvertise,
    FsfAnswer,
    FsfCancel,
    FsfEvent,
    FsfMessage,
    FsfReadings,
    FsfRequest,
    FsfResults,
    FsfSubscribe,
    FsfSubscription,
    FsfWant,
    FsfWithdraw,
    Members,
    SubscriptionRefused,
)
from ...protocols.fsf.node import FsfNode
from ...protocols.fsf.policy import FsfPolicy
from .network import Kind, Link, QueueNetwork
from .tree import centre, neighbours_of_tree, next_hops


class FsfNetwork(QueueNetwork):
    """Nodes joined to one or more trees, all with the same policy.

    ``subscriptions`` counts the operators that crossed each link, and ``publications`` the events. Events of
    result sets count once for each set. Named events count once, even if further names follow later.
    ``delivered`` has the events that each subscription received, and ``answers`` its last status. Equal seeds
    give equal runs.
    """

    def __init__(
        self,
        links: Iterable[Link],
        policy: FsfPolicy,
        seed: int = 0,
        *,
        validity: Duration | None = None,
        overtaking: bool = False,
    ) -> None:
        super().__init__(seed=seed if overtaking else None, now=BEGINNING)
        links = list(links)
        neighbours = neighbours_of_tree(links)
        self._crossed: set[tuple[Link, FsfEvent]] | None = set() if policy.named else None
        self._mendable = [set(link) for link in links] if policy.central else None
        self.subscriptions: Counter[Link] = Counter()
        self.publications: Counter[Link] = Counter()
        self.delivered: dict[str, set[FsfEvent]] = {}
        self.answers: dict[str, FsfAnswer] = {}
        self._homes: dict[str, str] = {}
        self._sensors: dict[str, tuple[str, FsfAdvertise]] = {}
        towards = next_hops(neighbours, centre(neighbours)) if policy.central else {}
        for number, name in enumerate(neighbours):
            machine = FsfNode(policy, towards.get(name), validity)
            self.start(name, machine, seed=seed * len(neighbours) + number)
        for link in links:
            super().connect(*link)
        self.settle()

    # --- counts ---

    @property
    def subscription_load(self) -> int:
        """The number of operators that crossed links."""
        return self.subscriptions.total()

    @property
    def publication_load(self) -> int:
        """The number of events that crossed links."""
        return self.publications.total()

    @property
    def test_count(self) -> int:
        """The number of covering tests of all nodes."""
        return sum(host.state.tally.asked for host in self.nodes.values())

    @property
    def covered_count(self) -> int:
        """The number of covering tests with a positive result."""
        return sum(host.state.tally.covered for host in self.nodes.values())

    @property
    def undecided_count(self) -> int:
        """The number of covering tests without a result, after which the operator was forwarded."""
        return sum(host.state.tally.undecided for host in self.nodes.values())

    # --- requests ---

    def advertise(self, node: str, sensor: str, attribute: str, at: Point | None = None) -> None:
        """Add a sensor at a node; raise a `UsageError` if its name is in use."""
        if sensor in self._sensors:
            raise UsageError(f"there is a sensor '{sensor}' at '{self._sensors[sensor][0]}' already")
        advertisement = FsfAdvertise(sensor, attribute, at)
        self._ask(node, advertisement)
        self._sensors[sensor] = node, advertisement

    def withdraw(self, sensor: str) -> None:
        """Remove a sensor. Subscriptions for which it was the only source wait for another source."""
        if sensor not in self._sensors:
            raise UsageError(f"there is no sensor '{sensor}'. {did_you_mean(sensor, self._sensors) or ''}")
        node, _ = self._sensors.pop(sensor)
        self._ask(node, FsfWithdraw(sensor))

    def subscribe(
        self, node: str, name: str, subscription: FsfSubscription, *, pending: bool = False
    ) -> FsfAnswer:
        """Subscribe at a node. Without a source for each filter, the subscription is refused unless
        ``pending``.
        """
        if name in self._homes:
            raise UsageError(f"there is a subscription '{name}' at '{self._homes[name]}' already")
        self._ask(node, FsfWant(name, subscription, pending))
        if not isinstance(self.answers[name], SubscriptionRefused):
            self._homes[name] = node
        return self.answers[name]

    def unsubscribe(self, name: str) -> None:
        """End a subscription. Its deliveries stay readable."""
        if name not in self._homes:
            raise UsageError(f"there is no subscription '{name}'. {did_you_mean(name, self._homes) or ''}")
        self._ask(self._homes.pop(name), FsfCancel(name))

    def publish(self, node: str, event: FsfEvent) -> None:
        """Publish an event of a node's sensor, and deliver all messages that it causes."""
        self._check(event, node)
        self.now = max(self.now, event.time)
        self._ask(node, FsfReadings((event,)))

    def publish_all(self, events: Iterable[FsfEvent]) -> None:
        """Publish events of any sensors. No event is dropped before all have arrived.

        Traffic and deliveries are the same as with one event at a time, in a fraction of the time.
        """
        by_node: dict[str, list[FsfEvent]] = {}
        for event in events:
            by_node.setdefault(self._check(event), []).append(event)
        for node, some in by_node.items():
            self.ask(node, FsfReadings(tuple(some)))
        self.settle()
        self.now = max((self.now, *(event.time for some in by_node.values() for event in some)))

    def _check(self, event: FsfEvent, node: str | None = None) -> str:
        """Return the node of an event's sensor. Raise an `InputError` if the event contradicts the
        advertisement.
        """
        home, known = self._sensors.get(event.sensor, (None, None))
        if known is None or home is None or node not in (None, home):
            where = f" at '{node}'" if node else ""
            raise InputError(f"no sensor '{event.sensor}' is advertised{where}; advertise it first")
        if (event.attribute, event.at) != (known.attribute, known.at):
            raise InputError(
                f"sensor '{event.sensor}' is advertised with '{known.attribute}' at {known.at}, "
                f"but an event has '{event.attribute}' at {event.at}"
            )
        return home

    def cut(self, a: str, b: str) -> int:
        """Cut a connection; return the number of messages that were lost on it."""
        if b not in self._links.get(a, ()):
            raise UsageError(f"'{a}' and '{b}' are not neighbours")
        lost = super().cut(a, b)
        self.settle()
        return lost

    def connect(self, a: str, b: str) -> None:
        """Connect two nodes that have no path between them. With a central node, only former neighbours can
        be connected.
        """
        for name in (a, b):
            self.node(name)
        if a == b or b in next_hops(self._links, a):
            raise UsageError(f"there is a way from '{a}' to '{b}' already; the network must stay a tree")
        if self._mendable is not None and {a, b} not in self._mendable:
            why = f"'{a}' and '{b}' were never neighbours: the ways to the central node are fixed"
            raise Unsupported(why)
        super().connect(a, b)
        self.settle()

    # --- messages ---

    def _ask(self, node: str, request: FsfRequest) -> None:
        self.ask(node, request)
        self.settle()

    def _tell(self, name: str, kind: Kind, *about: Any) -> None:
        """Queue an input with the messages, so that with a seed one node may receive it before another."""
        self._put((about[0] if kind in (Joined, Left) else "", name), kind, *about)

    def _cross(self, link: Link, send: Send) -> None:
        self._count(link, send.message)
        super()._cross(link, send)

    def _deliver(self, _name: str, effect: Deliver) -> None:
        """Record a delivery of a node's users: events of subscriptions, or the answer to a subscription."""
        match effect.what:
            case EventsFound(members):
                for event, names in members:
                    for one in names:
                        self.delivered[one].add(event)
            case answer:
                self.answers[answer.name] = answer
                if not isinstance(answer, SubscriptionRefused):
                    self.delivered.setdefault(answer.name, set())

    def _count(self, link: Link, message: FsfMessage) -> None:
        match message:
            case FsfReadings(events):
                self.publications[link] += len(events)
            case FsfResults(members):
                self.publications[link] += self._sets(link, members)
            case FsfSubscribe():
                self.subscriptions[link] += 1

    def _sets(self, link: Link, members: Members) -> int:
        """Return the number of events of result sets that cross a link. Named events count only the first
        time.
        """
        if self._crossed is None:
            return sum(len(names) for _, names in members)
        new = {(link, event) for event, _ in members} - self._crossed
        self._crossed |= new
        return len(new)
