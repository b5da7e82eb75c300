"""Plain traffic: messages that nodes send periodically, without publish/subscribe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...model.instant import Duration, Instant
from ...model.quantity import Metres
from ..sim.chance import stream
from ..sim.frame import BROADCAST, NodeId
from ..sim.host import RoutingService
from ..sim.node import Node
from ..sim.routing.datagram import Destination
from ..sim.topology import Topology
from .fault import ScenarioError, at
from .nodes import AtLeastOne, NodeChoice, NodeName, find_node, find_nodes, select_nodes


@dataclass(frozen=True)
class PointTarget:
    """A point as destination. Messages go to the node nearest to it, by geographic routing."""

    x: Metres
    y: Metres


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A stream of messages from each sender to its destinations, with their period in µs and their size in
    bytes.
    """

    from_: NodeChoice
    to: NodeName | tuple[NodeName, ...] | PointTarget
    every: Duration
    arrivals: Literal["periodic", "poisson"] = "periodic"
    phase: Literal["random", "together"] = "random"
    """Whether periodic senders start at random times within a period, or all together."""
    size: AtLeastOne = 20
    name: str | None = None
    """The name of the flow in accounts; ``None`` for its index in the list."""
    start: Duration = 0
    stop: Duration | None = None

    def __post_init__(self) -> None:
        require_times(self.every, self.start, self.stop)


def require_times(every: Duration, start: Duration, stop: Duration | None) -> None:
    """Raise a `ScenarioError` unless the period is positive and the stop is after the start."""
    if every <= 0:
        raise ScenarioError("messages are some time apart, such as '2 s'", ("every",))
    if stop is not None and stop <= start:
        raise ScenarioError("it stops before it starts", ("stop",))


@dataclass(frozen=True)
class TrafficStream:
    """The messages of a flow that one node sends."""

    source: NodeId
    place: int
    """The index of the flow in the list of flows."""
    flow: Flow
    destinations: tuple[Destination, ...]

    @property
    def name(self) -> str:
        return self.flow.name or f"flow {self.place}"


def destinations(flow: Flow, topology: Topology) -> tuple[Destination, ...]:
    """Return the destinations of a flow; raise a `ScenarioError` for an unknown node."""
    with at("to"):
        match flow.to:
            case PointTarget(x, y):
                return ((x, y),)
            case tuple():
                return tuple(find_nodes(topology, flow.to))
            case "all":
                return (BROADCAST,)
            case name:
                return (find_node(topology, name),)


def streams(flows: tuple[Flow, ...], topology: Topology, seed: int, most: int) -> list[TrafficStream]:
    """Return all streams of the run with a seed. A message may have at most ``most`` bytes."""
    found = []
    for i, flow in enumerate(flows):
        with at("traffic", i):
            if flow.size > most:
                raise ScenarioError(f"a frame has room for {most} bytes of a message", ("size",))
            ends = destinations(flow, topology)
            with at("from"):
                sources = select_nodes(topology, flow.from_, ends, stream(seed, "traffic", i))
        for source in sources:
            if others := tuple(end for end in ends if end != source):
                found.append(TrafficStream(source, i, flow, others))
    return found


def send(node: Node, router: RoutingService, outgoing: TrafficStream, number: int, seed: int) -> None:
    """Send messages periodically, by the node's own clock. ``number`` is the index of the stream on
    its node.
    """
    flow = outgoing.flow
    period, start = flow.every, flow.start
    draw = stream(seed, "publisher", node.id, number, node.boots)
    phase = stream(seed, "phase", node.id, number).randrange(period) if flow.phase == "random" else 0

    def next_time(now: Instant) -> Instant:
        if flow.arrivals == "poisson":
            return max(now, start) + max(1, round(draw.expovariate(1 / period)))
        first = start + phase
        return first if now < first else first + ((now - first) // period + 1) * period

    def publish(_: Any) -> None:
        if flow.stop is not None and node.now >= flow.stop:
            return
        for destination in outgoing.destinations:
            router.send(destination, outgoing.name, None, flow.size, outgoing.name)
        node.at(next_time(node.now), publish)

    node.at(next_time(node.now - 1), publish)
