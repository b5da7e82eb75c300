"""Parquet in two passes: deciding columns are read of every row, the others only of relevant rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from holdfast import InputError, Topic
from holdfast.files.chunk import ROW
from holdfast.files.find import find
from holdfast.files.read import read
from holdfast.files.reading import Reading
from holdfast.files.rest import read_missing_columns
from holdfast.files.tally import Rejects, Tally
from holdfast.model.batch import concatenate
from holdfast.model.topic import Attribute

TOPIC = Topic("T", (Attribute("value", "float"), Attribute("note", "text"), Attribute("count", "int")))
DECISIVE = {"T": {"value"}}
COLUMNS = {
    "time": pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")),
    "source": ["a", "b", "a", "b"],
    "value": [1.0, 2.0, 3.0, 4.0],
    "note": ["one", "two", None, "four"],
    "count": [10, 20, 30, None],
    "x": [0.5, 1.5, 2.5, 3.5],
    "place": ["p", "q", "r", "s"],
}
READING = Reading((TOPIC,))


def write_file(path, **changes):
    pq.write_table(pa.table(COLUMNS | changes), path, row_group_size=2, use_dictionary=False)
    return path


def first_go(inputs, decisive=DECISIVE, rejects=None):
    rejects = Rejects() if rejects is None else rejects
    return [
        batch
        for file in find([str(i) for i in inputs])
        for _, batch in read(file, READING, Tally(), rejects, decisive=decisive)
    ]


def whole(inputs, batches, decisive=DECISIVE):
    return read_missing_columns(
        concatenate(batches), TOPIC, find([str(i) for i in inputs]), READING, decisive
    )


def test_columns_that_decide_nothing_are_read_later(tmp_path):
    file = write_file(tmp_path / "a.parquet")
    batches = first_go([file])
    assert all(set(batch.schema.names) == {"time", "source", "sequence", "value", ROW} for batch in batches)
    stored = [batch.filter(pc.greater(batch.column("value"), 1.5)) for batch in batches]
    found = whole([file], stored).to_pydict()
    assert {name: found[name] for name in ("value", "note", "count", "x", "place")} == {
        "value": [2.0, 3.0, 4.0],
        "note": ["two", None, "four"],
        "count": [20, 30, None],
        "x": [1.5, 2.5, 3.5],
        "place": ["q", "r", "s"],
    }
    assert ROW not in found


def test_a_row_group_without_selected_rows_is_not_read_again(tmp_path):
    file = write_file(tmp_path / "a.parquet", note=["one" * 50, "two" * 50, "three" * 50, "four" * 50])
    footer = pq.ParquetFile(file).metadata
    damaged = footer.row_group(1).column(footer.schema.names.index("note"))
    with open(file, "r+b") as raw:
        raw.seek(damaged.data_page_offset)
        raw.write(b"\xff" * damaged.total_compressed_size)
    first, second = first_go([file])
    assert whole([file], [first]).column("note").to_pylist() == ["one" * 50, "two" * 50]
    with pytest.raises(InputError, match=r"row group 1 cannot be read"):
        whole([file], [second])


def test_rows_of_files_that_are_read_at_once_keep_their_columns(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"time": "2020-01-01", "source": "j", "value": 9, "note": "json"}\n')
    write_file(tmp_path / "b.parquet")
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.parquet"]
    found = whole(inputs, first_go(inputs))
    assert found.column("note").to_pylist() == ["json", "one", "two", None, "four"]
    assert found.column("x").to_pylist() == [None, 0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    ("changes", "now"),
    [
        ({"count": ["10", "20", "many", ""]}, "count"),  # text may be no int: it must be looked at
        ({"count": pa.array([1, 2, 3, 2**63], pa.uint64())}, "count"),
        ({"x": ["0.5", "east", "", "3"]}, "x"),
    ],
)
def test_a_column_that_may_hold_unusable_values_is_read_at_once(tmp_path, changes, now):
    batches = first_go([write_file(tmp_path / "a.parquet", **changes)])
    assert all(now in batch.schema.names for batch in batches)
    assert sum(map(len, batches)) < 4, "the unusable row has been put aside"


def test_a_rejected_row_is_shown_with_all_columns(tmp_path):
    class CollectedRejects(Rejects):
        rows: list

        def write(self, file, row, reason, data):
            self.rows.append((row, reason, data["note"], data["count"]))

    rejects = CollectedRejects()
    rejects.rows = []
    first_go([write_file(tmp_path / "a.parquet", source=["a", "b", "a", None])], rejects=rejects)
    assert rejects.rows == [(4, "no source", "four", None)]
