"""What a condition machine is.

Laws, property-tested for every machine (`tests/laws/test_machines.py`):

0. `step` equals folding `react`, then `advance` to the watermark.
1. Cut anywhere: stepping through a ++ b equals stepping through a, then b.
2. Compact anywhere: `compact_part` drops events that cannot change the output, whatever the state before. It
   may be applied to any closed part of a scope's sequence, any number of times. A part is closed if no other
   event of the scope falls between its first and last.
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
"""A batch of each topic that has some."""

Mask = NDArray[np.bool_]

CONDITIONS, STATUS, SCOPE, SINCE = "@conditions", "@status", "@scope", "@since"
"""What a machine adds to the columns of events that passed; conditions are the bits of a word."""

EVERY = np.uint64(2**64 - 1)
"""The word of all conditions of a machine."""


class Emission(NamedTuple):
    """The output of a machine in one step: rows of events by topic, and transitions that are not rows of an
    input. `topics` declares topics of rows that are not input topics. `order` has a sort key for each of
    `single`, if the order at one time is not that of source and sequence (`operator.order_keys`)."""

    rows: Mapping[str, pa.RecordBatch]
    single: Sequence[Transition] = ()
    topics: Mapping[str, Topic] = MappingProxyType({})
    order: Sequence[bytes] = ()


@dataclass
class Relevance:
    """Which rows of a batch can change the output.

    Rows that `satisfies` marks must be kept of any part of a history; of a closed part those that `decides`
    marks are enough. `outside` counts for each condition the rows in none of its scopes. What a machine
    evaluates for the first mask it uses again for the second one, which is computed when it is asked for.
    """

    satisfies: Mask
    outside: NDArray[np.int64]
    decide: Callable[[], Mask] | None = None

    @cached_property
    def decides(self) -> Mask:
        """The rows of a closed part that are enough."""
        return self.satisfies if self.decide is None else self.decide()


class Traits(NamedTuple):
    """What runtimes must know of a machine beforehand.

    - `uses_watermark`: time alone can make it emit; otherwise `advance` need not be called.
    - `lookaround`: how far around an event it must see to know all that is emitted for it; `None` if
      everything earlier may matter. Such machines can run on slices of a history.
    - `compacts`: of a closed part it needs fewer rows than of any other part (law 2).
    - `lateness`: how much older than the latest an event may be before its age alone matters (it is emitted
      as late, or ends a silence); `None` if that never matters.
    - `pauses`: its timers count only while readings can come; it has `resume`.
    """

    uses_watermark: bool = False
    lookaround: Duration | None = None
    compacts: bool = False
    lateness: Duration | None = None
    pauses: bool = False


S = TypeVar("S")


class Machine(Generic[S]):
    """A function from a history of events to the times at which conditions start and end.

    A runtime calls `initial` once, then any sequence of `react`, `advance` and `step`; watermarks never go
    back. A state that was passed in must not be used again: machines may change it in place. `dump` and
    `load` keep a state beyond the process; between them `delta` and `apply_delta` keep only what has
    changed, where a machine can tell (after `track_changes`). A machine has `topics` and writes `initial`,
    `react`, `dump` and `load`; the rest has defaults. Conditions of a machine are numbered from 0; scopes
    are texts, `None` for everything."""

    if TYPE_CHECKING:  # subclasses have them as fields, properties or class attributes

        @property
        def topics(self) -> Mapping[str, Topic]:
            """The topics whose events it consumes, by name."""

        @property
        def traits(self) -> Traits: ...

    else:
        traits = Traits()

    def initial(self) -> S:
        """The state before any event."""
        raise NotImplementedError

    def react(self, state: S, event: Event) -> tuple[S, list[Transition]]:
        """Process one event of its topics."""
        raise NotImplementedError

    def advance(self, state: S, watermark: Instant) -> tuple[S, list[Transition]]:
        """Let event time come as far as the watermark; `NEVER` ends it with the last event."""
        return state, []

    def step(self, state: S, batches: Batches, watermark: Instant) -> tuple[S, Emission]:
        """Process a batch of each topic, then let event time come as far as the watermark."""
        out: list[Transition] = []
        for topic, batch in batches.items():
            for event in to_events(self.topics[topic], batch):
                state, emitted = self.react(state, event)
                out += emitted
        state, emitted = self.advance(state, watermark)
        return state, Emission({}, out + emitted)

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        """Which rows of a batch can change the output."""
        return Relevance(np.ones(len(batch), np.bool_), np.zeros(1, np.int64))

    def due(self, state: S) -> Instant | None:
        """The time that the watermark must pass before `advance` emits something; `None` if it never does."""
        return None

    def resume(self, state: S, watermark: Instant) -> S:
        """Continue after a pause in which no reading could arrive, at the watermark of its end."""
        return state

    def active(self, state: S) -> list[tuple[int, str | None, Instant]]:
        """The scopes that are active: (condition, scope, since)."""
        return []

    def unknown(self, state: S) -> list[tuple[int, str | None, Instant | None]]:
        """The scopes that are unknown: (condition, scope, since when they were active)."""
        return []

    def level(self, state: S, scope: str | None) -> str | None:
        """The level of an active scope, of a machine that has levels."""
        return None

    def latest_transitions(self, state: S, condition: int) -> list[Transition]:
        """The last transition of each scope, where a machine remembers it."""
        return []

    def learn_latest(self, state: S, condition: int, latest: Sequence[Event]) -> S:
        """Give a condition that starts now the latest event of every source."""
        return state

    def is_initial(self, state: S, condition: int) -> bool:
        """Whether, for that condition, the state cannot be told from the initial one."""
        return self.dump(state) == self.dump(self.initial())

    def dump(self, state: S) -> bytes:
        """The state as bytes."""
        raise NotImplementedError

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> S:
        """The state that `dump` wrote; `was[i]` was the number of condition `i` then, `None` if it starts
        now."""
        raise NotImplementedError

    has_deltas = False
    """Whether it can tell what has changed in a state."""

    def track_changes(self, state: S) -> S:
        """The state, which tracks from now on what changes in it, if the machine can."""
        return state

    def delta(self, state: S) -> bytes | None:
        """The changes since the last call in a state that tracks them, `b""` if there are none; `None` if the
        whole state must be written."""
        return None

    def apply_delta(self, state: S, raw: bytes, was: Sequence[int | None] | None = None) -> S:
        """The state with changes that `delta` returned; `was` as for `load`."""
        raise NotImplementedError


class Wrapper(Machine[S]):
    """A machine around another one of the same conditions.

    `inner_state` and `with_inner_state` say where the state of the inner machine is in that of the wrapper.
    What concerns conditions is asked of the inner machine unless a wrapper answers it itself.
    """

    if TYPE_CHECKING:

        @property
        def inner(self) -> Machine[Any]:
            """The machine inside."""

    def inner_state(self, state: S) -> Any:
        """The state of the inner machine."""
        raise NotImplementedError

    def with_inner_state(self, state: S, inner: Any) -> S:
        """The state with another state of the inner machine."""
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
    """The transitions of an emission: late events first, then those that take others back, then the rest in
    order of time. Rows of one topic with one condition each stay in their order."""
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
    """The transitions of rows; a late event of all conditions is one transition with condition -1."""
    events, since = list(to_events(topic, passed)), passed.column(SINCE).cast(pa.int64()).to_pylist()
    statuses, scopes = (values(passed.column(name)) for name in (STATUS, SCOPE))
    words = passed.column(CONDITIONS).to_numpy()
    for_all = (words == EVERY) & pc.equal(plain(passed.column(STATUS)), "late").to_numpy(False)
    rows, numbers = set_bits(np.where(for_all, np.uint64(1), words))
    numbers[for_all[rows]] = -1
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        yield Transition(events[row], statuses[row], scopes[row], since[row], number)


def set_bits(words: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The numbers of the rows and of the conditions whose bits are set in the words."""
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    rows, numbers = np.nonzero(bits)
    return rows, numbers


def in_time(transition: Transition) -> tuple[object, ...]:
    """The order of transitions of several topics."""
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
    """Events as rows of an emission, with one status and without a scope."""
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
    """The events with further columns."""
    names = [*events.schema.names, *added]
    return pa.RecordBatch.from_arrays([*events.columns, *added.values()], names=names)


# --- relevance ---------------------------------------------------------------------------------------


def compact_part(
    machine: Machine[Any], batches: Batches, *, closed: bool = True, latest: Instant = NEVER
) -> dict[str, pa.RecordBatch]:
    """The rows of a part of a history that can change the output, whatever came before (law 2).

    No event before the part is later than `latest`: events that may be late are kept, because they may be
    emitted as late. The result still carries its watermark and the number of rows that it stands for."""
    found: dict[str, pa.RecordBatch] = {}
    for topic, batch in batches.items():
        if topic in machine.topics:
            relevance = machine.relevance(topic, batch)
            rows = relevance.decides if closed else relevance.satisfies
            found[topic] = keep_rows(batch, rows | may_be_late(machine, batch, latest))
    return found


def may_be_late(machine: Machine[Any], batch: pa.RecordBatch, latest: Instant) -> Any:
    """The events that may be late if no event before them was later than `latest`."""
    if machine.traits.lateness is None:
        return False
    return times(batch) < (latest - machine.traits.lateness if BEGINNING < latest < NEVER else latest)


def keep_rows(batch: pa.RecordBatch, stays: Mask) -> pa.RecordBatch:
    """Some rows of a batch, with the row count and watermark of the whole batch."""
    rows = batch if stays.all() else batch.filter(pa.array(stays))
    return with_totals(rows, row_count(batch), latest_time(batch))
