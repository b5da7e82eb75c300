"""The interface of condition machines, and functions over their emissions.

Laws, property-tested for every machine (`tests/laws/test_machines.py`):

0. `step` equals folding `react`, then `advance` to the watermark.
1. Cut anywhere: stepping through a ++ b equals stepping through a, then b.
2. Compact anywhere: `compact_part` drops events that cannot change the output, for any state before. It
   may be applied to any closed part of a scope's sequence, any number of times. A part is closed if no
   other event of the scope falls between its first and last.
3. Split by scope: the machine over a union of outermost scopes equals the union of machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..model.batch import TIME, latest_time, plain, row_count, times, to_events, values, with_totals
from ..model.event import STATUSES, TAKES_BACK, Event, Status, Transition
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.topic import Topic

Batches = Mapping[str, pa.RecordBatch]
"""A batch of each topic. Topics without events may be absent."""

Mask = NDArray[np.bool_]

CONDITIONS, STATUS, SCOPE, SINCE = "@conditions", "@status", "@scope", "@since"
"""Columns that a machine adds to the events that it emits. A condition is a bit of the word in
`CONDITIONS`."""

EVERY = np.uint64(2**64 - 1)
"""The word of all conditions of a machine."""


class Emission(NamedTuple):
    """The output of a machine in one step: rows of events by topic, and single transitions.

    Single transitions are those that are not rows of an input. `topics` declares the topics of rows that are
    not input topics. `order` has a sort key for each item of `single` if the order at one time is not that of
    source and sequence (`operator.order_keys`).
    """

    rows: Mapping[str, pa.RecordBatch]
    single: Sequence[Transition] = ()
    topics: Mapping[str, Topic] = MappingProxyType({})
    order: Sequence[bytes] = ()


@dataclass
class Relevance:
    """The rows of a batch that can change the output.

    In any part of a history, the rows in `satisfies` must stay. In a closed part, the rows in `decides`
    suffice. `outside` is for each condition the number of rows in none of its scopes. `decides` is computed
    on first access and can reuse intermediate results of `satisfies`.
    """

    satisfies: Mask
    outside: NDArray[np.int64]
    decide: Callable[[], Mask] | None = None

    @cached_property
    def decides(self) -> Mask:
        """A mask of the rows of a closed part that suffice."""
        return self.satisfies if self.decide is None else self.decide()


class Traits(NamedTuple):
    """The properties of a machine that runtimes must know before they run it.

    - `uses_watermark`: time alone can make the machine emit. Otherwise `advance` need not be called.
    - `lookaround`: the machine can run on slices of a history. Events within this duration around an event
      suffice for its output; `None` if every earlier event may be relevant.
    - `compacts`: the machine needs fewer rows of a closed part than of any other part (law 2).
    - `lateness`: an event that is older than the latest event by more than this duration is relevant by its
      age alone: it is emitted as late or ends a no-data time. The value is `None` if age alone is never
      relevant.
    - `pauses`: timers count only while readings can arrive. The machine has `resume`.
    """

    uses_watermark: bool = False
    lookaround: Duration | None = None
    compacts: bool = False
    lateness: Duration | None = None
    pauses: bool = False


S = TypeVar("S")


class Machine(Generic[S]):
    """A function from a history of events to the times at which conditions start and end.

    A runtime calls `initial` once, then any sequence of `react`, `advance` and `step`; watermarks never
    decrease. A state that was passed in must not be used again, because machines may change it in place.
    `dump` and `load` store a whole state. Between them, `delta` and `apply_delta` store only the changes, if
    the machine `has_deltas` (after `track_changes`).

    A subclass must define `topics`, `initial`, `react`, `dump` and `load`; the other methods have defaults.
    The conditions of a machine are numbered from 0. A scope is a text, or `None` for everything.
    """

    if TYPE_CHECKING:  # subclasses have them as fields, properties or class attributes

        @property
        def topics(self) -> Mapping[str, Topic]:
            """The topics whose events it consumes, by name."""

        @property
        def traits(self) -> Traits: ...

    else:
        traits = Traits()

    def initial(self) -> S:
        """Return the state before any event."""
        raise NotImplementedError

    def react(self, state: S, event: Event) -> tuple[S, list[Transition]]:
        """Process one event of the machine's topics."""
        raise NotImplementedError

    def advance(self, state: S, watermark: Instant) -> tuple[S, list[Transition]]:
        """Advance event time to the watermark. `NEVER` ends event time with the last event."""
        return state, []

    def step(self, state: S, batches: Batches, watermark: Instant) -> tuple[S, Emission]:
        """Process a batch of each topic, then advance event time to the watermark."""
        out: list[Transition] = []
        for topic, batch in batches.items():
            for event in to_events(self.topics[topic], batch):
                state, emitted = self.react(state, event)
                out += emitted
        state, emitted = self.advance(state, watermark)
        return state, Emission({}, out + emitted)

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        """Return the rows of a batch that can change the output."""
        return Relevance(np.ones(len(batch), np.bool_), np.zeros(1, np.int64))

    def due(self, state: S) -> Instant | None:
        """Return the time that the watermark must pass before `advance` emits an event; `None` if nothing
        waits."""
        return None

    def resume(self, state: S, watermark: Instant) -> S:
        """Continue at the watermark after a pause in which no reading could arrive. Timers do not count the
        pause."""
        return state

    def active(self, state: S) -> list[tuple[int, str | None, Instant]]:
        """Return the active scopes: (condition, scope, since)."""
        return []

    def unknown(self, state: S) -> list[tuple[int, str | None, Instant | None]]:
        """Return the unknown scopes: (condition, scope, since). `since` is `None` unless the scope was active
        before."""
        return []

    def level(self, state: S, scope: str | None) -> str | None:
        """Return the level of an active scope; `None` for a machine without levels."""
        return None

    def latest_transitions(self, state: S, condition: int) -> list[Transition]:
        """Return the last transition of each scope, if the machine stores it."""
        return []

    def learn_latest(self, state: S, condition: int, latest: Sequence[Event]) -> S:
        """Give a condition that starts now the latest event of every source, in `latest`; return the new
        state."""
        return state

    def is_initial(self, state: S, condition: int) -> bool:
        """Whether the state of the given condition is equal to its initial state."""
        return self.dump(state) == self.dump(self.initial())

    def dump(self, state: S) -> bytes:
        """Return the state as bytes, for `load`. The state stays usable."""
        raise NotImplementedError

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> S:
        """Return the state that `dump` stored.

        `was[i]` is the number that condition `i` had then; `None` if the condition starts now.
        """
        raise NotImplementedError

    has_deltas = False
    """Whether the machine can store only the changes of a state."""

    def track_changes(self, state: S) -> S:
        """Return the state with tracking of changes from now on, if the machine has deltas."""
        return state

    def delta(self, state: S) -> bytes | None:
        """Return the changes since the last call in a state that tracks them; `b""` if there are none.

        Return `None` if the whole state must be stored.
        """
        return None

    def apply_delta(self, state: S, raw: bytes, was: Sequence[int | None] | None = None) -> S:
        """Return the state with changes that `delta` returned; `was` is as for `load`."""
        raise NotImplementedError


class Wrapper(Machine[S]):
    """A machine around another machine of the same conditions.

    `inner_state` and `with_inner_state` access the state of the inner machine. By default, methods about
    conditions call the inner machine.
    """

    if TYPE_CHECKING:

        @property
        def inner(self) -> Machine[Any]:
            """The machine that is wrapped."""

    def inner_state(self, state: S) -> Any:
        """Return the state of the inner machine."""
        raise NotImplementedError

    def with_inner_state(self, state: S, inner: Any) -> S:
        """Return the state with another state of the inner machine."""
        raise NotImplementedError

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.inner.topics

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        return self.inner.relevance(topic, batch)

    def active(self, state: S) -> list[tuple[int, str | None, Instant]]:
        return self.inner.active(self.inner_state(state))

    def unknown(self, state: S) -> list[tuple[int, str | None, Instant | None]]:
        return self.inner.unknown(self.inner_state(state))

    def latest_transitions(self, state: S, condition: int) -> list[Transition]:
        return self.inner.latest_transitions(self.inner_state(state), condition)

    def learn_latest(self, state: S, condition: int, latest: Sequence[Event]) -> S:
        return self.with_inner_state(
            state, self.inner.learn_latest(self.inner_state(state), condition, latest)
        )


# --- emissions ---------------------------------------------------------------------------------------


def transitions(topics: Mapping[str, Topic], emission: Emission) -> list[Transition]:
    """Return the transitions of an emission.

    Late events come first, then transitions that take others back, then the rest in order of time. Rows of
    one topic with one condition each stay in their order.
    """
    if not emission.rows:
        return list(emission.single)
    some = {name: passed for name, passed in emission.rows.items() if len(passed)}
    known = {**topics, **emission.topics}
    rows = [t for name, passed in some.items() for t in _transitions(known[name], passed)]
    if len(emission.rows) == 1 and not emission.single and len(rows) == sum(map(len, emission.rows.values())):
        return rows
    late = [t for t in emission.single if t.status == "late"]
    back = [t for t in emission.single if t.status in TAKES_BACK.values()]
    rest = [*rows, *(t for t in emission.single if t.status not in ("late", *TAKES_BACK.values()))]
    return late + back + sorted(rest, key=in_time)


def _transitions(topic: Topic, passed: pa.RecordBatch) -> Iterator[Transition]:
    """Yield the transitions of rows. A late event of all conditions is one transition with condition -1."""
    events, since = list(to_events(topic, passed)), passed.column(SINCE).cast(pa.int64()).to_pylist()
    statuses, scopes = (values(passed.column(name)) for name in (STATUS, SCOPE))
    words = passed.column(CONDITIONS).to_numpy()
    for_all = (words == EVERY) & pc.equal(plain(passed.column(STATUS)), "late").to_numpy(False)
    rows, numbers = set_bits(np.where(for_all, np.uint64(1), words))
    numbers[for_all[rows]] = -1
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        yield Transition(events[row], statuses[row], scopes[row], since[row], number)


def set_bits(words: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the row and the condition of each bit that is set in the words."""
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    rows, numbers = np.nonzero(bits)
    return rows, numbers


def in_time(transition: Transition) -> tuple[object, ...]:
    """Return the sort key of a transition: time, condition, scope, source, sequence, topic."""
    event = transition.event
    return (
        event.time,
        transition.condition,
        transition.scope or "",
        event.source,
        event.sequence,
        event.topic,
    )


def mark_rows(events: pa.RecordBatch, words: NDArray[np.uint64], status: Status) -> pa.RecordBatch:
    """Return events as rows of an emission, with one status and without a scope."""
    size = len(events)
    code = np.full(size, STATUSES.index(status), np.int8)
    added = {
        CONDITIONS: pa.array(words),
        STATUS: pa.DictionaryArray.from_arrays(code, list(STATUSES)),
        SCOPE: pa.nulls(size, pa.string()),
        SINCE: pa.nulls(size, TIME),
    }
    return with_columns(events, added)


def with_columns(events: pa.RecordBatch, added: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Return the events with further columns."""
    names = [*events.schema.names, *added]
    return pa.RecordBatch.from_arrays([*events.columns, *added.values()], names=names)


# --- relevance ---------------------------------------------------------------------------------------


def compact_part(
    machine: Machine[Any], batches: Batches, *, closed: bool = True, latest: Instant = NEVER
) -> dict[str, pa.RecordBatch]:
    """Return the rows of a part of a history that can change the output, for any history before it (law 2).

    No event before the part is later than `latest`. Events that may be late are included, because they may be
    emitted as late. Each batch still carries its watermark and the number of rows that it represents.
    """
    found: dict[str, pa.RecordBatch] = {}
    for topic, batch in batches.items():
        if topic in machine.topics:
            relevance = machine.relevance(topic, batch)
            rows = relevance.decides if closed else relevance.satisfies
            found[topic] = keep_rows(batch, rows | may_be_late(machine, batch, latest))
    return found


def may_be_late(machine: Machine[Any], batch: pa.RecordBatch, latest: Instant) -> Any:
    """Return a mask of the events that may be late if no event before them was later than `latest`."""
    if machine.traits.lateness is None:
        return False
    return times(batch) < (latest - machine.traits.lateness if BEGINNING < latest < NEVER else latest)


def keep_rows(batch: pa.RecordBatch, stays: Mask) -> pa.RecordBatch:
    """Return the rows of a batch where `stays` is true, with the row count and watermark of the whole
    batch."""
    rows = batch if stays.all() else batch.filter(pa.array(stays))
    return with_totals(rows, row_count(batch), latest_time(batch))
