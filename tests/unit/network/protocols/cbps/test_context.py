"""Message context: what brokers add to a bundle on its way, and filters on that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.protocols.cbps.bundle import for_next_hop
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.context import (
    content_of,
    context_from_broker,
    context_on_departure,
    passes_any,
    shift_one_hop,
    stamp_arrival,
    within_hops,
)
from holdfast.network.protocols.cbps.message import Bundle, BundleContext, BundleKey, CbpsSubscription

BUNDLE = Bundle(BundleKey("camera", 7))


def on(name, op, value, type_="long"):
    return Filter((Constraint(name, type_, op, value),))


def test_the_first_broker_creates_the_context():
    assert context_from_broker(BUNDLE, "link 3", 1_000) == BundleContext("camera", "link 3", 1, 1_000, 0)


def test_an_application_may_set_the_origin():
    made = Bundle(BundleKey("gateway", 7), context=BundleContext(origin="camera"))
    assert context_from_broker(made, "link 3", 1_000).origin == "camera"


def test_every_broker_adds_a_hop_and_the_time_spent_there():
    bundle = BUNDLE
    for arrival, processed in ((1_000, 1_400), (2_000, 2_100)):
        bundle = stamp_arrival(bundle, arrival)
        context = context_from_broker(bundle, "somewhere", processed)
        assert context.arrival_time == arrival
        bundle = Bundle(BUNDLE.key, context=context_on_departure(context, processed))
    assert bundle.context == BundleContext("camera", "somewhere", 2, None, 500)


def test_filters_include_the_time_spent_at_this_broker():
    seen = content_of(BundleContext("camera", "link", 2, 1_000, 300), now=1_200)
    assert seen == {
        "origin": "camera",
        "sender": "link",
        "hopCnt": 2,
        "arrivalTime": 1_000,
        "brokerLatencyTime": 200,
        "travelTime": 500,
    }


def test_everything_passes_without_a_filter_and_one_of_several_suffices():
    seen = {"hopCnt": 3}
    assert passes_any((), seen)
    assert passes_any((within_hops(2), within_hops(4)), seen)
    assert not passes_any((within_hops(1), within_hops(2)), seen)


@pytest.mark.parametrize(
    ("filter_", "farther"),
    [
        (within_hops(3), within_hops(2)),
        (within_hops(1), None),
        (on("hopCnt", "=", 2), on("hopCnt", "=", 1)),
        (on("hopCnt", "=", 1), None),
        (on("hopCnt", ">=", 1), on("hopCnt", ">=", 0)),
        (on("travelTime", "<=", 5), on("travelTime", "<=", 5)),
        (on("travelTime", ">", 5), Filter()),
        (on("sender", "=", "link", "text"), Filter()),
        (on("arrivalTime", ">=", 5), Filter()),
        (on("origin", "=", "camera", "text"), on("origin", "=", "camera", "text")),
        (on("hopCnt", "any", None), on("hopCnt", "any", None)),
    ],
)
def test_a_filter_of_a_broker_one_hop_away_allows_for_the_hop(filter_, farther):
    assert shift_one_hop(filter_) == farther


contexts = st.builds(
    BundleContext,
    origin=st.sampled_from(["a", "b"]),
    sender=st.just("link"),
    hop_count=st.integers(1, 4),
    arrival_time=st.just(100),
    travel_time=st.integers(0, 50),
)
constraints = st.one_of(
    st.builds(Constraint, st.sampled_from(["hopCnt", "travelTime"]), st.just("long"),
              st.sampled_from(["<", "<=", "=", ">=", ">", "!="]), st.integers(0, 60)),
    st.builds(Constraint, st.just("origin"), st.just("text"), st.just("="), st.sampled_from(["a", "b"])),
    st.builds(Constraint, st.just("sender"), st.just("text"), st.just("="), st.sampled_from(["link", "x"])),
)  # fmt: skip


@given(filter_=st.lists(constraints, max_size=3).map(lambda cs: Filter(tuple(cs))), context=contexts)
def test_filters_of_the_previous_broker_pass_a_superset(filter_, context):
    """Going on only adds hops and time, so no broker on the way drops what its owner would take."""
    here = context_from_broker(
        Bundle(BundleKey("a", 1), context=context_on_departure(context, 110)), "next", 120
    )
    if passes_any((filter_,), content_of(here, 120)):
        before = shift_one_hop(filter_)
        assert before is not None
        assert passes_any((before,), content_of(context, 110))


def test_subscriptions_that_no_bundle_could_satisfy_are_not_stored():
    sub = Bundle(
        BundleKey("s", 1),
        incoming=(within_hops(1),),
        subscriptions=(CbpsSubscription(Filter()),),
        payloads=("p",),
    )
    assert for_next_hop(sub) == Bundle(BundleKey("s", 1), payloads=("p",))
