"""Air temperatures of the Grand St. Bernard pass (EPFL SensorScope, 2007), cleaned.

Stations report about every two minutes, and some of what they report is not a temperature.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .series import MINUTE, Cleaned, StationSeries, Temperatures, Times, read_columns

FILE = "sensorscope-stbernard/stbernard.parquet"

PLAUSIBLE = (-30.0, 30.0)
"""°C; the pass lies at 2,400 m and the months are September and October."""
FAULT_CODE = -1.0
"""47,000 of 588,000 readings are exactly this, a hundred times more than any neighbour."""
SPIKE = 3.0
"""°C that a reading may differ from the median of the five around it."""
FRESH = 6 * MINUTE
"""How old a reading may be and still stand for a moment of the grid."""


class Reports(NamedTuple):
    """What the file holds, as it is there: instants, stations and ``[report, attribute]``."""

    times: Times
    stations: NDArray[np.int64]
    readings: NDArray[np.float64]


def reports(path: Path, attributes: Sequence[str]) -> Reports:
    """Some attributes of all reports."""
    table, times = read_columns(path, ["time", "station", *attributes], "St. Bernard")
    readings = np.column_stack([table[attribute].to_numpy() for attribute in attributes])
    return Reports(times, table["station"].to_numpy(), readings.astype(np.float64))


def read(path: Path) -> Cleaned:
    """The temperatures of the file, cleaned."""
    times, stations, readings = reports(path, ["ambient_temp"])
    return clean(times, stations, readings[:, 0])


def clean(times: Times, stations: NDArray[np.int64], values: Temperatures) -> Cleaned:
    """Drop what is missing, implausible, the fault code, or a spike; in this order."""
    dropped = dict.fromkeys(("missing", "implausible", "fault code", "spike"), 0)
    series: dict[int, StationSeries] = {}
    for station in np.unique(stations):
        mine = stations == station
        order = np.argsort(times[mine], kind="stable")
        at, temp = times[mine][order], values[mine][order]
        for reason, bad in (
            ("missing", np.isnan),
            ("implausible", lambda t: (t < PLAUSIBLE[0]) | (t > PLAUSIBLE[1])),
            ("fault code", lambda t: t == FAULT_CODE),
            ("spike", spikes),
        ):
            wrong = bad(temp)
            dropped[reason] += int(wrong.sum())
            at, temp = at[~wrong], temp[~wrong]
        series[int(station)] = StationSeries(at, temp)
    return Cleaned(series, len(times), dropped)


def spikes(values: Temperatures) -> NDArray[np.bool_]:
    """Which values differ from the median of the five around them by more than ``SPIKE``.

    >>> spikes(np.array([1.0, 1.1, 9.0, 1.2, 1.3])).tolist()
    [False, False, True, False, False]
    """
    if len(values) < 5:
        return np.zeros(len(values), np.bool_)
    padded = np.pad(values, 2, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    return np.asarray(np.abs(values - middle) > SPIKE)
