"""An operator: a condition machine in a graph, with its identity, its key, its inputs and its outputs.

Runtimes know operators and nothing else of conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..model.batch import AXES, concatenate, from_events, in_order, order, plain, turns, values, with_totals
from ..model.event import Event, Notification, Transition, notify
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.topic import Attribute, Topic
from . import machine
from .machine import Batches, Emission, Machine, Mask, transitions

FIXED = ("time", "source", "sequence", "place", *AXES)
"""The columns that every batch may have."""

STATUS, KEY, SCOPE, SINCE = RETOLD = "@status", "@key", "@scope", "@since"
"""The columns that derived events have beside those of the event: status, key of the scope, label of the
scope, and since when it is active."""

ORDER = "@order"
"""The column with the sort keys of derived events at one time, if their machine emits some (`order_keys`)."""


class Keys(NamedTuple):
    """``texts[codes[i]]`` is the key of event ``i``; -1 or ``None`` if it has none."""

    codes: NDArray[Any]
    texts: Sequence[str | None] | pa.StringArray

    @property
    def array(self) -> pa.StringArray:
        """The texts as a column."""
        return self.texts if isinstance(self.texts, pa.Array) else pa.array(self.texts, pa.string())


class OperatorRecord(msgspec.Struct, frozen=True):
    """What is stored of an operator beside its state: its place, the subscriptions it served and their
    meanings."""

    kind: str
    stage: int
    key: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]


def without_names(record: OperatorRecord, gone: Collection[str]) -> OperatorRecord:
    """The record of an operator without some subscriptions."""
    names = tuple(tuple(name for name in some if name not in gone) for some in record.names)
    pairs = zip(record.names, names, record.meanings, strict=True)
    meanings = tuple("" if before and not after else meaning for before, after, meaning in pairs)
    return msgspec.structs.replace(record, names=names, meanings=meanings)


@dataclass(frozen=True)
class Links:
    """The place of an operator among others; `plan.compile.link` computes it."""

    stage: int = 0
    derived_topics: Mapping[str, Topic] = field(default_factory=dict)
    """The conditions that downstream operators consume, each with the topic of its derived events."""
    clock_topics: frozenset[str] = frozenset()
    """The topics of readings that advance its watermark, if these are more than it consumes."""
    hidden: frozenset[str] = frozenset()
    """The conditions of which downstream operators notify subscribers in its place."""
    upstreams: frozenset[str] = frozenset()
    """The conditions on which it builds; it processes a time when they have emitted everything of it."""


@dataclass(frozen=True)
class Presentation:
    """What subscribers and people read of an operator; it changes no result."""

    label: Callable[[str], str | None] | None = None
    """The label of a scope in transitions, if it is not the scope itself."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The subscriptions that it serves under the name of another condition, as a mute does."""
    reasons: tuple[tuple[str, str], ...] = ()
    """The reasons why conditions have no key, for explanations."""


@dataclass(frozen=True)
class Operator:
    """A machine with all that a runtime must know to run it.

    Its identity comes first: condition `i` of the machine serves the subscriptions `names[i]`, none if only
    other conditions consume it; `meanings[i]` is a digest that is equal for conditions that mean the same.
    Then follow its inputs, the key by which its events are distributed, and how it waits.
    """

    kind: str
    machine: Machine[Any]
    names: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]
    reading_topics: tuple[tuple[str, ...], ...]
    """The topics of readings that each condition consumes, directly or through others."""
    decisive_columns: Mapping[str, frozenset[str]]
    """For each topic the columns that decide whether an event is relevant."""
    needed_columns: Mapping[str, frozenset[str]] | None = None
    """For each topic the columns that are needed of relevant events; `None`: all, as they are emitted."""
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The relevant sources, for topics of which no others are relevant."""
    upstream_topics: frozenset[str] = frozenset()
    """The derived topics that it consumes."""
    missing_rows: Callable[[pa.RecordBatch], Sequence[Mask]] | None = None
    """For each condition the events that lie in a scope of it and have no row in its tables, if the machine
    does not count those as outside: they still end a `silent`."""
    keyed: Callable[[str, pa.RecordBatch], Keys] | None = None
    """The shuffle key of each event of a batch; without it all events go to one place."""
    key: tuple[str, ...] = ()
    """The names of the columns of the shuffle key, or a name for the place; empty: the first place."""
    delay: Duration = 0
    """How far before the watermark the events may be that it still emits."""
    extra_wait: Duration = 0
    """How much longer than its upstreams it waits at most, if that is declared."""
    joins: bool = False
    """Whether a condition that starts later joins its machine, with the latest reading of every source. It
    may take the place of one of its name."""
    starts_from_standings: bool = False
    """Whether it starts from the standings of the conditions that it consumes."""
    links: Links = Links()
    presentation: Presentation = Presentation()

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics that it consumes, by name."""
        return self.machine.topics

    @property
    def compacts(self) -> bool:
        """Whether it needs fewer rows of a closed part than of any other part."""
        return self.machine.traits.compacts and len(self.topics) == 1

    @cached_property
    def clock(self) -> frozenset[str]:
        """The topics of readings that advance its watermark."""
        return self.links.clock_topics or frozenset(self.topics)

    @cached_property
    def recipients(self) -> tuple[tuple[str, ...], ...]:
        """The subscriptions that each condition notifies."""
        hidden, called = self.links.hidden, self.presentation.aliases
        return tuple(
            tuple(called.get(name, name) for name in names if name not in hidden) for names in self.names
        )

    @cached_property
    def subscriptions(self) -> tuple[str, ...]:
        """All subscriptions that it serves."""
        return tuple(self.presentation.aliases.get(name, name) for names in self.names for name in names)

    @property
    def record(self) -> OperatorRecord:
        """What must be stored beside its state."""
        return OperatorRecord(self.kind, self.links.stage, self.key, self.names, self.meanings)

    def with_names(self, names: Iterable[Iterable[str]]) -> Operator:
        """The operator with other subscriptions."""
        return replace(self, names=tuple(map(tuple, names)))

    def topics_by_name(self) -> dict[str, tuple[str, ...]]:
        """For each subscription the topics of readings that it consumes."""
        pairs = zip(self.names, self.reading_topics, strict=True)
        return {name: topics for names, topics in pairs for name in names}

    # --- time ---

    def due(self, state: Any) -> Instant | None:
        """The time that the watermark must pass before it emits something without an event."""
        at = self.machine.due(state)
        return at if at is None or not self.links.upstreams else at + self.delay

    def is_upstream_of(self, by: Operator) -> bool:
        """Whether another operator builds on one of its conditions."""
        return any(name in by.links.upstreams for names in self.names for name in names)

    def pending(self, due: Instant | None) -> Instant | None:
        """The earliest time at which it may emit without a further reading, given when its machine is due."""
        return None if due is None else due - self.delay

    def watermark(self, at: Instant, pending: Iterable[Instant | None]) -> Instant:
        """Its watermark at the time of the latest reading, given when its upstreams may still emit: they may
        also emit for readings that are yet to come, as far behind as they wait."""
        if at in (BEGINNING, NEVER):
            return at
        known = min((at - self.delay, *(time for time in pending if time is not None)))
        return known if not self.extra_wait else max(min(at, known + self.extra_wait), at - self.delay)

    # --- inputs ---

    def keys(self, topic: str, batch: pa.RecordBatch) -> Keys:
        """The shuffle key of each event of a batch."""
        if self.keyed is None:
            return Keys(np.zeros(len(batch), np.int64), [" ".join(self.key) or None])
        return self.keyed(topic, batch)

    def project(self, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch without columns that are not needed."""
        if self.needed_columns is None:
            return batch
        return batch.select([name for name in batch.schema.names if name in self.needed_columns[topic]])

    # --- outputs ---

    def notifications(self, emission: Emission) -> list[Notification]:
        """An emission of the machine as notifications."""
        return list(self.address(transitions(self.topics, emission)))

    def address(self, transitions: Iterable[Transition]) -> Iterator[Notification]:
        """Transitions of the machine as notifications of each subscription."""
        names, shown = self.recipients, self.presentation.label
        for event, status, scope, since, condition in transitions:
            place = scope if shown is None or scope is None else shown(scope)
            for name in self.subscriptions if condition < 0 else names[condition]:
                yield notify(name, event, status, place, since)

    def label_of(self, scope: str | None) -> str | None:
        """The label of a scope in transitions."""
        label = self.presentation.label
        return scope if label is None or scope is None else label(scope)

    def label_scopes(self, scopes: pa.StringArray) -> pa.StringArray:
        """The labels of scopes in rows."""
        label = self.presentation.label
        return scopes if label is None else map_texts(scopes, label)

    def serves(self, names: Collection[str]) -> bool:
        """Whether it serves one of some subscriptions."""
        return any(name in names for some in self.names for name in some)

    def active(self, state: Any) -> Iterator[tuple[str, str | None, Instant]]:
        """The active scopes of a state: (subscription, label, since)."""
        for condition, scope, since in self.machine.active(state):
            for name in self.names[condition]:
                yield name, self.label_of(scope), since

    def unknown(self, state: Any) -> Iterator[tuple[str, str | None, Instant | None]]:
        """The unknown scopes of a state: (subscription, label, since when they were active)."""
        for condition, scope, since in self.machine.unknown(state):
            for name in self.names[condition]:
                yield name, self.label_of(scope), since

    def derive_events(self, transitions: Iterable[Transition]) -> dict[str, list[Event]]:
        """The derived events that downstream operators consume, by topic, given what the machine emitted."""
        derived: dict[str, list[Event]] = {}
        if self._derived_conditions:
            for transition in transitions:
                for condition, topic in self._derived_conditions:
                    if condition == transition.condition and transition.status != "late":
                        derived.setdefault(topic.name, []).append(self._to_event(topic, transition))
        return derived

    def derive(self, emission: Emission) -> dict[str, pa.RecordBatch]:
        """The derived events of an emission as batches, by topic."""
        derived: dict[str, list[pa.RecordBatch]] = {}
        for condition, topic in self._derived_conditions:
            for rows in emission.rows.values():
                if len(some := _of(rows, condition)):
                    derived.setdefault(topic.name, []).append(self._to_rows(topic, some))
            numbers = [
                i
                for i, one in enumerate(emission.single)
                if one.condition == condition and one.status != "late"
            ]
            if numbers:
                events = from_events(topic, [self._to_event(topic, emission.single[i]) for i in numbers])
                if emission.order:
                    keys = pa.array([emission.order[i] for i in numbers], pa.binary())
                    events = events.append_column(ORDER, keys)
                derived.setdefault(topic.name, []).append(events)
        return {name: some[0] if len(some) == 1 else concatenate(some) for name, some in derived.items()}

    @cached_property
    def _derived_conditions(self) -> list[tuple[int, Topic]]:
        """The conditions that downstream operators consume, by number, with their derived topics."""
        return [
            (i, self.links.derived_topics[name])
            for i, names in enumerate(self.names)
            for name in names
            if name in self.links.derived_topics
        ]

    def _to_rows(self, topic: Topic, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Emitted rows of a condition as derived events."""
        scope = rows.column(machine.SCOPE)
        own = {
            STATUS: plain(rows.column(machine.STATUS)),
            KEY: scope.fill_null(""),
            SCOPE: self.label_scopes(scope),
            SINCE: rows.column(machine.SINCE).cast(pa.int64()),
        }
        names = [name for name in rows.schema.names if name in FIXED or name in topic.by_name]
        columns = {name: rows.column(name) for name in names if name not in RETOLD} | own
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _to_event(self, topic: Topic, transition: Transition) -> Event:
        event, status, scope, since, _ = transition
        own = dict(zip(RETOLD, (status, scope or "", self.label_of(scope), since), strict=True))
        return replace(event, topic=topic.name, attributes={**event.attributes, **own})


# --- derived events ----------------------------------------------------------------------------------


_OWN = (*(Attribute(name, "text") for name in (STATUS, KEY, SCOPE)), Attribute(SINCE, "int"))


def topic_of_condition(topic: Topic) -> Topic:
    """The topic of the derived events of a condition."""
    return Topic(f"@{topic.name}", (*topic.attributes, *_OWN))


def is_derived(topic: Topic) -> bool:
    """Whether a topic has derived events."""
    return STATUS in topic.by_name


def order_keys(rows: pa.RecordBatch) -> list[bytes]:
    """The sort key of each derived event among those of its time: the column `ORDER`, or else the bytes of
    its source and sequence.

    A machine that emits, for one event, transitions with the source of another event appends the place of
    each transition to the key of the event that caused it. Sorted by these keys, transitions that
    a shuffle has mixed are in the order in which one process emits them.
    """
    if ORDER in rows.schema.names:
        found: list[bytes] = rows.column(ORDER).to_pylist()
        return found
    pairs = zip(values(rows.column("source")), values(rows.column("sequence")), strict=True)
    return [
        source.encode().replace(b"\0", b"\0\xff") + b"\0\0" + (sequence + (1 << 63)).to_bytes(8)
        for source, sequence in pairs
    ]


def sort_derived(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Sort derived events by time and `order_keys`, but keep the order in which they were emitted for each
    scope."""
    if SCOPE not in rows.schema.names:
        return in_order(rows)
    if ORDER in rows.schema.names:
        keys = rows.column(ORDER).fill_null(b"")  # rows without a key belong to a revision and come first
        table = pa.table({"time": rows.column("time"), ORDER: keys})
        ordered = pc.sort_indices(table, sort_keys=[("time", "ascending"), (ORDER, "ascending")])
    else:
        ordered = order(rows)
    return rows.take(pa.array(np.argsort(_turns(rows, ordered.to_numpy()), kind="stable")))


def _turns(rows: pa.RecordBatch, ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each row, given the rows in the order of (time, source, sequence)."""
    places = np.empty(len(rows), np.int64)
    places[ordered] = np.arange(len(rows))
    return turns(rows, places, SCOPE)


_BESIDE = {"source": "@source", "sequence": "@sequence"}
"""The columns with the source and sequence of a row while those of another row replace them."""


def encode_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, prepared so that a sort by (time, source, sequence) orders them as `sort_derived` does.

    A row that would come before an earlier one of its scope gets the source and sequence of that one; its own
    stand beside them.
    """
    if SCOPE not in rows.schema.names:
        return rows
    ordered = order(rows).to_numpy()
    like = rows.take(pa.array(ordered[_turns(rows, ordered)]))
    for name, own in _BESIDE.items():
        rows = rows.append_column(own, plain(rows.column(name)))
        rows = rows.set_column(rows.schema.get_field_index(name), name, like.column(name))
    return rows


def decode_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows from `encode_order` with their own sources and sequences again."""
    for name, own in _BESIDE.items():
        if own in rows.schema.names:
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(own))
            rows = rows.drop_columns([own])
    return rows


def _of(rows: pa.RecordBatch, condition: int) -> pa.RecordBatch:
    """The rows that a condition emitted, without late ones."""
    mine = (rows.column(machine.CONDITIONS).to_numpy() & np.uint64(1 << condition)) != 0
    statuses = rows.column(machine.STATUS).dictionary_encode()
    late = statuses.dictionary.index("late").as_py()
    wanted = mine & (np.asarray(statuses.indices) != late)
    return rows if wanted.all() else rows.filter(pa.array(wanted))


def map_texts(texts: pa.StringArray, to: Callable[[str], str | None]) -> pa.StringArray:
    """Map each text; each distinct text is mapped once, and null stays null."""
    coded = texts.dictionary_encode()
    return pa.array([to(text) for text in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


# --- meaning ---------------------------------------------------------------------------------------


def digest(value: object) -> str:
    """A digest that is equal for values with the same representation."""
    return blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# --- time ------------------------------------------------------------------------------------------


def with_watermark(operator: Operator, batches: Batches, latest: Instant) -> Batches:
    """Batches that carry the watermark at the end of event time, for an operator without input as well."""
    if latest == BEGINNING or not operator.machine.traits.uses_watermark:
        return batches
    first = next(iter(operator.topics.values()))
    batch = batches.get(first.name, from_events(first, []))
    return {**batches, first.name: with_totals(batch, len(batch), latest)}


def latest_time(watermarks: Mapping[str, Instant], topics: Iterable[str], beginning: Instant) -> Instant:
    """The time of the latest reading of any of some topics."""
    found = None
    for topic in topics:
        at = watermarks.get(topic)
        if at is not None and (found is None or at > found):
            found = at
    return beginning if found is None else found
