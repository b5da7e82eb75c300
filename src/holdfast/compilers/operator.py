"""A condition machine at work for subscriptions: whom its conditions serve, what they mean, where their
events meet, what of them must be read.

Whoever schedules operators knows nothing else of conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..machines import machine
from ..machines.machine import Batches, Machine, Mask, Told, transitions
from ..model.batch import AXES, concatenate, from_events, in_order, order, plain, turns, with_progress
from ..model.event import Event, Notification, Transition, notify
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.topic import Attribute, Topic

FIXED = ("time", "source", "sequence", "place", *AXES)
"""The columns that every batch may have."""

STATUS, KEY, SCOPE, SINCE = RETOLD = "@status", "@key", "@scope", "@since"
"""What readings say that events of an earlier stage have become: their status, what tells whom they are of
from the others, the scope that people read, and since when."""


class Keys(NamedTuple):
    """``texts[codes[i]]`` is the key of event ``i``; -1 or ``None`` if it has none."""

    codes: NDArray[Any]
    texts: Sequence[str | None] | pa.StringArray

    @property
    def array(self) -> pa.StringArray:
        """The texts as a column."""
        return self.texts if isinstance(self.texts, pa.Array) else pa.array(self.texts, pa.string())


class Kept(msgspec.Struct, frozen=True):
    """What is remembered of an operator beside its state: its place, whom it served, what that meant."""

    family: str
    stage: int
    key: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]


def ended(kept: Kept, gone: Collection[str]) -> Kept:
    """What is kept of an operator when some of those whom it serves have ended."""
    names = tuple(tuple(name for name in some if name not in gone) for some in kept.names)
    pairs = zip(kept.names, names, kept.meanings, strict=True)
    meanings = tuple("" if before and not after else meaning for before, after, meaning in pairs)
    return msgspec.structs.replace(kept, names=names, meanings=meanings)


@dataclass(frozen=True)
class Operator:
    """``names[i]`` are the subscriptions that condition ``i`` of the machine serves, and ``meanings[i]``
    tells it from all others; one that is only heard by others serves nobody."""

    family: str
    machine: Machine
    names: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]
    listens: tuple[tuple[str, ...], ...]
    """The topics of readings that each condition hears."""
    looks_at: Mapping[str, frozenset[str]]
    """For each topic the columns that decide whether an event matters."""
    needs: Mapping[str, frozenset[str]] | None = None
    """For each topic the columns of events that matter; all, if events are told as they are."""
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The sources that matter, for topics of which no others do."""
    keyed: Callable[[str, pa.RecordBatch], Keys] | None = None
    """By what the events of a batch meet others; without it all of them meet in one place."""
    key: tuple[str, ...] = ()
    """By what its events are kept apart, or which place is theirs; with nothing, the first one."""
    stage: int = 0
    heard: frozenset[str] = frozenset()
    """The topics of conditions of earlier stages."""
    followed: Mapping[str, Topic] = field(default_factory=dict)
    """The conditions that later stages hear, with the topics that their events become."""
    said_by: Callable[[int, str], str | None] | None = None
    """What tells whom a condition speaks of from the others, given the scope in its transitions, if it is not
    that scope."""
    shown: Callable[[str], str | None] | None = None
    """A scope in transitions as people read it, if it is another."""
    told_time_by: frozenset[str] = frozenset()
    """The topics of readings that tell it the time, where these are more than it listens to."""
    joins: bool = False
    """Whether a condition that starts later joins it: it is told the latest reading of every source, and may
    take the place of one of its name."""
    hidden: frozenset[str] = frozenset()
    """Those of its conditions that others tell people of."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Those whom it serves under another name: what it tells is another condition's."""
    reasons: tuple[tuple[str, str], ...] = ()
    """For subscriptions that have no key, why."""
    behind: Duration = 0
    """How far behind time the events may be of which it still speaks."""
    awaits: frozenset[str] = frozenset()
    """The conditions below it: it looks at a moment when they have said all of it."""
    waits: Duration = 0
    """How much longer than they it waits, where that is declared; else it waits until they have spoken."""
    recounts: bool = False
    """Whether one that starts later is told who holds already, of those whom it hears."""
    lacking: Callable[[pa.RecordBatch], Sequence[Mask]] | None = None
    """For each condition which events lie in a scope of it and have no row in its tables, where the machine
    does not count those: they mean something all the same, as they end a silence."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """What it listens to."""
        return self.machine.topics

    @property
    def compacts(self) -> bool:
        """Whether of one topic's closed part more can be dropped than what does not matter."""
        return self.machine.compacts and len(self.topics) == 1

    @cached_property
    def clock(self) -> frozenset[str]:
        """The topics of readings that say how far time has come for it."""
        return self.told_time_by or frozenset(self.topics)

    @cached_property
    def told_to(self) -> tuple[tuple[str, ...], ...]:
        """Whom each condition tells."""
        hidden, called = self.hidden, self.called
        return tuple(
            tuple(called.get(name, name) for name in names if name not in hidden) for names in self.names
        )

    @cached_property
    def subscriptions(self) -> tuple[str, ...]:
        """Whom it serves."""
        return tuple(self.called.get(name, name) for names in self.names for name in names)

    @property
    def kept(self) -> Kept:
        """What must be remembered beside its state."""
        return Kept(self.family, self.stage, self.key, self.names, self.meanings)

    def serving(self, names: Iterable[Iterable[str]]) -> Operator:
        """The same for other subscriptions."""
        return replace(self, names=tuple(map(tuple, names)))

    def listening(self) -> dict[str, tuple[str, ...]]:
        """For each subscription the topics of readings that it hears."""
        pairs = zip(self.names, self.listens, strict=True)
        return {name: topics for names, topics in pairs for name in names}

    # --- how far it looks ---

    def due(self, state: Any) -> Instant | None:
        """The instant beyond which time must come before it says something by itself."""
        at = self.machine.due(state)
        return at if at is None or not self.awaits else at + self.behind

    def is_awaited(self, by: Operator) -> bool:
        """Whether another waits for what it says."""
        return any(name in by.awaits for names in self.names for name in names)

    def unsaid(self, state: Any) -> Instant | None:
        """The earliest moment of which it may still speak though no further reading comes."""
        due = self.machine.due(state)
        return None if due is None else due - self.behind

    def looks(self, at: Instant, unsaid: Iterable[Instant | None]) -> Instant:
        """How far it looks when time has come so far, given what those below have still to say: they may
        speak of readings that are yet to come, too, as far behind as they wait for them."""
        if at in (BEGINNING, NEVER):
            return at
        known = min((at - self.behind, *(moment for moment in unsaid if moment is not None)))
        return known if not self.waits else max(min(at, known + self.waits), at - self.behind)

    # --- where events are read ---

    def keys(self, topic: str, batch: pa.RecordBatch) -> Keys:
        """By what the events of a batch meet others."""
        if self.keyed is None:
            return Keys(np.zeros(len(batch), np.int64), [" ".join(self.key) or None])
        return self.keyed(topic, batch)

    def needed(self, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch without columns that nobody looks at."""
        if self.needs is None:
            return batch
        return batch.select([name for name in batch.schema.names if name in self.needs[topic]])

    # --- what it says ---

    def notifications(self, told: Told) -> list[Notification]:
        """What the machine has said, for whom it concerns."""
        return list(self.addressed(transitions(self.topics, told)))

    def addressed(self, said: Iterable[Transition]) -> Iterator[Notification]:
        """Transitions of the machine, for every subscription that they concern."""
        names, shown = self.told_to, self.shown
        for event, status, scope, since, condition in said:
            place = scope if shown is None or scope is None else shown(scope)
            for name in self.subscriptions if condition < 0 else names[condition]:
                yield notify(name, event, status, place, since)

    def shows(self, scope: str | None) -> str | None:
        """A scope in transitions as people read it."""
        return scope if self.shown is None or scope is None else self.shown(scope)

    def shown_scopes(self, scopes: pa.StringArray) -> pa.StringArray:
        """Scopes in rows as people read them."""
        return scopes if self.shown is None else mapped(scopes, self.shown)

    def serves(self, names: Collection[str]) -> bool:
        """Whether it runs one of these subscriptions."""
        return any(name in names for some in self.names for name in some)

    def holding(self, state: Any) -> Iterator[tuple[str, str | None, Instant]]:
        """What holds in a state of the machine: (subscription, scope, since)."""
        for condition, scope, since in self.machine.holding(state):
            for name in self.names[condition]:
                yield name, self.shows(scope), since

    def unknown(self, state: Any) -> Iterator[tuple[str, str | None, Instant | None]]:
        """What nobody knows in a state of the machine: (subscription, scope, since when it held)."""
        for condition, scope, since in self.machine.unknown(state):
            for name in self.names[condition]:
                yield name, self.shows(scope), since

    def retold(self, told: Told) -> dict[str, pa.RecordBatch]:
        """What later stages hear of it, as readings."""
        heard: dict[str, list[pa.RecordBatch]] = {}
        for condition, topic in self._followed:
            for rows in told.rows.values():
                if len(some := _of(rows, condition)):
                    heard.setdefault(topic.name, []).append(self._readings(topic, condition, some))
            single = [one for one in told.single if one.condition == condition and one.status != "late"]
            if single:
                readings = [self._reading(topic, one) for one in single]
                heard.setdefault(topic.name, []).append(from_events(topic, readings))
        return {name: some[0] if len(some) == 1 else concatenate(some) for name, some in heard.items()}

    @cached_property
    def _followed(self) -> list[tuple[int, Topic]]:
        """The conditions that are heard, by number."""
        return [
            (i, self.followed[name])
            for i, names in enumerate(self.names)
            for name in names
            if name in self.followed
        ]

    def _readings(self, topic: Topic, condition: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that a condition has told, as readings of a topic."""
        scope, by = rows.column(machine.SCOPE), self.said_by
        own = {
            STATUS: plain(rows.column(machine.STATUS)),
            KEY: (scope if by is None else mapped(scope, partial(by, condition))).fill_null(""),
            SCOPE: self.shown_scopes(scope),
            SINCE: rows.column(machine.SINCE).cast(pa.int64()),
        }
        names = [name for name in rows.schema.names if name in FIXED or name in topic.by_name]
        columns = {name: rows.column(name) for name in names if name not in RETOLD} | own
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _reading(self, topic: Topic, said: Transition) -> Event:
        event, status, scope, since, condition = said
        by = self.said_by
        key = "" if scope is None else scope if by is None else by(condition, scope)
        own = dict(zip(RETOLD, (status, key, self.shows(scope), since), strict=True))
        return replace(event, topic=topic.name, attributes={**event.attributes, **own})


class Past(NamedTuple):
    """A running operator with its state, the last reading of each source as far as that is remembered, how
    far time has come, and for each state by their keys the scopes of which the history tells, or its
    ``whole``."""

    operator: Operator
    state: Any
    latest: Iterable[Event]
    at: Instant
    settled: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    whole: bool = False


# --- readings that conditions of an earlier stage have become --------------------------------------


_OWN = (*(Attribute(name, "text") for name in (STATUS, KEY, SCOPE)), Attribute(SINCE, "int"))


def told_as(topic: Topic) -> Topic:
    """The topic of readings that events of a stage become."""
    return Topic(f"@{topic.name}", (*topic.attributes, *_OWN))


def is_retold(topic: Topic) -> bool:
    """Whether a topic is one of those."""
    return STATUS in topic.by_name


def in_turn(heard: pa.RecordBatch) -> pa.RecordBatch:
    """What is heard of a topic by (time, source, sequence); but what a condition has said of one scope in the
    order in which it has said it."""
    if SCOPE not in heard.schema.names:
        return in_order(heard)
    return heard.take(pa.array(np.argsort(_turns(heard, order(heard).to_numpy()), kind="stable")))


def _turns(heard: pa.RecordBatch, ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each row comes, given which row each is by (time, source, sequence)."""
    places = np.empty(len(heard), np.int64)
    places[ordered] = np.arange(len(heard))
    return turns(heard, places, SCOPE)


_BESIDE = {"source": "@source", "sequence": "@sequence"}
"""Where a row has its own source and number while others stand in their places."""


def by_turns(heard: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, which a sort by (time, source, sequence) puts as `in_turn` does: one that would come
    before another of its scope has the source and the number of that one, and its own beside them."""
    if SCOPE not in heard.schema.names:
        return heard
    ordered = order(heard).to_numpy()
    like = heard.take(pa.array(ordered[_turns(heard, ordered)]))
    for name, own in _BESIDE.items():
        heard = heard.append_column(own, plain(heard.column(name)))
        heard = heard.set_column(heard.schema.get_field_index(name), name, like.column(name))
    return heard


def as_were(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What `by_turns` made, with the sources and numbers that were theirs."""
    for name, own in _BESIDE.items():
        if own in rows.schema.names:
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(own))
            rows = rows.drop_columns([own])
    return rows


def _of(rows: pa.RecordBatch, condition: int) -> pa.RecordBatch:
    """The rows that a condition has told."""
    mine = (rows.column(machine.CONDITIONS).to_numpy() & np.uint64(1 << condition)) != 0
    said = pc.not_equal(plain(rows.column(machine.STATUS)), "late").to_numpy(zero_copy_only=False)
    return rows.filter(pa.array(mine & said))


def mapped(texts: pa.StringArray, to: Callable[[str], str | None]) -> pa.StringArray:
    """What becomes of each text; each is looked at once, and nothing stays nothing."""
    coded = texts.dictionary_encode()
    return pa.array([to(text) for text in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


# --- meaning ---------------------------------------------------------------------------------------


def digest(said: object) -> str:
    """Equal for what means the same."""
    return blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# --- how much of what was read concerns anybody ----------------------------------------------------


@dataclass
class Coverage:
    """How many events each topic had, and how many of them lay in no scope of a subscription, or had no row
    in its tables."""

    events: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)

    def survey(
        self, topic: str, batch: pa.RecordBatch, listening: Iterable[Operator], *, closed: bool = False
    ) -> list[Mask]:
        """Count a batch of a topic; for each operator that listens, which events matter to it, or of a
        closed part can change what it says."""
        self.events[topic] += len(batch)
        masks = []
        for operator in listening:
            alone = closed and len(operator.topics) == 1  # else events of other topics come between
            matters, outside = operator.machine.survey(topic, batch, closed=alone)
            if operator.lacking is not None:
                outside = outside + np.array([lacks.sum() for lacks in operator.lacking(batch)], np.int64)
            for names, count in zip(operator.names, outside.tolist(), strict=True):
                self.outside.update(dict.fromkeys(names, count) if count else {})
            masks.append(matters)
        return masks

    def add(self, other: Coverage) -> None:
        """Count what another has counted."""
        self.events.update(other.events)
        self.outside.update(other.outside)

    def misplaced(self, operators: Iterable[Operator]) -> list[str]:
        """The subscriptions that not one event of their topics could concern."""
        return [
            name
            for operator in operators
            for name, topics in operator.listening().items()
            if 0 < self.outside[name] == sum(self.events[topic] for topic in topics)
        ]


# --- time ------------------------------------------------------------------------------------------


def with_time(operator: Operator, batches: Batches, latest: Instant) -> Batches:
    """The last batches, which say how far time has come: whoever has heard nothing must know it as well."""
    if latest == BEGINNING or not operator.machine.is_timed:
        return batches
    first = next(iter(operator.topics.values()))
    batch = batches.get(first.name, from_events(first, []))
    return {**batches, first.name: with_progress(batch, len(batch), latest)}


def until(reached: Mapping[str, Instant], topics: Iterable[str], beginning: Instant) -> Instant:
    """How far time has come: as far as the latest reading of any of some topics."""
    found = None
    for topic in topics:
        at = reached.get(topic)
        if at is not None and (found is None or at > found):
            found = at
    return beginning if found is None else found
