"""What a condition machine is.

Laws, property-tested for every machine (`tests/laws`):

0. ``step`` equals folding ``react`` and then letting time come as far as ``until``.
1. Cut anywhere: stepping through a ++ b equals stepping through a, then b.
2. Reduce anywhere: ``reduce`` drops events that cannot change the output, whatever the state
   before; it may be applied to any closed part of a scope's sequence, any number of times.
3. Split by scope: the machine over a union of outermost scopes equals the union of machines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..model.batch import to_events
from ..model.event import Event, Transition
from ..model.instant import Instant
from ..model.topic import Topic

CONDITION, STATUS, SCOPE, SINCE = "@condition", "@status", "@scope", "@since"
"""What ``step`` adds to the columns of the events that passed."""


class Machine(Protocol):
    """A function from a history of events to the moments at which conditions start and end."""

    def initial(self) -> Any:
        """The state before any event."""

    def react(self, state: Any, event: Event) -> tuple[Any, list[Transition]]:
        """Take one event.  The state that was passed in must not be used again."""

    def advance(self, state: Any, until: Instant) -> tuple[Any, list[Transition]]:
        """Let event time come as far as ``until``."""

    def step(self, state: Any, batch: pa.RecordBatch, until: Instant) -> tuple[Any, pa.RecordBatch]:
        """Take a batch, after which event time has come as far as ``until``."""

    def reduce(self, batch: pa.RecordBatch, *, closed: bool = True) -> pa.RecordBatch:
        """The events of a part of the history that can matter, whatever came before."""

    def matters(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which events satisfy some predicate: all that a part that is not closed must keep."""

    def outside(self, batch: pa.RecordBatch) -> int:
        """How many events lie in no scope, and so mean nothing here."""

    def due(self, state: Any) -> Instant | None:
        """When the machine wants to be stepped even if no event comes."""

    def holding(self, state: Any) -> list[tuple[int, str | None, Instant]]:
        """Which conditions hold now: (condition, scope, since)."""

    def is_fresh(self, state: Any, condition: int) -> bool:
        """Whether, for that condition, the state cannot be told from the initial one."""

    def to_bytes(self, state: Any) -> bytes:
        """The state, to be kept."""

    def from_bytes(self, raw: bytes, picked: Sequence[int] | None = None) -> Any:
        """The state that ``to_bytes`` kept; ``picked[i]`` was the number of condition ``i`` then."""


def transitions(topic: Topic, passed: pa.RecordBatch) -> Iterator[Transition]:
    """The transitions of a batch that a machine's ``step`` returned, one by one."""
    columns = [passed.column(name).to_pylist() for name in (STATUS, SCOPE, CONDITION)]
    since = passed.column(SINCE).cast(pa.int64()).to_pylist()
    for event, status, scope, condition, began in zip(to_events(topic, passed), *columns, since, strict=True):
        yield Transition(event, status, scope, began, condition)
