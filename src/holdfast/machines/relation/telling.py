"""What a machine of relationships says: as the kernel has it, in columns, and one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...model.batch import TIME
from ...model.event import STATUSES, Event, Status, Transition
from ...model.relation import Pairs, Relation
from ...model.scope import listed
from ...model.topic import Topic
from ..machine import CONDITIONS, SCOPE, SINCE, STATUS
from .ties import Floats, Ints

SIDES: tuple[Status, Status] = ("ingress", "egress")
_CODES = np.array([STATUSES.index(side) for side in SIDES], np.int8)


class Said(NamedTuple):
    """Starts (side 0) and ends of ties.  ``whom`` is the tie and, of the best, the alternative; where all
    sources are watched, the two members."""

    whom: Ints
    sides: Ints
    times: Ints
    by: Ints
    """The members whose readings they are told with, and the numbers of these."""
    numbers: Ints
    since: Ints
    values: Floats

    def first(self, count: int) -> Said:
        """So many of them, without the room for more."""
        return Said(*(column[:count].copy() for column in self))  # type: ignore[arg-type]


def joined(some: Sequence[Said]) -> Said | None:
    """All that was said, if something was."""
    some = [one for one in some if len(one.times)]
    if len(some) < 2:
        return some[0] if some else None
    return Said(*map(np.concatenate, zip(*some, strict=True)))


@dataclass(frozen=True)
class Telling:
    """Puts into words what is said of a relationship, as events of a topic."""

    topic: Topic
    relation: Relation

    def rows(self, said: Said, sources: Sequence[str]) -> pa.RecordBatch:
        """What was said, by time, ends first, and by scope."""
        pairs, scopes = self.named(said.whom, sources)
        ends = said.sides == 1
        columns = {
            "time": pa.array(said.times).cast(TIME),
            "source": pa.array([sources[member] for member in said.by.tolist()], pa.string()),
            "sequence": pa.array(said.numbers),
            **{name: pa.array(side, pa.string()) for name, side in zip(self._roles, pairs, strict=True)},
            self.relation.measure: pa.array(said.values),
            CONDITIONS: pa.array(np.ones(len(ends), np.uint64)),
            STATUS: pa.DictionaryArray.from_arrays(_CODES[said.sides], list(STATUSES)),
            SCOPE: pa.array(scopes, pa.string()),
            SINCE: pa.array(said.since, mask=~ends).cast(TIME),
        }
        keys = {"time": pa.array(said.times), "starts": pa.array(~ends), "scope": columns[SCOPE]}
        order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
        return pa.RecordBatch.from_pydict(columns).take(order)

    def one_by_one(self, said: Said, sources: Sequence[str]) -> Iterator[Transition]:
        """What was said, as it stands."""
        pairs, scopes = self.named(said.whom, sources)
        columns = [column.tolist() for column in said[1:]]
        names, measure = self._roles, self.relation.measure
        for i, (side, at, who, number, since, value) in enumerate(zip(*columns, strict=True)):
            told = dict(zip(names, (some[i] for some in pairs), strict=True)) | {measure: value}
            event = Event(self.topic.name, at, sources[who], told, number)
            yield Transition(event, SIDES[side], scopes[i], since if side else None, 0)

    @property
    def _roles(self) -> tuple[str, ...]:
        """What the two of a pair are called."""
        return () if self.relation.kind == "best" else self.relation.names

    def named(self, whom: Ints, sources: Sequence[str]) -> tuple[list[list[str]], list[str | None]]:
        """Of ties the first and the second of each, where they are pairs, and their scopes."""
        relation, ties = self.relation, self.relation.ties
        first, second = whom.T.tolist()
        if relation.kind == "best":
            return [], [relation.names[choice] for choice in second]
        if ties is None:
            pairs = [[sources[member] for member in side] for side in (first, second)]
        elif isinstance(ties, Pairs):
            pairs = [[side[tie] for tie in first] for side in (ties.first, ties.second)]
        else:
            pairs = [list(side) for side in zip(*(ties[tie].pair for tie in first), strict=True)]
            return pairs, [ties[tie].scope for tie in first]
        return pairs, [listed(pair) for pair in zip(*pairs, strict=True)]
