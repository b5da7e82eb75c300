"""A day of many users on Spark: proximity within 50 m, compared with a hand-written join.

Users are in cells of eight that are far apart, and each is a friend of the next one in its cell. Related
sources are processed in one shard, so the cells are distributed over the cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.model.batch import TIME
from holdfast.model.instant import MINUTE
from holdfast.network.motes.report.style import new_figure, tidy

from .experiment import Drawing, Experiment, Judged, Progress, Result, Table, to_claims

NAME = "relate-spark"
TITLE = "relationships of many users on Spark, beside a join by hand"
USERS = {False: 20_000, True: 1_000_000}
CELL = 8
EVERY = 30
"""The interval between readings, in minutes."""
READINGS = 24 * 60 // EVERY
FILES = 8
SIDE, STEP = 300.0, 60.0
"""The width of a cell, and the greatest move in half an hour, in metres."""
APART = 1_000.0
NEAR, FAR = 50.0, 80.0
SEED = 2005
RULES = {
    "same": "both find the same starts and ends",
    "events-a-second": "watching the relationship takes at least as many readings a second as the join",
    "processor-time": "it takes no more of the processor, of all processes together",
}
TURNS = {False: ("cold", "warm"), True: ("once",)}
"""The repetitions of each job, of which the last counts. With a million users the warm-up is negligible, so
there is one.
"""
DEFINITION = f"""topic User ()
relate Near (a User, b User) pairs "pairs.csv"
  when distance(a, b) <= {NEAR:g} m until distance(a, b) >= {FAR:g} m
"""


def _run(_: Path | None, full: bool, progress: Progress) -> Result:
    return measure(USERS[full], progress, TURNS[full])


def measure(users: int, progress: Progress, turns: Sequence[str]) -> Result:
    """Run both jobs over a day of ``users`` users; the last repetition of each counts."""
    from holdfast.runtimes.spark.session import session

    spark = session()
    with TemporaryDirectory(prefix="holdfast-relate-") as folder:
        home = Path(folder)
        progress(f"{users:,} users")
        write_day(home, users)
        seconds, processor, results = {}, {}, {}
        for name, job in JOBS.items():
            for turn in turns:
                progress(f"{name}, {turn}")
                output = home / f"{job.__name__}-{turn}"
                start, before = time.perf_counter(), processor_time()
                job(spark, home, output)
                seconds[name] = time.perf_counter() - start
                processor[name] = processor_time() - before
            results[name] = transitions(output)
    readings = users * READINGS
    rate = {name: round(readings / each) for name, each in seconds.items()}
    common = {"users": users, "readings": readings}
    rows = [
        {
            "how": name,
            **common,
            "starts and ends": len(results[name]),
            "seconds": round(seconds[name], 1),
            "of the processor": round(processor[name], 1),
            "readings a second": rate[name],
        }
        for name in JOBS
    ]
    is_same = results[OURS].equals(results[BY_HAND])
    found = {row["how"]: row["starts and ends"] for row in rows}
    used = {row["how"]: f"{row['of the processor']:,} s" for row in rows}
    verdicts = [
        Judged("not in the document", found, is_same),
        Judged("not in the document", rate, rate[OURS] >= rate[BY_HAND]),
        Judged("not in the document", used, processor[OURS] <= processor[BY_HAND]),
    ]
    return Result(NAME, _parameters(users, turns), rows, to_claims(RULES, verdicts))


def processor_time() -> float:
    """Return the CPU seconds of this process and its children, Spark's included."""
    import psutil

    me, total = psutil.Process(), 0.0
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # its parent has waited for it, and counts it
            total += sum(process.cpu_times()[:4])
    return total


def _parameters(users: int, turns: Sequence[str]) -> dict[str, Any]:
    return {
        "users": f"{users:,} in cells of {CELL}, {SIDE:g} m wide and {APART:g} m apart",
        "relationships": "each user and the next of its cell",
        "near": f"from {NEAR:g} m on, until {FAR:g} m",
        "readings": f"{READINGS} each, one in {EVERY} min, at the same instants; steps of up to {STEP:g} m",
        "done": f"{', '.join(turns)}; the last counts",
        "seed": SEED,
    }


# --- a day -----------------------------------------------------------------------------------------


def write_day(folder: Path, users: int) -> None:
    """Write the readings of a day to files that follow one another in time, and the pairs of friends."""
    chance = np.random.default_rng(SEED)
    cells, number = np.arange(users) // CELL, np.arange(users)
    names = pa.array([f"u{i}" for i in range(users)])
    following = np.where((number % CELL == CELL - 1) | (number == users - 1), cells * CELL, number + 1)
    (folder / "app.hf").write_text(DEFINITION)
    with open(folder / "pairs.csv", "w") as file:
        file.write("a,b\n")
        pairs = zip(number.tolist(), following.tolist(), strict=True)
        file.writelines(f"u{a},u{b}\n" for a, b in pairs if a != b)
    across = int(np.ceil(np.sqrt(cells[-1] + 1)))
    corner = APART * np.stack([cells % across, cells // across], axis=1)
    at = chance.uniform(0, SIDE, (users, 2))
    (folder / "readings").mkdir()
    for file_number, steps in enumerate(np.array_split(np.arange(READINGS), FILES)):
        tables = []
        for step in steps.tolist():
            at = np.clip(at + chance.uniform(-STEP, STEP, at.shape), 0, SIDE)
            x, y = (corner + at).T
            when = pa.repeat(pa.scalar(step * EVERY * MINUTE, pa.int64()), users).cast(TIME)
            tables.append(pa.table({"time": when, "source": names, "x": x, "y": y}))
        pq.write_table(pa.concat_tables(tables), folder / "readings" / f"{file_number}.parquet")


# --- two ways --------------------------------------------------------------------------------------


def replay(spark: Any, folder: Path, output: Path) -> None:
    """Replay the relationship with Holdfast."""
    from holdfast.definition.parse import load
    from holdfast.runtimes.spark.batch.replay import replay

    found = replay(load(folder / "app.hf"), folder / "readings", spark=spark).dataframe
    found.selectExpr("scope", "time", "status").write.parquet(str(output))


def by_hand(spark: Any, folder: Path, output: Path) -> None:
    """Join the readings of both friends by time, with a window over each pair."""
    readings = spark.read.parquet(str(folder / "readings"))
    pairs = spark.read.option("header", True).csv(str(folder / "pairs.csv"))
    readings.createOrReplaceTempView("readings")
    pairs.createOrReplaceTempView("pairs")
    spark.sql(f"""
        WITH measured AS (
          SELECT p.a, p.b, r.time, sqrt(pow(r.x - s.x, 2) + pow(r.y - s.y, 2)) AS apart
          FROM pairs p JOIN readings r ON r.source = p.a JOIN readings s ON s.source = p.b AND s.time = r.time
        ), tagged AS (
          SELECT a, b, time, apart <= {NEAR} AS near FROM measured WHERE apart <= {NEAR} OR apart >= {FAR}
        ), followed AS (
          SELECT *, lag(near, 1, false) OVER (PARTITION BY a, b ORDER BY time) AS before FROM tagged
        )
        SELECT concat(a, ',', b) AS scope, time, if(near, 'ingress', 'egress') AS status
        FROM followed WHERE near != before
    """).write.parquet(str(output))


OURS, BY_HAND = "relate", "a join by hand"
JOBS: dict[str, Callable[[Any, Path, Path], None]] = {OURS: replay, BY_HAND: by_hand}


def transitions(output: Path) -> pa.Table:
    """The starts and ends that a job wrote, in order of time and scope."""
    found = pq.read_table(output, columns=["scope", "time", "status"])
    times = found["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).cast(pa.timestamp("us"))
    plain = {"scope": found["scope"].cast("string"), "time": times, "status": found["status"].cast("string")}
    return pa.table(plain).sort_by([("time", "ascending"), ("scope", "ascending")]).combine_chunks()


def _tables(result: Result) -> list[Table]:
    return [Table.of_rows("relationships on Spark", result.rows)]


def _draw(result: Result) -> Drawing:
    drawing = new_figure(6, 3)
    panel = drawing.subplots()
    panel.barh([row["how"] for row in result.rows], [row["readings a second"] for row in result.rows])
    tidy(panel, "readings a second")
    return drawing


EXPERIMENT = Experiment(NAME, TITLE, _run, _tables, _draw)
