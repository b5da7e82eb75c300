"""Components over real traffic and weather, beside a computation of rolling windows that was written
from the documentation alone: numpy, a loop, and nothing of ours."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
MINUTE = 60_000_000

TRAFFIC = "topic Traffic (avg_speed float, avg_measured_time float, vehicle_count float)\n"
WEATHER = "topic Weather (ambient_temp float, humidity float, wind_speed float)\n"

Predicate = Callable[..., bool]
"""Its parameters are the windows that it mentions; a missing value is NaN, which satisfies no comparison."""


class Window(NamedTuple):
    """A function of an attribute over so many minutes; without minutes, the latest."""

    function: str
    attribute: str
    minutes: int | None = None


class Example(NamedTuple):
    """A component as text, and the same for the judge; ``hold`` in minutes."""

    text: str
    windows: dict[str, Window]
    enter: Predicate
    exit: Predicate | None
    hold: int = 0


EXAMPLES = {
    "slow and full, until the speed has recovered": Example(
        TRAFFIC + """state Congested
  A = avg Traffic over 30 min each source
  B = min Traffic over 15 min each source
  enter A.vehicle_count > 6 && B.avg_speed < 32
  exit B.avg_speed > 38
""",
        {
            "count": Window("avg", "vehicle_count", 30),
            "speed": Window("min", "avg_speed", 15),
        },
        lambda count, speed: count > 6 and speed < 32,
        lambda speed: speed > 38,
    ),
    "three windows, sums and deviations": Example(
        TRAFFIC + """state Restless
  A = sum Traffic over 20 min each source
  B = stddev Traffic over 1 h each source
  C = max Traffic over 10 min each source
  enter A.vehicle_count >= 20 && B.avg_speed > 4.57 && C.avg_measured_time > 60
  exit B.avg_speed < 3.31 || A.vehicle_count < 2
""",
        {
            "sum": Window("sum", "vehicle_count", 20),
            "spread": Window("stddev", "avg_speed", 60),
            "longest": Window("max", "avg_measured_time", 10),
        },
        lambda sum, spread, longest: sum >= 20 and spread > 4.57 and longest > 60,
        lambda spread, sum: spread < 3.31 or sum < 2,
    ),
    "silence: few readings of an hour": Example(
        TRAFFIC + """state Patchy
  A = count Traffic over 1 h each source
  enter A.avg_speed < 9
  exit A.avg_speed >= 11
""",
        {"readings": Window("count", "avg_speed", 60)},
        lambda readings: readings < 9,
        lambda readings: readings >= 11,
    ),
    "cool and humid for ten minutes": Example(
        WEATHER + """state Clammy
  A = avg Weather over 6 min each source
  B = Weather each source
  enter A.ambient_temp < 6.003 && B.humidity > 52.01 for 10 min
  exit A.ambient_temp > 6.207
""",
        {"mean": Window("avg", "ambient_temp", 6), "now": Window("latest", "humidity")},
        lambda mean, now: mean < 6.003 and now > 52.01,
        lambda mean: mean > 6.207,
        hold=10,
    ),
    "every gust above the mean of an hour": Example(
        WEATHER + """state Gust
  A = Weather each source
  B = avg Weather over 1 h each source
  enter A.wind_speed > 1.1 * B.wind_speed && B.wind_speed > 1.203
  exit true
""",
        {"now": Window("latest", "wind_speed"), "mean": Window("avg", "wind_speed", 60)},
        lambda now, mean: now > 1.1 * mean and mean > 1.203,
        None,
    ),
}  # fmt: skip

FUNCTIONS: dict[str, Callable[[list[float]], float]] = {
    "avg": lambda v: math.fsum(v) / len(v) if v else math.nan,
    "sum": lambda v: math.fsum(v) if v else math.nan,
    "min": lambda v: min(v, default=math.nan),
    "max": lambda v: max(v, default=math.nan),
    "count": lambda v: float(len(v)),
    "stddev": lambda v: statistics.stdev(v) if len(v) > 1 else math.nan,
}


class Judge:
    """One sensor: its readings and the expected transitions."""

    def __init__(self, example: Example, times: np.ndarray, columns: dict[str, np.ndarray], end: int) -> None:
        self.example, self.times, self.columns, self.end = example, times, columns, end
        widths = {w.minutes * MINUTE for w in example.windows.values() if w.minutes is not None}
        self.instants = [int(t) for t in times] + [int(t) + w + 1 for t in times for w in widths]

    def shown(self, window: Window, now: int) -> float | None:
        """The function of the values that are not missing; nothing if there is no reading at all."""
        last = int(np.searchsorted(self.times, now, side="right"))
        if window.minutes is None:
            return float(self.columns[window.attribute][last - 1]) if last else None
        first = int(np.searchsorted(self.times, now - window.minutes * MINUTE, side="left"))
        values = [float(v) for v in self.columns[window.attribute][first:last] if not math.isnan(v)]
        return FUNCTIONS[window.function](values) if last > first else None

    def satisfied(self, predicate: Predicate, now: int) -> bool:
        """Only what is known satisfies: a window that it mentions and that is empty blocks it."""
        found = [self.shown(self.example.windows[name], now) for name in signature(predicate).parameters]
        return None not in found and predicate(*found)

    def emissions(self) -> list[tuple[int, str]]:
        out: list[tuple[int, str]] = []
        queue, done = self.instants, -1
        heapify(queue)
        holds, since = False, None
        while queue and (now := heappop(queue)) <= self.end:
            if now == done:
                continue
            done = now
            leaving = holds and self.example.exit is not None
            predicate = self.example.exit if leaving else self.example.enter
            assert predicate is not None
            wait = 0 if leaving else self.example.hold * MINUTE
            if not self.satisfied(predicate, now):
                since = None
                continue
            if since is None:
                since = now
                heappush(queue, now + wait)
            if now - since >= wait:
                since = None
                if self.example.exit is None:
                    out.append((now, "atomic"))
                else:
                    holds = not holds
                    out.append((now, "ingress" if holds else "egress"))
        return out


def readings(example: Example) -> pa.Table:
    """Draw some days of a few sensors."""
    traffic = example.text.startswith(TRAFFIC)
    path = SHARED / (
        "aarhus-traffic/traffic-2014-08.parquet" if traffic else "sensorscope-stbernard/stbernard.parquet"
    )
    if not path.exists():
        pytest.skip(f"{path.name} is not here: it belongs beside the repository, in shared/data")
    names = {w.attribute for w in example.windows.values()}
    table = pq.read_table(path)
    table = table.rename_columns(
        ["source" if c in ("report_id", "station") else c for c in table.column_names]
    )
    first = datetime(2014, 8, 4) if traffic else datetime(2007, 9, 20)
    sources = sorted(pc.unique(table["source"]).to_pylist())[:: 40 if traffic else 8]
    chosen = pc.and_(
        pc.is_in(table["source"], pa.array(sources, table["source"].type)),
        pc.and_(
            pc.greater_equal(table["time"], pa.scalar(first, pa.timestamp("ns"))),
            pc.less(table["time"], pa.scalar(first + timedelta(days=2), pa.timestamp("ns"))),
        ),
    )
    table = table.filter(chosen)
    others = [c for c in table.column_names if c not in ("time", "source")]
    return table.select(["time", "source", *sorted(names | set(others) & declared_attributes(example.text))])


def declared_attributes(text: str) -> set[str]:
    """The attributes that a topic declares."""
    inside = text[text.index("(") + 1 : text.index(")")]
    return {part.split()[0] for part in inside.split(",")}


def judge(example: Example, table: pa.Table) -> set[tuple[str, int, str]]:
    micros = pc.cast(table["time"], pa.timestamp("us")).cast(pa.int64()).to_numpy()
    sources = table["source"].to_numpy()
    names = {w.attribute for w in example.windows.values()}
    values = {n: table[n].cast(pa.float64()).to_numpy(zero_copy_only=False) for n in names}
    found = set()
    for source in np.unique(sources):
        mine = np.flatnonzero(sources == source)
        times, where = np.unique(micros[mine], return_inverse=True)
        columns = {n: average(v[mine], where) for n, v in values.items()}
        emitted = Judge(example, times, columns, int(micros.max())).emissions()
        found |= {(str(source), at, status) for at, status in emitted}
    return found


def average(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Replace readings of one sensor and time by the mean of their values."""
    known = ~np.isnan(values)
    totals, counts = np.bincount(where, np.where(known, values, 0)), np.bincount(where, known)
    with np.errstate(invalid="ignore"):
        return totals / counts


def microseconds(text: str) -> int:
    return int((datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_component_emits_what_a_rolling_window_computation_finds(
    name: str, tmp_path: Path, holdfast: Any
) -> None:
    example = EXAMPLES[name]
    table = readings(example)
    pq.write_table(table, tmp_path / "readings.parquet")
    (tmp_path / "app.hf").write_text(example.text)
    ran = holdfast(
        "replay", tmp_path / "app.hf", "-i", tmp_path / "readings.parquet", "-o", tmp_path / "out.jsonl"
    )
    assert ran.status == 0, ran.err
    lines = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    ours = {(line["scope"], microseconds(line["time"]), line["status"]) for line in lines}
    expected = judge(example, table)
    assert len(expected) >= 10
    assert ours == expected
