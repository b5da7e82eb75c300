"""Air temperatures in the crown of a redwood (Sonoma, spring 2004), cleaned.

Each of 71 motes reported every five minutes; the data set has what its log or the network preserved.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .series import MINUTE, Cleaned, StationSeries, read_columns

FILE = "redwoods-sonoma/redwoods.parquet"

PLAUSIBLE = (-5.0, 45.0)
"""Plausible temperatures in °C, for spring in Sonoma at 2 to 70 m above ground."""
FRESH = 11 * MINUTE
"""The greatest age of a reading that is used at a time of the grid; it allows one missing reading."""


def read(path: Path) -> Cleaned:
    """Read and clean the temperatures of the file."""
    table, times = read_columns(path, ["time", "nodeid", "humid_temp"], "redwoods")
    motes, values = table["nodeid"].to_numpy(), table["humid_temp"].to_numpy().astype(np.float64)
    missing = np.isnan(values)
    implausible = (values < PLAUSIBLE[0]) | (values > PLAUSIBLE[1])
    good = ~missing & ~implausible
    series: dict[int, StationSeries] = {}
    for mote in np.unique(motes):
        mine = good & (motes == mote)
        order = np.argsort(times[mine], kind="stable")
        series[int(mote)] = StationSeries(times[mine][order], values[mine][order])
    dropped = {"missing": int(missing.sum()), "implausible": int(implausible.sum())}
    return Cleaned(series, len(times), dropped)
