"""Checked correlations become the machine of :mod:`holdfast.machines.correlation`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.rank import mark
from ...lang.condition import Correlated
from ...machines.correlation.entries import Entries, Words
from ...machines.correlation.joint import Joint, Slot
from ...machines.correlation.machine import MOST, Correlations
from ...model.batch import AXES
from ...model.correlation import Filter
from ...model.event import Event
from ...model.space import Forest
from ...model.topic import Topic
from ..columns import floats, keyed, located
from ..operator import FIXED, Operator, digest

FAMILY = "correlations"


def operators(correlations: Iterable[Correlated], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """As few machines as the correlations allow; those that mean the same become one.  [S7]"""
    alike: dict[object, dict[str, list[Correlated]]] = {}
    for one in correlations:
        setting = (one.correlation.within, one.delivery)
        alike.setdefault(setting, {}).setdefault(meaning(one), []).append(one)
    return [operator for equal in alike.values() for operator in _shared(list(equal.values()))]


def _shared(distinct: list[list[Correlated]]) -> Iterator[Operator]:
    """Those that look at the same attributes together: a machine has fewer slots then."""
    if len(distinct) > MOST:
        distinct.sort(
            key=lambda equal: sorted((f.attribute, f.sensor or "") for f in equal[0].correlation.filters)
        )
    for i in range(0, len(distinct), MOST):
        yield _operator(distinct[i : i + MOST])


def _operator(distinct: Sequence[Sequence[Correlated]]) -> Operator:
    """All events that match a machine's filters meet in one place, and machines are spread over places."""
    correlations = [equal[0] for equal in distinct]
    run = machine(correlations)
    names = tuple(tuple(one.name for one in equal) for equal in distinct)
    return Operator(
        family=FAMILY,
        machine=run,
        names=names,
        meanings=tuple(map(meaning, correlations)),
        listens=tuple(tuple(topic.name for topic in one.listens) for one in correlations),
        looks_at={t.name: frozenset((*FIXED, *(a.name for a in t.attributes))) for t in run.topics.values()},
        sources=_sources(run.slots),
        key=(FAMILY, digest(names)),
        behind=run.margin + (run.wait or 0),  # what is told may be older than what completes it
    )


def _sources(slots: Sequence[Slot]) -> dict[str, frozenset[str]]:
    """The sensors that are named, for topics of which all are."""
    free = {slot.topic for slot in slots if slot.sensor is None}
    found: dict[str, set[str]] = {}
    for slot in slots:
        if slot.sensor is not None and slot.topic not in free:
            found.setdefault(slot.topic, set()).add(slot.sensor)
    return {topic: frozenset(sensors) for topic, sensors in found.items()}


def meaning(one: Correlated) -> str:
    """Equal for correlations that mean the same, whatever their names; complex events have the name."""
    kinds = [(topic.name, topic.by_name[attribute]) for topic, attribute in one.measured]
    forest = one.forest and replace(
        one.forest, regions=tuple(replace(r, name="") for r in one.forest.regions)
    )
    told = one.tell if one.tell == "events" else (one.tell, one.topic)
    correlation = replace(one.correlation, region=None)
    said = (correlation, kinds, forest, told, one.delivery)
    return digest(said)


def machine(correlations: Sequence[Correlated]) -> Correlations:
    """The machine of correlations that share window and delivery."""
    first = correlations[0]
    slots = tuple(dict.fromkeys(chain.from_iterable(map(_slots, correlations))))
    ranges: list[dict[int, Filter]] = [{} for _ in slots]
    joints = []
    for i, one in enumerate(correlations):
        own = tuple(slots.index(slot) for slot in _slots(one))
        for slot, filter in zip(own, one.correlation.filters, strict=True):
            ranges[slot][i] = filter
        labels = tuple(a.name for a in one.topic.attributes[::3])
        joints.append(Joint(own, one.correlation.near, one.tell, one.topic.name, labels))
    cells = [_Cells.of(mine) for mine in ranges]
    topics = {topic.name: topic for one in correlations for topic in one.listens}
    reach = {name: _reach(correlations, topic) for name, topic in topics.items()}
    return Correlations(
        tuple(joints),
        slots,
        topics,
        first.correlation.within,
        first.delivery.wait,
        first.delivery.late,
        _match(slots, cells, reach),
        _match_one(slots, cells, correlations),
        lambda topic, batch: reach[topic](batch),
    )


def _slots(one: Correlated) -> Iterator[Slot]:
    for (topic, attribute), filter in zip(one.measured, one.correlation.filters, strict=True):
        yield Slot(topic.name, attribute, filter.sensor)


# --- values --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cells:
    """The ranges of a slot as cells of a line: ``table`` says which correlations have each cell in their
    range (see :mod:`holdfast.kernels.rank`)."""

    bounds: NDArray[np.float64]
    table: Words

    @classmethod
    def of(cls, ranges: dict[int, Filter]) -> _Cells:
        ends = {end for one in ranges.values() for end in (one.low, one.high) if np.isfinite(end)}
        bounds = np.array(sorted(ends), np.float64)
        table = np.zeros(2 * len(bounds) + 2, np.uint64)
        for i, one in ranges.items():
            low = 2 * int(np.searchsorted(bounds, one.low)) + 1 if np.isfinite(one.low) else 0
            high = 2 * int(np.searchsorted(bounds, one.high)) + 1 if np.isfinite(one.high) else len(table) - 2
            table[low : high + 1] |= np.uint64(1 << i)
        return cls(bounds, table)

    def words(self, values: NDArray[np.float64]) -> Words:
        """The correlations in whose range each value lies."""
        found = np.zeros(len(values), np.uint64)
        mark(values, self.bounds, self.table, found)
        return found

    def finder(self) -> Callable[[float], int]:
        """The same for one value."""
        bounds, table = self.bounds.tolist(), self.table.tolist()

        def find(value: float) -> int:
            at = bisect_left(bounds, value)
            found: int = table[2 * at + (at < len(bounds) and bounds[at] == value)]
            return found

        return find


Reach = Callable[[pa.RecordBatch], Words]


def _match(
    slots: Sequence[Slot], cells: Sequence[_Cells], reach: dict[str, Reach]
) -> Callable[[str, pa.RecordBatch], Entries]:
    """Which rows of a batch match which filters."""

    def match(topic: str, batch: pa.RecordBatch) -> Entries:
        near = reach[topic](batch)
        sensors = _Sensors(batch)
        columns: dict[str, NDArray[np.float64]] = {}
        found: list[tuple[int, NDArray[np.int64], Words]] = []
        for i, slot in enumerate(slots):
            if slot.topic != topic:
                continue
            if slot.attribute not in columns:
                columns[slot.attribute] = floats(batch, slot.attribute)
            values = columns[slot.attribute]
            if slot.sensor is None:
                words = cells[i].words(values) & near
                rows = np.flatnonzero(words)
                found.append((i, rows, words[rows]))
            else:
                rows = sensors.rows(slot.sensor)
                words = cells[i].words(values[rows]) & near[rows]
                found.append((i, rows[words != 0], words[words != 0]))
        return Entries(
            np.concatenate([rows for _, rows, _ in found]),
            np.repeat([i for i, _, _ in found], [len(rows) for _, rows, _ in found]),
            np.concatenate([words for _, _, words in found]),
        )

    return match


class _Sensors:
    """The rows of each sensor of a batch, found when they are asked for."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._rows: dict[str, NDArray[np.int64]] | None = None

    def rows(self, sensor: str) -> NDArray[np.int64]:
        if self._rows is None:
            codes, keys = keyed(self._batch.column("source"), len(self._batch))
            order = np.argsort(codes, kind="stable")
            ends = np.searchsorted(codes[order], np.arange(len(keys) + 1))
            self._rows = {name: order[ends[i] : ends[i + 1]] for i, name in enumerate(keys.to_pylist())}
        return self._rows.get(sensor, np.empty(0, np.int64))


# --- where events come from ----------------------------------------------------------------------


def _reach(correlations: Sequence[Correlated], topic: Topic) -> Reach:
    """The correlations that events of a topic can concern, whatever their values: they lie in the
    region, have coordinates where distances are compared, or are of a sensor that is named."""
    everywhere = np.uint64(sum(1 << i for i, one in enumerate(correlations) if _is_everywhere(one)))
    measured = np.uint64(sum(1 << i for i, one in enumerate(correlations) if one.correlation.near < np.inf))
    forests: dict[Forest, int] = {}
    for i, one in enumerate(correlations):
        if one.forest is not None:
            forests[one.forest] = forests.get(one.forest, 0) | 1 << i
    named: dict[str, int] = {}
    for i, one in enumerate(correlations):
        for slot in _slots(one):
            if slot.sensor is not None and slot.topic == topic.name:
                named[slot.sensor] = named.get(slot.sensor, 0) | 1 << i

    def reach(batch: pa.RecordBatch) -> Words:
        words = np.full(len(batch), everywhere, np.uint64)
        for forest, mine in forests.items():
            words[located(forest, batch) >= 0] |= np.uint64(mine)
        if measured:
            words[np.isnan(floats(batch, AXES[0]))] &= ~measured
        if named:
            codes, keys = keyed(batch.column("source"), len(batch))
            table = np.array([*(named.get(key, 0) for key in keys.to_pylist()), 0], np.uint64)
            words |= table[codes]
        return words

    return reach


def _is_everywhere(one: Correlated) -> bool:
    return one.forest is None and not one.correlation.identified


def _match_one(
    slots: Sequence[Slot], cells: Sequence[_Cells], correlations: Sequence[Correlated]
) -> Callable[[Event], list[tuple[int, int]]]:
    """Which filters one event matches."""
    by_topic: dict[str, list[tuple[int, str, str | None, Callable[[float], int]]]] = {}
    for i, slot in enumerate(slots):
        by_topic.setdefault(slot.topic, []).append((i, slot.attribute, slot.sensor, cells[i].finder()))
    bound = [
        (1 << i, one) for i, one in enumerate(correlations) if one.forest or one.correlation.near < np.inf
    ]

    def matches(event: Event) -> list[tuple[int, int]]:
        found = []
        for i, attribute, sensor, find in by_topic.get(event.topic, ()):
            value = event.attributes.get(attribute)
            if value is None or value != value or (sensor is not None and sensor != event.source):
                continue
            if word := find(float(value)):
                found.append((i, word))
        if found and bound:
            beyond = sum(bit for bit, one in bound if not _concerns(one, event))
            found = [(i, word & ~beyond) for i, word in found if word & ~beyond]
        return found

    return matches


def _concerns(one: Correlated, event: Event) -> bool:
    """Whether an event has the location that a correlation wants."""
    if one.correlation.near < np.inf and not event.location:
        return False
    return one.forest is None or one.forest.locate(event.place, event.source, event.location) >= 0
