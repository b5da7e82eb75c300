"""The two schemes: events that pass at the sources, and delivered events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.model.batch import TIME
from holdfast.runtimes.local.engine import Engine

from ..series import Temperatures, Times
from .field import EVERY, TOPIC, VALIDITY, Field, TableSetting, definition


class Passed(NamedTuple):
    """An event that passed a subscriber's filter: the sensor and the index of its reading."""

    subscriber: str
    sensor: int
    at: int


class Scheme(NamedTuple):
    """The events that pass at the sources, and the delivered events, each with its subscriber."""

    at_source: list[Passed]
    delivered: list[Passed]


def state_filters(field: Field, setting: TableSetting, times: Times, temps: Temperatures) -> Scheme:
    """Run SF with Holdfast's engine: nested on all events, and at the sources of each region alone."""
    at_source: list[Passed] = []
    for region in field.coverage:
        sensors = field.sensors_of(region)
        at_source += _notifications(definition(field, setting, region), field, sensors, times, temps)
    everywhere = range(len(field.sensors))
    return Scheme(at_source, _notifications(definition(field, setting), field, everywhere, times, temps))


def _notifications(
    text: str, field: Field, sensors: Sequence[int], times: Times, temps: Temperatures
) -> list[Passed]:
    number = {field.sensors[i].name: i for i in sensors}
    start = int(times[0])
    return [
        Passed(note.subscription, number[note.event.source], (note.event.time - start) // EVERY)
        for note in Engine(text).push_batch(TOPIC, events(field, sensors, times, temps))
    ]


def events(field: Field, sensors: Sequence[int], times: Times, temps: Temperatures) -> pa.RecordBatch:
    """Return the events of some sensors, by time and sensor."""
    some = [field.sensors[i] for i in sensors]
    moments = len(times)
    columns = {
        "time": pa.array(np.repeat(times, len(some))).cast(TIME),
        "source": [sensor.name for sensor in some] * moments,
        "x": [sensor.x for sensor in some] * moments,
        "y": [sensor.y for sensor in some] * moments,
        "temp": temps[list(sensors)].T.ravel(),
    }
    return pa.RecordBatch.from_pydict(columns)


def content_filters(field: Field, setting: TableSetting, times: Times, temps: Temperatures) -> Scheme:
    """Run ECF: every event that passes at a source is delivered."""
    passed = [
        Passed(subscriber.name, sensor, int(at))
        for subscriber in field.subscribers
        for sensor in field.sensors_of(subscriber.region)
        for at in np.flatnonzero(valid_for(times, temps[sensor] > setting.threshold(subscriber), VALIDITY))
    ]
    return Scheme(passed, passed)


def valid_for(times: Times, matches: NDArray[np.bool_], validity: int) -> NDArray[np.bool_]:
    """Return which matches pass a content filter with a validity: matches within ``validity`` after one that
    passed are dropped. [SPS §3.5.2: e2 - e1 ≤ T ⇒ F(e2) = false]

    >>> minutes = np.arange(0, 90, 3)
    >>> minutes[valid_for(minutes, (minutes >= 6) & (minutes <= 72), 30)].tolist()
    [6, 39, 72]
    """
    passed = np.zeros(len(times), np.bool_)
    at = -1
    for i in np.flatnonzero(matches):
        if at < 0 or times[i] - times[at] > validity:
            passed[i] = True
            at = int(i)
    return passed
