"""Quad-PubSub on a random field of nodes, beside a judge that knows nothing of brokers."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.errors import UsageError
from holdfast.model.space import Polygon, Rectangle
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps import area as areas
from holdfast.network.protocols.qps import request
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.mapping import Resources
from holdfast.network.protocols.qps.physical import PhysicalNode
from holdfast.network.protocols.qps.request import FailedCoverage, QpsNotify
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.sim.field import Field
from holdfast.network.sim.topology import uniform

SIDE = 64.0
TOPICS = ("Heat", "Rain")


def matches(shape, point):
    """Whether an event lies in a region: with its lower and left sides, without the upper and right ones,
    unless they are those of space."""
    if isinstance(shape, Rectangle):
        sides = zip(shape.low, point, shape.high, strict=True)
        return all(low <= p and (p < high or p == high == SIDE) for low, p, high in sides)
    (ax, ay), (bx, by), (cx, cy) = shape.corners
    x, y = point
    turns = [
        (bx - ax) * (y - ay) - (by - ay) * (x - ax),
        (cx - bx) * (y - by) - (cy - by) * (x - bx),
        (ax - cx) * (y - cy) - (ay - cy) * (x - cx),
    ]
    return all(turn > 0 for turn in turns) or all(turn < 0 for turn in turns)


@dataclass
class FieldScenario:
    """A network, the actions of its clients, and the deliveries that each of them must receive."""

    seed: int
    compliance: str = "best-effort"
    settled: bool = False
    """Whether everything arrives before the next thing happens."""
    wide: bool = False
    options: dict = field(default_factory=dict)
    watched: bool = False
    """Whether most subscribers have to know what nobody publishes."""

    def __post_init__(self):
        self.chance = chance = random.Random(self.seed)
        mapped = "mapping" in self.options
        nodes = chance.randint(20, 40 if mapped else 90)
        reach = chance.choice([16.0, 20.0, 30.0])
        levels = chance.randint(1, 3 if mapped else 4)
        while True:
            try:
                placed = uniform(nodes, SIDE, SIDE, reach, chance.randrange(1 << 30))
                break
            except UsageError:
                nodes += 20
        self.deployment = QpsDeployment(
            tree=ScopeTree((0.0, 0.0), SIDE, levels),
            topics=TOPICS,
            compliance=self.compliance,
            wide_adverts=self.wide,
            **self.options,
        )
        self.field = Field(placed.positions, reach)
        self.nodes = list(range(nodes))
        self.network = FieldNetwork(self.field, self.machine, seed=self.seed)
        self.energy = dict.fromkeys(self.nodes, 1.0)
        self.publishers: dict[tuple, list] = {}
        """Node, client and topic -> regions."""
        self.subscribers: dict[tuple, list] = {}
        """Node, client and topic -> regions, each with ε."""
        self.must: list[tuple] = []
        """Node, client, topic and region of those who have to know what nobody publishes."""
        self.count = 0
        self.latest: dict[tuple, tuple] = {}
        """Node, client and topic -> number and place of the last event."""

    def machine(self, node):
        kind = QpsBroker if self.deployment.mapping is None else PhysicalNode
        return kind(self.deployment, self.field.places[node])

    # --- what happens ---

    def region(self):
        """A rectangle, often along the sides of scopes; or a triangle."""
        chance = self.chance
        if chance.random() < 0.25:
            while True:
                corners = tuple((chance.uniform(0, SIDE), chance.uniform(0, SIDE)) for _ in range(3))
                if areas.size(areas.of(Polygon(corners))) > 1:
                    return Polygon(corners)
        step = chance.choice([1, 4, 8, 16, 0])

        def side():
            low, high = sorted(chance.uniform(0, SIDE) for _ in range(2))
            if step:
                low = min(math.floor(low / step) * step, SIDE - step)
                high = max(math.ceil(high / step) * step, low + step)
            return (float(low), float(high))

        (left, right), (bottom, top) = side(), side()
        return Rectangle((left, bottom), (right, top))

    def point(self, shape):
        """A point in a region, often on the sides of scopes."""
        while True:
            step = self.chance.choice([0, 0, 1, 8])
            point = tuple(self.chance.uniform(0, SIDE) for _ in range(2))
            if step:
                point = tuple(float(round(p / step) * step) for p in point)
            if matches(shape, point):
                return point
            if isinstance(shape, Polygon):
                weights = [self.chance.random() for _ in range(3)]
                total = sum(weights)
                return tuple(
                    sum(w * c[axis] for w, c in zip(weights, shape.corners, strict=True)) / total
                    for axis in range(2)
                )

    def advertise(self):
        node, topic, region = self.chance.choice(self.alive), self.chance.choice(TOPICS), self.region()
        client = self.chance.choice("pq")
        self.publishers.setdefault((node, client, topic), []).append(region)
        self.network.ask(node, request.QpsAdvertiseRequest(client, topic, region))
        self._pause()

    def unadvertise(self):
        if self.publishers:
            (node, client, topic), regions = self.chance.choice(sorted(self.publishers.items(), key=str))
            region = regions.pop()
            if not regions:
                del self.publishers[node, client, topic]
            self.network.ask(node, request.QpsUnadvertiseRequest(client, topic, region))
            self._pause()

    def subscribe(self):
        node, topic, region = self.chance.choice(self.alive), self.chance.choice(TOPICS), self.region()
        client, epsilon = self.chance.choice("st"), self.chance.choice([1.0, 1.1, 1.5, 2.0, 5.0])
        known = self.subscribers.setdefault((node, client, topic), [])
        if all(region != other for other, _ in known):
            known.append((region, epsilon))
            must = self.watched and self.chance.random() < 0.7
            if must:
                self.must.append((node, client, topic, region))
            self.network.ask(node, request.QpsSubscribeRequest(client, topic, region, epsilon, must))
            self._pause()

    def unsubscribe(self):
        if self.subscribers:
            (node, client, topic), regions = self.chance.choice(sorted(self.subscribers.items(), key=str))
            region, _ = regions.pop(self.chance.randrange(len(regions)))
            if not regions:
                del self.subscribers[node, client, topic]
            self.must = [each for each in self.must if each != (node, client, topic, region)]
            self.network.ask(node, request.QpsUnsubscribeRequest(client, topic, region))
            self._pause()

    def newcomer(self):
        """Add a subscriber, with the latest events that it must receive of publishers that are still
        there."""
        topic, region = self.chance.choice(TOPICS), self.region()
        node, client = self.chance.choice(self.alive), f"after {self.count}"
        self.subscribers[node, client, topic] = [(region, 1.5)]
        self.network.ask(node, request.QpsSubscribeRequest(client, topic, region, 1.5))
        due = Counter()
        for (home, name, of), (number, point) in self.latest.items():
            if of == topic and (home, name, of) in self.publishers and matches(region, point):
                due[node, client, number] += 1
        return client, due

    def something(self):
        does = (self.subscribe, self.unsubscribe, self.advertise, self.unadvertise)
        self.chance.choices(does, (5, 3, 4, 1))[0]()

    def rest(self):
        """Let all messages arrive; where nodes always send, run for a while."""
        if self.deployment.mapping is None:
            self.network.settle()
        else:
            self.network.run(30_000_000)

    def _pause(self):
        if self.settled:
            self.rest()
        else:
            self.network.run(self.chance.choice([0, 100_000, 1_000_000]))

    def publish(self, times=10):
        """Events from those who may, at places where they may; the judge's list of who gets which."""
        due = Counter()
        for _ in range(times if self.publishers else 0):
            (node, client, topic), regions = self.chance.choice(sorted(self.publishers.items(), key=str))
            point = self.point(self.chance.choice(regions))
            if any(
                isinstance(region, Polygon) and _is_on_a_side(region, point)
                for some in self.subscribers.values()
                for region, _ in some
            ):
                continue
            self.count += 1
            self.network.ask(node, request.QpsPublishRequest(client, topic, point, {"n": self.count}))
            self.latest[node, client, topic] = (self.count, point)
            for (home, subscriber, wanted), some in self.subscribers.items():
                if wanted == topic and any(matches(region, point) for region, _ in some):
                    due[home, subscriber, self.count] += 1
        return due

    # --- nodes get tired, and fail ---

    def work(self):
        """Reduce the resources of nodes, of some very much, and notify their brokers."""
        for node in self.alive:
            self.energy[node] *= self.chance.choice([1.0, 1.0, 0.9, 0.5])
            self.network.ask(node, Resources(energy=self.energy[node]))

    def crash(self):
        """A node fails that has neither publishers nor subscribers, and whose loss parts no others."""
        used = {node for node, _, _ in [*self.publishers, *self.subscribers]}
        idle = [node for node in self.alive if node not in used and self._is_spare(node)]
        if idle:
            self.network.kill(self.chance.choice(idle))

    def _is_spare(self, node):
        left = set(self.alive) - {node}
        visited, waiting = set(), [next(iter(left))]
        while waiting:
            here = waiting.pop()
            if here not in visited:
                visited.add(here)
                waiting += [other for other in self.field.near(here) if other in left]
        return visited == left

    def roles(self):
        """The nodes that act for each logical broker."""
        return {role: node for node, host in self.network.hosts.items() for role in host.state.own_roles}

    @property
    def states(self):
        """The state of the broker of each node."""
        found = {node: host.state for node, host in self.network.hosts.items()}
        return {node: getattr(state, "broker", state) for node, state in found.items()}

    # --- what came of it ---

    @property
    def alive(self):
        return [node for node in self.nodes if node not in self.field.down]

    def came(self):
        """The deliveries since the last call: the number of each event to each subscriber."""
        emitted, self.network.delivered[:] = self.network.delivered[:], []
        self.deliveries = [(node, what) for _, node, what in emitted if isinstance(what, QpsNotify)]
        return Counter((node, what.client, what.values["n"]) for node, what in self.deliveries)

    def require_epsilon(self):
        """No event came by a way that is longer than its subscriber's ε allows, from leaf to subscriber."""
        tree = self.deployment.tree
        for node, what in self.deliveries:
            some = self.subscribers[node, what.client, what.topic]
            epsilon = min(e for region, e in some if matches(region, what.location))
            leaf = tree.address(what.topic, tree.leaf(what.location))
            home = self.field.places[node]
            way = [leaf, *what.way[1:], home]
            length = sum(math.dist(a, b) for a, b in pairwise(way))
            assert length <= epsilon * math.dist(leaf, home) * (1 + 1e-9), (way, epsilon)

    def require_coverage(self):
        """Require that nodes know at each point to be covered whether it has a publisher, and that those
        who asked were notified."""
        warned = [
            (node, what) for _, node, what in self.network.delivered if isinstance(what, FailedCoverage)
        ]
        for node, client, topic, region in self.must:
            missing = self.states[node].topics[topic].missing_area
            output = [w.corners for at, w in warned if (at, w.client, w.topic) == (node, client, topic)]
            offered = [each for (_, _, of), some in self.publishers.items() if of == topic for each in some]
            for _ in range(20):
                point = self.point(region)
                if any(_is_on_a_side(s, point) for s in (region, *offered) if isinstance(s, Polygon)):
                    continue
                inside = self.deployment.location(point)
                uncovered = not any(matches(each, point) for each in offered)
                assert areas.contains_point(missing, inside) == uncovered, (node, topic, point)
                assert not uncovered or any(areas.contains_point(area, inside) for area in output), (
                    client,
                    point,
                )

    def require_partition(self):
        """At forwarding brokers the regions of a node share nothing, and are together what it wants."""
        states = self.states
        roles = [role for state in states.values() for role in state.logical.values()]
        for node in self.alive:
            for topic in TOPICS:
                at = self.field.places[node]
                parts = [
                    role.links[at].registered_area()
                    for role in roles
                    if role.topic == topic and at in role.links
                ]
                hosted = states[node].topics.get(topic)
                wanted = hosted.subscribed_area if hosted else areas.NOTHING
                assert math.isclose(sum(map(areas.size, filter(None, parts))), _size(wanted), abs_tol=1e-6)
                assert _size(areas.difference(wanted, areas.union_of(parts))) < 1e-6


def _size(area):
    return areas.size(area) if area else 0.0


def _is_on_a_side(shape, point):
    corners = shape.corners
    return any(
        abs((bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax)) < 1e-6
        for (ax, ay), (bx, by) in zip(corners, (*corners[1:], corners[0]), strict=True)
    )
