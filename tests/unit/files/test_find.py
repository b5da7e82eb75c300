from __future__ import annotations

import os

import pytest

from holdfast.errors import UsageError
from holdfast.files.find import find


def names(files):
    return [os.path.basename(f.path) for f in files]


def test_inputs_keep_their_order_and_folders_are_sorted_by_path(put, tmp_path):
    for name in ("d/b.csv", "d/a.jsonl.gz", "d/deep/c.parquet", "d/_temporary/x.csv", "d/.hidden.csv"):
        put(name, b"")
    put("z.pq", b"")
    found = find([str(tmp_path / "z.pq"), str(tmp_path / "d")])
    assert names(found) == ["z.pq", "a.jsonl.gz", "b.csv", "c.parquet"]
    assert [f.rank for f in found] == [0, 1, 2, 3]
    assert [(f.format, f.compressed) for f in found] == [
        ("parquet", False), ("jsonl", True), ("csv", False), ("parquet", False),
    ]  # fmt: skip


def test_a_glob_is_sorted_by_path(put, tmp_path):
    for name in ("10.csv", "9.csv", "x/1.csv", "note.txt"):
        put(name, b"")
    assert names(find([str(tmp_path / "*.csv")])) == ["10.csv", "9.csv"]
    assert names(find([str(tmp_path / "**" / "*.csv")])) == ["10.csv", "9.csv", "1.csv"]


@pytest.mark.parametrize(("log", "format"), [("_delta_log/0.json", "Delta"), (".hoodie/x", "Hudi")])
@pytest.mark.parametrize("place", ["t", "t/*.parquet", "t/**/*.parquet", "t/day=1", "t/day=1/*.parquet"])
def test_a_table_with_deleted_rows_is_not_read_as_files(put, tmp_path, log, format, place):
    for name in (f"t/{log}", "t/a.parquet", "t/day=1/b.parquet"):
        put(name, b"")
    with pytest.raises(UsageError, match=f"is a {format} table, whose files also hold deleted rows"):
        find([str(tmp_path / place)])


def test_a_topic_can_precede_the_path(put):
    path = put("a=b.csv", b"")
    assert [(f.topic, f.path) for f in find([f"T={path}"], ["T"])] == [("T", path)]
    assert [(f.topic, f.path) for f in find([path], ["T"])] == [(None, path)]
    assert [f.topic for f in find([f"T={path}", f"U={path}"], ["T", "U"])] == ["T", "U"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("data.txt", "no known suffix"), ("data.parquet.gz", "no known suffix"), ("data.csv.zst", ".csv")],
)
def test_an_error_about_an_unknown_suffix_lists_the_known_ones(put, name, message):
    with pytest.raises(UsageError, match=message):
        find([put(name, b"")])


def test_an_unknown_file_in_a_folder_is_an_error(put, tmp_path):
    put("d/a.csv", b"")
    put("d/b.tsv", b"")
    with pytest.raises(UsageError, match=r"b\.tsv.*glob"):
        find([str(tmp_path / "d")])


def test_a_missing_file_is_reported_with_the_nearest_name(put, tmp_path):
    put("readings.csv", b"")
    with pytest.raises(UsageError, match=r"Did you mean 'readings\.csv'"):
        find([str(tmp_path / "reading.csv")])
    with pytest.raises(UsageError, match="no folder"):
        find([str(tmp_path / "nowhere" / "a.csv")])
    with pytest.raises(UsageError, match="no file matches"):
        find([str(tmp_path / "*.parquet")])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no files"):
        find([str(tmp_path / "empty")])
    with pytest.raises(UsageError, match="no input"):
        find([])


def test_an_unknown_topic_before_a_path_is_reported_with_the_nearest(put):
    path = put("a.csv", b"")
    with pytest.raises(UsageError, match="Did you mean 'Temperature'"):
        find([f"Temprature={path}"], ["Temperature"])


def test_naming_a_file_twice_is_refused(put, tmp_path):
    path = put("a.csv", b"")
    with pytest.raises(UsageError, match="twice"):
        find([path, str(tmp_path)])


def test_a_missing_permission_is_reported(put, monkeypatch):
    path = put("a.csv", b"")
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root, who has all permissions
    with pytest.raises(UsageError, match="no permission"):
        find([path])


def test_a_folder_that_links_to_itself_is_listed_once(put, tmp_path):
    put("d/a.csv", b"")
    (tmp_path / "d" / "again").symlink_to(tmp_path / "d")
    assert names(find([str(tmp_path / "d")])) == ["a.csv"]
