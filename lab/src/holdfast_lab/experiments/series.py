"""Series of readings on a time grid.

Stations report at their own times. No value is interpolated: each value on the grid is a reading of the
station.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InputError

MINUTE = 60_000_000  # µs
DAY = 24 * 60 * MINUTE

USABLE = 0.95
"""The least share of grid times at which a usable station has a fresh reading."""

Times = NDArray[np.int64]
Temperatures = NDArray[np.float64]


class StationSeries(NamedTuple):
    """The readings of one station in order of time: times (µs, UTC) and °C."""

    times: Times
    values: Temperatures


class Cleaned(NamedTuple):
    """The series of all stations without faults, and the number of readings that each rule dropped."""

    stations: Mapping[int, StationSeries]
    read: int
    dropped: Mapping[str, int]


def read_columns(path: Path, columns: Sequence[str], data_set: str) -> Any:
    """Return columns of a Parquet file as an Arrow table, and its column ``time`` in µs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(columns))
    except (OSError, pa.ArrowException, KeyError) as error:
        raise InputError(f"{path} is not the {data_set} data set: {error}") from error
    if set(table.column_names) != set(columns):
        raise InputError(f"{path} is not the {data_set} data set: it needs the columns {', '.join(columns)}")
    return table, table["time"].cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy()


@dataclass(frozen=True)
class Period:
    """The readings of a period on its grid; ``values[station]`` has a value for each of ``times``."""

    times: Times
    values: Mapping[int, Temperatures]
    carried: Mapping[int, int]
    """For each station, the number of times without a fresh reading."""

    @property
    def start(self) -> str:
        return f"{np.datetime64(int(self.times[0]), 'us').astype('datetime64[m]')}Z"


def on_grid(series: StationSeries, grid: Times, fresh_for: int) -> tuple[Temperatures, NDArray[np.bool_]]:
    """Return the latest reading at each grid time, and whether it is at most ``fresh_for`` old; before the
    first reading, the first.
    """
    latest = np.searchsorted(series.times, grid, side="right") - 1
    known = np.maximum(latest, 0)
    fresh = (latest >= 0) & (grid - series.times[known] <= fresh_for)
    return series.values[known], fresh


def period(stations: Mapping[int, StationSeries], grid: Times, fresh_for: int) -> Period:
    """Return the usable stations at the times of a grid."""
    values: dict[int, Temperatures] = {}
    carried: dict[int, int] = {}
    for station, series in stations.items():
        if len(series.times):
            readings, fresh = on_grid(series, grid, fresh_for)
            if fresh.mean() >= USABLE:
                values[station], carried[station] = readings, int((~fresh).sum())
    return Period(grid, values, carried)


def periods(
    stations: Mapping[int, StationSeries], count: int, every: int, fresh_for: int
) -> Iterator[Period]:
    """Yield the period of ``count`` readings from each midnight of the data set."""
    first = min(int(s.times[0]) for s in stations.values() if len(s.times))
    last = max(int(s.times[-1]) for s in stations.values() if len(s.times))
    for midnight in range(first - first % DAY, last, DAY):
        grid = midnight + np.arange(count, dtype=np.int64) * every
        yield period(stations, grid, fresh_for)
