"""Routing machines without radios: a graph on which frames take a millisecond, or get lost.

The host is independent of ``sim.routing.router`` and as simple as possible. A unicast frame is
acknowledged if it arrives.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.model.instant import MILLISECOND, Instant
from holdfast.model.protocol import Asked, CancelTimer, Deliver, Fired, SetTimer, Started
from holdfast.network.sim.frame import ACKNOWLEDGED, BROADCAST, NO_ACK, NodeId
from holdfast.network.sim.routing.datagram import (
    Datagram,
    Discard,
    FrameReceived,
    Relay,
    RoutingMachine,
    TransmissionDone,
    Transmit,
)

Graph = Mapping[NodeId, Iterable[NodeId]]


class Ether:
    """Machines on a graph, and everything that came of them."""

    def __init__(
        self,
        machine: RoutingMachine,
        graph: Graph,
        loses: Callable[[NodeId, NodeId], bool] = lambda a, b: False,
    ) -> None:
        self.machine, self.graph, self.loses = machine, {n: set(graph[n]) for n in graph}, loses
        self.now: Instant = 0
        self.states = {node: machine.initial(node) for node in graph}
        self.down: set[NodeId] = set()
        self.delivered: list[tuple[NodeId, Datagram]] = []
        self.discarded: list[tuple[NodeId, Datagram, str]] = []
        self.transmitted: list[tuple[NodeId, Transmit]] = []
        self.watch: Callable[[], None] = lambda: None
        self._heap: list[tuple[Instant, int, Callable[[], None]]] = []
        self._count = 0
        self._timers: dict[tuple[NodeId, str], int] = {}
        for node in graph:
            self._tell(node, Started(0, node))

    def at(self, time: Instant, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, action))

    def send(self, at: Instant, origin: NodeId, destination: Any, number: int = 1) -> Datagram:
        datagram = Datagram(origin, number, destination, "test", "message", 20)
        self.at(at, lambda: self._tell(origin, Asked(self.now, datagram)))
        return datagram

    def run(self, until: Instant) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, action = heapq.heappop(self._heap)
            action()
            self.watch()
        self.now = until

    def cut(self, a: NodeId, b: NodeId) -> None:
        self.graph[a].discard(b)
        self.graph[b].discard(a)

    def mend(self, a: NodeId, b: NodeId) -> None:
        self.graph[a].add(b)
        self.graph[b].add(a)

    def _tell(self, node: NodeId, given: Any) -> None:
        if node in self.down:
            return
        self.states[node], effects = self.machine.handle(self.states[node], given)
        for effect in effects:
            self._do(node, effect)

    def _do(self, node: NodeId, effect: Any) -> None:
        match effect:
            case Transmit():
                self.transmitted.append((node, effect))
                self.at(self.now + MILLISECOND, lambda: self._air(node, effect))
            case SetTimer(timer, at):
                self._count += 1
                mine = self._timers[node, timer] = self._count
                self.at(max(at, self.now), lambda: self._fire(node, timer, mine))
            case CancelTimer(timer):
                self._timers.pop((node, timer), None)
            case Deliver(datagram):
                self.delivered.append((node, datagram))
            case Relay(datagram):
                self._tell(node, Asked(self.now, datagram))
            case Discard(datagram, why):
                self.discarded.append((node, datagram, why))

    def _fire(self, node: NodeId, timer: str, mine: int) -> None:
        if self._timers.get((node, timer)) == mine:
            del self._timers[node, timer]
            self._tell(node, Fired(self.now, timer))

    def _air(self, node: NodeId, effect: Transmit) -> None:
        if node in self.down:
            return
        came = False
        for other in sorted(self.graph[node]):
            if other in self.down or self.loses(node, other):
                continue
            ours = effect.to in (other, BROADCAST)
            came |= effect.to == other
            self._tell(other, FrameReceived(self.now, node, effect.what, ours))
        if effect.token:
            self._tell(node, TransmissionDone(self.now, effect.token, ACKNOWLEDGED if came else NO_ACK))


def grid_graph(rows: int, columns: int) -> dict[NodeId, set[NodeId]]:
    """A grid in which all eight neighbours have links."""
    return {
        r * columns + c: {
            rr * columns + cc
            for rr in range(max(r - 1, 0), min(r + 2, rows))
            for cc in range(max(c - 1, 0), min(c + 2, columns))
        }
        - {r * columns + c}
        for r in range(rows)
        for c in range(columns)
    }


def distances(graph: Graph, start: NodeId) -> dict[NodeId, int]:
    """The hops from a node to all reachable ones by a plain breadth-first search."""
    found, edge, far = {start: 0}, [start], 0
    while edge:
        far += 1
        edge = [n for n in sorted({m for node in edge for m in graph[node]}) if n not in found]
        found.update(dict.fromkeys(edge, far))
    return found
