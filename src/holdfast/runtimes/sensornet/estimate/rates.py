"""How often what happens, by a history: readings that turn a condition, that matter to it, that do not.

By the laws, what decides on a reading's messages is what it does to the conditions that are wanted: nothing
(then a filter drops it where it is), something for all that a filter can know alone, or a start or an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ....model.batch import from_events
from ....model.event import Event
from ....model.instant import DAY, Duration
from ..account import Wish
from ..conditions import Definition, Watch, why_not_alone

A_FEW = 10
"""Readings of a source from which on it is told what a day is like."""

Sort = tuple[tuple[bool, bool], ...]
"""For each subscription whether a reading starts or ends it, and whether it satisfies a predicate of it."""


class Kind(NamedTuple):
    """Readings that are alike for every protocol."""

    source: str
    topic: str
    sort: Sort


@dataclass(frozen=True)
class Example:
    """A reading that stands for its kind."""

    event: Event
    kind: Kind


@dataclass(frozen=True)
class Rates:
    """What a history holds."""

    span: Duration
    events: Sequence[Event]
    kinds: Sequence[Kind]
    """Of each of them."""
    subscriptions: tuple[str, ...]
    alone: bool
    """Whether each source has states of its own."""

    @cached_property
    def counts(self) -> Mapping[Kind, int]:
        return Counter(self.kinds)

    @cached_property
    def examples(self) -> Sequence[Example]:
        """In order of time: of each kind two, and what turns a condition before them."""
        return _examples(self.events, self.kinds, self.alone)

    def of(self, subscriptions: tuple[str, ...]) -> Rates:
        """As if nobody wanted anything but these."""
        if subscriptions == self.subscriptions:
            return self
        places = [self.subscriptions.index(name) for name in subscriptions]
        kinds = [kind._replace(sort=tuple(kind.sort[i] for i in places)) for kind in self.kinds]
        return Rates(self.span, self.events, kinds, subscriptions, self.alone)

    def a_day(self, kind: Kind) -> float:
        return self.counts[kind] * DAY / self.span

    def turns(self, subscription: str) -> int:
        """How often a subscription starts or ends in the history."""
        place = self.subscriptions.index(subscription)
        return sum(count for kind, count in self.counts.items() if kind.sort[place][0])

    def period(self) -> float:
        """Seconds between two readings of a source, on average."""
        sources = {(kind.source, kind.topic) for kind in self.counts}
        return self.span / 1e6 * len(sources) / max(1, sum(self.counts.values()))


def rates(events: Sequence[Event], definition: Definition, wishes: Iterable[Wish]) -> Rates:
    """The kinds of readings in a history, in order, and how many there are of each."""
    names = tuple(dict.fromkeys(wish.name for wish in wishes if not wish.plain))
    filters = definition.filters
    alone = all(name in filters and why_not_alone(filters[name]) is None for name in names)
    return Rates(span(events), events, _kinds(events, definition, names), names, alone)


def most_of_one(events: Sequence[Event]) -> int:
    """How many readings the most talkative source has."""
    return max(Counter((event.source, event.topic) for event in events).values(), default=0)


def span(events: Sequence[Event]) -> Duration:
    """From the first reading to the last, and as long again as one of the most talkative source lasts."""
    times = [event.time for event in events]
    most = most_of_one(events)
    whole = max(times) - min(times)
    return max(1, whole + whole // max(1, most - 1))


def _kinds(events: Sequence[Event], definition: Definition, names: Sequence[str]) -> list[Kind]:
    served = definition.operators()
    turns = {name: _turning(Watch(served[name], name), events) for name in names}
    matters = {name: _mattering(definition, name, events) for name in names}
    return [
        Kind(event.source, event.topic, tuple((i in turns[name], i in matters[name]) for name in names))
        for i, event in enumerate(events)
    ]


def _turning(watch: Watch, events: Sequence[Event]) -> set[int]:
    """The readings at which something starts or ends."""
    return {i for i, event in enumerate(events) if watch.react(event)}


def _mattering(definition: Definition, name: str, events: Sequence[Event]) -> set[int]:
    """The readings that satisfy a predicate; of what is no filter, all."""
    operator = definition.operators()[name]
    if name not in definition.filters:
        return set(range(len(events)))
    topic = definition.filters[name].topic
    mine = [i for i, event in enumerate(events) if event.topic == topic.name]
    if not mine:
        return set()
    kept = operator.machine.matters(topic.name, from_events(topic, [events[i] for i in mine]))
    return {i for i, keeps in zip(mine, kept.tolist(), strict=True) if keeps}


def _examples(events: Sequence[Event], kinds: Sequence[Kind], alone: bool) -> list[Example]:
    """The first two readings of each kind, and all before that turn something: so states are as they were.
    If each source has states of its own, those of the same source are enough.  Two, since whoever speaks for
    the first time may not know yet what is wanted."""
    first: dict[Kind, list[int]] = {}
    for i, kind in enumerate(kinds):
        if len(some := first.setdefault(kind, [])) < 2:
            some.append(i)
    last: dict[str, int] = {}
    for kind, some in first.items():
        about = kind.source if alone else ""
        last[about] = max(some[-1], last.get(about, 0))
    return [
        Example(event, kind)
        for i, (event, kind) in enumerate(zip(events, kinds, strict=True))
        if i in first[kind] or (i < last[kind.source if alone else ""] and any(t for t, _ in kind.sort))
    ]
