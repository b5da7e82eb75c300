"""Sensors, roads, and routes drawn on them."""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.model.event import Event
from holdfast.model.instant import MINUTE
from holdfast.model.relation import Participant, ReadingRange, Relation, Term, Test, Tie, slow

from ..data import locate

SENSORS = 323
READINGS = 337
"""28 hours with a reading every five minutes; readings without vehicles are left out."""
PERIOD = 5 * MINUTE


@dataclass(frozen=True)
class Roads:
    """``seconds[s]`` is the travel time at sensor s for each reading, ``after[s]`` the sensors that follow
    it.
    """

    seconds: dict[str, list[float]]
    nominal: dict[str, float]
    after: dict[str, tuple[str, ...]]

    @classmethod
    def read(cls, data: Path | None) -> Roads:
        """Read the sensors and roads of Aarhus."""
        file = locate("aarhus-traffic/traffic-2014-08.parquet", data)
        table = pq.read_table(file, columns=["time", "report_id", "avg_measured_time"])
        first, last = np.datetime64("2014-08-04T06:00:00", "ns"), np.datetime64("2014-08-06T12:00:00", "ns")
        table = table.filter((pc.field("time") >= first) & (pc.field("time") < last)).sort_by("time")
        of: dict[str, list[float]] = {}
        names, values = table["report_id"].to_pylist(), table["avg_measured_time"].to_pylist()
        for name, value in zip(names, values, strict=True):
            if value and value > 0:
                of.setdefault(str(name), []).append(float(value))
        with file.with_name("trafficMetaData.csv").open(encoding="utf-8") as lines:
            about = {row["REPORT_ID"]: row for row in csv.DictReader(lines)}
        whole = sorted(name for name, values in of.items() if len(values) >= READINGS and name in about)
        names = whole[:SENSORS]
        starts: dict[str, list[str]] = {}
        for name in names:
            starts.setdefault(about[name]["POINT_1_NAME"], []).append(name)
        return cls(
            {name: of[name][:READINGS] for name in names},
            {name: float(about[name]["DURATION_IN_SEC"]) for name in names},
            {name: tuple(starts.get(about[name]["POINT_2_NAME"], ())) for name in names},
        )

    def route(self, length: int, chance: random.Random) -> tuple[str, ...]:
        """Draw a route of consecutive sensors; at a dead end it continues anywhere."""
        names = list(self.seconds)
        found = [chance.choice(names)]
        while len(found) < length:
            onward = [name for name in self.after[found[-1]] if name not in found]
            found.append(chance.choice(onward or [name for name in names if name not in found]))
        return tuple(found)

    def relation(self, route: tuple[str, ...]) -> Relation:
        """Return the relationship of a route: slow above n + lg n minutes."""
        bound = 60 * slow(max(sum(self.nominal[name] for name in route) / 60, 1.0))
        terms = tuple(Term(Participant("Loop", name, "seconds")) for name in route)
        tie = Tie("route", tuple(term.member for term in terms), (terms,))
        above = ReadingRange(low=math.nextafter(bound, math.inf))
        return Relation("total", Test(above), Test(ReadingRange(high=bound)), (tie,))

    def events(self, route: tuple[str, ...]) -> list[Event]:
        """Return the readings of a route's sensors, all at the same times."""
        return [
            Event("Loop", i * PERIOD, name, {"seconds": self.seconds[name][i]}, i)
            for i in range(READINGS)
            for name in sorted(route)
        ]
