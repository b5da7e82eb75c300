"""The streams that are replayed: five attributes of stations on the Grand St. Bernard pass.

Nothing is computed: an event is a reading that a station has sent.  The five of a report have one time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError

from ..series import MINUTE, StationSeries
from ..stbernard import FAULT_CODE, Reports, reports

HOUR = 60 * MINUTE
EVERY = 2 * MINUTE
"""How often a station reports."""

ATTRIBUTES = ("ambient_temp", "surface_temp", "humidity", "wind_speed", "wind_dir")
TEMPERATURES = ("ambient_temp", "surface_temp")


class Quartiles(NamedTuple):
    """A stream's median, and how far below and above it a quarter of the values lies."""

    median: float
    below: float
    above: float


@dataclass(frozen=True)
class Recording:
    """What is replayed: a stretch of time and the most complete stations in it, the best first."""

    start: int
    hours: int
    stations: tuple[int, ...]
    complete: Mapping[int, float]
    """For each station, which part of the reports that are due has all five readings."""
    series: Mapping[str, StationSeries]
    """The stream of each sensor."""

    @property
    def sensors(self) -> list[tuple[str, str]]:
        """Name and attribute of every sensor, station by station."""
        return [
            (sensor(station, attribute), attribute) for station in self.stations for attribute in ATTRIBUTES
        ]

    @property
    def began(self) -> str:
        return f"{np.datetime64(self.start, 'us').astype('datetime64[m]')}Z"


def sensor(station: int, attribute: str) -> str:
    """The name of a station's sensor."""
    return f"{station}/{attribute}"


def read(path: Path, hours: int, stations: int) -> Recording:
    """The stretch of so many hours, from a full hour, in which that many stations are most complete.

    Complete is a report with all five readings.  A station of which a stream does not vary (a quarter of
    the values above or below the median equals it) does not count.  Of equal stretches the first is taken.
    """
    table = _table(path)
    start, due = _hourly(table)
    within = np.lib.stride_tricks.sliding_window_view(due, hours, axis=0).sum(axis=2)
    if within.shape[1] < stations:
        raise InputError(f"{path} has {within.shape[1]} stations; {stations} are needed")
    at_best = np.sort(within, axis=1)[:, -stations] * EVERY / (hours * HOUR)
    best: Recording | None = None
    for hour in np.argsort(-at_best, kind="stable"):
        if best is not None and at_best[hour] <= min(best.complete.values()):
            break
        found = _find_recording(table, start + HOUR * int(hour), hours, stations)
        if found and (best is None or min(found.complete.values()) > min(best.complete.values())):
            best = found
    if best is None:
        raise InputError(
            f"{path}: there are no {hours} h in which {stations} stations have streams that vary"
        )
    return best


def _find_recording(table: Reports, start: int, hours: int, stations: int) -> Recording | None:
    """The most complete stations from ``start`` on, if there are enough whose streams vary."""
    since, until = np.searchsorted(table.times, (start, start + hours * HOUR))
    times, names, readings = (column[since:until] for column in table)
    found = [(int(s), *_station(times[names == s], readings[names == s])) for s in np.unique(names)]
    varying = [one for one in found if all(map(_varies, one[2]))]
    if len(varying) < stations:
        return None
    best = sorted(varying, key=lambda one: (-one[1], one[0]))[:stations]
    return Recording(
        start,
        hours,
        tuple(station for station, _, _ in best),
        {station: full * EVERY / (hours * HOUR) for station, full, _ in best},
        {
            sensor(station, attribute): series
            for station, _, streams in best
            for attribute, series in zip(ATTRIBUTES, streams, strict=True)
        },
    )


def first(recording: Recording, stations: int) -> Recording:
    """The same with the most complete stations only."""
    selected = recording.stations[:stations]
    return Recording(
        recording.start,
        recording.hours,
        selected,
        {station: recording.complete[station] for station in selected},
        {(name := sensor(s, a)): recording.series[name] for s in selected for a in ATTRIBUTES},
    )


def quartiles(series: StationSeries) -> Quartiles:
    """Where the values of a stream lie."""
    low, middle, high = np.quantile(series.values, (0.25, 0.5, 0.75))
    return Quartiles(float(middle), float(middle - low), float(high - middle))


def _varies(series: StationSeries) -> bool:
    if not len(series.values):
        return False
    found = quartiles(series)
    return found.below > 0 and found.above > 0


def _table(path: Path) -> Reports:
    """What the file holds, in order of time; a fault code is a missing reading."""
    times, stations, readings = reports(path, ATTRIBUTES)
    for attribute in TEMPERATURES:
        column = readings[:, ATTRIBUTES.index(attribute)]
        column[column == FAULT_CODE] = np.nan
    order = np.argsort(times, kind="stable")
    return Reports(times[order], stations[order], readings[order])


def _hourly(table: Reports) -> tuple[int, NDArray[np.int64]]:
    """When the first hour begins, and ``[hour, station]``: how many reports are complete."""
    times, names, readings = table
    start = int(times[0]) // HOUR * HOUR
    hour = (times - start) // HOUR
    station = np.searchsorted(np.unique(names), names)
    counts = np.zeros((hour[-1] + 1, station.max() + 1), np.int64)
    full = ~np.isnan(readings).any(axis=1)
    np.add.at(counts, (hour[full], station[full]), 1)
    return start, counts


def _station(times: NDArray[np.int64], readings: NDArray[np.float64]) -> tuple[int, list[StationSeries]]:
    """How many reports of a station are complete, and its streams without what is missing."""
    there = ~np.isnan(readings)
    streams = [
        StationSeries(times[has], values[has]) for has, values in zip(there.T, readings.T, strict=True)
    ]
    return int(there.all(axis=1).sum()), streams
