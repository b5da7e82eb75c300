"""Compare the reports of a route's agents with the relation machine, and compute the cost of many routes."""

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
"""Hops of a message divided by the diameter, for the document's network with B = 20 and D = 10."""


@dataclass(frozen=True)
class Watched:
    """A monitored route: its sensors, its messages and reports, and whether the reports are correct."""

    route: tuple[str, ...]
    messages: int
    reports: int
    is_exact: bool


def watch(roads: Roads, route: tuple[str, ...]) -> Watched:
    """Monitor one route with its agents and with the relation machine."""
    relation, events = roads.relation(route), roads.events(route)
    cost, reports = account(relation, "hierarchy", events)
    reported = sorted((r.reading.time, r.status) for _, r in reports if r.reading)
    run = machine(RelationCondition("Jam", relation, (LOOP,), None, TIMELY, JAM))
    _, expected = run.step(run.initial(), {"Loop": from_events(LOOP, events)}, NEVER)
    oracle = sorted((t.event.time, t.status) for t in transitions(run.topics, expected))
    return Watched(route, cost.messages, cost.reports, reported == oracle)


@dataclass(frozen=True)
class Environment:
    """Several routes together, with the figures of the document's tables."""

    routes: int
    sensors: int
    observers: int
    reported: int

    @property
    def complexity(self) -> float:
        """The complexity as the document defines it."""
        return self.observers / self.routes * self.observers / self.sensors

    @property
    def fulcrum(self) -> float:
        """Hops per original report, divided by the diameter."""
        return FAR * self.reported / (self.sensors * READINGS)

    @property
    def basic(self) -> float:
        """The document's figure for basic publish/subscribe, in all but two of its rows."""
        return 0.5 * (1 + self.observers / self.sensors)


def environment(pool: list[Watched], routes: int, chance: random.Random) -> Environment:
    """Draw routes from a pool and add their counts; routes do not share messages."""
    chosen = [chance.choice(pool) for _ in range(routes)]
    observers = [sensor for watched in chosen for sensor in watched.route]
    reported = sum(watched.messages + watched.reports for watched in chosen)
    return Environment(routes, len(set(observers)), len(observers), reported)
