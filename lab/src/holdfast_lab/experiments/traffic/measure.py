"""What the agents of a route say, what the relation machine says, and what many routes cost together."""

from __future__ import annotations

import random
from dataclasses import dataclass

from holdfast.engine.machine import transitions
from holdfast.kinds.relation.condition import RelationCondition
from holdfast.kinds.relation.plan import machine
from holdfast.model.batch import from_events
from holdfast.model.instant import NEVER
from holdfast.model.qos import TIMELY
from holdfast.model.topic import Attribute, Topic
from holdfast.network.protocols.agents.account import account

from .scene import READINGS, Roads

LOOP = Topic("Loop", (Attribute("seconds", "float", "s"),))
JAM = Topic("Jam", (Attribute("value", "float", "s"),))
FAR = 0.95
"""Hops of a message, as a part of the diameter: the document's network has B = 20 and D = 10."""


@dataclass(frozen=True)
class Watched:
    """A route: its sensors, what its agents say and report, and whether that is right."""

    route: tuple[str, ...]
    messages: int
    reports: int
    is_exact: bool


def watch(roads: Roads, route: tuple[str, ...]) -> Watched:
    """One route, by its agents and by the machine."""
    relation, events = roads.relation(route), roads.events(route)
    cost, reports = account(relation, "hierarchy", events)
    reported = sorted((r.reading.time, r.status) for _, r in reports if r.reading)
    run = machine(RelationCondition("Jam", relation, (LOOP,), None, TIMELY, JAM))
    _, expected = run.step(run.initial(), {"Loop": from_events(LOOP, events)}, NEVER)
    oracle = sorted((t.event.time, t.status) for t in transitions(run.topics, expected))
    return Watched(route, cost.messages, cost.reports, reported == oracle)


@dataclass(frozen=True)
class Environment:
    """Routes together; the figures are those of the document's tables."""

    routes: int
    sensors: int
    observers: int
    reported: int

    @property
    def complexity(self) -> float:
        return self.observers / self.routes * self.observers / self.sensors

    @property
    def fulcrum(self) -> float:
        """Hops for an original report, by the diameter."""
        return FAR * self.reported / (self.sensors * READINGS)

    @property
    def basic(self) -> float:
        """The document's, as all but two of its rows have it."""
        return 0.5 * (1 + self.observers / self.sensors)


def environment(pool: list[Watched], routes: int, chance: random.Random) -> Environment:
    """So many routes of a pool: each is watched for itself, so what they say adds up."""
    chosen = [chance.choice(pool) for _ in range(routes)]
    return Environment(
        routes,
        len({sensor for one in chosen for sensor in one.route}),
        sum(len(one.route) for one in chosen),
        sum(one.messages + one.reports for one in chosen),
    )
