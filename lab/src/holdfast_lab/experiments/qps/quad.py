"""Quad-PubSub: its brokers on a field without radios."""

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
"""The width of the region of a publisher, which publishes events at its own position."""


def spot(place: Point, side: float) -> Rectangle:
    """Return the region of a publisher."""
    x, y = (min(axis, side - SPOT) for axis in place)
    return Rectangle((x, y), (x + SPOT, y + SPOT))


def advertisement(topic: str, place: Point, side: float) -> request.QpsAdvertiseRequest:
    """Return the advertisement of a publisher at a position."""
    return request.QpsAdvertiseRequest("sensor", topic, spot(place, side))


class Quad:
    """Brokers on all nodes of a scene."""

    def __init__(self, scene: QpsScene, epsilon: float = 1.5, compliance: Compliance = "best-effort") -> None:
        self._scene, self._epsilon = scene, epsilon
        places, side = scene.field.places, scene.setting.side
        tree = ScopeTree((0.0, 0.0), side, LEVELS)
        deployment = QpsDeployment(tree=tree, topics=(scene.topic,), compliance=compliance)
        self.network = FieldNetwork(scene.field, lambda node: QpsBroker(deployment, places[node]))
        for node in scene.publishers:
            self.network.ask(node, advertisement(scene.topic, places[node], side))
        self.network.settle()
        self._subscribed = 0

    def subscribe(self, node: NodeId) -> None:
        """Subscribe a node, and wait until the subscription is resolved."""
        scene, wanted = self._scene, self._scene.setting.region
        asked = request.QpsSubscribeRequest("user", scene.topic, wanted, self._epsilon)
        self.network.ask(node, asked)
        self.network.settle()
        self._subscribed += 1

    def outcome(self) -> QpsOutcome:
        """Publish the events of the scene, and return the measures."""
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
        messages = (network.hops["publication"] - before) / due
        hops = fmean((when - what.time) / HOP for when, _, what in network.delivered)
        return QpsOutcome(sum(loads), max(loads), messages, hops, network.hops["subscribe"])
