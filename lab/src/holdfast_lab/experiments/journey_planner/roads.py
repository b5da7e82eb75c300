"""The roads of Aarhus (CityPulse, August 2014): a graph of junctions, and what was measured on it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.errors import InputError
from holdfast.model.instant import HOUR, Instant, from_datetime

from .definition import EVERY

FILE, METADATA = "aarhus-traffic/traffic-2014-08.parquet", "aarhus-traffic/trafficMetaData.csv"
ZONE = ZoneInfo("Europe/Copenhagen")
"""The times of the file are taken to be UTC: workdays are busiest from 5 to 7, which is 7 to 9 there."""
FIRST_HOUR, HOURS = 1, 20
"""From 1 AM to 9 PM, as in the thesis."""
URBAN = 50.0
"""km/h: the thesis' SCOOT controls streets in town, so roads with a higher normal speed are left out."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Road:
    """A directed road from one junction to the next; its sensors stand where it begins."""

    name: str
    start: int
    end: int
    metres: float
    seconds: float
    """How long it usually takes."""
    normal: float
    """The usual speed, km/h."""


@dataclass(frozen=True)
class JourneyMap:
    """Junctions, where on earth they are (degrees east and north), and the roads between them."""

    junctions: tuple[str, ...]
    degrees: tuple[tuple[float, float], ...]
    roads: tuple[Road, ...]

    @cached_property
    def hops(self) -> NDArray[np.float64]:
        """How many roads apart two junctions are, whatever their direction."""
        from scipy.sparse.csgraph import shortest_path

        found = shortest_path(self._graph([1.0] * len(self.roads)), directed=False, unweighted=True)
        return np.asarray(found)

    @cached_property
    def routes(self) -> NDArray[np.int32]:
        """``[from, to]``: the junction before ``to`` on the fastest way; negative where there is none."""
        from scipy.sparse.csgraph import dijkstra

        seconds = [road.seconds for road in self.roads]
        return np.asarray(dijkstra(self._graph(seconds), return_predecessors=True)[1])

    @cached_property
    def seconds(self) -> dict[tuple[int, int], float]:
        """How long the way from a junction to the next takes; of two roads, by the faster one."""
        slowest_first = sorted(self.roads, key=lambda road: -road.seconds)
        return {(road.start, road.end): road.seconds for road in slowest_first}

    def _graph(self, weights: Sequence[float]) -> NDArray[np.float64]:
        """Weights of the ways between junctions; of two roads the lighter."""
        count = len(self.junctions)
        found = np.full((count, count), np.inf)
        for road, weight in zip(self.roads, weights, strict=True):
            found[road.start, road.end] = min(weight, found[road.start, road.end])
        return found


@dataclass(frozen=True)
class Traffic:
    """Readings in order of time: instants (µs), indices of roads, vehicles counted in five minutes,
    and the seconds and km/h that they took on average."""

    times: Numbers
    roads: Numbers
    vehicles: Numbers
    seconds: Numbers
    speeds: Numbers

    def where(self, rows: NDArray[np.bool_]) -> Traffic:
        """Some of the readings."""
        return Traffic(
            self.times[rows], self.roads[rows], self.vehicles[rows], self.seconds[rows], self.speeds[rows]
        )

    def of(self, roads: Sequence[int]) -> Traffic:
        """The readings of some roads."""
        return self.where(np.isin(self.roads, roads))

    def on(self, day: date) -> Traffic:
        """The readings of the hours that are looked at."""
        start, end = hours(day)
        return self.where((self.times >= start) & (self.times < end))


def hours(day: date) -> tuple[Instant, Instant]:
    """When the hours that are looked at begin and end, by the clocks of the town."""
    start = from_datetime(datetime(day.year, day.month, day.day, FIRST_HOUR), ZONE)
    return start, start + HOURS * HOUR


# --- files -------------------------------------------------------------------------------------


def read_map(path: Path) -> JourneyMap:
    """The graph of the metadata: junctions are the end points of roads, by name."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if not rows:
            raise ValueError("it has no roads")
        ends = [
            (row[f"POINT_{end}_NAME"], (float(row[f"POINT_{end}_LNG"]), float(row[f"POINT_{end}_LAT"])))
            for row in rows
            for end in (2, 1)
        ]
        degrees = dict(sorted(ends))
        number = {name: i for i, name in enumerate(degrees)}
        roads = [
            Road(
                row["REPORT_ID"],
                number[row["POINT_1_NAME"]],
                number[row["POINT_2_NAME"]],
                float(row["DISTANCE_IN_METERS"]),
                float(row["DURATION_IN_SEC"]),
                float(row["NDT_IN_KMH"]),
            )
            for row in rows
        ]
    except (KeyError, ValueError) as error:
        raise InputError(f"{METADATA} is not the metadata of the road sensors: {error}") from error
    return JourneyMap(
        tuple(number), tuple(degrees.values()), tuple(sorted(roads, key=lambda road: road.name))
    )


def read_traffic(path: Path, map: JourneyMap) -> Traffic:
    """All readings of roads that the map has."""
    columns = ["time", "report_id", "vehicle_count", "avg_measured_time", "avg_speed"]
    try:
        table = pq.read_table(path, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{FILE} is not the readings of the road sensors: {error}") from error
    names = np.array([int(road.name) for road in map.roads])
    ids, vehicles, seconds, speeds = (table[name].to_numpy().astype(np.int64) for name in columns[1:])
    order = np.argsort(names)
    at = np.minimum(np.searchsorted(names, ids, sorter=order), len(names) - 1)
    times = table["time"].cast(pa.timestamp("us")).to_numpy().astype(np.int64)
    found = Traffic(times, order[at], vehicles, seconds, speeds)
    known = found.where(names[order[at]] == ids)
    if not len(known.times):
        raise InputError(f"{FILE} has no reading of a road that {METADATA} describes")
    return ordered(known)


def ordered(traffic: Traffic) -> Traffic:
    """The readings by time, and those of one time by road."""
    order = np.lexsort((traffic.roads, traffic.times))
    return Traffic(*(column[order] for column in vars(traffic).values()))


# --- which roads and days ----------------------------------------------------------------------


def busiest(map: JourneyMap, traffic: Traffic, count: int) -> list[int]:
    """The roads in town on which most vehicles were counted, in order of their numbers."""
    vehicles = np.bincount(traffic.roads, traffic.vehicles, len(map.roads))
    urban = [i for i, road in enumerate(map.roads) if road.normal <= URBAN]
    return sorted(sorted(urban, key=lambda i: (-vehicles[i], i))[:count])


def density(map: JourneyMap, traffic: Traffic) -> NDArray[np.float64]:
    """How many of the counted vehicles were on a kilometre of the road at a time: those that came in five
    minutes, times how long each stayed (Little's law)."""
    metres = np.array([road.metres for road in map.roads])
    return traffic.vehicles * traffic.seconds / 300.0 / (metres[traffic.roads] / 1000.0)


def days(traffic: Traffic) -> list[date]:
    """Every day of which all hours that are looked at lie between the first reading and the last."""
    first_time, last_time = int(traffic.times[0]), int(traffic.times[-1])
    first, last = (datetime.fromtimestamp(at / 1e6, UTC).date() for at in (first_time, last_time))
    every = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    return [day for day in every if first_time <= hours(day)[0] and hours(day)[1] <= last_time + EVERY]


def fullest(traffic: Traffic, weekday: int) -> date:
    """Of the days of the week's ``weekday`` (Monday is 0) the one with most readings."""
    found = [day for day in days(traffic) if day.weekday() == weekday]
    if not found:
        raise InputError(f"{FILE} has no whole day of the wanted day of the week")
    return max(found, key=lambda day: (len(traffic.on(day).times), -day.toordinal()))
