"""Plain traffic: messages that somebody sends to somebody, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...model.instant import Duration, Instant
from ...model.quantity import Metres
from ...sim.chance import stream
from ...sim.frame import BROADCAST, NodeId
from ...sim.host import Routing
from ...sim.node import Node
from ...sim.routing.datagram import Destination
from ...sim.topology import Topology
from .fault import Fault, at
from .nodes import Chosen, Named, Some, chosen, node, several


@dataclass(frozen=True)
class Spot:
    """A point: the node nearest to it, found by geographic routing."""

    x: Metres
    y: Metres


@dataclass(frozen=True, kw_only=True)
class Flow:
    """What some nodes send to others."""

    from_: Chosen
    to: Named | tuple[Named, ...] | Spot
    every: Duration
    arrivals: Literal["periodic", "poisson"] = "periodic"
    phase: Literal["random", "together"] = "random"
    """Whether periodic senders begin at their own moments within a period, or all at once."""
    size: Some = 20
    name: str | None = None
    """For accounts; by default its place in the list."""
    start: Duration = 0
    stop: Duration | None = None

    def __post_init__(self) -> None:
        require_times(self.every, self.start, self.stop)


def require_times(every: Duration, start: Duration, stop: Duration | None) -> None:
    """Something happens again and again, for some time."""
    if every <= 0:
        raise Fault("messages are some time apart, such as '2 s'", ("every",))
    if stop is not None and stop <= start:
        raise Fault("it stops before it starts", ("stop",))


@dataclass(frozen=True)
class Stream:
    """What one node sends: which flow, and to whom."""

    source: NodeId
    place: int
    """Of the flow, in the list."""
    flow: Flow
    destinations: tuple[Destination, ...]

    @property
    def name(self) -> str:
        return self.flow.name or f"flow {self.place}"


def destinations(flow: Flow, placed: Topology) -> tuple[Destination, ...]:
    """Who is sent something."""
    with at("to"):
        match flow.to:
            case Spot(x, y):
                return ((x, y),)
            case tuple():
                return tuple(several(placed, flow.to))
            case "all":
                return (BROADCAST,)
            case name:
                return (node(placed, name),)


def streams(flows: tuple[Flow, ...], placed: Topology, seed: int, most: int) -> list[Stream]:
    """Everything that is sent, in the run with that seed; a message has ``most`` bytes at most."""
    found = []
    for i, flow in enumerate(flows):
        with at("traffic", i):
            if flow.size > most:
                raise Fault(f"a frame has room for {most} bytes of a message", ("size",))
            ends = destinations(flow, placed)
            with at("from"):
                sources = chosen(placed, flow.from_, ends, stream(seed, "traffic", i))
        for source in sources:
            if others := tuple(end for end in ends if end != source):
                found.append(Stream(source, i, flow, others))
    return found


def send(node: Node, router: Routing, some: Stream, number: int, seed: int) -> None:
    """Send again and again, by the node's own clock; it is the node's stream with that number."""
    flow = some.flow
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
        for destination in some.destinations:
            router.send(destination, some.name, None, flow.size, some.name)
        node.at(next_time(node.now), publish)

    node.at(next_time(node.now - 1), publish)
