"""Operators at work in this process: those of an earlier stage first, and what they say goes on to those
that hear them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ...compilers.operator import Operator, until, with_time
from ...machines.machine import Batches, Told
from ...model.batch import concatenate
from ...model.event import Event, Notification, Transition
from ...model.instant import BEGINNING, NEVER, Instant


@dataclass
class Running:
    """An operator at work."""

    operator: Operator
    state: Any
    awaited: list[Running] = field(default_factory=list)

    def now(self, reached: Mapping[str, Instant], most: Instant = NEVER) -> Instant:
        """How far it looks: as far as the latest event of any of the topics that tell it the time, unless one
        whom it hears has still to speak of an earlier moment."""
        at = min(most, until(reached, self.operator.clock, BEGINNING))
        if not self.awaited:
            return at
        return self.operator.looks(at, (one.operator.unsaid(one.state) for one in self.awaited))

    def lately(self, reached: Mapping[str, Instant]) -> Instant:
        """How far it looks; as far as time has come at all, where it knows none of its topics yet."""
        at = self.now(reached)
        return at if at > BEGINNING else max(reached.values(), default=BEGINNING)

    def take(self, event: Event, now: Callable[[Running], Instant]) -> list[Transition]:
        """Take one event, and let time come so far as it says with that."""
        machine = self.operator.machine
        self.state, said = machine.react(self.state, event)
        if machine.is_timed:
            self.state, more = machine.advance(self.state, now(self))
            said += more
        return said

    def step(self, batches: Batches, now: Instant) -> Told:
        """Take a batch of each topic, with which time has come so far."""
        self.state, told = self.operator.machine.step(self.state, batches, now)
        return told

    def advance(self, now: Instant) -> list[Transition]:
        """Let time come so far."""
        self.state, said = self.operator.machine.advance(self.state, now)
        return said

    def last(self, name: str) -> Iterator[Notification]:
        """The last thing said to a subscription, of each scope."""
        for i, names in enumerate(self.operator.names):
            if name in names:
                for said in self.operator.addressed(self.operator.machine.last(self.state, i)):
                    yield said._replace(subscription=name)


def acquainted(running: list[Running]) -> list[Running]:
    """The same, each with those for whose words it waits."""
    for one in running:
        one.awaited = [other for other in running if other.operator.is_awaited(one.operator)]
    return running


Heard = dict[str, pa.RecordBatch]
"""What can be heard: readings, and what conditions have said of them, by topic."""


def gathered(heard: Heard, more: Mapping[str, pa.RecordBatch]) -> None:
    """Add what an operator has said to what can be heard."""
    for topic, batch in more.items():
        heard[topic] = concatenate([heard[topic], batch]) if topic in heard else batch


Spoken = tuple[Operator, Told]
"""Who has said what."""


def passed_on(
    running: Iterable[Running], heard: Heard, now: Callable[[Running], Instant]
) -> Iterator[Notification]:
    """Let operators, those of an earlier stage first, take what can be heard, and hear one another; of these
    whoever waits for time is told how far it has come, though it hears nothing."""
    return notifications(spoken(running, heard, now))


def spoken(running: Iterable[Running], heard: Heard, now: Callable[[Running], Instant]) -> Iterator[Spoken]:
    """The same, as they say it."""
    for one in running:
        operator = one.operator
        mine = {topic: batch for topic, batch in heard.items() if topic in operator.topics}
        if mine or (operator.heard and operator.due(one.state) is not None):
            yield _stepped(one, mine, now(one), heard)


def finished(running: Iterable[Running], reached: Mapping[str, Instant]) -> Iterator[Notification]:
    """Let time end for all of them with the last reading, whether it mattered or not."""
    return notifications(last_words(running, reached))


def last_words(running: Iterable[Running], reached: Mapping[str, Instant]) -> Iterator[Spoken]:
    """The same, as they say it."""
    heard: Heard = {}
    for one in running:
        mine = {topic: batch for topic, batch in heard.items() if topic in one.operator.topics}
        if last := with_time(one.operator, mine, until(reached, one.operator.clock, BEGINNING)):
            yield _stepped(one, last, NEVER, heard)


def _stepped(one: Running, batches: Batches, now: Instant, heard: Heard) -> Spoken:
    told = one.step(batches, now)
    gathered(heard, one.operator.retold(told))
    return one.operator, told


def notifications(said: Iterable[Spoken]) -> Iterator[Notification]:
    """What operators have said, for whom it concerns."""
    for operator, told in said:
        yield from operator.notifications(told)
