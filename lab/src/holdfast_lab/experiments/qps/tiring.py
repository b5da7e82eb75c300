"""Nodes with batteries, and nodes that fail: Quad-PubSub's physical layer on a field without radios.

A transmission takes one unit of a node's battery. Events come one after the other from publishers in a region
and go to subscribers anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
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

from .quad import spot
from .scene import QpsScene, QpsSetting

SETTING = QpsSetting(128.0, 100, 10, (32.0, 32.0), (64.0, 64.0))
LEVELS = 3
EVERY = 5 * SECOND
BATTERY = 1500
"""The battery of a node, in transmissions."""
UP, DOWN = 360.0, 60.0
"""Mean times in seconds: up for the six minutes of the literature's cycle, then down for a minute."""
HANDING = ("here", "vacant", "offer", "tables", "taken")
"""The messages of the physical layer alone."""

POSITION = RoleMapping(check=30 * SECOND)


def by_energy(check: Duration = 30 * SECOND, fall: float = 0.8) -> RoleMapping:
    """Return the policy by which roles go to nodes with much energy left."""
    return RoleMapping(suit=mapping.by_resources(32.0), compare=mapping.fallen_below(fall), check=check)


class QpsWorld:
    """One layout with running brokers."""

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
        nodes = {node: PhysicalNode(deployment, place) for node, place in enumerate(places)}
        self.network = network = FieldNetwork(scene.field, nodes.__getitem__, seed=seed)
        for node in scene.publishers:
            region = spot(places[node], SETTING.side)
            network.ask(node, request.QpsAdvertiseRequest("sensor", scene.topic, region))
        for node in scene.subscribers:
            network.ask(node, request.QpsSubscribeRequest("user", scene.topic, SETTING.region, 1.5))
        network.run(60 * SECOND)
        network.transmitted.clear()
        self.started = network.now
        self.published = 0

    def events(self) -> Iterator[None]:
        """Publish an event and advance time, repeatedly."""
        network, scene = self.network, self.scene
        while True:
            node = self.chance.choice(scene.publishers)
            network.ask(node, request.QpsPublishRequest("sensor", scene.topic, scene.field.places[node], {}))
            self.published += 1
            network.run(EVERY)
            yield

    def tire(self) -> bool:
        """Report the remaining energy to all brokers; return whether a battery is empty."""
        for node in self.network.hosts:
            left = 1 - self.network.transmitted[node] / BATTERY
            self.network.ask(node, Resources(energy=left))
        return max(self.network.transmitted.values()) >= BATTERY

    @property
    def deliveries(self) -> int:
        return sum(isinstance(what, QpsNotify) for _, _, what in self.network.delivered)

    def roles(self) -> dict[QuadScope, NodeId]:
        return {role[1]: node for node, host in self.network.hosts.items() for role in host.state.own_roles}

    def minutes(self) -> float:
        return (self.network.now - self.started) / (60 * SECOND)


class Life(NamedTuple):
    """The measurements until the first battery was empty."""

    minutes: float
    delivered: float
    """The share of the due deliveries."""
    handed: int
    """How often a role was handed over."""


def life(seed: int, policy: RoleMapping) -> Life:
    """Run a layout until a node is empty."""
    world = QpsWorld(seed, policy)
    before = world.network.messages["taken"]
    for _ in world.events():
        if world.tire():
            break
    world.network.run(30 * SECOND)
    due = world.published * len(world.scene.subscribers)
    return Life(world.minutes(), world.deliveries / due, world.network.messages["taken"] - before)


def failing(seed: int, minutes: float) -> tuple[float, int]:
    """Return the share of events that is delivered while nodes without clients fail and recover.

    Returns also how often a node with the role of a broker failed.
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
    """Return the transmissions of the physical layer per minute, with this period of checks."""
    world = QpsWorld(seed, by_energy(check))
    before = sum(world.network.hops[kind] for kind in HANDING)
    for _ in world.events():
        if world.tire() or world.minutes() >= minutes:
            break
    return (sum(world.network.hops[kind] for kind in HANDING) - before) / world.minutes()


def snapshots(seed: int, moments: int = 3) -> list[tuple[float, list[int], dict[QuadScope, NodeId]]]:
    """Return the holders of roles and the transmissions of each node at several times of a layout's life."""
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
