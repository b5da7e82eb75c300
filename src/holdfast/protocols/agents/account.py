"""What a strategy would have said and cost over a history, beside reporting every reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ...model.event import Event
from ...model.instant import Instant
from ...model.relation import Member, Relation, Tie
from . import talk
from .library import STRATEGIES, Made, Settings
from .room import Room
from .talk import Reading, Report


@dataclass(frozen=True, slots=True)
class Cost:
    """``readings`` were made of the members, ``full`` messages report each to whoever watches each tie;
    agents need ``messages`` between them and ``reports`` to subscribers."""

    readings: int
    full: int
    messages: int
    reports: int

    @property
    def saved(self) -> float:
        """The part of the messages that is not needed."""
        return 1 - (self.messages + self.reports) / self.full if self.full else 0.0


def account(
    relation: Relation, using: str, events: Sequence[Event], settings: Settings = ()
) -> tuple[Cost, list[tuple[Tie, Report]]]:
    """What agents of every tie say of events in order of time, and what that costs."""
    by_source: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        by_source.setdefault((event.topic, event.source), []).append(event)
    full = messages = 0
    told: list[tuple[Tie, Report]] = []
    for tie in relation.ties or ():
        made = STRATEGIES[using](relation, tie, settings)
        room = Room({one.agent.name: one.agent for one in made})
        mine = [
            e for m in dict.fromkeys((m.topic, m.source) for m in tie.members) for e in by_source.get(m, ())
        ]
        for _, readings in instants(made, relation.accuracy, sorted(mine, key=lambda event: event.order)):
            told += [(tie, report) for report in room.instant(readings)]
        full += len(mine)
        messages += room.counted["messages"]
    watched = {(m.topic, m.source) for tie in relation.ties or () for m in tie.members}
    made_of = sum(len(by_source.get(key, ())) for key in watched)
    return Cost(made_of, full, messages, len(told)), told


def instants(
    made: Sequence[Made], accuracy: str | None, events: Iterable[Event]
) -> Iterator[tuple[Instant, list[tuple[str, Reading]]]]:
    """What each agent reads of events in order of time, instant by instant."""
    for time, some in groupby(events, key=lambda event: event.time):
        readings = [
            (one.agent.name, reading)
            for event in some
            for one in made
            if (reading := reading_of(one.beside, accuracy, event)) is not None
        ]
        yield time, readings


def reading_of(member: Member, accuracy: str | None, event: Event) -> Reading | None:
    """What an agent beside a member makes of an event, if it concerns it."""
    if (event.topic, event.source) != (member.topic, member.source):
        return None
    stamp = (event.time, event.sequence)
    return talk.reading_of(member, accuracy, stamp, event.attributes, event.location)
