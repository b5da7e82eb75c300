"""How often each kind of reading occurs in a history.

A kind is defined by the effect of a reading on the subscribed conditions, because the effect determines which
messages a protocol sends. A reading has no effect (a filter drops it at its source), satisfies a predicate
(all that a filter can decide alone), or starts or ends a condition.
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
"""An estimate of a day needs at least this many readings of a source."""

Sort = tuple[tuple[bool, bool], ...]
"""The effect of a reading on each subscription: whether it starts or ends the condition, and whether it
satisfies one of the predicates.
"""


class ReadingKind(NamedTuple):
    """A class of readings that have the same source, topic and effect, so that every protocol handles them
    equally.
    """

    source: str
    topic: str
    sort: Sort


@dataclass(frozen=True)
class Example:
    """A reading of the history that represents its kind in a rehearsal."""

    event: Event
    kind: ReadingKind


@dataclass(frozen=True)
class Rates:
    """The readings of a history, classified by kind."""

    span: Duration
    events: Sequence[Event]
    kinds: Sequence[ReadingKind]
    """The kind of each event."""
    subscriptions: tuple[str, ...]
    alone: bool
    """Whether each source has its own states, so that a source can evaluate every subscription alone."""

    @cached_property
    def counts(self) -> Mapping[ReadingKind, int]:
        return Counter(self.kinds)

    @cached_property
    def examples(self) -> Sequence[Example]:
        """Two readings of each kind and earlier ones that change a condition, in the order of time."""
        return _examples(self.events, self.kinds, self.alone)

    def of(self, subscriptions: tuple[str, ...]) -> Rates:
        """Return the rates for a definition in which only these subscriptions exist."""
        if subscriptions == self.subscriptions:
            return self
        places = [self.subscriptions.index(name) for name in subscriptions]
        kinds = [kind._replace(sort=tuple(kind.sort[i] for i in places)) for kind in self.kinds]
        return Rates(self.span, self.events, kinds, subscriptions, self.alone)

    def a_day(self, kind: ReadingKind) -> float:
        """Return the number of readings of a kind per day."""
        return self.counts[kind] * DAY / self.span

    def turns(self, subscription: str) -> int:
        """Return how often a subscription starts or ends in the history."""
        place = self.subscriptions.index(subscription)
        return sum(count for kind, count in self.counts.items() if kind.sort[place][0])

    def period(self) -> float:
        """Return the mean time in seconds between two readings of a source."""
        sources = {(kind.source, kind.topic) for kind in self.counts}
        return self.span / 1e6 * len(sources) / max(1, sum(self.counts.values()))


def rates(
    events: Sequence[Event], definition: ScenarioDefinition, subscriptions: Iterable[NodeSubscription]
) -> Rates:
    """Classify the readings of a history by their effect on the subscribed conditions."""
    names = tuple(dict.fromkeys(sub.name for sub in subscriptions if not sub.plain))
    filters = definition.filters
    alone = all(name in filters and why_not_alone(filters[name]) is None for name in names)
    return Rates(span(events), events, _kinds(events, definition, names), names, alone)


def most_of_one(events: Sequence[Event]) -> int:
    """Return the number of readings of the most frequent source."""
    return max(Counter((event.source, event.topic) for event in events).values(), default=0)


def span(events: Sequence[Event]) -> Duration:
    """Return the time in µs that the history covers: from the first reading to the last, plus one mean period
    of the most frequent source.
    """
    times = [event.time for event in events]
    most = most_of_one(events)
    whole = max(times) - min(times)
    return max(1, whole + whole // max(1, most - 1))


def _kinds(
    events: Sequence[Event], definition: ScenarioDefinition, names: Sequence[str]
) -> list[ReadingKind]:
    """Return the kind of each event: its source, its topic, and its effect on each subscription."""
    served = definition.operators()
    turns = {}
    for name in names:
        watch = Evaluator(served[name], name)
        turns[name] = {i for i, event in enumerate(events) if watch.react(event)}
    relevant = {name: _relevant(definition, name, events) for name in names}
    sorts = [tuple((i in turns[n], i in relevant[n]) for n in names) for i in range(len(events))]
    return [ReadingKind(e.source, e.topic, sort) for e, sort in zip(events, sorts, strict=True)]


def _relevant(definition: ScenarioDefinition, name: str, events: Sequence[Event]) -> set[int]:
    """Return the indices of readings that satisfy a predicate; all indices if the subscription is not a
    filter.
    """
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
    """Return the first two readings of each kind, preceded by all readings that change a condition.

    The earlier readings bring the conditions into the right state. If each source has its own states, those
    of the same source are sufficient. Two readings are needed, because a publisher may not know all
    subscriptions at its first reading.
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
