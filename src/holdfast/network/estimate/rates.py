"""How often each kind of reading comes, from a history: those that change a condition, relevant ones, others.

The messages for a reading depend on its effect on the subscribed conditions: none (a filter drops it at its
source), a satisfied predicate (all that a filter can see alone), or a start or an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...model.batch import from_events
from ...model.event import Event
from ...model.instant import DAY, Duration
from ..motes.account import NodeSubscription
from ..motes.conditions import Evaluator, ScenarioDefinition, why_not_alone

A_FEW = 10
"""The least number of readings of a source for an estimate of a day."""

Sort = tuple[tuple[bool, bool], ...]
"""For each subscription: whether a reading starts or ends it, and whether it satisfies one of its
predicates.
"""


class ReadingKind(NamedTuple):
    """Readings that every protocol treats alike."""

    source: str
    topic: str
    sort: Sort


@dataclass(frozen=True)
class Example:
    """A reading that represents its kind."""

    event: Event
    kind: ReadingKind


@dataclass(frozen=True)
class Rates:
    """The readings of a history by kind."""

    span: Duration
    events: Sequence[Event]
    kinds: Sequence[ReadingKind]
    """The kind of each event."""
    subscriptions: tuple[str, ...]
    alone: bool
    """Whether each source has states of its own."""

    @cached_property
    def counts(self) -> Mapping[ReadingKind, int]:
        return Counter(self.kinds)

    @cached_property
    def examples(self) -> Sequence[Example]:
        """Two readings of each kind, and earlier ones that change a condition, in order of time."""
        return _examples(self.events, self.kinds, self.alone)

    def of(self, subscriptions: tuple[str, ...]) -> Rates:
        """The rates if only these subscriptions existed."""
        if subscriptions == self.subscriptions:
            return self
        places = [self.subscriptions.index(name) for name in subscriptions]
        kinds = [kind._replace(sort=tuple(kind.sort[i] for i in places)) for kind in self.kinds]
        return Rates(self.span, self.events, kinds, subscriptions, self.alone)

    def a_day(self, kind: ReadingKind) -> float:
        return self.counts[kind] * DAY / self.span

    def turns(self, subscription: str) -> int:
        """How often a subscription starts or ends in the history."""
        place = self.subscriptions.index(subscription)
        return sum(count for kind, count in self.counts.items() if kind.sort[place][0])

    def period(self) -> float:
        """Mean seconds between two readings of a source."""
        sources = {(kind.source, kind.topic) for kind in self.counts}
        return self.span / 1e6 * len(sources) / max(1, sum(self.counts.values()))


def rates(
    events: Sequence[Event], definition: ScenarioDefinition, subscriptions: Iterable[NodeSubscription]
) -> Rates:
    """The kinds of readings in a history, and their numbers."""
    names = tuple(dict.fromkeys(sub.name for sub in subscriptions if not sub.plain))
    filters = definition.filters
    alone = all(name in filters and why_not_alone(filters[name]) is None for name in names)
    return Rates(span(events), events, _kinds(events, definition, names), names, alone)


def most_of_one(events: Sequence[Event]) -> int:
    """The number of readings of the most frequent source."""
    return max(Counter((event.source, event.topic) for event in events).values(), default=0)


def span(events: Sequence[Event]) -> Duration:
    """The time that the history covers: from the first reading to the last, and one mean period of the
    most frequent source.
    """
    times = [event.time for event in events]
    most = most_of_one(events)
    whole = max(times) - min(times)
    return max(1, whole + whole // max(1, most - 1))


def _kinds(
    events: Sequence[Event], definition: ScenarioDefinition, names: Sequence[str]
) -> list[ReadingKind]:
    served = definition.operators()
    turns = {}
    for name in names:
        watch = Evaluator(served[name], name)
        turns[name] = {i for i, event in enumerate(events) if watch.react(event)}
    relevant = {name: _relevant(definition, name, events) for name in names}
    sorts = [tuple((i in turns[n], i in relevant[n]) for n in names) for i in range(len(events))]
    return [ReadingKind(e.source, e.topic, sort) for e, sort in zip(events, sorts, strict=True)]


def _relevant(definition: ScenarioDefinition, name: str, events: Sequence[Event]) -> set[int]:
    """The indices of readings that satisfy a predicate; all if the subscription is not a filter."""
    operator = definition.operators()[name]
    if name not in definition.filters:
        return set(range(len(events)))
    topic = definition.filters[name].topic
    topic_indices = [i for i, event in enumerate(events) if event.topic == topic.name]
    if not topic_indices:
        return set()
    batch = from_events(topic, [events[i] for i in topic_indices])
    satisfying = operator.machine.relevance(topic.name, batch).satisfies
    return {i for i, satisfies in zip(topic_indices, satisfying.tolist(), strict=True) if satisfies}


def _examples(events: Sequence[Event], kinds: Sequence[ReadingKind], alone: bool) -> list[Example]:
    """The first two readings of each kind, and all earlier ones that change a condition, so that states are
    as they were.

    If each source has states of its own, earlier readings of the same source are enough.  Two readings, since
    a publisher may not know all subscriptions at its first one.
    """
    first: dict[ReadingKind, list[int]] = {}
    for i, kind in enumerate(kinds):
        if len(indices := first.setdefault(kind, [])) < 2:
            indices.append(i)
    last: dict[str, int] = {}
    for kind, indices in first.items():
        about = kind.source if alone else ""
        last[about] = max(indices[-1], last.get(about, 0))
    return [
        Example(event, kind)
        for i, (event, kind) in enumerate(zip(events, kinds, strict=True))
        if i in first[kind] or (i < last[kind.source if alone else ""] and any(t for t, _ in kind.sort))
    ]
