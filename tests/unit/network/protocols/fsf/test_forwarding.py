"""Operators sent to a neighbour, and covering by others."""

from __future__ import annotations

import numpy as np

from holdfast.model.correlation import Correlation, RangeFilter
from holdfast.model.instant import SECOND
from holdfast.model.space import Region
from holdfast.network.protocols.fsf.covering import ExactCovering
from holdfast.network.protocols.fsf.forwarding import CoveringTally, ForwardedOperators, bounds, counting_test
from holdfast.network.protocols.fsf.operator import FsfOperator, to_operator

ASK = counting_test(ExactCovering(), np.random.default_rng(7), CoveringTally())


def simple(
    name: str,
    low: float,
    high: float,
    sensor: str | None = None,
    region: Region | None = None,
    within: int = 5,
) -> FsfOperator:
    return to_operator(
        name, Correlation((RangeFilter("heat", low, high, sensor),), within * SECOND, region=region)
    )


def test_a_simple_operator_on_one_sensor_is_compared_with_operators_on_any_sensor():
    """[J5] The exception to comparing only subscriptions of one type; both together cover the third."""
    sent = ForwardedOperators()
    cold, warm, both = simple("a", 0, 10), simple("b", 8, 20, "s"), simple("c", 5, 15, "s", within=60)
    assert sent.hold(cold, cold, ASK)
    assert sent.hold(warm, warm, ASK)
    assert not sent.hold(both, both, ASK)
    assert sent.release(cold, cold, ASK) == (True, [both])


def test_operators_of_other_shapes_or_links_do_not_cover_an_operator():
    sent = ForwardedOperators()
    there = Region("there", sources=("t",))
    for name, other in {"a": simple("a", 0, 20, "t"), "b": simple("b", 0, 20, region=there)}.items():
        assert sent.hold(other, other, ASK), name
    mine = simple("c", 5, 15, "s")
    assert sent.hold(mine, mine, ASK)
    named = simple("d", 5, 15, "t")
    assert not sent.hold(named, named, ASK)


def test_an_operator_on_one_sensor_does_not_cover_one_on_all():
    sent = ForwardedOperators()
    one, every = simple("a", 0, 20, "s"), simple("b", 5, 15)
    assert sent.hold(one, one, ASK)
    assert sent.hold(every, every, ASK)


def test_ranges_of_ints_and_floats_are_compared_as_numbers():
    """Other types would compile another kernel."""
    assert bounds(simple("a", 0, 10)).dtype == bounds(simple("a", 0.5, 10.0)).dtype == float
