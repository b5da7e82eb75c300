"""What a study found: a row for each run, and for each point what its runs say together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from ...sim.statistics import Estimate, estimate
from .account import Row
from .case import Case
from .outcome import Outcome
from .run import run
from .study import Study, label


@dataclass(frozen=True)
class Task:
    """One run that is to be made."""

    point: int
    seed: int
    case: Case


def tasks(study: Study) -> list[Task]:
    """All runs of a study, point by point, seed by seed."""
    return [Task(i, seed, point.case) for i, point in enumerate(study.points) for seed in study.seeds]


def perform(task: Task) -> Outcome:
    """Make one run."""
    return run(task.case, task.seed)


Sweeper = Callable[[Callable[[Task], Outcome], Sequence[Task]], Iterable[Outcome]]
"""A way to make many runs: here one after the other, on Spark side by side."""


@dataclass(frozen=True)
class Results:
    """All runs of a study, in the order of its tasks."""

    study: Study
    tasks: Sequence[Task]
    runs: Sequence[Outcome]

    def of(self, point: int) -> list[Outcome]:
        """The runs of one point, by seed."""
        return [run for task, run in zip(self.tasks, self.runs, strict=True) if task.point == point]

    def settings(self, point: int) -> dict[str, str]:
        """What the sweep set at a point, as it is written."""
        given = self.study.points[point].settings
        return {name: label(given[name]) if name in given else "" for name in self.study.parameters}

    def summary(self, point: int) -> dict[str, Estimate]:
        """Each measure of a point: its mean over the seeds, with the 95 % interval."""
        return _estimates([run.measures for run in self.of(point)])

    def subscriptions(self, point: int) -> dict[str, dict[str, Estimate]]:
        """The same for each subscription, by name."""
        runs = self.of(point)
        names = [row["subscription"] for row in runs[0].subscriptions]
        return {name: _estimates([run.subscriptions[i] for run in runs]) for i, name in enumerate(names)}


UNCOUNTED = ("dropped", "energy_by_cause_mj", "rest", "subscription", "lost")
"""Measures that are no numbers."""


def _estimates(rows: list[Row]) -> dict[str, Estimate]:
    numbers = [name for name in rows[0] if name not in UNCOUNTED]
    found = {name: estimate(row[name] for row in rows) for name in numbers}
    return {name: value for name, value in found.items() if value is not None}


def collect(study: Study, sweeper: Sweeper) -> Results:
    """Make all runs."""
    todo = tasks(study)
    return Results(study, todo, list(sweeper(perform, todo)))


# As tables and as JSON.

_COUNTS = pa.map_(pa.string(), pa.int64())
_AMOUNTS = pa.map_(pa.string(), pa.float64())
_TYPES = {"dropped": _COUNTS, "lost": _COUNTS, "energy_by_cause_mj": _AMOUNTS, "rest": pa.string()}


def tables(results: Results) -> dict[str, pa.Table]:
    """``runs``: a row for each run; ``summary``: for each point and measure; ``subscriptions``, if there are
    some, ``nodes`` and ``timeline``."""
    subscriptions = _each(results, lambda run: run.subscriptions)
    return {
        "runs": _table(_each(results, lambda run: [run.measures]), _TYPES),
        "summary": _table(_summary_rows(results), {}),
        **({"subscriptions": _table(subscriptions, _TYPES)} if subscriptions else {}),
        "nodes": _table(_each(results, lambda run: run.nodes), {"died_s": pa.float64()}),
        "timeline": _table(_each(results, lambda run: run.timeline), {}),
    }


def _each(results: Results, rows: Callable[[Outcome], list[Row]]) -> list[Row]:
    return [
        {"point": task.point, **results.settings(task.point), "seed": task.seed, **row}
        for task, run in zip(results.tasks, results.runs, strict=True)
        for row in rows(run)
    ]


def _summary_rows(results: Results) -> list[Row]:
    return [
        {
            "point": i,
            **results.settings(i),
            "measure": name,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "runs": found.runs,
        }
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


def write(results: Results, folder: Path, form: Form = "parquet") -> list[Path]:
    """Keep the tables as files in a folder."""
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
    """The table with a column for each name of amounts by name: ``dropped.no route``."""
    columns: dict[str, pa.Array] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_map(column.type):
            columns[name] = column
            continue
        rows = [dict(row or ()) for row in column.to_pylist()]
        for key in dict.fromkeys(key for row in rows for key in row):
            columns[f"{name}.{key}"] = pa.array([row.get(key) for row in rows], column.type.item_type)
    return pa.table(columns)


def to_json(results: Results) -> str:
    """Everything but nodes and timelines, as one JSON object."""
    points = [
        {
            "settings": dict(point.settings),
            "measures": _plain(results.summary(i)),
            **_some(subscriptions={name: _plain(some) for name, some in results.subscriptions(i).items()}),
        }
        for i, point in enumerate(results.study.points)
    ]
    runs = [
        {"point": task.point, "seed": task.seed, **run.measures}
        | _some(subscriptions=run.subscriptions, protocol=run.protocol)
        for task, run in zip(results.tasks, results.runs, strict=True)
    ]
    found = {
        "scenario": results.study.name,
        "seeds": list(results.study.seeds),
        "points": points,
        "runs": runs,
    }
    return json.dumps(found, indent=2, ensure_ascii=False)


def _plain(estimates: dict[str, Estimate]) -> Row:
    return {
        name: {"mean": found.mean, "low": found.low, "high": found.high, "runs": found.runs}
        for name, found in estimates.items()
    }


def _some(**found: Any) -> Row:
    """What there is something of."""
    return {name: value for name, value in found.items() if value}
