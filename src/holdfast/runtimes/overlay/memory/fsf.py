"""A whole network of the filter-split-forward family in one process, and what crosses its links.  [J10, J11]

Every call is carried through before it returns.  Messages arrive in the order in which they were sent; with
``overtaking`` only those of one link do, and chance decides which link is next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ....errors import InputError, Unsupported, UsageError, did_you_mean
from ....model.instant import BEGINNING, Duration
from ....model.protocol import Deliver, Joined, Left, Send
from ....model.space import Point
from ....protocols.fsf.message import (
    Advertise,
    Answer,
    Cancel,
    Event,
    Found,
    Members,
    Message,
    Readings,
    Refused,
    Request,
    Results,
    Subscribe,
    Subscription,
    Want,
    Withdraw,
)
from ....protocols.fsf.node import FsfNode
from ....protocols.fsf.policy import Policy
from .network import Kind, Link, QueueNetwork
from .tree import centre, tree, ways


class FsfNetwork(QueueNetwork):
    """Nodes joined to a tree (or several), all of one policy.

    ``subscriptions`` counts the operators that crossed each link, ``publications`` the events, those of
    result sets once for each set, and those that say for whom they are once, also where that is said later of
    more.  ``delivered`` has the events that each subscription was told of, ``answers`` what was last said
    about it.  Equal seeds give equal runs.
    """

    def __init__(
        self,
        links: Iterable[Link],
        policy: Policy,
        seed: int = 0,
        *,
        validity: Duration | None = None,
        overtaking: bool = False,
    ) -> None:
        super().__init__(seed=seed if overtaking else None, now=BEGINNING)
        links = list(links)
        neighbours = tree(links)
        self._crossed: set[tuple[Link, Event]] | None = set() if policy.named else None
        self._mendable = [set(link) for link in links] if policy.central else None
        self.subscriptions: Counter[Link] = Counter()
        self.publications: Counter[Link] = Counter()
        self.delivered: dict[str, set[Event]] = {}
        self.answers: dict[str, Answer] = {}
        self._homes: dict[str, str] = {}
        self._sensors: dict[str, tuple[str, Advertise]] = {}
        towards = ways(neighbours, centre(neighbours)) if policy.central else {}
        for number, name in enumerate(neighbours):
            machine = FsfNode(policy, towards.get(name), validity)
            self.start(name, machine, seed=seed * len(neighbours) + number)
        for link in links:
            super().connect(*link)
        self.settle()

    # --- what it cost ---

    @property
    def subscription_load(self) -> int:
        """How many operators crossed links."""
        return self.subscriptions.total()

    @property
    def publication_load(self) -> int:
        """How many events crossed links."""
        return self.publications.total()

    @property
    def asked(self) -> int:
        """How often filtering was asked whether an operator is covered."""
        return sum(host.state.tally.asked for host in self.nodes.values())

    @property
    def covered(self) -> int:
        """How often it was."""
        return sum(host.state.tally.covered for host in self.nodes.values())

    @property
    def undecided(self) -> int:
        """How often filtering could not say, and the operator was forwarded."""
        return sum(host.state.tally.undecided for host in self.nodes.values())

    @property
    def remembered(self) -> dict[str, int]:
        """How many events each node still has."""
        return {name: len(host.state.events) for name, host in self.nodes.items()}

    # --- what happens ---

    def advertise(self, node: str, sensor: str, attribute: str, at: Point | None = None) -> None:
        """A sensor appears at a node."""
        if sensor in self._sensors:
            raise UsageError(f"there is a sensor '{sensor}' at '{self._sensors[sensor][0]}' already")
        advertisement = Advertise(sensor, attribute, at)
        self._ask(node, advertisement)
        self._sensors[sensor] = node, advertisement

    def withdraw(self, sensor: str) -> None:
        """A sensor disappears; what only it was a source for waits for another."""
        if sensor not in self._sensors:
            raise UsageError(f"there is no sensor '{sensor}'. {did_you_mean(sensor, self._sensors) or ''}")
        node, _ = self._sensors.pop(sensor)
        self._ask(node, Withdraw(sensor))

    def subscribe(self, node: str, name: str, subscription: Subscription, *, pending: bool = False) -> Answer:
        """Somebody at a node subscribes; `Refused` says what has no source, unless it may be pending."""
        if name in self._homes:
            raise UsageError(f"there is a subscription '{name}' at '{self._homes[name]}' already")
        self._ask(node, Want(name, subscription, pending))
        if not isinstance(self.answers[name], Refused):
            self._homes[name] = node
        return self.answers[name]

    def unsubscribe(self, name: str) -> None:
        """A subscription ends; what was delivered for it stays readable."""
        if name not in self._homes:
            raise UsageError(f"there is no subscription '{name}'. {did_you_mean(name, self._homes) or ''}")
        self._ask(self._homes.pop(name), Cancel(name))

    def publish(self, node: str, event: Event) -> None:
        """A sensor of a node measures."""
        self._check(event, node)
        self.now = max(self.now, event.time)
        self._ask(node, Readings((event,)))

    def publish_all(self, events: Iterable[Event]) -> None:
        """Sensors measure, wherever they are; nothing is forgotten before all has arrived.

        What crosses links and what is delivered is as of events one by one, in a fraction of the time.
        """
        by_node: dict[str, list[Event]] = {}
        for event in events:
            by_node.setdefault(self._check(event), []).append(event)
        for node, some in by_node.items():
            self.ask(node, Readings(tuple(some)))
        self.settle()
        self.now = max((self.now, *(event.time for some in by_node.values() for event in some)))

    def _check(self, event: Event, node: str | None = None) -> str:
        """The node of an event's sensor, if it is as advertised."""
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
        """Part two neighbours."""
        if b not in self._links.get(a, ()):
            raise UsageError(f"'{a}' and '{b}' are not neighbours")
        lost = super().cut(a, b)
        self.settle()
        return lost

    def connect(self, a: str, b: str) -> None:
        """Join two nodes between which there is no way; with a central node, only those that were joined."""
        for name in (a, b):
            self.node(name)
        if a == b or b in ways(self._links, a):
            raise UsageError(f"there is a way from '{a}' to '{b}' already; the network must stay a tree")
        if self._mendable is not None and {a, b} not in self._mendable:
            raise Unsupported(
                f"'{a}' and '{b}' were never neighbours: the ways to the central node are fixed"
            )
        super().connect(a, b)
        self.settle()

    # --- how it is carried through ---

    def _ask(self, node: str, request: Request) -> None:
        self.ask(node, request)
        self.settle()

    def _tell(self, name: str, kind: Kind, *about: Any) -> None:
        """In line with the messages, so that chance may let one node know before another."""
        self._put((about[0] if kind in (Joined, Left) else "", name), kind, *about)

    def _cross(self, link: Link, send: Send) -> None:
        self._count(link, send.message)
        super()._cross(link, send)

    def _deliver(self, _name: str, effect: Deliver) -> None:
        match effect.what:
            case Found(members):
                for event, names in members:
                    for one in names:
                        self.delivered[one].add(event)
            case answer:
                self.answers[answer.name] = answer
                if not isinstance(answer, Refused):
                    self.delivered.setdefault(answer.name, set())

    def _count(self, link: Link, message: Message) -> None:
        match message:
            case Readings(events):
                self.publications[link] += len(events)
            case Results(members):
                self.publications[link] += self._sets(link, members)
            case Subscribe():
                self.subscriptions[link] += 1

    def _sets(self, link: Link, members: Members) -> int:
        """How many events cross a link in result sets; where they are named, those that had not yet."""
        if self._crossed is None:
            return sum(len(names) for _, names in members)
        new = {(link, event) for event, _ in members} - self._crossed
        self._crossed |= new
        return len(new)
