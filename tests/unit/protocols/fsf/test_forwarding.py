"""What a neighbour was sent, and what others cover."""

from __future__ import annotations

import numpy as np

from holdfast.model.correlation import Correlation, Filter
from holdfast.model.instant import SECOND
from holdfast.model.space import Region
from holdfast.protocols.fsf.covering import Exact
from holdfast.protocols.fsf.forwarding import Forwarded, Tally, asking, bounds
from holdfast.protocols.fsf.operator import Operator, whole

ASK = asking(Exact(), np.random.default_rng(7), Tally())


def simple(
    name: str,
    low: float,
    high: float,
    sensor: str | None = None,
    region: Region | None = None,
    within: int = 5,
) -> Operator:
    return whole(name, Correlation((Filter("heat", low, high, sensor),), within * SECOND, region=region))


def test_a_simple_operator_on_one_sensor_is_compared_with_those_on_any():
    """[J5] The exception to comparing only subscriptions of one type; both together cover the third."""
    sent = Forwarded()
    cold, warm, both = simple("a", 0, 10), simple("b", 8, 20, "s"), simple("c", 5, 15, "s", within=60)
    assert sent.hold(cold, cold, ASK)
    assert sent.hold(warm, warm, ASK)
    assert not sent.hold(both, both, ASK)
    assert sent.release(cold, cold, ASK) == (True, [both])


def test_what_is_asked_of_others_or_elsewhere_does_not_cover_it():
    sent = Forwarded()
    there = Region("there", sources=("t",))
    for name, other in {"a": simple("a", 0, 20, "t"), "b": simple("b", 0, 20, region=there)}.items():
        assert sent.hold(other, other, ASK), name
    mine = simple("c", 5, 15, "s")
    assert sent.hold(mine, mine, ASK)
    named = simple("d", 5, 15, "t")
    assert not sent.hold(named, named, ASK)


def test_one_sensor_does_not_stand_for_all():
    sent = Forwarded()
    one, every = simple("a", 0, 20, "s"), simple("b", 5, 15)
    assert sent.hold(one, one, ASK)
    assert sent.hold(every, every, ASK)


def test_ranges_are_numbers_of_one_kind_however_they_are_written():
    """For others a kernel would be compiled anew."""
    assert bounds(simple("a", 0, 10)).dtype == bounds(simple("a", 0.5, 10.0)).dtype == float
