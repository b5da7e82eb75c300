"""Replay says and counts the same, whether files are reduced as they are read or sorted."""

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
WARM = "\n".join(DEFINITION.splitlines()[:3])
SOURCES = ["s3", "s1", "é", "s2"]


def rows(seed, moments=120):
    """Every source at every moment, in an order that is not that of their names."""
    chance, now = Random(seed), dict.fromkeys(SOURCES, 23.0)
    for moment in range(moments):
        for source in SOURCES:
            now[source] = min(30.0, max(18.0, now[source] + chance.uniform(-4, 4)))
            value = chance.choice([now[source]] * 9 + [None, float("nan")])
            room = None if source == "é" and moment % 5 == 0 else "north" if source < "s2" else "south"
            yield {
                "time": moment * 1_000_000,
                "source": source,
                "v": value,
                "room": room,
                "note": f"{moment}{source}",
            }


def by_time(all_rows):
    third = len(all_rows) // 3 + 1  # which is in the middle of a moment
    return [all_rows[:third], all_rows[third : 2 * third], all_rows[2 * third :]]


def by_room(all_rows):
    """Files that all have the same times, and no scope in common but that of everything."""
    return [[row for row in all_rows if row["source"] in some] for some in (("s1",), ("s2", "s3"), ("é",))]


def by_source(all_rows):
    """One file, source after source."""
    return [sorted(all_rows, key=lambda row: SOURCES.index(row["source"]))]


def shuffled(all_rows):
    mixed = list(all_rows)
    Random(1).shuffle(mixed)
    return [mixed]


def backwards(all_rows):
    """Files whose names are not in order of time."""
    return by_time(all_rows)[::-1]


@pytest.fixture
def written(tmp_path):
    def write(parts, group=50):
        for i, part in enumerate(parts):
            columns = {name: [row[name] for row in part] for name in ("source", "v", "room", "note")}
            time = pa.array([row["time"] for row in part], pa.int64()).cast(TIME)
            pq.write_table(
                pa.table({"time": time, **columns}), tmp_path / f"{i}.parquet", row_group_size=group
            )
        return find([str(tmp_path)])

    return write


def replayed(files, *, definition=DEFINITION, reduces=True, memory=64 * reduction.BYTES, rejects=None):
    checked = check(parse(definition))
    it = Replay(checked, files, Reading(checked.topics), memory=memory, rejects=rejects)
    if not reduces:
        it._reduction = None
    told = [json.dumps(n.to_json()) for n in it]
    return told, it


@pytest.mark.parametrize("lay", [by_time, by_room, by_source, shuffled, backwards])
@pytest.mark.parametrize("scopes", [DEFINITION, WARM], ids=["all", "per source"])
def test_the_same_is_said_and_counted(written, lay, scopes):
    files = written(lay(list(rows(3))))
    told, it = replayed(files, definition=scopes)
    wanted, sorted_ = replayed(files, definition=scopes, reduces=False)
    assert told == wanted
    assert len(told) > 20
    for count in ("kept", "passed", "coverage"):
        assert getattr(it, count) == getattr(sorted_, count)
    assert (it.tally, it.holding()) == (sorted_.tally, sorted_.holding())


@pytest.mark.parametrize(
    ("lay", "stays"), [(by_time, True), (by_room, True), (by_source, True), (shuffled, False)]
)
def test_nothing_is_sorted_where_every_scope_is_in_order(written, lay, stays):
    files = written(lay(list(rows(5))))
    _, it = replayed(files, definition=WARM)
    assert (it._reduction is not None) == stays


def test_rows_that_cannot_be_used_are_put_aside_once_in_their_order(written, tmp_path):
    some = list(rows(7))
    for i in (3, 150, 300):
        some[i]["source"] = " "
    files = written(by_time(some))
    out = tmp_path / "aside.jsonl"
    with Rejects(str(out)) as aside:
        told, it = replayed(files, rejects=aside)
    assert it.tally.rejected == Counter({"no source": 3})
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["file"][-9], row["row"]) for row in found] == [("0", 4), ("0", 151), ("1", 140)]
    assert told == replayed(files, reduces=False)[0]
    with pytest.raises(InputError, match=r"0\.parquet, row 4: no source"):
        replayed(files, rejects=Rejects(strict=True))


def test_only_what_passes_is_read_whole(written, monkeypatch):
    files = written(by_time(list(rows(9))), group=200)
    read = []
    monkeypatch.setattr(reduction, "completed", lambda batch, *of: read.append(batch) or real(batch, *of))
    told, _ = replayed(files, definition=WARM, memory=1 << 20)
    assert sum(map(len, read)) < 480 / 3
    assert all("note" not in batch.schema.names for batch in read)
    assert all(json.loads(line)["attributes"]["note"] for line in told)


real = reduction.completed
