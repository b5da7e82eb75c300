from __future__ import annotations

from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from holdfast.files.find import find
from holdfast.files.plan import closed_parts, shares, split, touching_parts, with_shared
from holdfast.files.reading import Reading


@pytest.fixture
def table(put):
    """A Parquet file whose row groups have these times."""

    def write(name, *groups, type=None, **options):
        size = len(groups[0])
        times = pa.array([t for g in groups for t in g], pa.int64()).cast(type or pa.timestamp("us", "UTC"))
        columns = {"time": times, "source": ["s"] * len(times), "value": [1.0] * len(times)}
        return put(name, columns, row_group_size=size, **options)

    return write


@pytest.fixture
def plan(temperature):
    def parts(*inputs, **options):
        found = closed_parts(find(inputs), Reading((temperature,), **options), small=0)
        return [[(p.file.rank, p.row_groups) for p in part.pieces] for part in found], found

    return parts


def test_disjoint_row_groups_are_parts_in_order_of_time(table, plan):
    a = table("a.parquet", [20, 29], [0, 9])
    b = table("b.parquet", [10, 19], [30, 39])
    groups, parts = plan(a, b)
    assert groups == [[(0, (1,))], [(1, (0,))], [(0, (0,))], [(1, (1,))]]
    assert [part.rows for part in parts] == [2, 2, 2, 2]
    assert all(part.bytes > 0 for part in parts)


def test_overlapping_or_touching_row_groups_are_one_part(table, plan):
    a = table("a.parquet", [0, 10], [20, 30], [40, 50])
    b = table("b.parquet", [10, 15], [29, 35], [60, 60])
    assert plan(a, b)[0] == [[(0, (0,)), (1, (0,))], [(0, (1,)), (1, (1,))], [(0, (2,))], [(1, (2,))]]


def test_a_long_span_joins_all_row_groups_within_it(table, plan):
    a = table("a.parquet", [0, 100], [200, 201])
    b = table("b.parquet", [5, 6], [50, 51])
    assert plan(a, b)[0] == [[(0, (0,)), (1, (0, 1))], [(0, (1,))]]


def test_files_without_time_statistics_may_overlap_everything(table, plan, put):
    a = table("a.parquet", [0, 1], [10, 11])
    b = put("b.csv", "time,source,value\n")
    groups, (part,) = plan(a, b)
    assert groups == [[(0, (0, 1)), (1, None)]]
    assert (part.rows, part.bytes > 0) == (None, True)
    silent = table("c.parquet", [50, 51], write_statistics=False)
    assert plan(a, silent)[0] == [[(0, (0, 1)), (1, (0,))]]
    text = put("d.parquet", {"time": ["2007"], "source": ["s"], "value": [1]})
    assert plan(a, text)[0] == [[(0, (0, 1)), (1, (0,))]]


def test_units_and_zones_are_compared_as_instants(table, plan):
    hour = 3600
    utc = table("a.parquet", [0, hour * 10**3 - 1], type=pa.timestamp("ms", "UTC"))
    naive = table("b.parquet", [3 * hour * 10**9, 4 * hour * 10**9], type=pa.timestamp("ns"))
    assert len(plan(utc, naive)[0]) == 2
    assert plan(naive, utc, zone=ZoneInfo("Asia/Tokyo"))[0] == [[(0, (0,))], [(1, (0,))]]
    number = table("c.parquet", [7200, 7201], type=pa.int64())
    assert len(plan(utc, number)[0]) == 1
    assert len(plan(utc, number, time_unit="s")[0]) == 2


def test_the_span_of_local_times_is_wider_where_clocks_change(table, plan):
    from holdfast.model.instant import HOUR, parse_instant

    gap = parse_instant("2007-03-25T02:00Z")  # on the clock; the next hour does not exist
    a = table("a.parquet", [gap - 9 * HOUR, gap + HOUR - 1], type=pa.timestamp("us"))
    b = table("b.parquet", [gap + HOUR, gap + 9 * HOUR], type=pa.timestamp("us"))
    assert len(plan(a, b)[0]) == 2
    assert len(plan(a, b, zone=ZoneInfo("Europe/Zurich"))[0]) == 1


def test_files_without_rows_are_in_no_part(table, plan, put):
    empty = put("a.parquet", pa.table({"time": pa.array([], pa.timestamp("us")), "source": [], "value": []}))
    nothing = put("b.csv", "")
    full = table("c.parquet", [0, 1])
    assert plan(empty, nothing, full)[0] == [[(2, (0,))]]


def test_small_neighbours_are_joined(table, temperature):
    path = table("a.parquet", [0, 9], [10, 19], [20, 29], [30, 39])
    parts = closed_parts(find([path]), Reading((temperature,)), small=5)
    assert [[piece.row_groups for piece in part.pieces] for part in parts] == [[(0, 1)], [(2, 3)]]
    assert [part.rows for part in parts] == [4, 4]


@pytest.fixture
def touching(temperature):
    return lambda *inputs: touching_parts(find(inputs), Reading((temperature,)))


def groups(parts):
    return [[(piece.file.rank, piece.row_groups) for piece in part.pieces] for part in parts]


def test_parts_that_touch_know_their_common_timestamp(table, touching):
    parts = touching(table("a.parquet", [0, 10], [10, 20], [21, 30]), table("b.parquet", [25, 40], [40, 40]))
    assert groups(parts) == [[(0, (0,))], [(0, (1,))], [(0, (2,)), (1, (0,))], [(1, (1,))]]
    assert [part.shared for part in parts] == [(10,), (10,), (40,), (40,)]
    assert [(part.start, part.end) for part in parts] == [(0, 10), (10, 20), (21, 40), (40, 40)]


def test_shares_are_neighbouring_parts_of_similar_size(table, touching):
    parts = touching(
        table("b.parquet", [0, 9], [10, 19]), table("a.parquet", [20, 29], [30, 39], [40, 49], [50, 59])
    )
    found = with_shared(shares(parts, 4))
    assert groups(found) == [[(0, (0, 1))], [(1, (0, 1))], [(1, (2, 3))]]
    assert [part.rows for part in found] == [4, 4, 4]
    assert [part.shared for part in found] == [(), (), ()]


def test_a_part_is_split_by_row_groups_and_files(table, touching, put):
    (part,) = touching(table("a.parquet", [0, 9], [1, 8], [2, 7]), put("b.csv", "time,source,value\n0,s,1\n"))
    assert groups(split(part, 2)) == [[(0, (0, 1))], [(0, (2,)), (1, None)]]
    assert groups(split(part, 9)) == [[(0, (0,))], [(0, (1,))], [(0, (2,))], [(1, None)]]
