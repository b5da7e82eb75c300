"""Operators of checked correlations, and the functions that match events with their filters.

Correlations with the same window and delivery share a machine, up to 64 of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...engine.operator import FIXED, Operator, digest
from ...kernels.rank import mark
from ...lang.expressions.batch import encode_keys, floats, locate
from ...model.batch import AXES
from ...model.correlation import RangeFilter
from ...model.event import Event
from ...model.space import Forest
from ...model.topic import Topic
from .condition import CorrelationCondition
from .entries import Entries, Words
from .joint import Joint, Slot
from .machine import MOST, CorrelationMachine


def operators(correlations: Iterable[CorrelationCondition], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """Return as few operators as possible for correlations. Correlations with equal meaning share one bit.
    [S7]"""
    alike: dict[object, dict[str, list[CorrelationCondition]]] = {}
    for correlation in correlations:
        setting = (correlation.correlation.within, correlation.delivery)
        alike.setdefault(setting, {}).setdefault(meaning(correlation), []).append(correlation)
    return [operator for equal in alike.values() for operator in _shared(list(equal.values()))]


def _shared(distinct: list[list[CorrelationCondition]]) -> Iterator[Operator]:
    """Yield the operators of correlations with one window and delivery.

    Correlations over the same attributes share a machine, so that each machine has few slots.
    """
    if len(distinct) > MOST:
        distinct.sort(key=lambda e: sorted((f.attribute, f.sensor or "") for f in e[0].correlation.filters))
    for i in range(0, len(distinct), MOST):
        yield _operator(distinct[i : i + MOST])


def _operator(distinct: Sequence[Sequence[CorrelationCondition]]) -> Operator:
    """Return the operator of correlations. All events that match their filters go to one shard."""
    correlations = [equal[0] for equal in distinct]
    run = machine(correlations)
    names = tuple(tuple(condition.name for condition in equal) for equal in distinct)
    columns = {t.name: (attribute.name for attribute in t.attributes) for t in run.topics.values()}
    return Operator(
        kind="correlation",
        machine=run,
        names=names,
        meanings=tuple(map(meaning, correlations)),
        reading_topics=tuple(tuple(topic.name for topic in c.listens) for c in correlations),
        decisive_columns={name: frozenset((*FIXED, *own)) for name, own in columns.items()},
        sources=_sources(run.slots),
        key=("correlation", digest(names)),
        delay=run.within + (run.wait or 0),  # complex events may be older than the event that completes them
    )


def _sources(slots: Sequence[Slot]) -> dict[str, frozenset[str]]:
    """Return the named sensors of each topic. Topics with a slot for all sensors are left out."""
    free = {slot.topic for slot in slots if slot.sensor is None}
    found: dict[str, set[str]] = {}
    for slot in slots:
        if slot.sensor is not None and slot.topic not in free:
            found.setdefault(slot.topic, set()).add(slot.sensor)
    return {topic: frozenset(sensors) for topic, sensors in found.items()}


def meaning(condition: CorrelationCondition) -> str:
    """Return a digest that is equal for correlations with equal meaning.

    If a correlation emits complex events, its name is part of the meaning.
    """
    kinds = [(topic.name, topic.by_name[attribute]) for topic, attribute in condition.measured]
    forest = condition.forest and replace(
        condition.forest, regions=tuple(replace(r, name="") for r in condition.forest.regions)
    )
    output = condition.tell if condition.tell == "events" else (condition.tell, condition.topic)
    correlation = replace(condition.correlation, region=None)
    parts = (correlation, kinds, forest, output, condition.delivery)
    return digest(parts)


def machine(correlations: Sequence[CorrelationCondition]) -> CorrelationMachine:
    """Return the machine of correlations with the same window and delivery."""
    first = correlations[0]
    slots = tuple(dict.fromkeys(chain.from_iterable(map(_slots, correlations))))
    ranges: list[dict[int, RangeFilter]] = [{} for _ in slots]
    joints = []
    for i, condition in enumerate(correlations):
        own_slots = tuple(slots.index(slot) for slot in _slots(condition))
        for slot, filter in zip(own_slots, condition.correlation.filters, strict=True):
            ranges[slot][i] = filter
        near, topic = condition.correlation.near, condition.topic
        labels = tuple(attribute.name for attribute in topic.attributes[::3])
        joints.append(Joint(own_slots, near, condition.tell, topic.name, labels))
    cells = list(map(_Cells.of, ranges))
    topics = {topic.name: topic for correlation in correlations for topic in correlation.listens}
    reach = {name: _reach(correlations, topic) for name, topic in topics.items()}
    return CorrelationMachine(
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


def _slots(condition: CorrelationCondition) -> Iterator[Slot]:
    """Yield the slot of each filter of a correlation."""
    for (topic, attribute), filter in zip(condition.measured, condition.correlation.filters, strict=True):
        yield Slot(topic.name, attribute, filter.sensor)


# --- values --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cells:
    """The ranges of a slot as cells of the number line.

    ``table`` has for each cell the correlations whose range contains the cell (see
    :mod:`holdfast.kernels.rank`).
    """

    bounds: NDArray[np.float64]
    table: Words

    @classmethod
    def of(cls, ranges: dict[int, RangeFilter]) -> _Cells:
        """Return the cells of ranges, which are given by the number of their correlation."""
        ends = {end for filter in ranges.values() for end in (filter.low, filter.high)}
        bounds = np.array(sorted(filter(np.isfinite, ends)), np.float64)
        table = np.zeros(2 * len(bounds) + 2, np.uint64)
        for i, one in ranges.items():
            low = 2 * int(np.searchsorted(bounds, one.low)) + 1 if np.isfinite(one.low) else 0
            high = 2 * int(np.searchsorted(bounds, one.high)) + 1 if np.isfinite(one.high) else len(table) - 2
            table[low : high + 1] |= np.uint64(1 << i)
        return cls(bounds, table)

    def words(self, values: NDArray[np.float64]) -> Words:
        """Return for each value the correlations whose range contains the value, as bits."""
        found = np.zeros(len(values), np.uint64)
        mark(values, self.bounds, self.table, found)
        return found

    def finder(self) -> Callable[[float], int]:
        """Return a function that computes the same bits for a single value."""
        bounds, table = self.bounds.tolist(), self.table.tolist()

        def find(value: float) -> int:
            at = bisect_left(bounds, value)
            found: int = table[2 * at + (at < len(bounds) and bounds[at] == value)]
            return found

        return find


Reach = Callable[[pa.RecordBatch], Words]
"""A function that returns for each row the correlations in which its event could take part, as bits."""


def _match(
    slots: Sequence[Slot], cells: Sequence[_Cells], reach: dict[str, Reach]
) -> Callable[[str, pa.RecordBatch], Entries]:
    """Return a function that finds the filters that each row of a batch matches."""

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
    """The rows of each sensor of a batch. They are computed at the first access."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._rows: dict[str, NDArray[np.int64]] | None = None

    def rows(self, sensor: str) -> NDArray[np.int64]:
        """Return the rows of a sensor; none if the batch does not have the sensor."""
        if self._rows is None:
            codes, keys = encode_keys(self._batch.column("source"), len(self._batch))
            order = np.argsort(codes, kind="stable")
            ends = np.searchsorted(codes[order], np.arange(len(keys) + 1))
            self._rows = {name: order[ends[i] : ends[i + 1]] for i, name in enumerate(keys.to_pylist())}
        return self._rows.get(sensor, np.empty(0, np.int64))


# --- locations -----------------------------------------------------------------------------------


def _reach(correlations: Sequence[CorrelationCondition], topic: Topic) -> Reach:
    """Return a function that finds the correlations in which events of a topic could take part.

    Only locations and sources are tested: events lie in the region, have coordinates if distances are
    compared, or come from a named sensor.
    """
    everywhere = measured = np.uint64(0)
    forests, named = Counter[Forest](), Counter[str]()
    for i, condition in enumerate(correlations):
        bit = np.uint64(1 << i)
        measured |= bit if condition.correlation.near < np.inf else np.uint64(0)
        if condition.forest is not None:
            forests[condition.forest] |= 1 << i
        elif not condition.correlation.names_sensors:
            everywhere |= bit
        for slot in _slots(condition):
            if slot.sensor is not None and slot.topic == topic.name:
                named[slot.sensor] |= 1 << i

    def reach(batch: pa.RecordBatch) -> Words:
        words = np.full(len(batch), everywhere, np.uint64)
        for forest, mine in forests.items():
            words[locate(forest, batch) >= 0] |= np.uint64(mine)
        if measured:
            words[np.isnan(floats(batch, AXES[0]))] &= ~measured
        if named:
            codes, keys = encode_keys(batch.column("source"), len(batch))
            table = np.array([*(named[key] for key in keys.to_pylist()), 0], np.uint64)
            words |= table[codes]
        return words

    return reach


def _match_one(
    slots: Sequence[Slot], cells: Sequence[_Cells], correlations: Sequence[CorrelationCondition]
) -> Callable[[Event], list[tuple[int, int]]]:
    """Return a function that finds the filters that a single event matches."""
    by_topic: dict[str, list[tuple[int, str, str | None, Callable[[float], int]]]] = {}
    for i, slot in enumerate(slots):
        by_topic.setdefault(slot.topic, []).append((i, slot.attribute, slot.sensor, cells[i].finder()))
    bound = [
        (1 << i, correlation)
        for i, correlation in enumerate(correlations)
        if correlation.forest or correlation.correlation.near < np.inf
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
            beyond = sum(bit for bit, condition in bound if not _may_take_part(condition, event))
            found = [(i, word & ~beyond) for i, word in found if word & ~beyond]
        return found

    return matches


def _may_take_part(condition: CorrelationCondition, event: Event) -> bool:
    """Whether an event at this location can take part in a correlation."""
    if condition.correlation.near < np.inf and not event.location:
        return False
    return condition.forest is None or condition.forest.locate(event.place, event.source, event.location) >= 0
