"""GHTD: a geographic hash table with a rendezvous node for the topic. [GHT; SPS §4.4.2]

Advertisements and subscriptions meet at the node nearest to the hash of the topic. Events go to that node,
and from there to each subscriber.
"""

from __future__ import annotations

from statistics import fmean

from holdfast.network.protocols.qps.tree import shares
from holdfast.network.sim.frame import NodeId

from .outcome import QpsOutcome
from .scene import QpsScene


class Ghtd:
    """The hash table with one topic."""

    def __init__(self, scene: QpsScene) -> None:
        self._scene = scene
        side = scene.setting.side
        x, y = shares(scene.topic)
        self._address = (x * side, y * side)
        self._meeting = scene.field.path(0, self._address)[-1]
        self._subscribers: list[NodeId] = []
        self._subscribing = 0

    def _hops(self, start: NodeId, to: NodeId) -> int:
        return len(self._scene.field.path(start, self._scene.field.places[to])) - 1

    def subscribe(self, node: NodeId) -> None:
        """Send a subscription to the rendezvous node; the first one is also sent to all publishers."""
        self._subscribing += len(self._scene.field.path(node, self._address)) - 1
        if not self._subscribers:
            self._subscribing += sum(self._hops(self._meeting, each) for each in self._scene.publishers)
        self._subscribers.append(node)

    def outcome(self) -> QpsOutcome:
        """Evaluate the events of the scene."""
        scene, many = self._scene, len(self._subscribers)
        publishers = len(scene.publishers)
        there = [self._hops(node, self._meeting) for node in scene.events]
        back = [self._hops(self._meeting, node) for node in self._subscribers]
        sent = sum(there) + len(there) * sum(back)
        own = (self._meeting in scene.publishers) + (self._meeting in self._subscribers)
        messages, hops = sent / (len(there) * many), fmean(there) + fmean(back)
        return QpsOutcome(publishers + 2 * many, many + own, messages, hops, self._subscribing)
