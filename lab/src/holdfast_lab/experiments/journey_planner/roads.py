"""The roads of Aarhus (CityPulse, August 2014): a graph of junctions, and traffic readings."""

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
"""The times of the file are assumed to be UTC: workdays are busiest from 5 to 7, which is 7 to 9 local time.
"""
FIRST_HOUR, HOURS = 1, 20
"""The evaluated hours are 1 AM to 9 PM, as in the thesis."""
URBAN = 50.0
"""The highest normal speed of an urban road, in km/h. The thesis' SCOOT controls streets in town."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Road:
    """A directed road between two junctions; its sensors are at its start."""

    name: str
    start: int
    end: int
    metres: float
    seconds: float
    """The usual travel time."""
    normal: float
    """The usual speed, in km/h."""


@dataclass(frozen=True)
class JourneyMap:
    """Junctions with their coordinates (degrees east and north), and the roads between them."""

    junctions: tuple[str, ...]
    degrees: tuple[tuple[float, float], ...]
    roads: tuple[Road, ...]

    @cached_property
    def hops(self) -> NDArray[np.float64]:
        """The number of roads between two junctions, in any direction."""
        from scipy.sparse.csgraph import shortest_path

        found = shortest_path(self._graph([1.0] * len(self.roads)), directed=False, unweighted=True)
        return np.asarray(found)

    @cached_property
    def routes(self) -> NDArray[np.int32]:
        """``[from, to]``: the junction before ``to`` on the fastest route; negative if there is no route."""
        from scipy.sparse.csgraph import dijkstra

        seconds = [road.seconds for road in self.roads]
        return np.asarray(dijkstra(self._graph(seconds), return_predecessors=True)[1])

    @cached_property
    def seconds(self) -> dict[tuple[int, int], float]:
        """The travel time between neighbouring junctions, by the fastest road."""
        slowest_first = sorted(self.roads, key=lambda road: -road.seconds)
        return {(road.start, road.end): road.seconds for road in slowest_first}

    def _graph(self, weights: Sequence[float]) -> NDArray[np.float64]:
        """Return the matrix of road weights between junctions; the least weight of parallel roads is used."""
        count = len(self.junctions)
        found = np.full((count, count), np.inf)
        for road, weight in zip(self.roads, weights, strict=True):
            found[road.start, road.end] = min(weight, found[road.start, road.end])
        return found


@dataclass(frozen=True)
class Traffic:
    """Readings in order of time, as columns: times (µs), road indices, vehicles in five minutes, and their
    mean travel time (s) and speed (km/h).
    """

    times: Numbers
    roads: Numbers
    vehicles: Numbers
    seconds: Numbers
    speeds: Numbers

    def where(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Traffic:
        """Select rows by a mask or by indices."""
        return Traffic(*(column[rows] for column in vars(self).values()))

    def of(self, roads: Sequence[int]) -> Traffic:
        """Select the readings of some roads."""
        return self.where(np.isin(self.roads, roads))

    def on(self, day: date) -> Traffic:
        """Select the readings of the evaluated hours of a day."""
        start, end = hours(day)
        return self.where((self.times >= start) & (self.times < end))


def hours(day: date) -> tuple[Instant, Instant]:
    """Return the start and end of the evaluated hours of a day, in local time."""
    start = from_datetime(datetime(day.year, day.month, day.day, FIRST_HOUR), ZONE)
    return start, start + HOURS * HOUR


# --- files -------------------------------------------------------------------------------------


def read_map(path: Path) -> JourneyMap:
    """Read the graph of roads; junctions are the named end points of roads."""
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
        roads = []
        for row in rows:
            points = number[row["POINT_1_NAME"]], number[row["POINT_2_NAME"]]
            measures = ("DISTANCE_IN_METERS", "DURATION_IN_SEC", "NDT_IN_KMH")
            roads.append(Road(row["REPORT_ID"], *points, *(float(row[name]) for name in measures)))
    except (KeyError, ValueError) as error:
        raise InputError(f"{METADATA} is not the metadata of the road sensors: {error}") from error
    by_name = sorted(roads, key=lambda road: road.name)
    return JourneyMap(tuple(number), tuple(degrees.values()), tuple(by_name))


def read_traffic(path: Path, map: JourneyMap) -> Traffic:
    """Read all readings of the roads in a map."""
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
    """Sort readings by time, then by road."""
    return traffic.where(np.lexsort((traffic.roads, traffic.times)))


# --- which roads and days ----------------------------------------------------------------------


def busiest(map: JourneyMap, traffic: Traffic, count: int) -> list[int]:
    """Return the ``count`` urban roads with most vehicles, in order of their indices."""
    vehicles = np.bincount(traffic.roads, traffic.vehicles, len(map.roads))
    urban = [i for i, road in enumerate(map.roads) if road.normal <= URBAN]
    return sorted(sorted(urban, key=lambda i: (-vehicles[i], i))[:count])


def density(map: JourneyMap, traffic: Traffic) -> NDArray[np.float64]:
    """Return the vehicles per kilometre at a time: arrivals in five minutes times the time on the road
    (Little's law).
    """
    metres = np.array([road.metres for road in map.roads])
    return traffic.vehicles * traffic.seconds / 300.0 / (metres[traffic.roads] / 1000.0)


def days(traffic: Traffic) -> list[date]:
    """Return all days whose evaluated hours are covered by the readings."""
    first_time, last_time = int(traffic.times[0]), int(traffic.times[-1])
    first, last = (datetime.fromtimestamp(at / 1e6, UTC).date() for at in (first_time, last_time))
    every = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    return [day for day in every if first_time <= hours(day)[0] and hours(day)[1] <= last_time + EVERY]


def fullest(traffic: Traffic, weekday: int) -> date:
    """Return the day of the week ``weekday`` (Monday is 0) with most readings."""
    found = [day for day in days(traffic) if day.weekday() == weekday]
    if not found:
        raise InputError(f"{FILE} has no whole day of the wanted day of the week")
    return max(found, key=lambda day: (len(traffic.on(day).times), -day.toordinal()))
