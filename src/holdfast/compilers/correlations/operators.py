"""Correlations in shards.

Live, all events that match a machine's filters meet in one shard, and machines are spread over shards
[law 3].  History is cut into slices of time: who takes part is decided within a window around an event, so a
slice that knows a window more on both sides can tell of what it owns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ..lang.condition import Correlated
from ..machines.correlation.entries import Words
from ..machines.correlation.machine import Correlations
from ..machines.machine import CONDITION, SCOPE, SINCE, STATUS
from ..model.batch import TIME, times
from ..model.event import STATUSES, Event, Notification, Transition
from ..model.instant import HOUR, NEVER, Duration
from .correlation import Correlator, correlators, meaning
from .stages import Keys, Operator

WINDOWS = 64
"""How many windows a slice is long, or an hour: what lies in two slices is little then."""


@dataclass(frozen=True)
class Gathering(Operator):
    """A machine of correlations as an operator: of the first stage, by a key that says which it is."""

    machine: Correlations  # type: ignore[assignment]
    group: Correlator = field(kw_only=True)

    def keys(self, topic: str, batch: pa.RecordBatch) -> Keys:
        return Keys(np.zeros(len(batch), np.int64), [" ".join(self.key)])

    def outside(self, topic: str, batch: pa.RecordBatch) -> dict[str, int]:
        counts = zip(self.names, self.machine.outside(topic, batch), strict=True)
        return {name: int(count) for name, count in counts if name is not None and count}

    def needed(self, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """All of it: events are told as they are."""
        return batch

    def addressed(self, said: Iterable[Transition]) -> Iterator[Notification]:
        return self.group.addressed(said)

    def retold(self, said: Iterable[Transition]) -> dict[str, list[Event]]:
        return {}

    def listening(self) -> dict[str, list[str]]:
        return {one.name: [topic.name for topic in one.listens] for one in self.group.correlations}

    # --- history ---

    @property
    def length(self) -> Duration:
        """How long a slice of history is."""
        return max(WINDOWS * self.machine.within, HOUR)

    def sliced(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The events of a batch by slice of time; those near an end of one are in two."""
        moments, within = times(batch), self.machine.within
        own = moments // self.length
        before = np.flatnonzero(moments - own * self.length < within)
        after = np.flatnonzero((own + 1) * self.length - moments < within)
        rows = np.concatenate([np.arange(len(batch)), before, after])
        slices = np.concatenate([own, own[before] - 1, own[after] + 1])
        order = np.argsort(slices, kind="stable")
        found, starts = np.unique(slices[order], return_index=True)
        ends = [*starts[1:].tolist(), len(rows)]
        for number, start, end in zip(found.tolist(), starts.tolist(), ends, strict=False):
            yield number, batch.take(pa.array(rows[order[start:end]]))

    def told_of(
        self, number: int, batches: Mapping[str, pa.RecordBatch]
    ) -> tuple[dict[str, pa.RecordBatch], list[Notification]]:
        """What takes part in a slice of history and is the slice's own: events of each topic, as a machine's
        ``step`` returns them, and complex events."""
        state, _ = self.machine.take(self.machine.initial(), batches)
        _, told = self.machine.look(state, NEVER)
        simple = {}
        for topic, (events, words) in told.events.items():
            mine = times(events) // self.length == number
            simple[topic] = passed(events.filter(pa.array(mine)), words[mine])
        own = (one for one in told.complex if one.event.time // self.length == number)
        return simple, list(self.group.addressed(own))


def passed(events: pa.RecordBatch, words: Words) -> pa.RecordBatch:
    """A row for each event and correlation in which it takes part."""
    rows, numbers = np.nonzero(np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little"))
    size, atomic = len(rows), STATUSES.index("atomic")
    added = {
        CONDITION: pa.array(numbers.astype(np.int8)),
        STATUS: pa.DictionaryArray.from_arrays(np.full(size, atomic, np.int8), list(STATUSES)),
        SCOPE: pa.nulls(size, pa.string()),
        SINCE: pa.nulls(size, TIME),
    }
    taken = events.take(pa.array(rows))
    return pa.RecordBatch.from_arrays([*taken.columns, *added.values()], names=[*taken.schema.names, *added])


def gatherings(correlations: Iterable[Correlated]) -> list[Gathering]:
    """The operators of correlations; each correlation has a bit of its own, so that it can come and go."""
    settings: dict[tuple[str, ...], int] = {}
    found = []
    for group in correlators(correlations, apart=True):
        delivery = group.correlations[0].delivery
        setting = ("correlate", str(group.within), str(delivery.wait), delivery.late)
        number = settings[setting] = settings.get(setting, -1) + 1
        found.append(_gathering(group, (*setting, str(number))))
    return found


def _gathering(group: Correlator, key: tuple[str, ...]) -> Gathering:
    machine = group.machine
    names = tuple(one.name for one in group.correlations)
    return Gathering(
        stage=0,
        key=key,
        reasons=(),
        machine=machine,
        names=names,
        prints=tuple(f"{one.name} {meaning(one)}" for one in group.correlations),
        topics=machine.topics,
        columns={},
        heard=frozenset(),
        followed={},
        strictest=machine.wait if machine.late == "drop" else None,
        group=replace(group, names=tuple((name,) for name in names)),
    )


def whole(correlations: Iterable[Correlated]) -> dict[str, frozenset[str]]:
    """For each topic that correlations look at all its columns: events are told as they are."""
    topics = {topic for one in correlations for topic in one.listens}
    own = ("time", "source", "sequence", "place", "x", "y", "z")
    return {topic.name: frozenset((*own, *(a.name for a in topic.attributes))) for topic in topics}
