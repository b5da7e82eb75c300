"""Which 30 hours, and what is varied to see what the outcome depends on."""

from __future__ import annotations

import numpy as np

from ..series import Cleaned, Period, Temperatures, Times, periods
from .field import EVERY, READINGS, REGIONS, SEED, SENSORS, SUBSCRIBERS, Field, Subscriber, TableSetting, draw


def crossing(period: Period, setting: TableSetting) -> list[int]:
    """The usable stations that are, at some time, above all thresholds and, at some time, below."""
    low, high = (setting.threshold(Subscriber("", 0, rank)) for rank in (0, SUBSCRIBERS - 1))
    found = [s for s, values in period.values.items() if values.min() <= low and values.max() > high]
    return sorted(found, key=lambda s: (period.carried[s], s))


def eligible(cleaned: Cleaned, fresh_for: int, setting: TableSetting) -> list[tuple[Period, list[int]]]:
    """The 30-hour periods from midnight in which 16 stations cross all thresholds, with the 16 that
    have the fewest carried readings."""
    found = []
    for period in periods(cleaned.stations, READINGS, EVERY, fresh_for):
        stations = crossing(period, setting)
        if len(stations) >= REGIONS:
            found.append((period, stations[:REGIONS]))
    return found


def median(period: Period, stations: list[int]) -> float:
    """The middle of the temperatures of these stations, to a tenth."""
    return round(float(np.median([period.values[station] for station in stations])), 1)


def temperatures(field: Field, period: Period, setting: TableSetting) -> Temperatures:
    """``[sensor, reading]``: every sensor of a region reports the region's temperature."""
    by_region = [setting.prepare(period.values[station]) for station in field.stations]
    return np.stack([by_region[sensor.region] for sensor in field.sensors])


def running_mean(values: Temperatures, width: int = 10) -> Temperatures:
    """The mean of each reading and those before it, 30 min in all."""
    sums = np.cumsum(np.pad(values, (width, 0), mode="edge"))
    return np.asarray((sums[width:] - sums[:-width]) / width)


def held(values: Temperatures, width: int = 10) -> Temperatures:
    """One reading in 30 min, repeated until the next."""
    return np.repeat(values[::width], width)[: len(values)]


def join(values: Temperatures, width: int = 10) -> Temperatures:
    """One reading in 30 min, and straight lines between."""
    at = np.arange(len(values))
    return np.interp(at, at[::width], values[::width])


CLOSE, WIDE = "thresholds within 0.05 °C", "thresholds within 2 °C"
SMOOTH, HELD, JOINED = "running mean of 30 min", "half-hourly, held", "half-hourly, joined by lines"
DEADBAND, MIDDLE = "hysteresis of 0.5 °C", "thresholds near the median"
SLOW = "held, within 0.05 °C, near median"
MADE = "one plateau (generated)"


def variants(middle: float) -> tuple[TableSetting, ...]:
    """What is varied, one thing at a time; then what we believe of the paper's data together."""
    return (
        TableSetting(CLOSE, spread=0.05),
        TableSetting(WIDE, spread=2.0),
        TableSetting(MIDDLE, centre=middle),
        TableSetting(SMOOTH, prepare=running_mean),
        TableSetting(HELD, prepare=held),
        TableSetting(JOINED, prepare=join),
        TableSetting(DEADBAND, gap=0.5),
        TableSetting(SLOW, centre=middle, spread=0.05, prepare=held),
    )


def plateau() -> tuple[Field, TableSetting, Times, Temperatures]:
    """One warm spell, the same everywhere, that crosses all thresholds at one reading, over a field in
    which one region of three sensors has a single subscriber: the SF column of Table II.  It lasts as
    long as the table's 620 / 27 = 23 ECF events for each filter imply."""
    field = draw(SEED, range(REGIONS), shares=(3, 3, 1))
    times = np.arange(READINGS, dtype=np.int64) * EVERY
    values = np.where((np.arange(READINGS) >= 100) & (np.arange(READINGS) < 352), 15.0, 5.0)
    return field, TableSetting(MADE), times, np.tile(values, (SENSORS, 1))
