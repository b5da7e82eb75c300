"""Run the experiment on routes: rows, tables, figure and registration."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Experiment, Progress, Result, Row, Table
from .claim import COMMON, claims
from .measure import Environment, Watched, environment, watch
from .scene import READINGS, Roads

NAME = "traffic"
TITLE = "routes that become slow, watched by agents  [Fulcrum, Figures 7-3 to 7-8, Tables 7-7 to 7-9]"
SEED = 2005
POINTS = (
    (17, 9), (173, 9), (397, 7), (494, 7), (578, 7), (416, 9), (625, 9), (829, 9), (1001, 9), (802, 10),
    (844, 10), (1134, 9), (1397, 9), (1165, 10), (1119, 10), (1050, 11), (1446, 10), (1260, 11), (1789, 10),
    (1753, 10), (1461, 12), (1848, 11), (2056, 10), (1657, 12), (2365, 11), (1871, 12), (2640, 11),
    (2072, 12), (2860, 11), (2297, 13),
)  # fmt: skip
"""The number of routes and of sensors per route, for each of the document's thirty rows."""
DRAWN = {False: 60, True: 200}
"""The number of monitored routes of each length, in a quick and in a full run."""
SEQUENCES = {False: 3, True: 30}


def run(data: Path | None, full: bool, progress: Progress) -> Result:
    """Monitor routes of each length, and draw the routes of every row from them several times."""
    roads, chance = Roads.read(data), random.Random(SEED)
    pool: dict[int, list[Watched]] = {}
    for length in sorted({length for _, length in POINTS}):
        progress(f"routes of {length} sensors")
        pool[length] = [watch(roads, roads.route(length, chance)) for _ in range(DRAWN[full])]
    rows = []
    for routes, length in POINTS:
        some = [environment(pool[length], routes, chance) for _ in range(SEQUENCES[full])]
        rows.append(sorted(some, key=lambda one: one.reported)[len(some) // 2])
    rows.sort(key=lambda row: row.complexity)
    participants = [one for some in pool.values() for one in some]
    parameters = _parameters(full, len(roads.seconds))
    return Result(NAME, parameters, [_row(row) for row in rows], claims(participants, rows))


def _row(one: Environment) -> Row:
    return {
        "routes": one.routes,
        "sensors": one.sensors,
        "observers": one.observers,
        "complexity": round(one.complexity, 1),
        "basic hops/D": round(one.basic, 2),
        "first common node hops/D": COMMON,
        "Fulcrum hops/D": round(one.fulcrum, 4),
    }


def _parameters(full: bool, sensors: int) -> dict[str, Any]:
    return {
        "sensors": f"{sensors} of Aarhus, August 2014, {READINGS} readings, one each 5 min",
        "routes": f"drawn on the road graph, seed {SEED}; {DRAWN[full]} of each length, used again",
        "rows": f"the document's 30, the middle of {SEQUENCES[full]} sequences each",
        "basic, first common node": "as the document's tables have them, from observers for each sensor",
    }


def _tables(result: Result) -> list[Table]:
    return [Table.of_rows("Routes", result.rows)]


def figure(result: Result) -> Drawing:
    """Draw hops per original report over complexity."""
    drawing = new_figure(7, 4)
    axes = drawing.subplots()
    at = [row["complexity"] for row in result.rows]
    for scheme in ("basic", "first common node", "Fulcrum"):
        axes.plot(at, [row[f"{scheme} hops/D"] for row in result.rows], marker=".", label=scheme)
    axes.set(xlabel="complexity", ylabel="hops for an original report, by the diameter", yscale="log")
    axes.legend()
    return drawing


EXPERIMENT = Experiment(NAME, TITLE, run, _tables, figure)
