"""Filters, components and correlations in one definition: each runtime gives the result of single events."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from holdfast import Event, parse
from holdfast.model.instant import SECOND
from support.overlays import each_alone, run_on_overlay
from support.runtimes import engine
from support.whole import WITH_TABLES, definitions, visible

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 30)
anything = definitions(kinds=WITH_TABLES)
few = settings(max_examples=max(1, EXAMPLES // 2))
fewer = settings(max_examples=max(1, EXAMPLES // 6))


# --- on an overlay -----------------------------------------------------------------------------------


TOPIC = "topic T (value float)\n"
ONCE_LOST = [
    (TOPIC + "state S on T [value > 1 for 1 s; value < 1] forget after 2 s", [(0, 2), (2.5, 2), (4, 0)]),
    (TOPIC + "state S on T [value > 1 for 1 s; value < 1] initially on", [(0, 0), (1, 2), (3, 0), (4, 0)]),
    (TOPIC + "state S on T [value > 1 for 1 s; value < 1] initially off quietly", [(0, 2), (1.5, 0)]),
]
"""A start after what was forgotten, and ends of what was never said to have started."""


@pytest.mark.parametrize(("text", "readings"), ONCE_LOST)
def test_scopes_that_are_active_without_a_notification_are_followed_on_an_overlay(text, readings):
    app = parse(text)
    events = [
        Event("T", round(at * SECOND), "s", {"value": float(value)}, i)
        for i, (at, value) in enumerate(readings)
    ]
    output = visible(each_alone(app, events))
    assert output
    assert visible(run_on_overlay(app, events)) == output


# --- on Spark, without Spark -------------------------------------------------------------------------


BY_ROOM = """topic T (value float, road text, n int)
state Hot on T [value > 1; value < 1] per n
state Roads = at least 1 of Hot within road
state {}
"""


@pytest.mark.parametrize("above", ["Any = any of Roads within road", "Two = at least 2 of Roads within road"])
def test_a_count_over_a_count_ends_where_its_member_ended_elsewhere(above):
    """Sensor 0 gets hot on road r2 and cools down on road r1: the end of r2 comes from r1."""
    sharded = pytest.importorskip("support.sharded")
    app = parse(BY_ROOM.format(above))
    readings = [(0, 2.0, "r2", 0), (1, 2.0, "r2", 1), (2, 0.0, "r1", 0), (3, 0.0, "r3", 1)]
    events = [
        Event("T", at * SECOND, "s", {"value": value, "road": road, "n": n}, at)
        for at, value, road, n in readings
    ]
    expected = visible(engine(app, events))
    assert expected
    for shards in (1, 2, 5, 16):
        assert visible(sharded.run_in_shards(app, events, shards)) == expected


@pytest.mark.parametrize("duration", ["", " for 1 s"])
def test_a_count_over_a_fold_processes_its_transitions_of_one_time_in_their_order(duration):
    """Two sensors of one cell are hot; at one time one of them cools down and is hot again."""
    sharded = pytest.importorskip("support.sharded")
    app = parse(
        f"topic T (value float)\nstate B on T [value > 1{duration}; value < 1] per source\n"
        "fold F = B cells 1 m within 2 m beyond 1\nstate A = any of F\n"
    )
    readings = [
        (0, "s1", 2.0, 1.0),
        (0, "s2", 2.0, 0.0),
        (2, "s1", 0.0, 0.0),
        (2, "s1", 2.0, 0.0),
        (4, "s1", 0.0, 0.0),
    ]
    events = [
        Event("T", at * SECOND, source, {"value": value}, i, (x,))
        for i, (at, source, value, x) in enumerate(readings)
    ]
    expected = visible(engine(app, events))
    assert expected
    assert visible(sharded.run_in_shards(app, events)) == expected
