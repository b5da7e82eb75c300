"""A whole network for correlation subscriptions in one process, and what crosses its links.  [J10, J11]

Every call is carried through before it returns.  Messages arrive in the order in which they were sent; with
``overtaking`` only those of one link do, and chance decides which link is next.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable

from ...errors import InputError, Unsupported, UsageError, did_you_mean
from ...model.correlation import Correlation, Simple
from ...model.instant import BEGINNING, Duration, Instant
from ...model.protocol import Asked, Deliver, Effect, Input, Joined, Left, Received, Send, Started
from ...model.space import Point
from ...protocols.fsf.message import (
    Advertise,
    Answer,
    Cancel,
    Found,
    Message,
    Readings,
    Refused,
    Request,
    Results,
    Subscribe,
    Want,
    Withdraw,
)
from ...protocols.fsf.node import Node, State
from ...protocols.fsf.policy import Policy

Link = tuple[str, str]
"""From whom, to whom."""


class Network:
    """Nodes joined to a tree (or several), all of one policy.

    ``subscriptions`` counts the operators that crossed each link, ``publications`` the events, those of
    result sets once for each set.  ``delivered`` has the events that each subscription was told of,
    ``answers`` what was last said about it.  Equal seeds give equal runs.
    """

    def __init__(
        self,
        links: Iterable[Link],
        policy: Policy,
        seed: int = 0,
        *,
        nodes: Iterable[str] = (),
        validity: Duration | None = None,
        overtaking: bool = False,
    ) -> None:
        links = list(links)
        self.neighbours = tree(links, nodes)
        self._mendable = [set(link) for link in links] if policy.central else None
        self.centre = centre(self.neighbours)
        self.now: Instant = BEGINNING
        self.subscriptions: Counter[Link] = Counter()
        self.publications: Counter[Link] = Counter()
        self.delivered: dict[str, set[Simple]] = {}
        self.answers: dict[str, Answer] = {}
        self._homes: dict[str, str] = {}
        self._sensors: dict[str, tuple[str, Advertise]] = {}
        towards = ways(self.neighbours, self.centre) if policy.central else {}
        self._machines = {name: Node(policy, towards.get(name), validity) for name in self.neighbours}
        self._states: dict[str, State] = {name: node.initial() for name, node in self._machines.items()}
        self._inputs: deque[tuple[str, Input]] = deque()
        self._chance = random.Random(seed) if overtaking else None
        for number, name in enumerate(self.neighbours):
            self._inputs.append((name, Started(self.now, seed * len(self.neighbours) + number)))
        for name, others in self.neighbours.items():
            self._inputs.extend((name, Joined(self.now, other)) for other in others)
        self._settle()

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
        return sum(state.tally.asked for state in self._states.values())

    @property
    def covered(self) -> int:
        """How often it was."""
        return sum(state.tally.covered for state in self._states.values())

    @property
    def undecided(self) -> int:
        """How often filtering could not say, and the operator was forwarded."""
        return sum(state.tally.undecided for state in self._states.values())

    @property
    def remembered(self) -> dict[str, int]:
        """How many events each node still has."""
        return {name: len(state.events) for name, state in self._states.items()}

    # --- what happens ---

    def advertise(self, node: str, sensor: str, attribute: str, at: Point | None = None) -> None:
        """A sensor appears at a node."""
        if sensor in self._sensors:
            raise UsageError(f"there is a sensor '{sensor}' at '{self._sensors[sensor][0]}' already")
        advertisement = Advertise(sensor, attribute, at)
        self._ask(self._known(node), advertisement)
        self._sensors[sensor] = node, advertisement

    def withdraw(self, sensor: str) -> None:
        """A sensor disappears; what only it was a source for waits for another."""
        if sensor not in self._sensors:
            raise UsageError(f"there is no sensor '{sensor}'. {did_you_mean(sensor, self._sensors) or ''}")
        node, _ = self._sensors.pop(sensor)
        self._ask(node, Withdraw(sensor))

    def subscribe(self, node: str, name: str, subscription: Correlation, *, pending: bool = False) -> Answer:
        """Somebody at a node subscribes; `Refused` says what has no source, unless it may be pending."""
        if name in self._homes:
            raise UsageError(f"there is a subscription '{name}' at '{self._homes[name]}' already")
        self._ask(self._known(node), Want(name, subscription, pending))
        if not isinstance(self.answers[name], Refused):
            self._homes[name] = node
        return self.answers[name]

    def unsubscribe(self, name: str) -> None:
        """A subscription ends; what was delivered for it stays readable."""
        if name not in self._homes:
            raise UsageError(f"there is no subscription '{name}'. {did_you_mean(name, self._homes) or ''}")
        self._ask(self._homes.pop(name), Cancel(name))

    def publish(self, node: str, event: Simple) -> None:
        """A sensor of a node measures."""
        self._check(event, node)
        self.now = max(self.now, event.time)
        self._ask(node, Readings((event,)))

    def publish_all(self, events: Iterable[Simple]) -> None:
        """Sensors measure, wherever they are; nothing is forgotten before all has arrived.

        What crosses links and what is delivered is as of events one by one, in a fraction of the time.
        """
        by_node: dict[str, list[Simple]] = {}
        for event in events:
            by_node.setdefault(self._check(event), []).append(event)
        for node, some in by_node.items():
            self._inputs.append((node, Asked(self.now, Readings(tuple(some)))))
        self._settle()
        self.now = max((self.now, *(event.time for some in by_node.values() for event in some)))

    def _check(self, event: Simple, node: str | None = None) -> str:
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

    def cut(self, a: str, b: str) -> None:
        """Part two neighbours."""
        if b not in self.neighbours.get(a, ()):
            raise UsageError(f"'{a}' and '{b}' are not neighbours")
        for one, other in ((a, b), (b, a)):
            del self.neighbours[one][other]
            self._inputs.append((one, Left(self.now, other, f"the link to {other} is cut")))
        self._settle()

    def connect(self, a: str, b: str) -> None:
        """Join two nodes between which there is no way; with a central node, only those that were joined."""
        if self._known(b) in ways(self.neighbours, self._known(a)) or a == b:
            raise UsageError(f"there is a way from '{a}' to '{b}' already; the network must stay a tree")
        if self._mendable is not None and {a, b} not in self._mendable:
            raise Unsupported(
                f"'{a}' and '{b}' were never neighbours: the ways to the central node are fixed"
            )
        for one, other in ((a, b), (b, a)):
            self.neighbours[one][other] = None
            self._inputs.append((one, Joined(self.now, other)))
        self._settle()

    # --- how it is carried through ---

    def _known(self, node: str) -> str:
        if node not in self.neighbours:
            raise UsageError(f"there is no node '{node}'. {did_you_mean(node, self.neighbours) or ''}")
        return node

    def _ask(self, node: str, request: Request) -> None:
        self._inputs.append((node, Asked(self.now, request)))
        self._settle()

    def _settle(self) -> None:
        while self._inputs:
            name, given = self._next()
            self._states[name], effects = self._machines[name].handle(self._states[name], given)
            for effect in effects:
                self._carry_out(name, effect)

    def _next(self) -> tuple[str, Input]:
        """The oldest message; or the oldest of a link by chance, so that those of other links overtake it."""
        at = 0
        if self._chance is not None:
            links = [(name, _over(given)) for name, given in self._inputs]
            at = links.index(self._chance.choice(links))
        taken = self._inputs[at]
        del self._inputs[at]
        return taken

    def _carry_out(self, name: str, effect: Effect) -> None:
        match effect:
            case Send(to, message):
                if to in self.neighbours[name]:
                    self._count((name, to), message)
                    self._inputs.append((to, Received(self.now, name, message)))
            case Deliver(Found(members)):
                for event, names in members:
                    for one in names:
                        self.delivered[one].add(event)
            case Deliver(answer):
                self.answers[answer.name] = answer
                if not isinstance(answer, Refused):
                    self.delivered.setdefault(answer.name, set())

    def _count(self, link: Link, message: Message) -> None:
        match message:
            case Readings(events):
                self.publications[link] += len(events)
            case Results(members):
                self.publications[link] += sum(len(names) for _, names in members)
            case Subscribe():
                self.subscriptions[link] += 1


def _over(given: Input) -> str | None:
    """The link that an input comes over, as the peer's name."""
    match given:
        case Received(_, peer) | Joined(_, peer) | Left(_, peer):
            return peer
        case _:
            return None


def tree(links: Iterable[Link], nodes: Iterable[str] = ()) -> dict[str, dict[str, None]]:
    """The neighbours of each node, if there is at most one way between any two."""
    neighbours: dict[str, dict[str, None]] = {name: {} for name in nodes}
    parts: dict[str, str] = {}

    def root(name: str) -> str:
        while parts.setdefault(name, name) != name:
            name = parts[name]
        return name

    for a, b in links:
        if root(a) == root(b):
            raise UsageError(f"the link from '{a}' to '{b}' closes a circle; the network must be a tree")
        parts[root(a)] = root(b)
        neighbours.setdefault(a, {})[b] = None
        neighbours.setdefault(b, {})[a] = None
    if not neighbours:
        raise UsageError("a network needs at least one node")
    return neighbours


def ways(neighbours: dict[str, dict[str, None]], to: str) -> dict[str, str]:
    """For each node from which there is a way, the neighbour that is next on it."""
    following: dict[str, str] = {}
    reached = deque((to,))
    while reached:
        at = reached.popleft()
        for other in neighbours[at]:
            if other != to and other not in following:
                following[other] = at
                reached.append(other)
    return following


def centre(neighbours: dict[str, dict[str, None]]) -> str:
    """The node whose distances to all others sum up to the least; of several the first by name."""
    return min(sorted(neighbours), key=lambda name: _total_distance(neighbours, name))


def _total_distance(neighbours: dict[str, dict[str, None]], to: str) -> int:
    distance = {to: 0}
    for name, following in ways(neighbours, to).items():
        distance[name] = distance[following] + 1
    unreached = len(neighbours) - len(distance)
    return sum(distance.values()) + unreached * len(neighbours)
