"""Tables in memory, as if they were files."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf

WARM = """
topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
filter Hot on Temperature where value > 40
"""
TABLE = pa.table(
    {
        "time": pa.array([0, 3, 1, 2, 4], pa.timestamp("s")),
        "room": ["a", "a", "b", "a", "b"],
        "value": [26, 20, 41, 27, 30],
    }
)
MAP = {"source": "room"}
FORMS: dict[str, Any] = {
    "a table": TABLE,
    "a record batch": TABLE.to_batches()[0],
    "pandas": TABLE.to_pandas(),
    "pandas with a time index": TABLE.to_pandas().set_index("time"),
    "pandas with categories": TABLE.to_pandas().astype({"room": "category"}),
    "polars": pl.from_arrow(TABLE),
}


@pytest.fixture(scope="module")
def from_a_file(tmp_path_factory: pytest.TempPathFactory) -> list[hf.Notification]:
    path = tmp_path_factory.mktemp("files") / "readings.parquet"
    pq.write_table(TABLE, path)
    return list(hf.replay(WARM, path, map=MAP))


@pytest.mark.parametrize("form", FORMS)
def test_a_table_yields_the_same_events_as_its_file(form: str, from_a_file: list[hf.Notification]) -> None:
    history = hf.replay(WARM, FORMS[form], map=MAP)
    assert list(history) == from_a_file
    assert len(from_a_file) == 4
    assert history.tally.rows == 5


def test_several_tables_are_read_as_one_history(from_a_file: list[hf.Notification]) -> None:
    halves = TABLE.slice(0, 2), TABLE.slice(2)
    output = [(n.subscription, n.scope, n.status, n.event.time) for n in hf.replay(WARM, *halves, map=MAP)]
    assert output == [(n.subscription, n.scope, n.status, n.event.time) for n in from_a_file]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((TABLE, "readings.csv"), "files or tables, not both"),
        ((TABLE,), "the column 'source' is missing"),
        ((TABLE.rename_columns({"room": "source"}).drop(["value"]),), "the column 'value'"),
    ],
)
def test_invalid_table_inputs_are_refused(inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(hf.UsageError, match=message):
        hf.replay(WARM, *inputs)


def test_a_column_of_a_wrong_type_is_named() -> None:
    table = TABLE.set_column(2, "value", pa.array([[1.0]] * 5)).rename_columns({"room": "source"})
    with pytest.raises(hf.InputError, match="the column 'value' is of type list"):
        list(hf.replay(WARM, table))


def test_a_table_without_rows_yields_nothing() -> None:
    assert list(hf.replay(WARM, TABLE.slice(0, 0), map=MAP)) == []


# --- what comes out ---


@pytest.mark.parametrize("form", ["events", "intervals"])
def test_the_arrow_table_equals_the_output_of_the_command(form: str, tmp_path: Any) -> None:
    from holdfast.files.write import open_writer

    history = hf.replay(WARM, TABLE, map=MAP)
    with open_writer(
        str(tmp_path / "x.parquet"), "parquet", form, hf.parse(WARM).check().output_topics
    ) as out:
        out.write(list(history))
    assert hf.replay(WARM, TABLE, map=MAP).to_arrow(form) == pq.read_table(tmp_path / "x.parquet")


def test_results_convert_to_pandas_and_intervals() -> None:
    frame = hf.replay(WARM, TABLE, map=MAP).to_pandas("intervals")
    assert isinstance(frame, pd.DataFrame)
    assert frame[["subscription", "scope", "open"]].to_numpy().tolist() == [
        ["Hot", None, False], ["Warm", "a", False], ["Warm", "b", True],
    ]  # fmt: skip
    found = hf.replay(WARM, TABLE, map=MAP).intervals()
    assert [(i.subscription, i.scope, i.duration) for i in found] == [
        ("Hot", None, 0.0), ("Warm", "a", 3.0), ("Warm", "b", None),
    ]  # fmt: skip


def test_an_empty_history_gives_a_table_without_rows() -> None:
    table = hf.replay(WARM, TABLE.slice(0, 0), map=MAP).to_arrow()
    assert (len(table), table.column_names[:2]) == (0, ["id", "subscription"])
