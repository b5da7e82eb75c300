"""Runs of the physical layer with batteries that empty and nodes that fail, on a field without radios.

A transmission uses one unit of a battery. Events are published one after the other in a region, for
subscribers anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from holdfast.model.instant import SECOND, Duration
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps import mapping, request
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.mapping import Resources, RoleMapping
from holdfast.network.protocols.qps.physical import PhysicalNode
from holdfast.network.protocols.qps.request import QpsNotify
from holdfast.network.protocols.qps.tree import QuadScope, ScopeTree
from holdfast.network.sim.frame import NodeId

from .quad import advertisement
from .scene import QpsScene, QpsSetting

SETTING = QpsSetting(128.0, 100, 10, (32.0, 32.0), (64.0, 64.0))
LEVELS = 3
EVERY = 5 * SECOND
BATTERY = 1500
"""The capacity of a battery, in transmissions."""
UP, DOWN = 360.0, 60.0
"""The mean times in seconds for which nodes are up and down, after the six-minute cycles of the literature.
"""
HANDING = ("here", "vacant", "offer", "tables", "taken")
"""The messages of the physical layer."""

POSITION = RoleMapping(check=30 * SECOND)


def by_energy(check: Duration = 30 * SECOND, fall: float = 0.8) -> RoleMapping:
    """Return a mapping that assigns roles by remaining energy."""
    return RoleMapping(suit=mapping.by_resources(32.0), compare=mapping.fallen_below(fall), check=check)


class QpsWorld:
    """A running layout."""

    def __init__(self, seed: int, policy: RoleMapping) -> None:
        self.scene = scene = QpsScene(SETTING, seed)
        self.chance = random.Random(seed)
        deployment = QpsDeployment(
            tree=ScopeTree((0.0, 0.0), SETTING.side, LEVELS),
            topics=(scene.topic,),
            renewal=60 * SECOND,
            mapping=policy,
        )
        places = scene.field.places
        make = partial(PhysicalNode, deployment)
        self.network = network = FieldNetwork(scene.field, lambda node: make(places[node]), seed=seed)
        for node in scene.publishers:
            network.ask(node, advertisement(scene.topic, places[node], SETTING.side))
        for node in scene.subscribers:
            network.ask(node, request.QpsSubscribeRequest("user", scene.topic, SETTING.region, 1.5))
        network.run(60 * SECOND)
        network.transmitted.clear()
        self.started = network.now
        self.published = 0

    def events(self) -> Iterator[None]:
        """Publish events one after the other and advance time; yield after each."""
        network, scene = self.network, self.scene
        while True:
            node = self.chance.choice(scene.publishers)
            network.ask(node, request.QpsPublishRequest("sensor", scene.topic, scene.field.places[node], {}))
            self.published += 1
            network.run(EVERY)
            yield

    def tire(self) -> bool:
        """Report remaining energy to the brokers; return whether a battery is empty."""
        for node in self.network.hosts:
            left = 1 - self.network.transmitted[node] / BATTERY
            self.network.ask(node, Resources(energy=left))
        return max(self.network.transmitted.values()) >= BATTERY

    @property
    def deliveries(self) -> int:
        """The number of events delivered to subscribers."""
        return sum(isinstance(what, QpsNotify) for _, _, what in self.network.delivered)

    def roles(self) -> dict[QuadScope, NodeId]:
        """Return the node of each role."""
        return {role[1]: node for node, host in self.network.hosts.items() for role in host.state.own_roles}

    def minutes(self) -> float:
        """Return the minutes since the start."""
        return (self.network.now - self.started) / (60 * SECOND)


class Life(NamedTuple):
    """A run until the first battery is empty."""

    minutes: float
    delivered: float
    """The share of expected deliveries that arrived."""
    handed: int
    """The number of hand-overs of roles."""


def life(seed: int, policy: RoleMapping) -> Life:
    """Run a layout until a battery is empty."""
    world = QpsWorld(seed, policy)
    before = world.network.messages["taken"]
    for _ in world.events():
        if world.tire():
            break
    world.network.run(30 * SECOND)
    due = world.published * len(world.scene.subscribers)
    return Life(world.minutes(), world.deliveries / due, world.network.messages["taken"] - before)


def failing(seed: int, minutes: float) -> tuple[float, int]:
    """Run with failing nodes. Return the share of events that arrive, and the number of failures of nodes
    with roles.
    """
    world = QpsWorld(seed, POSITION)
    used = {*world.scene.publishers, *world.scene.subscribers}
    network, chance = world.network, world.chance
    turns = {node: chance.expovariate(1 / UP) for node in network.hosts if node not in used}
    down: set[NodeId] = set()
    failed = 0
    for _ in world.events():
        now = (network.now - world.started) / SECOND
        for node in [node for node, due in turns.items() if due <= now]:
            change, mean = (network.start, UP) if node in down else (network.kill, DOWN)
            down ^= {node}
            failed += node in down and node in world.roles().values()
            change(node)
            turns[node] = now + chance.expovariate(1 / mean)
        if world.minutes() >= minutes:
            break
    network.run(30 * SECOND)
    return world.deliveries / (world.published * len(world.scene.subscribers)), failed


def handing(seed: int, check: Duration, minutes: float) -> float:
    """Return the transmissions of the physical layer per minute, with this interval between checks."""
    world = QpsWorld(seed, by_energy(check))
    before = sum(world.network.hops[kind] for kind in HANDING)
    for _ in world.events():
        if world.tire() or world.minutes() >= minutes:
            break
    return (sum(world.network.hops[kind] for kind in HANDING) - before) / world.minutes()


def snapshots(seed: int, moments: int = 3) -> list[tuple[float, list[int], dict[QuadScope, NodeId]]]:
    """Return minutes, transmissions of each node and nodes of roles, at some times of a run."""
    world = QpsWorld(seed, by_energy())
    found: list[tuple[float, list[int], dict[QuadScope, NodeId]]] = []
    total = life(seed, by_energy()).minutes
    for _ in world.events():
        empty = world.tire()
        if empty or world.minutes() >= total * len(found) / max(moments - 1, 1):
            sent = [world.network.transmitted[node] for node in range(SETTING.nodes)]
            found.append((world.minutes(), sent, world.roles()))
        if empty or len(found) == moments:
            break
    return found
