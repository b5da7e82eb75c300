"""An incremental aggregate over all time equals one that is computed from everything."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.kinds.component.detector import component, infospace
from holdfast.kinds.component.detector.infospace import InfoSpace
from holdfast.kinds.component.detector.knowledge import Knowledge
from holdfast.kinds.component.detector.query import select, select_after_time
from holdfast.kinds.component.detector.running_aggregate import RunningAggregate, is_incremental
from holdfast.model.query import (
    HERE,
    NOW,
    Aggregate,
    Ball,
    Closest,
    Index,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
)
from support.fused import marks, reading

FUNCTIONS = ("sum", "avg", "max", "min", "count")
VALUES = (0.1, 0.1, 3.5, 3.5, 3.5, 0.2, -0.0, 1e16, -1e16, 1e308, math.inf, -math.inf, None)

times = st.sampled_from(
    [Aggregate(function) for function in FUNCTIONS]
    + [Aggregate((("n", "sum"), ("value", "max"))), Aggregate((("value", "avg"),))]
)
places = st.sampled_from(
    [
        *[PooledDimension()] * 4,
        Multiple("any"),
        Multiple("separate"),
        Aggregate("max"),
        Aggregate("sum"),
        Closest(Index((1.0,))),
    ]
)
statuses = st.sampled_from([Multiple("any"), PooledDimension(), Closest(Index("ingress")), Aggregate("max")])
queries = st.builds(
    lambda time, place, status, each: Query(Closest(Index("T")), time, place, status, each),
    times,
    places,
    statuses,
    st.sampled_from(((), (), ("k",))),
)


@st.composite
def points(draw):
    """Knowledge of any place, status and kind of value, some of it in one cell."""
    where = draw(st.sampled_from(((0.0,), (0.0,), (1.0,), (1.0, 2.0), "north", None)))
    status = draw(st.sampled_from(("atomic", "atomic", "atomic", "ingress", "egress")))
    return Knowledge(
        "T",
        draw(st.integers(0, 12)),
        draw(st.sampled_from("ab")),
        {
            "value": draw(st.sampled_from(VALUES)),
            "n": draw(st.sampled_from((0, 1, 2**62, -(2**63), 2**53 + 1, None))),
            "k": 7,
            "name": draw(st.sampled_from(("x", "x", "y", None))),
            "ok": draw(st.sampled_from((True, False))),
        },
        where if isinstance(where, tuple) else None,
        where if isinstance(where, str) else None,
        status,
        None if status == "atomic" else draw(st.sampled_from(("p", "q"))),
    )


@settings(max_examples=2 * settings().max_examples)
@given(
    queries,
    st.lists(st.tuples(points(), st.integers(0, 3)), min_size=4, max_size=12),
    st.sampled_from(FUNCTIONS),
    st.sampled_from((("value", "n", "k", "name", "ok"), ("name", "n", "k", "value", "ok"))),
)
def test_incremental_aggregates_equal_those_over_everything(query, arriving, collide, names):
    """Points come in any order, some when time has passed them, while it goes on."""
    assert is_incremental(query, carried=False)
    info, now = InfoSpace(), 0
    for point, step in arriving:
        known = replace(point, attributes={name: point.attributes[name] for name in names})
        infospace.record_status(info, known)
        infospace.insert(info, "A", "", known)
        now += step
        table = infospace.running_table(info, ("A", ""), lambda: RunningAggregate(query, collide), now)
        expected = select(query, infospace.visible(info, "A", "", now), now, None, collide)
        assert table is None or repr(select_after_time(query, table, now, None)) == repr(expected)
        assert table is not None or has_collisions(info, now)


def has_collisions(info, now):
    """Whether events of components are in one cell."""
    lasting = [k for k in infospace.visible(info, "A", "", now) if k.status != "atomic"]
    return len({(k.time, k.at, k.place, k.status, k.location or k.signature) for k in lasting}) < len(lasting)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_incremental_aggregates_examine_each_reading_once(function, monkeypatch):
    """Earlier readings are not read again, however long the history."""
    folded = []
    whole = RunningAggregate.table
    monkeypatch.setattr(component.infospace, "visible", None)

    def table(running, known, now, judge):
        before = running._folded
        found = whole(running, known, now, judge)
        folded.append(running._folded - before)
        return found

    monkeypatch.setattr(RunningAggregate, "table", table)
    text = f"topic T (value float)\nstate S A = {function} T ever enter A.value > 0 exit A.value < 0"
    assert marks(text, [reading(t, "T", t % 3, 1.0) for t in range(50)]) == [("ingress", 0)]
    assert folded == [1] * 50


def test_late_events_count_from_their_arrival_on():
    text = "topic T (value float)\nstate S A = sum T ever enter A.value > 2 exit A.value < 0"
    assert marks(text, [reading(t, "T", 1, 1.0) for t in (0, 5, 3, 6)]) == [("ingress", 5)]


@pytest.mark.parametrize(
    ("query", "carried"),
    [
        (Query(Closest(Index("T")), Aggregate("stddev")), False),
        (Query(Closest(Index("T")), Aggregate("sum", QueryRange(Index(-5, relative=True), NOW))), False),
        (Query(Closest(Index("T"))), False),
        (Query(Closest(Index("T")), Aggregate("sum"), PooledDimension(Ball(HERE, 2.0))), True),
    ],
)
def test_other_aggregates_are_computed_from_all_readings(query, carried):
    assert not is_incremental(query, carried=carried)
