"""Air temperatures of the Grand St. Bernard pass (EPFL SensorScope, 2007), cleaned.

Stations report about every two minutes, and some reported values are faults.
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
"""Plausible temperatures in °C, for September and October at 2,400 m."""
FAULT_CODE = -1.0
"""A fault code: 47,000 of 588,000 readings have this value, a hundred times more than any similar value."""
SPIKE = 3.0
"""The greatest plausible difference from the median of the five readings around, in °C."""
FRESH = 6 * MINUTE
"""The greatest age of a reading that is used at a time of the grid."""


class Reports(NamedTuple):
    """The contents of the file: times, stations and ``[report, attribute]``."""

    times: Times
    stations: NDArray[np.int64]
    readings: NDArray[np.float64]


def reports(path: Path, attributes: Sequence[str]) -> Reports:
    """Read some attributes of all reports."""
    table, times = read_columns(path, ["time", "station", *attributes], "St. Bernard")
    readings = np.column_stack([table[attribute].to_numpy() for attribute in attributes])
    return Reports(times, table["station"].to_numpy(), readings.astype(np.float64))


def read(path: Path) -> Cleaned:
    """Read and clean the temperatures of the file."""
    times, stations, readings = reports(path, ["ambient_temp"])
    return clean(times, stations, readings[:, 0])


def clean(times: Times, stations: NDArray[np.int64], values: Temperatures) -> Cleaned:
    """Drop missing values, implausible ones, fault codes and spikes, in this order."""
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
    """Return which values differ from the median of the five around them by more than ``SPIKE``.

    >>> spikes(np.array([1.0, 1.1, 9.0, 1.2, 1.3])).tolist()
    [False, False, True, False, False]
    """
    if len(values) < 5:
        return np.zeros(len(values), np.bool_)
    padded = np.pad(values, 2, mode="edge")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    return np.asarray(np.abs(values - middle) > SPIKE)
