"""The replayed streams: five attributes of stations on the Grand St. Bernard pass.

No value is computed: an event is a reading that a station has sent. The five readings of a report have one
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError

from ..series import MINUTE, StationSeries
from ..stbernard import FAULT_CODE, Reports, reports

HOUR = 60 * MINUTE
EVERY = 2 * MINUTE
"""The reporting period of a station."""

ATTRIBUTES = ("ambient_temp", "surface_temp", "humidity", "wind_speed", "wind_dir")
TEMPERATURES = ("ambient_temp", "surface_temp")


class Quartiles(NamedTuple):
    """The median of a stream, and the distances to the quartiles below and above it."""

    median: float
    below: float
    above: float


@dataclass(frozen=True)
class Recording:
    """The replayed data: a period and the most complete stations in it, the best first."""

    start: int
    hours: int
    stations: tuple[int, ...]
    complete: Mapping[int, float]
    """For each station: the share of the due reports that have all five readings."""
    series: Mapping[str, StationSeries]
    """The stream of each sensor."""

    @property
    def sensors(self) -> list[tuple[str, str]]:
        """Name and attribute of every sensor, station by station."""
        return [(sensor(station, name), name) for station in self.stations for name in ATTRIBUTES]

    @property
    def began(self) -> str:
        return f"{np.datetime64(self.start, 'us').astype('datetime64[m]')}Z"


def sensor(station: int, attribute: str) -> str:
    """Return the name of a station's sensor."""
    return f"{station}/{attribute}"


def read(path: Path, hours: int, stations: int) -> Recording:
    """Return the period of ``hours``, from a full hour, in which ``stations`` stations are most complete.

    A report with all five readings is complete. A station does not count if one of its streams does not vary,
    that is, if a quartile equals the median. Of equal periods the first is taken.
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
        needed = f"{hours} h in which {stations} stations have streams that vary"
        raise InputError(f"{path}: there are no {needed}")
    return best


def _find_recording(table: Reports, start: int, hours: int, stations: int) -> Recording | None:
    """Return the most complete stations from ``start`` on, if there are enough whose streams vary."""
    since, until = np.searchsorted(table.times, (start, start + hours * HOUR))
    times, names, readings = (column[since:until] for column in table)
    found = [(int(s), *_station(times[names == s], readings[names == s])) for s in np.unique(names)]
    varying = [one for one in found if all(map(_varies, one[2]))]
    if len(varying) < stations:
        return None
    best = sorted(varying, key=lambda one: (-one[1], one[0]))[:stations]
    complete = {station: full * EVERY / (hours * HOUR) for station, full, _ in best}
    series: dict[str, StationSeries] = {}
    for station, _, streams in best:
        series |= zip((sensor(station, name) for name in ATTRIBUTES), streams, strict=True)
    return Recording(start, hours, tuple(complete), complete, series)


def first(recording: Recording, stations: int) -> Recording:
    """Return a recording with only its most complete stations."""
    selected = recording.stations[:stations]
    complete = {station: recording.complete[station] for station in selected}
    series = {(name := sensor(s, a)): recording.series[name] for s in selected for a in ATTRIBUTES}
    return replace(recording, stations=selected, complete=complete, series=series)


def quartiles(series: StationSeries) -> Quartiles:
    """Return the median and the distances to the quartiles of a stream."""
    low, middle, high = np.quantile(series.values, (0.25, 0.5, 0.75))
    return Quartiles(float(middle), float(middle - low), float(high - middle))


def _varies(series: StationSeries) -> bool:
    if not len(series.values):
        return False
    found = quartiles(series)
    return found.below > 0 and found.above > 0


def _table(path: Path) -> Reports:
    """Return the reports in a file, in order of time; a fault code is a missing reading."""
    times, stations, readings = reports(path, ATTRIBUTES)
    for attribute in TEMPERATURES:
        column = readings[:, ATTRIBUTES.index(attribute)]
        column[column == FAULT_CODE] = np.nan
    order = np.argsort(times, kind="stable")
    return Reports(times[order], stations[order], readings[order])


def _hourly(table: Reports) -> tuple[int, NDArray[np.int64]]:
    """Return the start of the first hour, and the number of complete reports by ``[hour, station]``."""
    times, names, readings = table
    start = int(times[0]) // HOUR * HOUR
    hour = (times - start) // HOUR
    station = np.searchsorted(np.unique(names), names)
    counts = np.zeros((hour[-1] + 1, station.max() + 1), np.int64)
    full = ~np.isnan(readings).any(axis=1)
    np.add.at(counts, (hour[full], station[full]), 1)
    return start, counts


def _station(times: NDArray[np.int64], readings: NDArray[np.float64]) -> tuple[int, list[StationSeries]]:
    """Return how many reports of a station are complete, and its streams without missing values."""
    there = ~np.isnan(readings)
    columns = zip(there.T, readings.T, strict=True)
    streams = [StationSeries(times[has], values[has]) for has, values in columns]
    return int(there.all(axis=1).sum()), streams
