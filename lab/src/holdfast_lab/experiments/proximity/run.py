"""Run the experiment on proximity: rows, tables, figure and registration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Experiment, Progress, Result, Row, Table
from .claim import claims
from .measure import ProximityMeasurement, measure
from .scene import BUDDIES, EDGES, FAR, NEAR, PERIOD, READINGS, SEED, USERS, ProximityScene

NAME = "proximity"
TITLE = "buddies who come near one another, watched by agents  [Fulcrum, Figure 7-2, Tables 7-1 to 7-6]"
RATE = 17
SAMPLE = {False: 60, True: 300}
"""The number of relationships with 17 times the reports, in a quick and in a full run."""


def run(data: Path | None, full: bool, progress: Progress) -> Result:
    """Measure all relationships, and a sample of them with 17 times the reports."""
    scene = ProximityScene.draw(data)
    few = scene.only(SAMPLE[full])
    measured: dict[str, ProximityMeasurement] = {}
    for name, one, every in (
        ("all", scene if full else scene.only(BUDDIES // 4), float(PERIOD)),
        ("sample", few, float(PERIOD)),
        ("sample, 17 x", few.faster(RATE), PERIOD / RATE),
    ):
        progress(name)
        measured[name] = measure(one, every)
    rows = [_row(name, found) for name, found in measured.items()]
    return Result(NAME, _parameters(full), rows, claims(measured))


def _row(name: str, found: ProximityMeasurement) -> Row:
    return {
        "relationships": f"{found.relationships} ({name})",
        "original reports": found.originals,
        "ring events": found.rings,
        "starts and ends": found.reports,
        "exact": found.is_exact,
        "saved": round(found.reduction, 4),
        "hops basic": round(found.hops("basic"), 4),
        "hops first common node": round(found.hops("first common node"), 4),
        "hops Fulcrum": round(found.hops("Fulcrum"), 4),
    }


def _parameters(full: bool) -> dict[str, Any]:
    return {
        "users": f"{USERS} on four edge brokers and a hub: {'/'.join(map(str, EDGES))}",
        "relationships": f"{BUDDIES} drawn, seed {SEED}; {'all' if full else 'a quarter'} of them run",
        "ways": f"KAIST walks, used again with offsets, {READINGS} readings, one each {PERIOD} s",
        "near": f"from {NEAR:g} m on, until {FAR:g} m",
        "hops": "reckoned as the document does, from what was counted and from who is on which broker",
    }


def _tables(result: Result) -> list[Table]:
    return [Table.of_rows("Range rings", result.rows)]


def figure(result: Result) -> Drawing:
    """Draw hops per original report, those of the document beside ours."""
    drawing = new_figure(7, 4)
    axes = drawing.subplots()
    schemes = ("basic", "first common node", "Fulcrum")
    at = range(len(schemes))
    axes.bar([x - 0.2 for x in at], [2.5, 0.773, 0.279], width=0.4, color="0.7", label="document")
    ours = [result.rows[0][f"hops {scheme}"] for scheme in schemes]
    axes.bar([x + 0.2 for x in at], ours, width=0.4, color="tab:blue", label="ours")
    axes.set(xticks=at, xticklabels=schemes, ylabel="hops for an original report")
    axes.legend()
    return drawing


EXPERIMENT = Experiment(NAME, TITLE, run, _tables, figure)
