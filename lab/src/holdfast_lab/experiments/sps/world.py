"""An application on a field of nodes without radios: sensors, a user, and placed components."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.manager import SIGNATURE, STATUS, TIME, Components
from holdfast.kinds.component.detector.smc import Smc
from holdfast.model.instant import SECOND, Duration
from holdfast.model.query import Index, QueryRange
from holdfast.model.space import Point, Rectangle
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps import mapping
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.physical import PhysicalNode
from holdfast.network.protocols.qps.request import (
    QpsAdvertiseRequest,
    QpsNotify,
    QpsPublishRequest,
    QpsSubscribeRequest,
)
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.protocols.sps.node import InsertComponent, SpsNode
from holdfast.network.protocols.sps.placement import PlacementGround, TopicPublisher, choices
from holdfast.network.sim.frame import NodeId

from ..qps.quad import spot
from ..qps.scene import REACH, QpsScene, QpsSetting
from .decompose import decompose

SETTING = QpsSetting(128.0, 100, 1, (32.0, 32.0), (80.0, 80.0))
SPACE = Rectangle((0.0, 0.0), (128.0, 128.0))
EVERY, MINUTES = 5, 6

FIRE = """
topic Temperature (value float)
state Fire
  A = Temperature all location within [(32, 32), (80, 80)]
  enter A.value > 50
  exit A.value < 30
"""
CONGESTION = """
topic InductiveLoop (value float)
topic CarSpeed (value float)
state High A = avg InductiveLoop over 30 s each location enter A.value > 2.5 exit A.value < 2.5
state Slow A = avg CarSpeed over 60 s each location enter A.value < 7 exit A.value > 15
state TrafficCongestion
  A = High each location
  B = Slow each location
  enter A.valid && B.valid && A.status == ingress && B.status == ingress
  exit B.valid && B.status == egress
"""
RANGES: Mapping[str, tuple[float, float]] = {
    "Temperature": (20.0, 70.0),
    "InductiveLoop": (1.0, 4.0),
    "CarSpeed": (3.0, 22.0),
}

Hosts = dict[str, tuple[NodeId, bool]]
"""The node of each component or part, and whether it receives events of its own node only."""


class App(NamedTuple):
    """An application: its components, measured topics, and the topic that the user subscribes to."""

    smcs: Mapping[str, Smc]
    measured: tuple[str, ...]
    wanted: str


def application(text: str, wanted: str) -> App:
    """Compile an application from its definition."""
    checked = check(parse(text))
    smcs = {each.name: smc(each) for each in checked.of(ComponentCondition)}
    return App(smcs, tuple(t.name for t in checked.topics if t.name not in smcs), wanted)


class SpsLayout:
    """The positions of sensors and user in one layout."""

    def __init__(self, seed: int) -> None:
        self.scene = QpsScene(SETTING, seed)
        self.places = self.scene.field.places
        self.user = self.scene.subscribers[0]
        self.sensors = [node for node in self.scene.publishers if node != self.user][:12]

    def nearest(self, at: Point) -> NodeId:
        return self.scene.field.path(self.user, tuple(at))[-1]


def centrally(app: App, layout: SpsLayout) -> tuple[App, Hosts]:
    """Place all components at the user's node."""
    return app, dict.fromkeys(app.smcs, (layout.user, False))


def by_hand(app: App, layout: SpsLayout) -> tuple[App, Hosts]:
    """Place every component undivided, at a node in the middle of the sensors that is not a sensor."""
    some = [layout.places[node] for node in layout.sensors]
    middle = [fmean(axis) for axis in zip(*some, strict=True)]
    idle = set(range(SETTING.nodes)) - {layout.user, *layout.sensors}
    host = min(idle, key=lambda node: math.dist(layout.places[node], middle))
    return app, dict.fromkeys(app.smcs, (host, False))


def beside(layout: SpsLayout, host: NodeId) -> NodeId:
    """Return the node nearest to a host that is neither a sensor nor the user."""
    idle = set(range(SETTING.nodes)) - {layout.user, host, *layout.sensors}
    return min(idle, key=lambda node: math.dist(layout.places[node], layout.places[host]))


def by_network(app: App, layout: SpsLayout) -> tuple[App, Hosts]:
    """Place components as `choices` says: divided where that is cheapest, otherwise near their inputs."""
    sensors = layout.sensors
    publishing = {topic: [_publisher(layout, topic, node) for node in sensors] for topic in app.measured}
    smcs: dict[str, Smc] = {}
    hosts: Hosts = {}
    for name, whole in app.smcs.items():
        inputs = [p for topic in whole.topics for p in publishing[topic]]
        parameters = (parameter for _, parameter in whole.inputs["A"].query.parameters())
        joined = all(getattr(parameter, "how", None) != "separate" for parameter in parameters)
        ground = PlacementGround(
            tree=ScopeTree((0.0, 0.0), 128.0, 3),
            reach=REACH / 2,
            subscribers=(layout.places[layout.user],),
            must_join=joined,
        )
        best = choices(name, inputs, ground)[0]
        if best.name.startswith("cut by advertisements"):
            places = [part.at for part in best.parts]
            parts = decompose(whole, "A", "location", [_about(at) for at in places])
            for i, part in enumerate(parts):
                key = f"{part.topic} {part.part}".rstrip()
                is_join = joined and i == len(parts) - 1
                smcs[key] = part
                at = best.join if is_join else places[i % len(places)]
                hosts[key] = (layout.nearest(at), not is_join)
        else:
            smcs[name], hosts[name] = whole, (layout.nearest(best.parts[0].at), False)
        first = inputs[: len(sensors)]
        publishing[whole.topic] = [replace(p, topic=whole.topic, a_day=p.a_day / 100) for p in first]
    return App(smcs, app.measured, app.wanted), hosts


def _publisher(layout: SpsLayout, topic: str, node: NodeId) -> TopicPublisher:
    at = layout.places[node]
    return TopicPublisher(str(node), topic, at, spot(at, SETTING.side), 86400 / EVERY)


def _about(at: Point) -> QueryRange:
    return QueryRange(Index(tuple(c - 1e-3 for c in at)), Index(tuple(c + 1e-3 for c in at)))


class SpsOutcome(NamedTuple):
    """The notifications of the user, their cost in hops, their mean delay in seconds, and duplicates."""

    notified: list[tuple[str, int, str]]
    hops: int
    delay: float
    repeated: int


class Failing(NamedTuple):
    """The failure of hosts halfway, and the precautions against it."""

    kills: Sequence[NodeId] = ()
    beats: Duration = 10 * SECOND
    """The period of heartbeats; replicas start after three missing ones."""
    twins: Sequence[NodeId] = ()
    """Nodes that run every component too, from the start (active replicas)."""
    copies: bool = False
    """Whether brokers copy changed tables to nodes nearby every ten seconds."""


UNHARMED = Failing()


def run(app: App, hosts: Hosts, layout: SpsLayout, seed: int, failing: Failing = UNHARMED) -> SpsOutcome:
    """Run an application for some minutes."""
    field = QpsScene(SETTING, layout.scene.seed).field
    topics = tuple(dict.fromkeys([*app.measured, *(each.topic for each in app.smcs.values())]))
    deployment = QpsDeployment(
        tree=ScopeTree((0.0, 0.0), 128.0, 3),
        topics=topics,
        keeps_latest=True,
        renewal=20 * SECOND,
        mapping=mapping.RoleMapping(check=10 * SECOND) if failing.copies else None,
    )
    broker = PhysicalNode if failing.copies else QpsBroker

    def node(number: NodeId) -> SpsNode:
        at = field.places[number]
        return SpsNode(broker(deployment, at), Components(app.smcs, SPACE, at), at, SPACE, failing.beats)

    network = FieldNetwork(field, node)
    for topic in app.measured:
        for sensor in layout.sensors:
            region = spot(field.places[sensor], SETTING.side)
            network.ask(sensor, QpsAdvertiseRequest(f"s{sensor}", topic, region))
    network.ask(layout.user, QpsSubscribeRequest("user", app.wanted, SPACE, 2.0))
    for name, (host, alone) in hosts.items():
        for each in (host, *failing.twins):
            network.ask(each, InsertComponent(name, alone))
    network.run(30 * SECOND)
    before, notified = network.hops["publication"], len(network.delivered)
    for step in range(MINUTES * 60 // EVERY):
        if step == MINUTES * 30 // EVERY:
            for host in failing.kills:
                network.kill(host)
        for topic, sensor, value in _readings(app.measured, layout.sensors, seed, step):
            place = field.places[sensor]
            network.ask(sensor, QpsPublishRequest(f"s{sensor}", topic, place, {"value": value}))
        network.run(EVERY * SECOND)
    network.run(60 * SECOND)
    received = [(when, what) for when, _, what in network.delivered[notified:] if isinstance(what, QpsNotify)]
    values = [what.values for _, what in received]
    counts = Counter((str(v[STATUS]), int(str(v[TIME])), str(v[SIGNATURE])) for v in values)
    delays = [(when - int(str(what.values[TIME]))) / SECOND for when, what in received]
    delay, repeated = fmean(delays) if delays else 0.0, counts.total() - len(counts)
    return SpsOutcome(sorted(counts), network.hops["publication"] - before, delay, repeated)


def _readings(
    topics: Sequence[str], sensors: Sequence[NodeId], seed: int, step: int
) -> Iterable[tuple[str, NodeId, float]]:
    """Yield the readings of a step: all values rise and fall roughly together."""
    for topic in topics:
        low, high = RANGES[topic]
        phase = random.Random(f"{seed} {step // 8}").random()
        for sensor in sensors:
            own = random.Random(f"{seed} {topic} {sensor} {step}").uniform(-0.1, 0.1)
            share = 1 - phase if topic == "CarSpeed" else phase
            yield topic, sensor, low + (high - low) * min(max(share + own, 0.0), 1.0)
