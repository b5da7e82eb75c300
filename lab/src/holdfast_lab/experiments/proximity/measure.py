"""Compare the reports of agents with the relation machine, and compute the cost of both in hops."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.engine.machine import transitions
from holdfast.kinds.relation.condition import RelationCondition
from holdfast.kinds.relation.plan import machine
from holdfast.model.batch import from_events
from holdfast.model.instant import NEVER
from holdfast.model.qos import TIMELY
from holdfast.model.topic import Attribute, Topic
from holdfast.network.protocols.agents.account import account

from .scene import ProximityScene, relation

USER = Topic("User")
MEET = Topic("Meet", (Attribute("distance", "float", "m"),))
SET_UP = 3
"""The hops to set up a relationship, by the count of the document."""


@dataclass(frozen=True)
class ProximityMeasurement:
    """The counts of one scene; ``originals`` counts a reading once for each relationship."""

    originals: int
    rings: int
    reports: int
    is_exact: bool
    crossing: float
    relationships: int

    @property
    def reduction(self) -> float:
        return 1 - (self.rings + self.reports) / self.originals

    @property
    def ring_share(self) -> float:
        return self.rings / self.originals

    @property
    def report_share(self) -> float:
        return self.reports / self.originals

    def hops(self, scheme: str) -> float:
        """Return hops per original report, by the rules of the document: two hops between brokers, and one
        where the event is processed.
        """
        far, near, reported = self.crossing, 1 - self.crossing, self.report_share
        match scheme:
            case "basic":
                return near + far * 3
            case "first common node":
                return near * reported + far * (1 + reported * 2)
            case _:
                set_up = SET_UP * self.relationships / self.originals
                return near * reported + far * (self.ring_share * 2 + reported * 2) + set_up


def measure(scene: ProximityScene, every: float, using: str = "range_ring") -> ProximityMeasurement:
    """Measure one scene, with a reading every ``every`` seconds."""
    watched = relation(scene.pairs)
    users = {user for pair in scene.pairs for user in pair}
    events = scene.events(users, every)
    cost, reported = account(watched, using, events)
    reports = sorted((r.reading.time, tie.scope, r.status, r.by) for tie, r in reported if r.reading)
    run = machine(RelationCondition("Meet", watched, (USER,), None, TIMELY, MEET))
    _, expected = run.step(run.initial(), {"User": from_events(USER, events)}, NEVER)
    turns = transitions(run.topics, expected)
    oracle = sorted((t.event.time, t.scope, t.status, t.event.source) for t in turns)
    counts = cost.full, cost.messages, cost.reports
    return ProximityMeasurement(*counts, reports == oracle, scene.crossing(), len(scene.pairs))
