"""From days back to what has to change, and what is lost for it."""

from __future__ import annotations

from collections import Counter
from math import sin

import pytest

from holdfast.model.event import Event
from holdfast.model.instant import MINUTE, SECOND
from holdfast.network.estimate.budget import EVERY_NTH, Budget, fitting
from holdfast.network.estimate.rates import rates
from holdfast.network.estimate.strategies import SCOPES, SINK, SOURCE, Strategy, _forecast, strategies
from holdfast.network.motes.case import plan_run
from holdfast.network.motes.play import cast
from holdfast.network.motes.study import read_text

NETWORK = """
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
links: {kind: disk, range: 16 m}
routing: {kind: static}
energy: {platform: telosb, battery: 100 J, mains: [4], rest: {radio: sleep, mcu: sleep}}
definition: "topic T (value float)  state Warm on T [value > 20; value < 19] per source"
subscribers: [{node: 4, to: Warm}]
duration: 1 h
"""


def wavering() -> list[Event]:
    """Three rooms that are warm for an hour and then not, and waver around the entrance all the time."""

    def value(minute: int) -> float:
        return (21.0 if minute // 60 % 2 else 19.5) + 0.8 * sin(2.1 * minute)

    return [
        Event("T", minute * MINUTE + k * SECOND, f"r{k}", {"value": value(minute)}, minute)
        for minute in range(8 * 60)
        for k in range(3)
    ]


@pytest.fixture(scope="module")
def plans():
    case, events = read_text(NETWORK).points[0].case, wavering()
    whole = rates(events, case.definition, plan_run(cast(case, events), 1).subscriptions)
    cases = {name: each for name, each in strategies(case).items() if name in (SINK, SOURCE)}
    some = [Strategy(name, each, _forecast(each, 1, events, whole), {}) for name, each in cases.items()]
    return list(Budget(some, whole, case.definition).plans())


def test_fewer_readings_and_wider_bands_never_take_more(plans):
    at = {(one.strategy, one.every, one.wider): one for one in plans}
    assert {every for _, every, _ in at} == set(EVERY_NTH)
    for (way, every, wider), one in at.items():
        assert one.days >= at[way, 1, 1.0].days * 0.999
        if way == SINK:
            assert one.days == pytest.approx(at[way, every, 1.0].days), "there a band changes nothing"
        if (way, every) == (SOURCE, 1) and wider > 1:
            assert one.days > at[way, 1, 1.0].days, "fewer turns travel"


def test_an_unchanged_plan_loses_nothing_and_every_thirtieth_reading_loses_something(plans):
    at = {(one.strategy, one.every, one.wider): one.detection["Warm"] for one in plans}
    stands, filtered = at[SOURCE, 1, 1.0], at[SOURCE, 30, 1.0]
    assert (stands.met, stands.share) == (stands.known, 1.0)
    assert stands.late < 1 < filtered.late
    assert stands.excess == 0.0 < at[SOURCE, 1, 4.0].excess, "a state that is left late"
    assert filtered.met < filtered.known


def test_plans_are_ordered_by_loss_with_one_for_each_strategy(plans):
    best = max(one.days for one in plans)
    now = max(one.days for one in plans if one.changes == (1, 1.0))
    fits = fitting(plans, (now + best) / 2)
    assert [one for one in fits if one.days >= (now + best) / 2] == fits != []
    assert [one.loss for one in fits] == sorted(one.loss for one in fits)
    assert Counter(one.strategy for one in fits).most_common(1)[0][1] == 1
    assert fitting(plans, 2 * best) == []


def test_the_unchanged_plan_of_a_shared_state_costs_the_forecast():
    """The scope is no source, but its transitions are not lost for that reason."""
    text = NETWORK.replace(" per source", "")
    case, events = read_text(text).points[0].case, wavering()
    whole = rates(events, case.definition, plan_run(cast(case, events), 1).subscriptions)
    expected = _forecast(strategies(case)[SCOPES], 1, events, whole)
    way = Strategy(SCOPES, strategies(case)[SCOPES], expected, {})
    at = {one.changes: one for one in Budget([way], whole, case.definition).plans()}
    assert at[1, 1.0].joules == pytest.approx(float(expected.joules().sum()))
