"""Quad-PubSub itself: its brokers, on a field without radios."""

from __future__ import annotations

from statistics import fmean

from holdfast.model.space import Point, Rectangle
from holdfast.network.motes.field import HOP, FieldNetwork
from holdfast.network.protocols.qps import request
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import Compliance, QpsDeployment
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.sim.frame import NodeId

from .outcome import QpsOutcome
from .scene import LEVELS, QpsScene

SPOT = 1e-3
"""The width of the region of a publisher that publishes events about its own position."""


def spot(place: Point, side: float) -> Rectangle:
    """Return the region of a publisher."""
    x, y = (min(axis, side - SPOT) for axis in place)
    return Rectangle((x, y), (x + SPOT, y + SPOT))


class Quad:
    """Brokers on all nodes."""

    def __init__(self, scene: QpsScene, epsilon: float = 1.5, compliance: Compliance = "best-effort") -> None:
        self._scene, self._epsilon = scene, epsilon
        places, side = scene.field.places, scene.setting.side
        tree = ScopeTree((0.0, 0.0), side, LEVELS)
        deployment = QpsDeployment(tree=tree, topics=(scene.topic,), compliance=compliance)
        self.network = FieldNetwork(scene.field, lambda node: QpsBroker(deployment, places[node]))
        for node in scene.publishers:
            region = spot(places[node], side)
            self.network.ask(node, request.QpsAdvertiseRequest("sensor", scene.topic, region))
        self.network.settle()
        self._subscribed = 0

    def subscribe(self, node: NodeId) -> None:
        topic, region = self._scene.topic, self._scene.setting.region
        asked = request.QpsSubscribeRequest("user", topic, region, self._epsilon)
        self.network.ask(node, asked)
        self.network.settle()
        self._subscribed += 1

    def outcome(self) -> QpsOutcome:
        network, scene = self.network, self._scene
        loads = [host.state.links for host in network.hosts.values()]
        before = network.hops["publication"]
        network.delivered.clear()
        for node in scene.events:
            at = network.hosts[node]
            at.ask(request.QpsPublishRequest("sensor", scene.topic, scene.field.places[node], {}))
            network.settle()
        due = len(scene.events) * self._subscribed
        assert len(network.delivered) == due, (len(network.delivered), due)
        return QpsOutcome(
            sum(loads),
            max(loads),
            (network.hops["publication"] - before) / due,
            fmean((when - what.time) / HOP for when, _, what in network.delivered),
            network.hops["subscribe"],
        )
