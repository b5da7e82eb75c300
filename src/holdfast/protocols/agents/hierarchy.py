"""A sum of what many publishers say, compared with a number: observers below, a mediator above.  [B60–B68]

Data go up, control comes down.  An observer makes a term of a reading (``scale * x`` or ``scale / x``) and is
silent while that stays within a range of what it reported last.  The mediator sees to it that all ranges
together are no more than the room: how far the sum is from where it matters.  What it has not given away is
its cache.  An observer that leaves its range is given what is in the cache, if that is a fair part; else the
mediator asks all observers, knows the sum, and divides the room anew, by how much each of them moves.

As printed (``printed``), four fifths of what an observer needs are taken for all of it: then the ranges
together are more than the room, and the sum may come where it matters with everybody silent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

import msgspec

from ...model.relation import Relation, Term
from .mediated import Above, Below
from .talk import Reading, Report, Say, Wants, latest, room, tests

KEPT = 0.25
"""The part of the room that stays in the cache when all is divided anew.  [B66]"""

ENOUGH = 0.8
"""As printed: so much of what is needed is taken for all of it."""


NONE: Mapping[str, float] = MappingProxyType({})


class Value(msgspec.Struct, frozen=True, tag=True):
    """My term is this now: it left its range, or was asked for."""

    value: float
    reading: Reading
    round: int = 0


class Ask(msgspec.Struct, frozen=True, tag=True):
    """What is your term now?"""

    round: int


class Reset(msgspec.Struct, frozen=True, tag=True):
    """``resetOriginRangeValue``: be silent within a range of an origin.  [B68]"""

    origin: float
    range: float


@dataclass
class Observer(Below):
    """Observes, transforms and filters.  [B61]"""

    name: str
    term: Term
    mediator: str
    mine: Reading | None = None
    value: float = math.nan
    origin: float = math.nan
    range: float = 0.0
    has_told: bool = False
    """Whether it waits for its range."""
    told: Reading | None = None
    hears: ClassVar[tuple[type, ...]] = (Ask, Reset)

    def read(self, reading: Reading) -> Wants:
        self.mine, self.value = reading, self.term.of(reading.at[0])
        if self.has_told or abs(self.value - self.origin) < self.range:
            return []
        return self._tell(0)

    def _tell(self, round: int) -> Wants:
        if self.mine is None:
            return []
        self.has_told, self.told = True, self.mine
        return [Say(self.mediator, Value(self.value, self.mine, round))]

    def hear(self, _sender: str, message: Ask | Reset) -> Wants:
        if isinstance(message, Ask):
            return self._tell(message.round)
        self.origin, self.range, self.has_told = message.origin, message.range, False
        if self.mine == self.told or abs(self.value - self.origin) < self.range:
            return []
        return self._tell(0)


@dataclass
class Mediator(Above):
    """Adds up what observers say, and divides the room among them.  ``volatility`` says how much each of
    them moves; without it all alike.  [B62, B66]"""

    name: str
    observers: tuple[str, ...]
    relation: Relation
    volatility: Mapping[str, float] = field(default_factory=dict)
    printed: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    """Whose reading an observer has, where that is not its name."""
    known: dict[str, Value] = field(default_factory=dict)
    ranges: dict[str, float] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    """Those who have told something and wait for their range."""
    round: int = 0
    bit: int | None = 0
    turns: int = 0
    hears: ClassVar[tuple[type, ...]] = (Value,)

    @property
    def total(self) -> float:
        """The sum of what was reported last, in the order of the observers."""
        sum = 0.0
        for name in self.observers:
            sum += self.known[name].value
        return sum

    def _room(self) -> float:
        return room(self.total, self.relation, self.bit)

    def hear(self, sender: str, message: Value) -> Wants:
        self.known[sender] = message
        self.ranges[sender] = 0.0
        self.waiting.add(sender)
        if self.asked:
            if message.round == self.round:
                self.asked.discard(sender)
            return [] if self.asked else self._divide()
        if message.round or len(self.known) < len(self.observers):
            return []
        if self.waiting == {sender} and (given := self._from_cache(sender)) is not None:
            self.ranges[sender] = given
            self.waiting.clear()
            return [Say(sender, Reset(message.value, given))]
        return self._ask(sender)

    def _ask(self, known: str | None = None) -> Wants:
        """What is everybody's term now?  Of one it is known."""
        self.asked = {name for name in self.observers if name != known}
        self.round += 1
        asking: Wants = [Say(name, Ask(self.round)) for name in self.observers if name in self.asked]
        return asking or self._divide()

    def _from_cache(self, sender: str) -> float | None:
        """What one observer can be given without a word to the others: only what is there."""
        room = self._room()
        cache = room - math.fsum(self.ranges.values())
        need = room * (1 - KEPT) * self._part(sender)
        if need <= 0 or cache <= 0:
            return None
        if self.printed:
            return need if cache >= ENOUGH * need else None
        return min(cache, need) * (1 - 1e-9) if cache >= need / 4 else None

    def _part(self, name: str, among: tuple[str, ...] | None = None) -> float:
        """The part that one of some observers gets, by default of all."""
        whole = math.fsum(self.volatility.get(one, 1.0) for one in among or self.observers)
        return self.volatility.get(name, 1.0) / whole

    def _divide(self) -> Wants:
        """Everything is known: does it hold, and how much may each move?"""
        wants = self._turned()
        self.waiting.clear()
        self.ranges = self._given()
        return wants + [
            Say(name, Reset(self.known[name].value, self.ranges[name])) for name in self.observers
        ]

    def _turned(self) -> Wants:
        total = self.total
        for bit, test in tests(self.relation, self.bit):
            if total == total and test.within.holds(total):
                self.bit, self.turns = bit, self.turns + 1
                return [Report("ingress" if self.bit else "egress", *self._latest(), total)]
        return []

    def _latest(self) -> tuple[str, Reading]:
        name, reading = latest({name: self.known[name].reading for name in self.observers})
        return self.sources.get(name, name), reading

    def _given(self) -> dict[str, float]:
        room = self._room() * (1 - KEPT)
        return {name: room * self._part(name) for name in self.observers}

    def reset(self, relation: Relation) -> Wants:
        self.relation = relation
        return [] if len(self.known) < len(self.observers) else self._ask()


def hierarchy(
    relation: Relation, terms: tuple[Term, ...], moves: Mapping[str, float] = NONE, *, printed: bool = False
) -> list[Observer | Mediator]:
    """One mediator, beside the first source, and an observer for each term; ``moves`` is how volatile sources
    are."""
    below = observers(terms)
    names, whose = tuple(one.name for one in below), sources(below)
    volatility = {name: moves[source] for name, source in whose.items() if source in moves}
    top = below[0].mediator
    return [*below, Mediator(top, names, relation, volatility, printed=printed, sources=whose)]


def observers(terms: tuple[Term, ...]) -> list[Observer]:
    """An observer beside the source of each term; a source that has several, has them numbered."""
    top = f"{terms[0].member.source}@"
    found: list[Observer] = []
    for i, term in enumerate(terms):
        source = term.member.source
        is_new = all(one.term.member.source != source for one in found)
        found.append(Observer(source if is_new else f"{source}#{i}", term, top))
    return found


def sources(below: list[Observer]) -> dict[str, str]:
    """Whose reading each observer has."""
    return {one.name: one.term.member.source for one in below}
