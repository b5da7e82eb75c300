"""Correlations over real readings, beside a judge that joins: SQL in DuckDB, combinations and all."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from holdfast import instant, replay

STATIONS = "sensorscope-stbernard/stbernard.parquet"
ATTRIBUTES = ("ambient_temp", "surface_temp", "humidity", "wind_speed", "wind_dir")
HOURS = 2


@pytest.fixture(scope="module")
def readings(data, tmp_path_factory):
    """Two windy hours, with the stations placed on a grid of 400 m."""
    table = pq.read_table(data / STATIONS, columns=["time", "station", *ATTRIBUTES])
    start = pa.scalar(1_193_200_000_000_000_000, pa.timestamp("ns"))
    end = pa.scalar(start.value + HOURS * 3_600_000_000_000, pa.timestamp("ns"))
    table = table.filter((pc.field("time") >= start) & (pc.field("time") < end))
    station = table.column("station").to_numpy()
    table = table.append_column("x", pa.array(station % 5 * 400.0))
    table = table.append_column("y", pa.array(station // 5 * 400.0))
    path = tmp_path_factory.mktemp("day") / "day.parquet"
    pq.write_table(table, path)
    assert len(table) > 1_000
    return path


def queries(table, seed):
    """Ranges around readings, for three attributes: (attribute, low, high), a window and a distance."""
    rng = random.Random(seed)
    found = []
    for _ in range(3):
        filters = []
        for name in rng.sample(ATTRIBUTES, 3):
            values = sorted(v for v in table.column(name).to_pylist() if v is not None and v == v)
            low = rng.uniform(0.1, 0.8)
            ends = (values[int(share * (len(values) - 1))] for share in (low, low + 0.12))
            filters.append((name, *ends))
        found.append((filters, rng.choice((30, 60, 120)), rng.choice((None, None, 500.0, 900.0))))
    return found


def definition(asked):
    lines = [f"topic Weather ({', '.join(f'{name} float' for name in ATTRIBUTES)})"]
    for i, (filters, within, near) in enumerate(asked):
        ranges = " ".join(f"{name} in [{low}, {high}]" for name, low, high in filters)
        distance = "" if near is None else f", {near} m"
        lines.append(f"correlate Q{i} within {within} s{distance}  {ranges}")
    return "\n".join(lines)


def join_by_hand(duckdb, path, filters, within, near):
    """The readings that are members of some combination: (time in µs, station)."""
    parts = [
        f"(select epoch_us(time) as t, station, x, y from read_parquet('{path}') "
        f"where {name} between {low!r} and {high!r}) m{i}"
        for i, (name, low, high) in enumerate(filters)
    ]
    together = "greatest(m0.t, m1.t, m2.t) - least(m0.t, m1.t, m2.t)"
    apart = [f"{together} < {within * 1_000_000}"]
    if near is not None:
        apart += [
            f"sqrt((m{i}.x - m{j}.x)^2 + (m{i}.y - m{j}.y)^2) < {near}" for i, j in ((0, 1), (0, 2), (1, 2))
        ]
    joined = f"from {', '.join(parts)} where {' and '.join(apart)}"
    each = " union ".join(f"select m{i}.t, m{i}.station {joined}" for i in range(3))
    return set(duckdb.sql(each).fetchall())


@pytest.mark.parametrize("seed", [1, *(pytest.param(i, marks=pytest.mark.soak) for i in range(2, 12))])
def test_correlated_readings_equal_those_of_a_full_join(readings, seed):
    duckdb = pytest.importorskip("duckdb")
    asked = queries(pq.read_table(readings), seed)
    found = {i: set() for i in range(len(asked))}
    for note in replay(definition(asked), readings, map={"source": "station"}):
        found[int(note.subscription[1:])].add((note.event.time, int(note.event.source)))
    for i, (filters, within, near) in enumerate(asked):
        assert found[i] == join_by_hand(duckdb, readings, filters, within, near), definition(asked)
    assert sum(map(len, found.values())) > 50


def test_the_storm_of_the_example_is_notified(data, tmp_path, holdfast):
    """The shipped example over the whole deployment; its complex events keep their promise."""
    out = tmp_path / "storm.jsonl"
    ran = holdfast(
        "replay", "examples/storm/storm.hf", "-i", data / STATIONS, "--map", "source=station", "-o", out
    )
    assert ran.status == 0, ran.err
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    drift = [line["attributes"] for line in lines if line["subscription"] == "Drift"]
    assert {line["topic"] for line in lines} == {"Weather", "Drift"}
    assert len(drift) > 1_000
    for emitted in drift:
        assert -5 <= emitted["ambient_temp"] < 0
        assert emitted["wind_speed"] > 25 / 3.6
        assert emitted["humidity"] > 85
        times = [instant(emitted[f"{name}_time"]) for name in ("ambient_temp", "wind_speed", "humidity")]
        assert max(times) - min(times) < 120_000_000
