"""The periods of 30 hours, and the variants of the settings."""

from __future__ import annotations

import numpy as np

from ..series import Cleaned, Period, Temperatures, Times, periods
from .field import EVERY, READINGS, REGIONS, SEED, SENSORS, SUBSCRIBERS, Field, Subscriber, TableSetting, draw


def crossing(period: Period, setting: TableSetting) -> list[int]:
    """Return the usable stations that are above all thresholds at some time, and below all at another."""
    low, high = (setting.threshold(Subscriber("", 0, rank)) for rank in (0, SUBSCRIBERS - 1))
    found = [s for s, values in period.values.items() if values.min() <= low and values.max() > high]
    return sorted(found, key=lambda s: (period.carried[s], s))


def eligible(cleaned: Cleaned, fresh_for: int, setting: TableSetting) -> list[tuple[Period, list[int]]]:
    """Return the 30-hour periods from midnight in which 16 stations cross all thresholds, with the 16 that
    have the fewest carried readings.
    """
    found = []
    for period in periods(cleaned.stations, READINGS, EVERY, fresh_for):
        stations = crossing(period, setting)
        if len(stations) >= REGIONS:
            found.append((period, stations[:REGIONS]))
    return found


def median(period: Period, stations: list[int]) -> float:
    """Return the median temperature of these stations, rounded to 0.1 °C."""
    return round(float(np.median([period.values[station] for station in stations])), 1)


def temperatures(field: Field, period: Period, setting: TableSetting) -> Temperatures:
    """Return ``[sensor, reading]``: every sensor of a region has the region's temperature."""
    by_region = [setting.prepare(period.values[station]) for station in field.stations]
    return np.stack([by_region[sensor.region] for sensor in field.sensors])


def running_mean(values: Temperatures, width: int = 10) -> Temperatures:
    """Return the mean of each reading and those before it, 30 min in total."""
    sums = np.cumsum(np.pad(values, (width, 0), mode="edge"))
    return np.asarray((sums[width:] - sums[:-width]) / width)


def held(values: Temperatures, width: int = 10) -> Temperatures:
    """Return one reading in 30 min, repeated until the next."""
    return np.repeat(values[::width], width)[: len(values)]


def join(values: Temperatures, width: int = 10) -> Temperatures:
    """Return one reading in 30 min, with linear interpolation between them."""
    at = np.arange(len(values))
    return np.interp(at, at[::width], values[::width])


CLOSE, WIDE = "thresholds within 0.05 °C", "thresholds within 2 °C"
SMOOTH, HELD, JOINED = "running mean of 30 min", "half-hourly, held", "half-hourly, joined by lines"
DEADBAND, MIDDLE = "hysteresis of 0.5 °C", "thresholds near the median"
SLOW = "held, within 0.05 °C, near median"
MADE = "one plateau (generated)"


def variants(middle: float) -> tuple[TableSetting, ...]:
    """Return the variants: one parameter changed at a time, then the combination that we expect of the
    paper's data.
    """
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
    """Return a generated field with one warm spell that crosses all thresholds at one reading.

    One region of three sensors has a single subscriber, which gives the SF column of Table II. The spell is
    as long as the table's 620 / 27 = 23 ECF events per filter imply.
    """
    field = draw(SEED, range(REGIONS), shares=(3, 3, 1))
    times = np.arange(READINGS, dtype=np.int64) * EVERY
    values = np.where((np.arange(READINGS) >= 100) & (np.arange(READINGS) < 352), 15.0, 5.0)
    return field, TableSetting(MADE), times, np.tile(values, (SENSORS, 1))
