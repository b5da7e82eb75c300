"""Intervals as a chart in the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.files.interval import Interval
from holdfast.files.timeline import WIDTH, axis, chart
from holdfast.model.instant import DAY, EARLIEST, HOUR, LATEST, MINUTE, SECOND


def interval(start, end, name="Warm", scope="lab"):
    return Interval(name, scope, start, end, "T", "s", {})


def bars(*intervals, **how):
    return list(chart(intervals, **how))[1:]


def test_a_timeline_has_a_bar_for_each_condition_and_scope():
    assert bars(
        interval(0, 6 * HOUR),
        interval(12 * HOUR, 15 * HOUR),
        interval(3 * HOUR, 3 * HOUR, "Hot", None),
        interval(18 * HOUR, None, "Warm", "attic"),
        interval(23 * HOUR, 23 * HOUR, "Hot", None),
    ) == [
        "           00   03   06   09   12   15   18   21   ",
        "Hot        ·····│································│· 2 readings",
        "Warm attic ······························██████████ 18:00–open",
        "Warm lab   ███████████·········██████·············· 00:00–06:00, 2 times",
    ]


def test_an_open_interval_extends_to_the_end_of_the_chart():
    marks, bar = bars(interval(10 * MINUTE, None), until=20 * MINUTE, now="now")
    assert marks.split() == ["00:10", "00:15", "00:20", "00:25", "00:30"]
    assert bar == f"Warm lab {'█' * WIDTH} 00:10–now"


def test_a_condition_without_intervals_has_no_bar():
    assert list(chart([])) == ["Nothing held."]


def test_only_the_first_of_many_scopes_are_shown():
    lines = bars(*(interval(0, SECOND, scope=f"{i:03d}") for i in range(60)))
    assert lines[-1] == "… and 10 more"
    assert len(lines) == 52


@given(st.integers(EARLIEST, LATEST), st.integers(0, LATEST - EARLIEST))
def test_every_axis_extends_from_the_first_to_the_last_time(first, length):
    last = min(first + length, LATEST)
    scale = axis(first, last)
    assert scale.start <= first
    assert 0 <= scale.column(first) <= scale.column(last) < WIDTH
    assert len(scale.marks()) == WIDTH
    assert len(scale.marks().split()) * scale.columns == WIDTH, "marks stand apart"


@pytest.mark.parametrize(
    ("span", "marks"),
    [
        (3 * SECOND, "00:00   00:01   00:02   00:03   00:04   "),
        (40 * MINUTE, "00:00   00:10   00:20   00:30   00:40   "),
        (6 * DAY, "01-01   01-03   01-05   01-07   01-09   "),
        (3 * 365 * DAY, "1970-01 1971-01 1972-01 1972-12 1973-12 "),
    ],
)
def test_tick_marks_are_round_numbers(span, marks):
    assert axis(0, span).marks() == marks
