"""A sum over many publishers compared with a bound: observers below, a mediator above. [B60–B68]

Data flow up, control flows down. An observer computes a term from each reading (``scale * x`` or ``scale /
x``). It sends nothing while the term stays within a range of the last reported value. The mediator ensures
that all ranges together do not exceed the room, which is the distance of the sum from the nearest bound. The
part of the room that is not assigned is its cache.

An observer that leaves its range receives a new range from the cache if the cache is large enough. Otherwise
the mediator asks all observers, computes the sum, and divides the room again in proportion to their
volatility.

As printed in the thesis (``printed``), four fifths of the needed range are treated as sufficient. Then the
ranges together exceed the room, and the sum may pass the bound without a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec

from ....model.relation import Relation, Term
from .mediated import MediatedAgent, MediatorAgent
from .talk import AgentOutputs, AgentReading, AgentReport, SendToAgent, latest, room_to_change

RESERVE = 0.25
"""The share of the room that stays in the cache when the room is divided. [B66]"""

ENOUGH_AS_PRINTED = 0.8
"""As printed in the thesis: the share of the needed range that is treated as sufficient."""


Moves = Mapping[str, float]
"""The volatility of each source, as a relative rate of change."""
NO_VOLATILITY: Moves = MappingProxyType({})


class TermValue(msgspec.Struct, frozen=True, tag="Value"):
    """An observer's current term, sent when it left its range or the mediator asked for it."""

    value: float
    reading: AgentReading
    round: int = 0


class TermRequest(msgspec.Struct, frozen=True, tag="Ask"):
    """Asks an observer for its current term."""

    round: int


class RangeReset(msgspec.Struct, frozen=True, tag="Reset"):
    """``resetOriginRangeValue``: sets the range around an origin in which an observer sends nothing. [B68]"""

    origin: float
    range: float


@dataclass
class TermObserver(MediatedAgent):
    """An agent that observes readings, transforms them to a term, and filters the changes. [B61]"""

    name: str
    term: Term
    mediator: str
    current: AgentReading | None = None
    value: float = math.nan
    origin: float = math.nan
    range: float = 0.0
    is_waiting: bool = False
    """Whether it has reported a term and waits for its range."""
    last_sent: AgentReading | None = None
    accepts: ClassVar[tuple[type, ...]] = (TermRequest, RangeReset)

    def on_reading(self, reading: AgentReading) -> AgentOutputs:
        self.current, self.value = reading, self.term.of(reading.at[0])
        if self.is_waiting or abs(self.value - self.origin) < self.range:
            return []
        return self._send_value(0)

    def _send_value(self, round: int) -> AgentOutputs:
        if self.current is None:
            return []
        self.is_waiting, self.last_sent = True, self.current
        return [SendToAgent(self.mediator, TermValue(self.value, self.current, round))]

    def on_message(self, _sender: str, message: TermRequest | RangeReset) -> AgentOutputs:
        if isinstance(message, TermRequest):
            return self._send_value(message.round)
        self.origin, self.range, self.is_waiting = message.origin, message.range, False
        if self.current == self.last_sent or abs(self.value - self.origin) < self.range:
            return []
        return self._send_value(0)


@dataclass
class SumMediator(MediatorAgent):
    """The mediator that adds up the terms and divides the room among the observers, its members.

    ``volatility`` is the relative rate of change of each observer. Without it, all are equal. [B62, B66]
    """

    volatility: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    """The source of each observer's reading, where it differs from the observer's name."""
    ranges: dict[str, float] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    """The observers that have reported a term and wait for their range."""
    accepts: ClassVar[tuple[type, ...]] = (TermValue,)
    question = TermRequest

    @property
    def total(self) -> float:
        """The sum of the last reported terms of all observers."""
        return self.sum_of(self.members)

    def sum_of(self, observers: Iterable[str]) -> float:
        """Return the sum of the last reported terms, in the order of the observers."""
        total = 0.0
        for name in observers:
            total += self.last_values[name].value
        return total

    def _room(self) -> float:
        return room_to_change(self.total, self.relation, self.bit)

    def on_message(self, sender: str, message: TermValue) -> AgentOutputs:
        self.last_values[sender] = message
        self.ranges[sender] = 0.0
        self.waiting.add(sender)
        if self.awaited:
            if message.round == self.round:
                self.awaited.discard(sender)
            return [] if self.awaited else self._evaluate()
        if message.round or not self.knows_all:
            return []
        if self.waiting == {sender} and (given := self._from_cache(sender)) is not None:
            self.ranges[sender] = given
            self.waiting.clear()
            return [SendToAgent(sender, RangeReset(message.value, given))]
        return self._ask_all(sender)

    def _from_cache(self, sender: str) -> float | None:
        """Return the range that one observer can receive from the cache; ``None`` if the cache is too
        small.
        """
        room = self._room()
        cache = room - math.fsum(self.ranges.values())
        need = room * (1 - RESERVE) * self._share(sender, self.members)
        if need <= 0 or cache <= 0:
            return None
        if self.printed:
            return need if cache >= ENOUGH_AS_PRINTED * need else None
        return min(cache, need) * (1 - 1e-9) if cache >= need / 4 else None

    def _share(self, name: str, observers: Iterable[str]) -> float:
        """Return the share of the observer ``name`` among ``observers``."""
        whole = math.fsum(self.volatility.get(other, 1.0) for other in observers)
        return self.volatility.get(name, 1.0) / whole

    def _evaluate(self) -> AgentOutputs:
        wants = self._change_report()
        self.waiting.clear()
        self.ranges = self._ranges()
        values = {name: self.last_values[name].value for name in self.members}
        return wants + [SendToAgent(name, RangeReset(v, self.ranges[name])) for name, v in values.items()]

    def _change_report(self) -> AgentOutputs:
        """Return the report if the condition starts or ends with the current sum."""
        total = self.total
        if total != total or not self.change_bit(total):
            return []
        return [AgentReport(self.status, *self._latest(), total)]

    def _latest(self) -> tuple[str, AgentReading]:
        name, reading = latest({name: self.last_values[name].reading for name in self.members})
        return self.sources.get(name, name), reading

    def _ranges(self) -> dict[str, float]:
        """Return the range of each observer in which it sends nothing."""
        room = self._room() * (1 - RESERVE)
        return {name: room * self._share(name, self.members) for name in self.members}


def sum_agents(
    relation: Relation, terms: tuple[Term, ...], moves: Moves = NO_VOLATILITY, *, printed: bool = False
) -> list[TermObserver | SumMediator]:
    """Build one mediator, beside the first source, and an observer for each term.

    ``moves`` is the volatility by source.
    """
    below = observers(terms)
    names = tuple(observer.name for observer in below)
    return [*below, SumMediator(below[0].mediator, names, relation, printed, **by_observer(below, moves))]


def observers(terms: tuple[Term, ...]) -> list[TermObserver]:
    """Build an observer beside the source of each term. Several terms of one source are numbered."""
    top = f"{terms[0].member.source}@"
    found: dict[str, TermObserver] = {}
    for i, term in enumerate(terms):
        name = term.member.source if term.member.source not in found else f"{term.member.source}#{i}"
        found[name] = TermObserver(name, term, top)
    return list(found.values())


def by_observer(below: list[TermObserver], moves: Moves) -> dict[str, Any]:
    """Return the parameters of a mediator that describe its observers: their sources and volatility."""
    sources = {observer.name: observer.term.member.source for observer in below}
    volatility = {name: moves[source] for name, source in sources.items() if source in moves}
    return {"sources": sources, "volatility": volatility}
