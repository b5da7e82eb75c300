"""What a condition machine is.

Laws, property-tested for every machine (`tests/laws`):

0. ``step`` equals folding ``react`` and then letting time come as far as ``until``.
1. Cut anywhere: stepping through a ++ b equals stepping through a, then b.
2. Reduce anywhere: ``reduce`` drops events that cannot change the output, whatever the state
   before; it may be applied to any closed part of a scope's sequence, any number of times.
3. Split by scope: the machine over a union of outermost scopes equals the union of machines.

Whoever schedules machines knows them by this alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..model.batch import TIME, plain, reached, stood_for, times, to_events, values, with_progress
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


class Told(NamedTuple):
    """What a machine says of a step: rows of events that passed, by topic, and transitions one by one.
    ``topics`` are those of rows that are not of a topic that it listens to."""

    rows: Mapping[str, pa.RecordBatch]
    single: Sequence[Transition] = ()
    topics: Mapping[str, Topic] = MappingProxyType({})


class Survey(NamedTuple):
    """Which events of a batch matter, and how many of all each condition has no scope for."""

    matters: Mask
    outside: NDArray[np.int64]


class Machine(Protocol):
    """A function from a history of events to the moments at which conditions start and end."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """What it listens to, by name."""

    @property
    def strictest(self) -> Duration | None:
        """How much older than the latest an event may be so that its age alone means nothing (it is not told
        as late, it ends a silence); ``None`` if that never means anything."""

    @property
    def is_timed(self) -> bool:
        """Whether it minds how far time has come; else it acts on events alone."""

    @property
    def margin(self) -> Duration | None:
        """How far around an event one must look to know all that is said of it; ``None`` if everything
        before it may matter."""

    @property
    def compacts(self) -> bool:
        """Whether ``reduce`` drops more of a closed part than what does not matter."""

    def initial(self) -> Any:
        """The state before any event."""

    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]:
        """Take one event of its topics.  The state that was passed in must not be used again."""

    def advance(self, state: Any, until: Instant) -> tuple[Any, list[Transition]]:
        """Let event time come as far as ``until``; ``NEVER`` lets it come to the last event."""

    def step(self, state: Any, batches: Batches, until: Instant) -> tuple[Any, Told]:
        """Take a batch of each topic, after which event time has come as far as ``until``."""

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        """The events of a part of the history that can matter, whatever came before; no event that
        came before is later than ``latest``."""

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        """Which events satisfy some predicate: all that a part that is not closed must keep."""

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        """The same, or of a closed part what ``reduce`` leaves; and for each condition how many events lie
        in no scope of it, and so mean nothing."""

    def due(self, state: Any) -> Instant | None:
        """The instant beyond which time must come before ``advance`` says something by itself."""

    def holding(self, state: Any) -> list[tuple[int, str | None, Instant]]:
        """Which conditions hold now: (condition, scope, since)."""

    def unknown(self, state: Any) -> list[tuple[int, str | None, Instant | None]]:
        """Of which conditions nobody knows now whether they hold: (condition, scope, since when it held)."""

    def last(self, state: Any, condition: int) -> list[Transition]:
        """The last thing said of each scope, where that is remembered."""

    def is_fresh(self, state: Any, condition: int) -> bool:
        """Whether, for that condition, the state cannot be told from the initial one."""

    def to_bytes(self, state: Any) -> bytes:
        """The state, to be kept."""

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> Any:
        """The state that ``to_bytes`` kept; ``was[i]`` was the number of condition ``i`` then, ``None``
        if it starts now."""

    def inform(self, state: Any, condition: int, latest: Sequence[Event]) -> Any:
        """Let a condition that starts now know the latest reading of every source; most need not."""


@runtime_checkable
class Noting(Protocol):
    """A machine that can tell what has changed in a state without a look at all of it."""

    def noting(self, state: Any) -> Any:
        """The state, which notes from now on what changes in it."""

    def noted(self, state: Any) -> bytes | None:
        """What has changed in a state that notes since it was last asked, nothing if nothing has; ``None``
        if only the whole of it says that."""

    def renewed(self, state: Any, raw: bytes, was: Sequence[int | None] | None = None) -> Any:
        """The state with what has changed in it since, as ``from_bytes`` reads it."""


@runtime_checkable
class Pausing(Protocol):
    """A machine whose timers count only while readings can come."""

    @property
    def pauses(self) -> bool:
        """Whether they do so in this one."""

    def resume(self, state: Any, until: Instant) -> Any:
        """Go on after a pause in which no reading could come, at the end of which time has come so far."""


def can_pause(machine: Machine) -> bool:
    """Whether the timers of a machine count only while readings can come."""
    return isinstance(machine, Pausing) and machine.pauses


# --- what is told ------------------------------------------------------------------------------------


def transitions(topics: Mapping[str, Topic], told: Told) -> list[Transition]:
    """What was told, one by one: late events first, then what is taken back, the rest in order of time
    where it is of several kinds or concerns several conditions, else as it stands."""
    if not told.rows:
        return list(told.single)
    some = {name: passed for name, passed in told.rows.items() if len(passed)}
    known = {**topics, **told.topics}
    rows = [t for name, passed in some.items() for t in _transitions(known[name], passed)]
    if len(told.rows) == 1 and not told.single and len(rows) == sum(map(len, told.rows.values())):
        return rows
    late = [t for t in told.single if t.status == "late"]
    back = [t for t in told.single if t.status in TAKES_BACK.values()]
    rest = [*rows, *(t for t in told.single if t.status not in ("late", *TAKES_BACK.values()))]
    return late + back + sorted(rest, key=in_time)


def _transitions(topic: Topic, passed: pa.RecordBatch) -> Iterator[Transition]:
    """Late events that concern every condition are one transition each, of no condition in particular."""
    events, since = list(to_events(topic, passed)), passed.column(SINCE).cast(pa.int64()).to_pylist()
    statuses, scopes = (values(passed.column(name)) for name in (STATUS, SCOPE))
    words = passed.column(CONDITIONS).to_numpy()
    everybody = (words == EVERY) & pc.equal(plain(passed.column(STATUS)), "late").to_numpy(False)
    rows, numbers = concerned(np.where(everybody, np.uint64(1), words))
    numbers[everybody[rows]] = -1
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        yield Transition(events[row], statuses[row], scopes[row], since[row], number)


def concerned(words: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each row and each condition in its word the row and the condition's number."""
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    rows, numbers = np.nonzero(bits)
    return rows, numbers


def in_time(told: Transition) -> tuple[object, ...]:
    """The order of transitions of several topics."""
    event = told.event
    return (event.time, told.condition, told.scope or "", event.source, event.sequence, event.topic)


def marked(events: pa.RecordBatch, words: NDArray[np.uint64], status: Status) -> pa.RecordBatch:
    """Events as rows that were told, all with one status, in no scope."""
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


# --- what can matter ---------------------------------------------------------------------------------


def mattering(machine: Machine, batches: Batches, latest: Instant) -> dict[str, pa.RecordBatch]:
    """The events that matter, and those that may be late where that is told; what is left still says
    how far time has come and how many events it stood for."""
    return {
        topic: thinned(batch, machine.matters(topic, batch) | may_be_late(machine, batch, latest))
        for topic, batch in batches.items()
        if topic in machine.topics
    }


class Hearing(Protocol):
    """A machine that hears conditions: nothing of what they say can be done without."""

    @property
    def topics(self) -> Mapping[str, Topic]: ...

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        known = {topic: batch for topic, batch in batches.items() if topic in self.topics}
        return {topic: thinned(batch, self.matters(topic, batch)) for topic, batch in known.items()}

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        return np.ones(len(batch), np.bool_)

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        return Survey(self.matters(topic, batch), np.zeros(1, np.int64))


def may_be_late(machine: Machine, batch: pa.RecordBatch, latest: Instant) -> Any:
    """Which events may matter because they are late, if none before them was later than ``latest``."""
    if machine.strictest is None:
        return False
    return times(batch) < (latest - machine.strictest if BEGINNING < latest < NEVER else latest)


def thinned(batch: pa.RecordBatch, stays: Mask) -> pa.RecordBatch:
    """Some of the events, which stand for all."""
    kept = batch if stays.all() else batch.filter(pa.array(stays))
    return with_progress(kept, stood_for(batch), reached(batch))
