"""Replay emits and counts the same, whether files are compacted as they are read or sorted."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast import check, parse
from holdfast.errors import InputError
from holdfast.files.find import find
from holdfast.files.reading import Reading
from holdfast.files.tally import Rejects
from holdfast.files.write import to_arrow
from holdfast.model.batch import TIME
from holdfast.runtimes.local import reduction
from holdfast.runtimes.local.replay import Replay

DEFINITION = """
topic T (v float, room text, note text)
state Warm   on T [v > 25; v < 22] per source
state Toggle on T [v > 26; v > 26] per room
state Nested on T [v > 25; v < 22] per source within room
filter Hot   on T where v > 28
"""
LEVELS = """
topic T (v float, room text, note text)
levels Heat on T: warm [v > 25; v < 22], hot [v > 28; v < 26] per source
filter Hot   on T where v > 28
"""
WARM = "\n".join(DEFINITION.splitlines()[:3])
SOURCES = ["s3", "s1", "é", "s2"]


def rows(seed, moments=120):
    """Readings of every source at every time, in an order that is not that of their names."""
    chance, now = Random(seed), dict.fromkeys(SOURCES, 23.0)
    for instant in range(moments):
        for source in SOURCES:
            now[source] = min(30.0, max(18.0, now[source] + chance.uniform(-4, 4)))
            value = chance.choice([now[source]] * 9 + [None, float("nan")])
            room = None if source == "é" and instant % 5 == 0 else "north" if source < "s2" else "south"
            yield {
                "time": instant * 1_000_000,
                "source": source,
                "v": value,
                "room": room,
                "note": f"{instant}{source}",
            }


def by_time(all_rows):
    third = len(all_rows) // 3 + 1  # a cut within one timestamp
    return [all_rows[:third], all_rows[third : 2 * third], all_rows[2 * third :]]


def by_room(all_rows):
    """Files that all have the same times, and no scope in common but that of everything."""
    return [[row for row in all_rows if row["source"] in some] for some in (("s1",), ("s2", "s3"), ("é",))]


def by_source(all_rows):
    """Write one file, source after source."""
    return [sorted(all_rows, key=lambda row: SOURCES.index(row["source"]))]


def shuffle(all_rows):
    mixed = list(all_rows)
    Random(1).shuffle(mixed)
    return [mixed]


def backwards(all_rows):
    """Files whose names are not in order of time."""
    return by_time(all_rows)[::-1]


@pytest.fixture
def write_files(tmp_path):
    def write(parts, group=50, more=()):
        for i, part in enumerate(parts):
            columns = {name: [row[name] for row in part] for name in ("source", "v", "room", "note", *more)}
            time = pa.array([row["time"] for row in part], pa.int64()).cast(TIME)
            pq.write_table(
                pa.table({"time": time, **columns}), tmp_path / f"{i}.parquet", row_group_size=group
            )
        return find([str(tmp_path)])

    return write


def replay_files(files, *, definition=DEFINITION, reduces=True, memory=64 * reduction.BYTES, rejects=None):
    checked = check(parse(definition))
    it = Replay(checked, files, Reading(checked.topics), memory=memory, rejects=rejects)
    if not reduces:
        it._reduction = None
    emitted = [json.dumps(n.to_json()) for n in it]
    return emitted, it


@pytest.mark.parametrize("lay", [by_time, by_room, by_source, shuffle, backwards])
@pytest.mark.parametrize("scopes", [DEFINITION, WARM, LEVELS], ids=["all", "per source", "levels"])
def test_compacted_and_whole_files_give_the_same_notifications_and_counts(write_files, lay, scopes):
    files = write_files(lay(list(rows(3))))
    emitted, it = replay_files(files, definition=scopes)
    wanted, sorted_ = replay_files(files, definition=scopes, reduces=False)
    assert emitted == wanted
    assert len(emitted) > 20
    for count in ("kept", "passed", "coverage"):
        assert getattr(it, count) == getattr(sorted_, count)
    assert (it.tally, it.holding()) == (sorted_.tally, sorted_.holding())


@pytest.mark.parametrize("lay", [by_time, by_room, shuffle])
@pytest.mark.parametrize("scopes", [DEFINITION, LEVELS], ids=["all", "levels"])
def test_a_table_has_the_rows_of_single_notifications(write_files, lay, scopes):
    """The attributes include some with the names of columns."""
    scopes = scopes.replace("note text", "note text, since float, id int")
    some = [row | {"since": i / 2, "id": i} for i, row in enumerate(rows(4))]
    files = write_files(lay(some), more=("since", "id"))
    checked = check(parse(scopes))
    by_columns, one_by_one = (Replay(checked, files, Reading(checked.topics)) for _ in range(2))
    found = by_columns.to_arrow()
    assert found.equals(to_arrow(one_by_one, "events", checked.output_topics))
    assert len(found) > 20
    assert by_columns.passed == one_by_one.passed


@pytest.mark.parametrize(
    ("lay", "stays"), [(by_time, True), (by_room, True), (by_source, True), (shuffle, False)]
)
def test_nothing_is_sorted_where_every_scope_is_in_order(write_files, lay, stays):
    files = write_files(lay(list(rows(5))))
    _, it = replay_files(files, definition=WARM)
    assert (it._reduction is not None) == stays


@pytest.mark.parametrize("scopes", [WARM, LEVELS], ids=["per source", "levels"])
def test_a_part_is_reread_and_sorted_where_a_later_share_is_not_in_order(write_files, scopes):
    """Sources that are in order up to the last row group, which goes back in time."""
    some = list(rows(11))
    files = write_files([[*some[100:], *some[:100]]])
    emitted, it = replay_files(files, definition=scopes)
    wanted, sorted_ = replay_files(files, definition=scopes, reduces=False)
    assert it._reduction is None
    assert emitted == wanted
    assert (it.kept, it.tally, it.holding()) == (sorted_.kept, sorted_.tally, sorted_.holding())


@pytest.mark.parametrize("scopes", [WARM, LEVELS], ids=["per source", "levels"])
def test_rows_that_exceed_memory_are_sorted(write_files, scopes):
    files = write_files(by_time(list(rows(3))))
    emitted, _ = replay_files(files, definition=scopes, memory=1000)
    assert emitted == replay_files(files, definition=scopes, reduces=False)[0]


def test_source_names_of_files_without_dictionaries_are_unified(tmp_path):
    """Some writers stop using a dictionary after a megabyte of names."""
    some = list(rows(13))
    for i, part in enumerate(by_time(some)):
        time = pa.array([row["time"] for row in part], pa.int64()).cast(TIME)
        columns = {name: [row[name] for row in part] for name in ("source", "v", "room", "note")}
        pq.write_table(
            pa.table({"time": time, **columns}), tmp_path / f"{i}.parquet",
            row_group_size=50, use_dictionary=i == 1, compression="none",
        )  # fmt: skip
    files = find([str(tmp_path)])
    assert replay_files(files)[0] == replay_files(files, reduces=False)[0]


def test_unusable_rows_are_rejected_once_in_their_order(write_files, tmp_path):
    some = list(rows(7))
    for i in (3, 150, 300):
        some[i]["source"] = " "
    files = write_files(by_time(some))
    out = tmp_path / "aside.jsonl"
    with Rejects(str(out)) as aside:
        emitted, it = replay_files(files, rejects=aside)
    assert it.tally.rejected == Counter({"no source": 3})
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["file"][-9], row["row"]) for row in found] == [("0", 4), ("0", 151), ("1", 140)]
    assert emitted == replay_files(files, reduces=False)[0]
    with pytest.raises(InputError, match=r"0\.parquet, row 4: no source"):
        replay_files(files, rejects=Rejects(strict=True))


def test_only_relevant_rows_are_read_with_all_columns(write_files, monkeypatch):
    files = write_files(by_time(list(rows(9))), group=200)
    read = []
    monkeypatch.setattr(
        reduction, "read_missing_columns", lambda batch, *of: read.append(batch) or real(batch, *of)
    )
    emitted, _ = replay_files(files, definition=WARM, memory=1 << 20)
    assert sum(map(len, read)) < 480 / 3
    assert all("note" not in batch.schema.names for batch in read)
    assert all(json.loads(line)["attributes"]["note"] for line in emitted)


real = reduction.read_missing_columns
