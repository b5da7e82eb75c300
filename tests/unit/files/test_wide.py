"""Files with a column for each sensor."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import holdfast as hf

WARM = """
topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
"""
ROWS = [
    {"ts": "2026-01-01T00:00:00Z", "attic": 26.5, "lab": 20.0, "hall": None},
    {"ts": "2026-01-01T00:10:00Z", "attic": 20.0, "lab": 27.0, "hall": 30.0},
    {"ts": "2026-01-01T00:20:00Z", "attic": None, "lab": 21.0, "hall": 31.0},
]
LONG = [
    {"time": row["ts"], "source": name, "value": value, "sequence": i}
    for i, row in enumerate(ROWS)
    for name, value in row.items()
    if name != "ts" and value is not None
]


def write(folder: Path, format: str) -> Path:
    table, path = pa.Table.from_pylist(ROWS), folder / f"wide.{format}"
    match format:
        case "csv":
            csv.write_csv(table, path)
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        case "parquet":
            ints = table.set_column(2, "lab", pa.array([20, 27, 21]))
            pq.write_table(ints, path)
    return path


def as_rows(history: hf.Replay) -> list[tuple[object, ...]]:
    return [
        (n.subscription, n.scope, n.status, n.since, n.event.time, n.event.attributes["value"])
        for n in history
    ]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_a_wide_file_yields_the_events_of_a_long_one(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, format)
    history = hf.replay(WARM, path, map={"time": "ts"}, wide=True)
    found = as_rows(history)
    assert len(found) == 5
    assert found == as_rows(hf.replay(WARM, pa.Table.from_pylist(LONG)))
    assert history.tally.rows == len(LONG), "an empty cell is no reading"


def test_a_data_frame_can_be_wide() -> None:
    table = pa.Table.from_pylist(ROWS)
    assert len(list(hf.replay(WARM, table, map={"time": "ts"}, wide=True))) == 5


def test_mapped_columns_are_no_sensors(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("time,where,a,b\n2026-01-01T00:00:00Z,lab,26,27\n")
    notes = list(hf.replay(WARM, path, map={"place": "where"}, wide=True))
    assert [(n.scope, n.event.place) for n in notes] == [("a", "lab"), ("b", "lab")]


def test_an_invalid_cell_is_rejected_alone(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("time,a,b\n2026-01-01T00:00:00Z,26,hot\n2026-01-01T00:01:00Z,n/a,28\n")
    history = hf.replay(WARM, path, wide=True)
    assert [n.scope for n in history] == ["a", "b"]
    assert history.tally.rejected == {"value: not a float": 1}


@pytest.mark.parametrize(
    ("app", "header", "map", "message"),
    [
        (WARM, "time,source,value", {}, "it has a column 'source', so it is not wide"),
        (WARM, "time", {}, "no column beside the time"),
        (WARM, "when,a", {}, "the column 'time' is missing"),
        (WARM, "time,a,b", {"value": "a"}, "'value' is not in one column"),
        ("topic T (a float, b float)\nfilter F on T where a > 1", "time,s", {}, "has 2 attributes"),
        (WARM + "topic Door (open bool)", "time,s", {}, "which topic"),
    ],
)
def test_a_table_that_is_not_wide_is_refused_with_a_reason(
    tmp_path: Path, app: str, header: str, map: dict[str, str], message: str
) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(f"{header}\n2026-01-01T00:00:00Z{',1' * header.count(',')}\n")
    with pytest.raises(hf.UsageError, match=message):
        hf.replay(app, path, map=map, wide=True)
