"""Bars at every level of detail equal those of merging all intervals at once."""

from __future__ import annotations

import random
import time

import pytest

from holdfast.model.instant import DAY, HOUR, MINUTE, SECOND
from holdfast.service.store import NotificationRow
from holdfast.service.timeline import WIDTHS, Row, Timeline, TimelineView


@pytest.fixture
def timeline(tmp_path):
    found = Timeline(tmp_path / "timeline.db")
    yield found
    found.close()


def end_row(position, start, end, scope="s1", name="Warm", status="egress"):
    return NotificationRow(position, str(position), name, scope, status, end, start, end, "{}")


def interval_rows(n, seed=1):
    """Intervals of one scope, with pauses from a second to hours."""
    chance, at = random.Random(seed), 0
    for _ in range(n):
        start = at + int(chance.lognormvariate(4, 2) * SECOND) + 1
        at = start + int(chance.lognormvariate(2, 1) * SECOND)
        yield start, at


def naive(found, view):
    """All intervals, merged by pixel."""
    merged = []
    for start, end in found:
        if end < view.start or start >= view.end:
            continue
        left, right = max(start, view.start), min(end, view.end)
        if merged and left - merged[-1][1] <= view.pixel:
            merged[-1] = [merged[-1][0], max(right, merged[-1][1]), merged[-1][2] + 1]
        else:
            merged.append([left, right, 1])
    return merged


def test_a_chart_has_few_bars_and_loses_nothing(timeline):
    some = list(interval_rows(3_000))
    timeline.add([end_row(i + 1, *one) for i, one in enumerate(some)])
    end = some[-1][1] + 1
    for view in (
        TimelineView(0, end, 100),
        TimelineView(end // 3, end // 2, 200),
        TimelineView(end // 2, end // 2 + HOUR, 400),
    ):
        (row,), total = timeline.rows(view, end)
        expected = naive(some, view)
        assert total == 1
        assert len(row["bars"]) <= view.width
        assert abs(row["bars"][0][0] - expected[0][0]) <= view.pixel
        assert abs(row["bars"][-1][1] - expected[-1][1]) <= view.pixel
        drawn = [
            x for left, right, _ in row["bars"] for x in range(left // view.pixel, right // view.pixel + 1)
        ]
        for left, right, _ in expected:
            assert {left // view.pixel, right // view.pixel} <= set(drawn)
    (row,), _ = timeline.rows(TimelineView(0, end, 100), end)
    assert sum(bar[2] for bar in row["bars"]) == len(some), "how many there were is never lost"


def test_close_up_every_interval_is_shown_exactly(timeline):
    some = [(i * MINUTE, i * MINUTE + 10 * SECOND) for i in range(100)]
    timeline.add([end_row(i + 1, *one) for i, one in enumerate(some)])
    (row,), _ = timeline.rows(TimelineView(10 * MINUTE, 15 * MINUTE, 1_000), HOUR)
    assert row["bars"] == [[*one, 1] for one in some[10:15]]


def test_repeated_notifications_change_nothing_and_a_new_process_continues(timeline, tmp_path):
    emitted = [end_row(i + 1, i * MINUTE, i * MINUTE + SECOND) for i in range(50)]
    for first in range(0, 50, 7):
        timeline.add(emitted[max(0, first - 3) : first + 7])
    again = Timeline(tmp_path / "timeline.db")
    again.add(emitted[40:])
    again.add([end_row(51, 50 * MINUTE, 50 * MINUTE + SECOND)])
    for width in (10, 60, 3_600):
        (row,), _ = again.rows(TimelineView(0, HOUR, width), HOUR)
        assert sum(bar[2] for bar in row["bars"]) == 51
    again.close()


def test_an_active_interval_extends_to_now_and_an_unknown_one_has_its_own_row(timeline):
    timeline.add(
        [
            NotificationRow(1, "1", "Warm", "s1", "unknown", 20 * SECOND, None, 0, "{}"),
            NotificationRow(2, "2", "Warm", "s2", "unknown", 20 * SECOND, None, 0, "{}"),
            NotificationRow(3, "3", "Warm", "s2", "known", 25 * SECOND, None, 0, "{}"),
        ]
    )
    rows, _ = timeline.rows(TimelineView(0, MINUTE, 60), 40 * SECOND, [(Row("Warm", "s1"), 10 * SECOND)])
    assert [(row["scope"], row["kind"], row["bars"]) for row in rows] == [
        ("s1", "holds", [[10 * SECOND, 40 * SECOND, 1]]),
        ("s1", "unknown", [[20 * SECOND, 40 * SECOND, 1]]),
        ("s2", "unknown", [[20 * SECOND, 25 * SECOND, 1]]),
    ]


def test_coarser_levels_have_fewer_bars(timeline):
    timeline.add([end_row(i + 1, *one) for i, one in enumerate(interval_rows(2_000))])
    counts = dict(timeline._database.execute("SELECT level, COUNT(*) FROM bars GROUP BY level"))
    assert list(counts) == list(range(len(WIDTHS)))
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert counts[0] == 2_000


def test_rows_are_found_by_name_and_come_in_pages(timeline):
    timeline.add([end_row(i + 1, 0, SECOND, scope=f"room-{i:03}") for i in range(300)])
    rows, total = timeline.rows(TimelineView(0, MINUTE, 60, find="ROOM-29", skip=2, most=3), MINUTE)
    assert (total, [row["scope"] for row in rows]) == (10, ["room-292", "room-293", "room-294"])
    assert timeline.rows(TimelineView(0, MINUTE, 60, subscription="Other"), MINUTE) == ([], 0)


@pytest.mark.soak
def test_a_million_intervals_are_drawn_quickly(timeline):
    """For two hundred scopes over a year a chart of any period reads as many bars as it has pixels."""
    scopes, each = 200, 5_000
    year, position = 365 * DAY, 0
    for i in range(scopes):
        chance, found, at = random.Random(i), [], 0
        for _ in range(each):
            start = at + int(chance.uniform(0.2, 1.8) * year / each / 2)
            at = start + int(chance.uniform(0.2, 1.8) * year / each / 2)
            position += 1
            found.append(end_row(position, start, at, f"s{i}"))
        timeline.add(found)
    for name, view in {
        "a year": TimelineView(0, year, 1_200),
        "a month": TimelineView(year // 2, year // 2 + 30 * DAY, 1_200),
        "a day": TimelineView(year // 2, year // 2 + DAY, 1_200),
        "an hour": TimelineView(year // 2, year // 2 + HOUR, 1_200),
    }.items():
        started = time.perf_counter()
        rows, total = timeline.rows(view, year)
        seconds = time.perf_counter() - started
        print(f"{name}: {sum(len(row['bars']) for row in rows):,} bars of {total} rows in {seconds:.2f} s")
        assert total == scopes
        assert all(len(row["bars"]) <= view.width for row in rows)
    (first, *_), _ = timeline.rows(TimelineView(0, 2 * year, 1_200), year)
    assert sum(count for _, _, count in first["bars"]) == each
