"""The cost of a strategy over a history of events, compared with reporting every reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter

from ....model.event import Event
from ....model.instant import Instant
from ....model.relation import Relation, Tie
from .library import STRATEGIES, BuiltAgent, Settings
from .room import AgentRoom
from .talk import AgentReading, AgentReport, reading_of


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """The cost of monitoring a relationship, in messages.

    ``readings`` is the number of readings of all members. Without agents, ``full`` messages would report each
    reading for each relationship. With agents, there are ``messages`` between agents and ``reports`` to
    subscribers.
    """

    readings: int
    full: int
    messages: int
    reports: int

    @property
    def saved(self) -> float:
        """The share of messages that agents save, compared with reporting every reading."""
        return 1 - (self.messages + self.reports) / self.full if self.full else 0.0


def account(
    relation: Relation, using: str, events: Sequence[Event], settings: Settings = ()
) -> tuple[StrategyCost, list[tuple[Tie, AgentReport]]]:
    """Run the agents of every tie on events in time order; return the cost and the reports."""
    by_source: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        by_source.setdefault((event.topic, event.source), []).append(event)
    full_count = messages = 0
    reports: list[tuple[Tie, AgentReport]] = []
    for tie in relation.ties or ():
        agents = STRATEGIES[using](relation, tie, settings)
        room = AgentRoom({built.agent.name: built.agent for built in agents})
        members = dict.fromkeys((member.topic, member.source) for member in tie.members)
        history = sorted(chain.from_iterable(by_source.get(m, ()) for m in members), key=attrgetter("order"))
        for _, readings in instants(agents, relation.accuracy, history):
            reports += [(tie, report) for report in room.process(readings)]
        full_count += len(history)
        messages += room.counted["messages"]
    watched = {(m.topic, m.source) for tie in relation.ties or () for m in tie.members}
    reading_count = sum(len(by_source.get(key, ())) for key in watched)
    return StrategyCost(reading_count, full_count, messages, len(reports)), reports


def instants(
    made: Sequence[BuiltAgent], accuracy: str | None, events: Iterable[Event]
) -> Iterator[tuple[Instant, list[tuple[str, AgentReading]]]]:
    """Yield, for each time in ascending order, the readings of each agent."""
    for time, simultaneous in groupby(events, key=attrgetter("time")):
        pairs = [(built, event) for event in simultaneous for built in made]
        found = [(built.agent.name, reading_of(built.member, accuracy, event)) for built, event in pairs]
        yield time, [(name, reading) for name, reading in found if reading is not None]
