"""The output of a relation machine: rows of the kernel, and their conversion to record batches and
transitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...engine.machine import CONDITIONS, SCOPE, SINCE, STATUS
from ...model.batch import TIME
from ...model.event import STATUSES, Event, Status, Transition
from ...model.relation import Pairs, Relation
from ...model.scope import join_values
from ...model.topic import Topic
from .ties import Floats, Ints

SIDES: tuple[Status, Status] = ("ingress", "egress")
"""The status of each side: 0 for a start, 1 for an end."""
_CODES = np.array([STATUSES.index(side) for side in SIDES], np.int8)


class EmittedRows(NamedTuple):
    """Starts (side 0) and ends (side 1) of ties, in columns.

    ``pairs`` has the number of the tie and, for a relation of alternatives, the number of the alternative. If
    all sources take part, it has the numbers of the two members.
    """

    pairs: Ints
    sides: Ints
    times: Ints
    by: Ints
    """The members whose readings are reported; ``numbers`` are the sequence numbers of these readings."""
    numbers: Ints
    since: Ints
    values: Floats

    def first(self, count: int) -> EmittedRows:
        """Return a copy of the first ``count`` rows. The kernel leaves the remaining room unused."""
        return EmittedRows(*(column[:count].copy() for column in self))  # type: ignore[arg-type]


def join_parts(parts: Sequence[EmittedRows]) -> EmittedRows | None:
    """Concatenate outputs; return ``None`` if they have no rows."""
    parts = [part for part in parts if len(part.times)]
    if len(parts) < 2:
        return parts[0] if parts else None
    return EmittedRows(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class RelationEmitter:
    """Converts the output of the kernel to events of the relation's topic."""

    topic: Topic
    relation: Relation

    def rows(self, emitted: EmittedRows, sources: Sequence[str]) -> pa.RecordBatch:
        """Convert output to a record batch, sorted by time, with ends first, then by scope."""
        pairs, scopes = self.names_of(emitted.pairs, sources)
        ends = emitted.sides == 1
        columns = {
            "time": pa.array(emitted.times).cast(TIME),
            "source": pa.array([sources[member] for member in emitted.by.tolist()], pa.string()),
            "sequence": pa.array(emitted.numbers),
            **{name: pa.array(side, pa.string()) for name, side in zip(self._roles, pairs, strict=True)},
            self.relation.measure: pa.array(emitted.values),
            CONDITIONS: pa.array(np.ones(len(ends), np.uint64)),
            STATUS: pa.DictionaryArray.from_arrays(_CODES[emitted.sides], list(STATUSES)),
            SCOPE: pa.array(scopes, pa.string()),
            SINCE: pa.array(emitted.since, mask=~ends).cast(TIME),
        }
        keys = {"time": pa.array(emitted.times), "starts": pa.array(~ends), "scope": columns[SCOPE]}
        order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
        return pa.RecordBatch.from_pydict(columns).take(order)

    def one_by_one(self, emitted: EmittedRows, sources: Sequence[str]) -> Iterator[Transition]:
        """Yield output as transitions, in the order of the kernel."""
        pairs, scopes = self.names_of(emitted.pairs, sources)
        columns = [column.tolist() for column in emitted[1:]]
        names, measure = self._roles, self.relation.measure
        for i, (side, at, member, number, since, value) in enumerate(zip(*columns, strict=True)):
            attributes = dict(zip(names, (pair[i] for pair in pairs), strict=True)) | {measure: value}
            event = Event(self.topic.name, at, sources[member], attributes, number)
            yield Transition(event, SIDES[side], scopes[i], since if side else None, 0)

    @property
    def _roles(self) -> tuple[str, ...]:
        """The names of the two roles of a pair; none for a relation of alternatives."""
        return () if self.relation.kind == "best" else self.relation.names

    def names_of(self, ties_of: Ints, sources: Sequence[str]) -> tuple[list[list[str]], list[str | None]]:
        """Return the scopes of ties, and for pairs also their first and their second sources.

        ``sources`` has the name of each member.
        """
        relation, ties = self.relation, self.relation.ties
        first, second = ties_of.T.tolist()
        if relation.kind == "best":
            return [], [relation.names[choice] for choice in second]
        if ties is None:
            pairs = [[sources[member] for member in side] for side in (first, second)]
        elif isinstance(ties, Pairs):
            pairs = [[side[tie] for tie in first] for side in (ties.first, ties.second)]
        else:
            pairs = [list(side) for side in zip(*(ties[tie].pair for tie in first), strict=True)]
            return pairs, [ties[tie].scope for tie in first]
        return pairs, [join_values(pair) for pair in zip(*pairs, strict=True)]
