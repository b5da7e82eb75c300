"""Run the journey planner: settings, days, parameters and registration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from ..data import locate
from ..experiment import Experiment, Progress, Result
from ..journal import place
from ..study import StoredRuns, conduct
from .central import notifications_of
from .claim import PAPER, claims
from .count import Counts, measure
from .definition import Limits
from .deployment import SEGMENTS, segments
from .figure import JourneyExhibit, figure
from .roads import (
    FILE,
    METADATA,
    JourneyMap,
    Traffic,
    busiest,
    days,
    density,
    fullest,
    read_map,
    read_traffic,
)
from .scene import Crowd, JourneyScene, scene
from .table import THESIS, row, tables

NAME = "journey-planner"
TITLE = "congestion on roads, reported to moving users within two junctions  [SPS, Tables 5.16–5.21]"
CODE = ("holdfast_lab/experiments/journey_planner", "holdfast/kinds/component/detector")
"""The sources that determine the counts of a day; a change repeats stored runs."""
ROADS, USERS, SEED = 60, 500, 2006
EXPERIMENTS = {"Exp1": 5, "Exp2": 3}
"""A Saturday and a Thursday, as in the thesis."""


@dataclass(frozen=True)
class JourneySetting:
    """A variant of thresholds and segments."""

    name: str = "as described"
    slow: float = 67.0
    fast: float = 85.0
    in_turn: bool = True
    all_roads: bool = False


JUDGED = JourneySetting()
"""The judged setting. Its thresholds make about as many roads slow as in the thesis. Roads are assigned to
segments in turn, because congestion was even in the thesis.
"""
MAIN = JourneySetting("as it was before", 40.0, 50.0, in_turn=False)
"""The first setting, which ``journey-network`` uses."""
VARIANTS = (
    MAIN,
    JourneySetting("slow 40 to 50 %", 40.0, 50.0),
    JourneySetting("neighbours together", in_turn=False),
)
MORE = (JourneySetting("all roads", all_roads=True),)
"""Settings of the full run only."""


@dataclass(frozen=True)
class JourneyWorld:
    """The map, all readings, the watched roads, the threshold of a busy road, and the number of users."""

    map: JourneyMap
    traffic: Traffic
    roads: tuple[int, ...]
    busy: float
    users: int = USERS

    def limits(self, setting: JourneySetting) -> Limits:
        """Return the thresholds of a setting."""
        return Limits(self.busy, setting.slow, setting.fast)

    def scene(self, setting: JourneySetting, day: date) -> JourneyScene:
        """Return a day on the roads of a setting."""
        roads = range(len(self.map.roads)) if setting.all_roads else self.roads
        return scene(day, self.map, roads, self.traffic, Crowd(self.users, SEED))

    def counts(self, setting: JourneySetting, day: date, in_process: bool) -> Counts:
        """Run a day and return its counts."""
        scene = self.scene(setting, day)
        cut = segments(self.map, scene.roads)
        if setting.in_turn:
            cut = [[self.map.roads[i].name for i in scene.roads[n::SEGMENTS]] for n in range(SEGMENTS)]
        return measure(scene, self.limits(setting), cut, in_process=in_process)


def run(data: Path | None, full: bool, progress: Progress) -> Result:
    """Run both experiments and the variants; with ``full``, every other day of the month too."""
    progress("reading")
    map = read_map(locate(METADATA, data))
    world = observe_world(map, read_traffic(locate(FILE, data), map))
    return run_world(world, full, progress)


def observe_world(map: JourneyMap, traffic: Traffic) -> JourneyWorld:
    """Select the watched roads, and set the threshold of a busy road to the 95th percentile of densities with
    vehicles.
    """
    roads = busiest(map, traffic, ROADS)
    watched = traffic.of(roads)
    with_vehicles = density(map, watched)[watched.vehicles > 0]
    return JourneyWorld(map, traffic, tuple(roads), round(float(np.quantile(with_vehicles, 0.95)), 1))


def run_world(world: JourneyWorld, full: bool, progress: Progress) -> Result:
    """Run the experiment in a world."""
    watched = world.traffic.of(world.roads)
    chosen = {name: fullest(watched, weekday) for name, weekday in EXPERIMENTS.items()}
    settings = (JUDGED, *VARIANTS, *(MORE if full else ()))
    every = days(world.traffic) if full else []
    wanted = {(setting, day): setting == JUDGED for setting in settings for day in chosen.values()}
    wanted |= {(JUDGED, day): False for day in every if (JUDGED, day) not in wanted}
    found = _count_days(world, wanted, full, progress)
    runs = {setting.name: [found[_key(setting, day)] for day in chosen.values()] for setting in settings}
    month = {str(day): found[_key(JUDGED, day)] for day in every}
    rows = [row(THESIS, name, "", counts) for name, counts in zip(chosen, PAPER, strict=True)]
    rows += [
        row(setting, name, str(day), counts)
        for setting, both in runs.items()
        for (name, day), counts in zip(chosen.items(), both, strict=True)
    ]
    rows += [row(JUDGED.name, "", day, counts) for day, counts in month.items()]
    scenes = [world.scene(JUDGED, day) for day in chosen.values()]
    limits = world.limits(JUDGED)
    exhibit = JourneyExhibit([(scene, notifications_of(scene, limits)) for scene in scenes], limits)
    return Result(NAME, _parameters(world, chosen), rows, tuple(claims(runs, month)), exhibit)


def _count_days(
    world: JourneyWorld, wanted: Mapping[tuple[JourneySetting, date], bool], resumed: bool, progress: Progress
) -> dict[str, Counts]:
    """Count each day; the value of ``wanted`` is whether to run in one process too. With ``resumed``, stored
    days are not repeated.
    """
    subject = (world.roads, world.busy, world.users, len(world.traffic.times), SEED)
    stored_runs = StoredRuns[Counts](place(NAME, subject, CODE), dict) if resumed else None
    cells = {_key(*when): (*when, in_process) for when, in_process in wanted.items()}
    rounds = {key: {key: cell} for key, cell in cells.items()}
    return conduct(lambda cell: world.counts(*cell), rounds, progress, stored_runs)


def _key(setting: JourneySetting, day: date) -> str:
    return f"{setting.name}, {day}"


def _parameters(world: JourneyWorld, chosen: Mapping[str, date]) -> dict[str, Any]:
    roads = [world.map.roads[i] for i in world.roads]
    return {
        "data": f"{FILE}, {METADATA}",
        "days": [f"{name} {day:%A %Y-%m-%d}" for name, day in chosen.items()],
        "days by": "most readings of the watched roads on a Saturday and on a Thursday",
        "hours": "1 AM to 9 PM in Aarhus; the file's times are taken to be UTC",
        "graph": f"{len(world.map.junctions)} junctions (end points by name), {len(world.map.roads)} "
        "directed roads; distance in junctions, whatever the direction, from where the road begins",
        "roads": f"the {len(roads)} on which most vehicles were counted in the month, of those with a normal "
        "speed of at most 50 km/h",
        "lengths": f"{min(r.metres for r in roads):.0f} to {max(r.metres for r in roads):.0f} m",
        "inductive loop": "vehicle_count · avg_measured_time / 300 s / length: vehicles seen on a kilometre",
        "car speed": "avg_speed / NDT_IN_KMH in per cent, where vehicle_count > 0",
        "windows": "10 min and 20 min (30 s and 1 min in the thesis), both ends included; a reading in 5 min",
        "busy": f"more than {world.busy}: 95 % of the month's readings with vehicles are at most that",
        "slow": f"below {JUDGED.slow:g} % of normal, until above {JUDGED.fast:g} % (in the thesis 7 and 15 "
        "mph)",
        "users": f"{world.users}, each from a junction drawn by chance to another, by the fastest way at "
        "usual speeds, and on; no pauses",
        "positions": "the junction reached last, every 5 min",
        "location": "a point for each junction, so placed that two are within 2 exactly if at most two "
        "junctions apart",
        "segments": f"{SEGMENTS}; roads are dealt to them in turn (neighbours together: halved by longitude "
        "and latitude in turn)",
        "nodes": "one for each loop, camera, TrafficCongestion part and user; an event crosses the network "
        "if a host on another node than its publisher's wants it",
        "stabilization": "none: a replay is in order",
        "seed": SEED,
    }


EXPERIMENT = Experiment(NAME, TITLE, run, tables, figure)
