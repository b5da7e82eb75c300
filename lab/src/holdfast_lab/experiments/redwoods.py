"""Air temperatures in a redwood's crown (Sonoma, spring 2004), cleaned.

Each of 71 motes reports every five minutes, as far as its log or the network has kept it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .series import MINUTE, Cleaned, StationSeries, read_columns

FILE = "redwoods-sonoma/redwoods.parquet"

PLAUSIBLE = (-5.0, 45.0)
"""°C; spring in the hills of Sonoma, at 2 to 70 m above the ground."""
FRESH = 11 * MINUTE
"""How old a reading may be and still stand for a moment of the grid: one may be missing."""


def read(path: Path) -> Cleaned:
    """The temperatures of the file, cleaned."""
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
