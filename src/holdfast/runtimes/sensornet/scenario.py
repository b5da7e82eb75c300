"""A run of the DDS family on a grid of motes, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from ...errors import UsageError
from ...model.event import Value
from ...model.instant import SECOND, Duration, Instant
from ...protocols.dds.deployment import (
    Adaptive,
    Condition,
    Deployment,
    Discovery,
    ModeName,
    Reliable,
    Rotation,
)
from ...protocols.dds.ifs import Schedule, grid_slots
from ...protocols.dds.interest import Interest
from ...protocols.dds.topic import Topic, Topics
from ...sim.energy import Rest
from ...sim.frame import NodeId
from ...sim.mac import Csma, Mac
from ...sim.network import Setup
from ...sim.platforms import MICAZ, Platform
from ...sim.propagation import Propagation, UnitDisk
from ...sim.routing.datagram import RoutingMachine
from ...sim.routing.ondemand import OnDemand
from ...sim.routing.overhear import IdGrid
from ...sim.routing.static import Static
from ...sim.topology import grid

ASLEEP = Rest("sleep", "sleep")
"""The only rest state under which the lifetimes of chapters 6 and 7 make sense (spec §7, 7)."""

RoutingName = Literal["static", "id-grid", "on-demand"]

Readings = Callable[[NodeId, Instant, Random], Mapping[str, Value]]
"""What a publisher senses at a time; chance is its own."""


def uniform(_node: NodeId, _now: Instant, chance: Random) -> Mapping[str, Value]:
    """A number from 0 to 1: above the threshold 1 − p with the chance p."""
    return {"value": chance.random()}


@dataclass(frozen=True, slots=True)
class Subscription:
    """A node that wants something, from a time on."""

    node: NodeId
    interest: Interest
    name: str = "all"
    start: Instant = 0
    stop: Instant | None = None
    percent: float | None = None
    """ARQoS: the share that it asks for, if it does."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A node goes down, or comes up again and remembers nothing."""

    at: Instant
    node: NodeId
    kind: Literal["kill", "restart"] = "kill"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Nodes on a grid, who publishes and who subscribes, by which protocol, for how long."""

    rows: int
    columns: int
    spacing: float
    """Metres."""
    topics: tuple[Topic, ...]
    publishers: Mapping[str, tuple[NodeId, ...]]
    """By the topic's name."""
    subscriptions: tuple[Subscription, ...]
    table: tuple[NodeId, ...]
    """Rendezvous nodes by hash.  [D10]"""

    mode: ModeName | None = "DefTDDS"
    """None: no middleware; publishers send straight to the subscribers' nodes.  [D62]"""
    reliable: Reliable = field(default_factory=Reliable)
    discovery: Discovery = field(default_factory=Discovery)
    rotation: Rotation = field(default_factory=Rotation)
    adaptive: Adaptive = field(default_factory=Adaptive)
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    ifs: bool = False
    """Interference-free scheduling: publishers sample in their slots.  [D32]"""

    ipi: Duration = 5 * SECOND
    """Between two samples of a publisher."""
    phase: Literal["together", "random"] = "together"
    """Whether publishers sample at the same time, as the thesis' did (L846), or each at its own."""
    readings: Readings = uniform
    start: Instant = 15 * SECOND
    """When publishers begin; subscriptions are known by then."""
    duration: Duration = 500 * SECOND
    """For how long they publish."""
    drain: Duration = 30 * SECOND
    """How long the run goes on after that."""
    failures: tuple[Failure, ...] = ()

    propagation: Propagation | None = None
    """None: exactly the eight neighbours hear a node.  [D52]"""
    mac: Mac = field(default_factory=lambda: Csma(acknowledged=False))
    """TinyOS' default: CSMA, no acknowledgements on links."""
    routing: RoutingName = "static"
    platform: Platform = MICAZ
    rest: Rest = ASLEEP
    battery_j: float | None = None
    until_first_death: bool = False
    sampling: Duration = 0
    """How long the processor works for each of four samplings a second; 0 for none.  [D62]"""
    seed: int = 1

    def __post_init__(self) -> None:
        nodes = self.rows * self.columns
        named = [*self.table, *(subscription.node for subscription in self.subscriptions)]
        named += [node for some in self.publishers.values() for node in some]
        named += [failure.node for failure in self.failures]
        for node in named:
            if not 0 <= node < nodes:
                raise UsageError(f"there is no node {node}; nodes are 0 to {nodes - 1}")
        if self.ipi <= 0 or self.duration <= 0 or min(self.start, self.drain) < 0:
            raise UsageError("Scenario: ipi and duration are above 0, start and drain not negative")
        if self.mode is None and self.conditions:
            raise UsageError("Scenario: without middleware no node runs a condition")
        self.deployment()

    @property
    def end(self) -> Instant:
        return self.start + self.duration + self.drain

    def deployment(self) -> Deployment:
        """What is compiled into the nodes."""
        topics = Topics(self.topics)
        places = grid(self.rows, self.columns, self.spacing).positions
        return Deployment(
            topics=topics,
            table=tuple(map(str, self.table)),
            publishers={topics.named(n).id: tuple(map(str, who)) for n, who in self.publishers.items()},
            mode=self.mode or "DefTDDS",
            reliable=self.reliable,
            discovery=self.discovery,
            rotation=self.rotation,
            adaptive=self.adaptive,
            schedule=self.schedule(),
            conditions=self.conditions,
            positions={str(node): place for node, place in enumerate(places)},
        )

    def schedule(self) -> Schedule | None:
        return Schedule(grid_slots(self.rows, self.columns)) if self.ifs else None

    def setup(self) -> Setup:
        """The network."""
        return Setup(
            positions=grid(self.rows, self.columns, self.spacing).positions,
            propagation=self.propagation or UnitDisk(1.5 * self.spacing),
            mac=self.mac,
            platform=self.platform,
            rest=self.rest,
            battery_j=self.battery_j,
            seed=self.seed,
        )

    def router(self) -> RoutingMachine:
        """The routing protocol."""
        match self.routing:
            case "static":
                return Static(self.rows, self.columns)
            case "id-grid":
                return IdGrid(self.rows, self.columns)
            case "on-demand":
                return OnDemand()
