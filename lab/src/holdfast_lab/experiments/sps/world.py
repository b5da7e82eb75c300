"""An application on a field of nodes without radios: sensors, a user, and components on nodes between
them."""

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
TREE = ScopeTree((0.0, 0.0), 128.0, 3)
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
"""For each component or part: its node, and whether it consumes only events of its own node."""


class App(NamedTuple):
    """An application: its components, the measured topics, and the component that the user subscribes to."""

    smcs: Mapping[str, Smc]
    measured: tuple[str, ...]
    wanted: str


def application(text: str, wanted: str) -> App:
    checked = check(parse(text))
    smcs = {each.name: smc(each) for each in checked.of(ComponentCondition)}
    return App(smcs, tuple(t.name for t in checked.topics if t.name not in smcs), wanted)


class SpsLayout:
    """The positions of all roles in one layout."""

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
    """Place every component whole, at a node in the middle of the sensors that is none of them."""
    some = [layout.places[node] for node in layout.sensors]
    middle = [fmean(axis) for axis in zip(*some, strict=True)]
    idle = set(range(SETTING.nodes)) - {layout.user, *layout.sensors}
    host = min(idle, key=lambda node: math.dist(layout.places[node], middle))
    return app, dict.fromkeys(app.smcs, (host, False))


def beside(layout: SpsLayout, host: NodeId) -> NodeId:
    """Return the node next to a host that is neither a sensor nor the user."""
    idle = set(range(SETTING.nodes)) - {layout.user, host, *layout.sensors}
    return min(idle, key=lambda node: math.dist(layout.places[node], layout.places[host]))


def by_network(app: App, layout: SpsLayout) -> tuple[App, Hosts]:
    """Place each component by `choices`: divided where that is cheapest, else near its inputs."""
    sensors = layout.sensors
    publishing = {topic: [_publisher(layout, topic, node) for node in sensors] for topic in app.measured}
    smcs: dict[str, Smc] = {}
    hosts: Hosts = {}
    for name, whole in app.smcs.items():
        inputs = [p for topic in whole.topics for p in publishing[topic]]
        parameters = whole.inputs["A"].query.parameters()
        joined = all(getattr(parameter, "how", None) != "separate" for _, parameter in parameters)
        users = (layout.places[layout.user],)
        ground = PlacementGround(tree=TREE, reach=REACH / 2, subscribers=users, must_join=joined)
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
        some = inputs[: len(sensors)]
        publishing[whole.topic] = [replace(p, topic=whole.topic, a_day=p.a_day / 100) for p in some]
    return App(smcs, app.measured, app.wanted), hosts


def _publisher(layout: SpsLayout, topic: str, node: NodeId) -> TopicPublisher:
    at = layout.places[node]
    return TopicPublisher(str(node), topic, at, spot(at, SETTING.side), 86400 / EVERY)


def _about(at: Point) -> QueryRange:
    return QueryRange(Index(tuple(c - 1e-3 for c in at)), Index(tuple(c + 1e-3 for c in at)))


class SpsOutcome(NamedTuple):
    """The user's notifications, the number of hops, the delay, and the repeated notifications."""

    notified: list[tuple[str, int, str]]
    hops: int
    delay: float
    repeated: int


class Failing(NamedTuple):
    """The failures of hosts halfway through a run, and the preparation for them."""

    kills: Sequence[NodeId] = ()
    beats: Duration = 10 * SECOND
    """The period of hosts' signs of life; after three missing ones replicas start."""
    twins: Sequence[NodeId] = ()
    """Nodes that also run every component from the start: active replicas."""
    copies: bool = False
    """Whether brokers copy their tables to the nodes near by, every ten seconds if they have changed."""


UNHARMED = Failing()


def run(app: App, hosts: Hosts, layout: SpsLayout, seed: int, failing: Failing = UNHARMED) -> SpsOutcome:
    """Run an application while sensors measure for several minutes."""
    field = QpsScene(SETTING, layout.scene.seed).field
    topics = tuple(dict.fromkeys([*app.measured, *(each.topic for each in app.smcs.values())]))
    deployment = QpsDeployment(
        tree=TREE,
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
            where = field.places[sensor]
            network.ask(sensor, QpsPublishRequest(f"s{sensor}", topic, where, {"value": value}))
        network.run(EVERY * SECOND)
    network.run(60 * SECOND)
    events = [(when, what) for when, _, what in network.delivered[notified:] if isinstance(what, QpsNotify)]
    received = [(when, what.values, int(str(what.values[TIME]))) for when, what in events]
    counts = Counter((str(values[STATUS]), time, str(values[SIGNATURE])) for _, values, time in received)
    delays = [(when - time) / SECOND for when, _, time in received]
    hops, delay = network.hops["publication"] - before, fmean(delays) if delays else 0.0
    return SpsOutcome(sorted(counts), hops, delay, counts.total() - len(counts))


def _readings(
    topics: Sequence[str], sensors: Sequence[NodeId], seed: int, step: int
) -> Iterable[tuple[str, NodeId, float]]:
    """Yield readings that rise and fall nearly together."""
    for topic in topics:
        low, high = RANGES[topic]
        phase = random.Random(f"{seed} {step // 8}").random()
        for sensor in sensors:
            own = random.Random(f"{seed} {topic} {sensor} {step}").uniform(-0.1, 0.1)
            share = 1 - phase if topic == "CarSpeed" else phase
            yield topic, sensor, low + (high - low) * min(max(share + own, 0.0), 1.0)
