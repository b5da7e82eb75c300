"""Operators: condition machines in a graph, with their identity, their key, their inputs and their outputs.

Runtimes use operators and do not depend on conditions or their kinds.
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
"""The columns that every batch may have, in addition to attributes."""

STATUS, KEY, SCOPE, SINCE = RETOLD = "@status", "@key", "@scope", "@since"
"""The columns that derived events have in addition to those of the event.

They are the status, the key of the scope, the label of the scope, and the time since which it is active.
`RETOLD` has all of them.
"""

ORDER = "@order"
"""The column with the sort keys of derived events at one time, if their machine emits such keys
(`order_keys`)."""


class Keys(NamedTuple):
    """The keys of events: event ``i`` has the key ``texts[codes[i]]``. A code of -1 or a text ``None`` means
    no key."""

    codes: NDArray[Any]
    texts: Sequence[str | None] | pa.StringArray

    @property
    def array(self) -> pa.StringArray:
        """The texts as an Arrow array."""
        return self.texts if isinstance(self.texts, pa.Array) else pa.array(self.texts, pa.string())


class OperatorRecord(msgspec.Struct, frozen=True):
    """The part of an operator that is stored with its state: its place, its subscriptions and their
    meanings."""

    kind: str
    stage: int
    key: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]


def without_names(record: OperatorRecord, gone: Collection[str]) -> OperatorRecord:
    """Return the record of an operator without the subscriptions `gone`."""
    names = tuple(tuple(name for name in some if name not in gone) for some in record.names)
    pairs = zip(record.names, names, record.meanings, strict=True)
    meanings = tuple("" if before and not after else meaning for before, after, meaning in pairs)
    return msgspec.structs.replace(record, names=names, meanings=meanings)


@dataclass(frozen=True)
class Links:
    """The position of an operator among others; `plan.compile.link` computes it."""

    stage: int = 0
    derived_topics: Mapping[str, Topic] = field(default_factory=dict)
    """The conditions that downstream operators consume, with the topics of their derived events."""
    clock_topics: frozenset[str] = frozenset()
    """The topics of readings that advance the watermark, if they are more than the consumed topics."""
    hidden: frozenset[str] = frozenset()
    """The conditions whose subscribers are notified by operators downstream instead."""
    upstreams: frozenset[str] = frozenset()
    """The conditions that this operator consumes. It processes a time when they have emitted all their events
    of it."""


@dataclass(frozen=True)
class Presentation:
    """Names and explanations of an operator. They change no result."""

    label: Callable[[str], str | None] | None = None
    """Converts a scope to its label in transitions; ``None`` if both are the same."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The subscriptions that the operator serves under the name of another condition. A mute does this."""
    reasons: tuple[tuple[str, str], ...] = ()
    """The reasons why conditions have no key, for explanations."""


@dataclass(frozen=True)
class Operator:
    """A machine with all properties that a runtime needs to run it.

    Its identity comes first: condition `i` of the machine serves the subscriptions `names[i]`; none if only
    other conditions consume it. `meanings[i]` is a digest that is equal for conditions with the same meaning.
    Its inputs, the key by which its events are distributed, and its delays follow.
    """

    kind: str
    machine: Machine[Any]
    names: tuple[tuple[str, ...], ...]
    meanings: tuple[str, ...]
    reading_topics: tuple[tuple[str, ...], ...]
    """For each condition the topics of readings that it consumes, directly or through other conditions."""
    decisive_columns: Mapping[str, frozenset[str]]
    """For each topic the columns that decide whether an event is relevant."""
    needed_columns: Mapping[str, frozenset[str]] | None = None
    """For each topic the columns that relevant events need; `None` if all columns are needed."""
    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The relevant sources of topics for which no other sources are relevant."""
    upstream_topics: frozenset[str] = frozenset()
    """The derived topics that the operator consumes."""
    missing_rows: Callable[[pa.RecordBatch], Sequence[Mask]] | None = None
    """Returns for each condition the events in its scopes that have no row in its tables.

    It is `None` without tables, and if the machine counts such events as outside. A machine with no-data
    predicates counts them as inside, because they end a `silent`.
    """
    keyed: Callable[[str, pa.RecordBatch], Keys] | None = None
    """Returns the shuffle key of each event of a batch; `None` if all events go to one place."""
    key: tuple[str, ...] = ()
    """The names of the columns of the shuffle key, or a name for the place. If it is empty, the operator runs
    in the first place."""
    delay: Duration = 0
    """The maximal distance behind the watermark of the events that the operator still emits, in
    microseconds."""
    extra_wait: Duration = 0
    """The maximal duration that the operator waits longer than its upstreams; 0 if none is declared."""
    joins: bool = False
    """Whether a condition that starts later joins the machine, with the latest reading of every source.

    It may replace a condition with the same name.
    """
    starts_from_standings: bool = False
    """Whether the operator starts from the standings of the conditions that it consumes."""
    links: Links = Links()
    presentation: Presentation = Presentation()

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics that the operator consumes, by name."""
        return self.machine.topics

    @property
    def compacts(self) -> bool:
        """Whether the operator needs fewer rows of a closed part than of any other part."""
        return self.machine.traits.compacts and len(self.topics) == 1

    @cached_property
    def clock(self) -> frozenset[str]:
        """The topics of readings that advance the operator's watermark."""
        return self.links.clock_topics or frozenset(self.topics)

    @cached_property
    def recipients(self) -> tuple[tuple[str, ...], ...]:
        """For each condition the subscriptions that are notified of its transitions."""
        hidden, called = self.links.hidden, self.presentation.aliases
        return tuple(
            tuple(called.get(name, name) for name in names if name not in hidden) for names in self.names
        )

    @cached_property
    def subscriptions(self) -> tuple[str, ...]:
        """All subscriptions that the operator serves."""
        return tuple(self.presentation.aliases.get(name, name) for names in self.names for name in names)

    @property
    def record(self) -> OperatorRecord:
        """The part of the operator that is stored with its state."""
        return OperatorRecord(self.kind, self.links.stage, self.key, self.names, self.meanings)

    def with_names(self, names: Iterable[Iterable[str]]) -> Operator:
        """Return the operator with other subscriptions."""
        return replace(self, names=tuple(map(tuple, names)))

    def topics_by_name(self) -> dict[str, tuple[str, ...]]:
        """Return for each subscription the topics of readings that it consumes."""
        pairs = zip(self.names, self.reading_topics, strict=True)
        return {name: topics for names, topics in pairs for name in names}

    # --- time ---

    def due(self, state: Any) -> Instant | None:
        """Return the time that the watermark must pass before the operator emits without an event; `None` if
        nothing waits."""
        at = self.machine.due(state)
        return at if at is None or not self.links.upstreams else at + self.delay

    def is_upstream_of(self, by: Operator) -> bool:
        """Whether another operator consumes one of the operator's conditions."""
        return any(name in by.links.upstreams for names in self.names for name in names)

    def pending(self, due: Instant | None) -> Instant | None:
        """Return the earliest time at which the operator may emit without a further reading.

        `due` is the time at which its machine is due.
        """
        return None if due is None else due - self.delay

    def watermark(self, at: Instant, pending: Iterable[Instant | None]) -> Instant:
        """Return the operator's watermark at the time `at` of the latest reading.

        `pending` has the times at which its upstreams may still emit. The upstreams may also emit for
        readings that have not arrived yet. The watermark therefore stays behind by their delay.
        """
        if at in (BEGINNING, NEVER):
            return at
        known = min((at - self.delay, *(time for time in pending if time is not None)))
        return known if not self.extra_wait else max(min(at, known + self.extra_wait), at - self.delay)

    # --- inputs ---

    def keys(self, topic: str, batch: pa.RecordBatch) -> Keys:
        """Return the shuffle key of each event of a batch."""
        if self.keyed is None:
            return Keys(np.zeros(len(batch), np.int64), [" ".join(self.key) or None])
        return self.keyed(topic, batch)

    def project(self, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch without columns that are not needed."""
        if self.needed_columns is None:
            return batch
        return batch.select([name for name in batch.schema.names if name in self.needed_columns[topic]])

    # --- outputs ---

    def notifications(self, emission: Emission) -> list[Notification]:
        """Return an emission of the machine as notifications."""
        return list(self.address(transitions(self.topics, emission)))

    def address(self, transitions: Iterable[Transition]) -> Iterator[Notification]:
        """Yield transitions of the machine as notifications, one for each subscription."""
        names, shown = self.recipients, self.presentation.label
        for event, status, scope, since, condition in transitions:
            place = scope if shown is None or scope is None else shown(scope)
            for name in self.subscriptions if condition < 0 else names[condition]:
                yield notify(name, event, status, place, since)

    def label_of(self, scope: str | None) -> str | None:
        """Return the label of a scope in transitions."""
        label = self.presentation.label
        return scope if label is None or scope is None else label(scope)

    def label_scopes(self, scopes: pa.StringArray) -> pa.StringArray:
        """Return the labels of scopes in rows."""
        label = self.presentation.label
        return scopes if label is None else map_texts(scopes, label)

    def serves(self, names: Collection[str]) -> bool:
        """Whether the operator serves one of the given subscriptions."""
        return any(name in names for some in self.names for name in some)

    def active(self, state: Any) -> Iterator[tuple[str, str | None, Instant]]:
        """Yield the active scopes of a state: (subscription, label, since)."""
        for condition, scope, since in self.machine.active(state):
            for name in self.names[condition]:
                yield name, self.label_of(scope), since

    def unknown(self, state: Any) -> Iterator[tuple[str, str | None, Instant | None]]:
        """Yield the unknown scopes of a state: (subscription, label, since when they were active)."""
        for condition, scope, since in self.machine.unknown(state):
            for name in self.names[condition]:
                yield name, self.label_of(scope), since

    def derive_events(self, transitions: Iterable[Transition]) -> dict[str, list[Event]]:
        """Return the derived events of transitions that downstream operators consume, by topic."""
        derived: dict[str, list[Event]] = {}
        if self._derived_conditions:
            for transition in transitions:
                for condition, topic in self._derived_conditions:
                    if condition == transition.condition and transition.status != "late":
                        derived.setdefault(topic.name, []).append(self._to_event(topic, transition))
        return derived

    def derive(self, emission: Emission) -> dict[str, pa.RecordBatch]:
        """Return the derived events of an emission as batches, by topic."""
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
        """The numbers of the conditions that downstream operators consume, with their derived topics."""
        return [
            (i, self.links.derived_topics[name])
            for i, names in enumerate(self.names)
            for name in names
            if name in self.links.derived_topics
        ]

    def _to_rows(self, topic: Topic, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return emitted rows of a condition as derived events."""
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
        """Return a transition as a derived event."""
        event, status, scope, since, _ = transition
        own = dict(zip(RETOLD, (status, scope or "", self.label_of(scope), since), strict=True))
        return replace(event, topic=topic.name, attributes={**event.attributes, **own})


# --- derived events ----------------------------------------------------------------------------------


_OWN = (*(Attribute(name, "text") for name in (STATUS, KEY, SCOPE)), Attribute(SINCE, "int"))


def topic_of_condition(topic: Topic) -> Topic:
    """Return the topic of the derived events of a condition, given the topic of its events."""
    return Topic(f"@{topic.name}", (*topic.attributes, *_OWN))


def is_derived(topic: Topic) -> bool:
    """Whether the events of a topic are derived events."""
    return STATUS in topic.by_name


def order_keys(rows: pa.RecordBatch) -> list[bytes]:
    """Return the sort key of each derived event among the events of its time.

    The key is the column `ORDER` or, without it, the bytes of source and sequence. For one event, a machine
    may emit transitions with the source of another event. It then appends the position of each transition to
    the key of the event that caused it. After a shuffle, sorting by these keys restores the order in which
    one process emits the transitions.
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
    """Return derived events sorted by time and `order_keys`. The events of each scope stay in the order of
    emission."""
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
    """Return the position of each row, given the rows in the order of (time, source, sequence)."""
    places = np.empty(len(rows), np.int64)
    places[ordered] = np.arange(len(rows))
    return turns(rows, places, SCOPE)


_BESIDE = {"source": "@source", "sequence": "@sequence"}
"""The columns with the original source and sequence of a row while those of another row replace them."""


def encode_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows prepared such that a sort by (time, source, sequence) orders them as `sort_derived`
    does.

    A row that would precede an earlier row of its scope gets the source and sequence of that row. Its own
    values are stored in further columns.
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
    """Return rows from `encode_order` with their own sources and sequences."""
    for name, own in _BESIDE.items():
        if own in rows.schema.names:
            rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(own))
            rows = rows.drop_columns([own])
    return rows


def _of(rows: pa.RecordBatch, condition: int) -> pa.RecordBatch:
    """Return the rows that a condition emitted, without late events."""
    mine = (rows.column(machine.CONDITIONS).to_numpy() & np.uint64(1 << condition)) != 0
    statuses = rows.column(machine.STATUS).dictionary_encode()
    late = statuses.dictionary.index("late").as_py()
    wanted = mine & (np.asarray(statuses.indices) != late)
    return rows if wanted.all() else rows.filter(pa.array(wanted))


def map_texts(texts: pa.StringArray, to: Callable[[str], str | None]) -> pa.StringArray:
    """Return each text mapped by a function. The function is called once for each distinct text; null stays
    null."""
    coded = texts.dictionary_encode()
    return pa.array([to(text) for text in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


# --- meaning ---------------------------------------------------------------------------------------


def digest(value: object) -> str:
    """Return a digest that is equal for values with the same representation (`repr`)."""
    return blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# --- time ------------------------------------------------------------------------------------------


def with_watermark(operator: Operator, batches: Batches, latest: Instant) -> Batches:
    """Return batches that carry the watermark at the end of event time, even for an operator without
    input."""
    if latest == BEGINNING or not operator.machine.traits.uses_watermark:
        return batches
    first = next(iter(operator.topics.values()))
    batch = batches.get(first.name, from_events(first, []))
    return {**batches, first.name: with_totals(batch, len(batch), latest)}


def latest_time(watermarks: Mapping[str, Instant], topics: Iterable[str], beginning: Instant) -> Instant:
    """Return the time of the latest reading of the given topics; `beginning` if they have no readings."""
    found = None
    for topic in topics:
        at = watermarks.get(topic)
        if at is not None and (found is None or at > found):
            found = at
    return beginning if found is None else found
