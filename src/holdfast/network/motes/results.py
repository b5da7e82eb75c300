"""Results of a study: a row for each run, statistics over the runs of each point, and their tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from ..sim.statistics import Estimate, estimate
from .account import Row
from .case import SimulationCase
from .outcome import RunOutcome
from .run import run
from .study import Study, label


@dataclass(frozen=True)
class RunTask:
    """A run of a study, described by its point, its seed and its case."""

    point: int
    seed: int
    case: SimulationCase


def tasks(study: Study) -> list[RunTask]:
    """Return all runs of a study, by point and then by seed."""
    return [RunTask(i, seed, point.case) for i, point in enumerate(study.points) for seed in study.seeds]


def perform(task: RunTask) -> RunOutcome:
    """Make one run and return its outcome."""
    return run(task.case, task.seed)


Sweeper = Callable[[Callable[[RunTask], RunOutcome], Sequence[RunTask]], Iterable[RunOutcome]]
"""A function that makes many runs: locally one after the other, on Spark in parallel."""


@dataclass(frozen=True)
class StudyResults:
    """The outcomes of all runs of a study, in the order of its tasks."""

    study: Study
    tasks: Sequence[RunTask]
    runs: Sequence[RunOutcome]

    def of(self, point: int) -> list[RunOutcome]:
        """Return the runs of one point, in the order of the seeds."""
        return [run for task, run in zip(self.tasks, self.runs, strict=True) if task.point == point]

    def settings(self, point: int) -> dict[str, str]:
        """Return the settings of a point in the sweep, as text by parameter."""
        given = self.study.points[point].settings
        return {name: label(given[name]) if name in given else "" for name in self.study.parameters}

    def summary(self, point: int) -> dict[str, Estimate]:
        """Return the mean of each measure of a point over the seeds, with the 95 % interval."""
        return _estimates([run.measures for run in self.of(point)])

    def subscriptions(self, point: int) -> dict[str, dict[str, Estimate]]:
        """Return the means of the measures of each subscription, by the name of the subscription."""
        runs = self.of(point)
        names = [row["subscription"] for row in runs[0].subscriptions]
        return {name: _estimates([run.subscriptions[i] for run in runs]) for i, name in enumerate(names)}


UNCOUNTED = ("dropped", "energy_by_cause_mj", "rest", "subscription", "lost")
"""The columns that are not numbers, so that they have no mean."""


def _estimates(rows: list[Row]) -> dict[str, Estimate]:
    numbers = [name for name in rows[0] if name not in UNCOUNTED]
    found = {name: estimate(row[name] for row in rows) for name in numbers}
    return {name: value for name, value in found.items() if value is not None}


def collect(study: Study, sweeper: Sweeper) -> StudyResults:
    """Make all runs of a study with a sweeper, and return their results."""
    todo = tasks(study)
    return StudyResults(study, todo, list(sweeper(perform, todo)))


# As tables and as JSON.

_COUNTS = pa.map_(pa.string(), pa.int64())
_AMOUNTS = pa.map_(pa.string(), pa.float64())
_TYPES = {"dropped": _COUNTS, "lost": _COUNTS, "energy_by_cause_mj": _AMOUNTS, "rest": pa.string()}


def tables(results: StudyResults) -> dict[str, pa.Table]:
    """Return the tables of a study by name.

    They are ``runs`` (a row for each run), ``summary`` (for each point and measure), ``subscriptions`` if
    there are any, ``nodes`` and ``timeline``.
    """
    subscriptions = _rows_by_run(results, lambda run: run.subscriptions)
    return {
        "runs": _table(_rows_by_run(results, lambda run: [run.measures]), _TYPES),
        "summary": _table(_summary_rows(results), {}),
        **({"subscriptions": _table(subscriptions, _TYPES)} if subscriptions else {}),
        "nodes": _table(_rows_by_run(results, lambda run: run.nodes), {"died_s": pa.float64()}),
        "timeline": _table(_rows_by_run(results, lambda run: run.timeline), {}),
    }


def _rows_by_run(results: StudyResults, rows: Callable[[RunOutcome], list[Row]]) -> list[Row]:
    return [
        {"point": task.point, **results.settings(task.point), "seed": task.seed, **row}
        for task, run in zip(results.tasks, results.runs, strict=True)
        for row in rows(run)
    ]


def _summary_rows(results: StudyResults) -> list[Row]:
    return [
        {"point": i, **results.settings(i), "measure": name, **found.to_json()}
        for i in range(len(results.study.points))
        for name, found in results.summary(i).items()
    ]


def _table(rows: list[Row], types: dict[str, pa.DataType]) -> pa.Table:
    columns = {}
    for name in rows[0]:
        values = [list(v.items()) if isinstance(v, dict) else v for v in (row[name] for row in rows)]
        floats = any(isinstance(v, float) or v is None for v in values)
        kind = types.get(name, pa.float64() if floats else None)
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


Form = Literal["parquet", "csv"]


def write(results: StudyResults, folder: Path, form: Form = "parquet") -> list[Path]:
    """Write the tables as files into a folder; return the paths of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables(results).items():
        path = folder / f"{name}.{form}"
        if form == "parquet":
            pq.write_table(table, path, compression="zstd")
        else:
            csv.write_csv(_flat(table), path)
        written.append(path)
    return written


def _flat(table: pa.Table) -> pa.Table:
    """Return the table with a column for each key of a map, such as ``dropped.no route``."""
    columns: dict[str, pa.Array] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_map(column.type):
            columns[name] = column
            continue
        rows = [dict(row or ()) for row in column.to_pylist()]
        for key in dict.fromkeys(key for row in rows for key in row):
            columns[f"{name}.{key}"] = pa.array([row.get(key) for row in rows], column.type.item_type)
    return pa.table(columns)


def to_json(results: StudyResults) -> str:
    """Return the results as a JSON object, without nodes and timelines."""
    points = []
    for i, point in enumerate(results.study.points):
        found = {name: _plain(estimates) for name, estimates in results.subscriptions(i).items()}
        measures = _plain(results.summary(i))
        about = {"settings": dict(point.settings), "measures": measures}
        points.append({**about, **_non_empty(subscriptions=found)})
    runs = [
        {"point": task.point, "seed": task.seed, **run.measures}
        | _non_empty(subscriptions=run.subscriptions, protocol=run.protocol)
        for task, run in zip(results.tasks, results.runs, strict=True)
    ]
    study = {"scenario": results.study.name, "seeds": list(results.study.seeds)}
    return json.dumps({**study, "points": points, "runs": runs}, indent=2, ensure_ascii=False)


def _plain(estimates: dict[str, Estimate]) -> Row:
    return {name: found.to_json() for name, found in estimates.items()}


def _non_empty(**found: Any) -> Row:
    """Return the arguments that are not empty."""
    return {name: value for name, value in found.items() if value}
