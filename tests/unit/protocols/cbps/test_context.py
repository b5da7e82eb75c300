"""Message context: what brokers add to a bundle on its way, and filters on that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocols.cbps.bundle import onward
from holdfast.protocols.cbps.content import Constraint, Filter
from holdfast.protocols.cbps.context import carried, content_of, leaving, passes, received, stamped, within
from holdfast.protocols.cbps.message import Bundle, Context, Key, Subscription

BUNDLE = Bundle(Key("camera", 7))


def on(name, op, value, type_="long"):
    return Filter((Constraint(name, type_, op, value),))


def test_the_first_broker_makes_the_context():
    assert received(BUNDLE, "link 3", 1_000) == Context("camera", "link 3", 1, 1_000, 0)


def test_an_application_may_say_who_the_origin_is():
    made = Bundle(Key("gateway", 7), context=Context(origin="camera"))
    assert received(made, "link 3", 1_000).origin == "camera"


def test_every_broker_adds_a_hop_and_the_time_spent_there():
    bundle = BUNDLE
    for arrival, processed in ((1_000, 1_400), (2_000, 2_100)):
        bundle = stamped(bundle, arrival)
        context = received(bundle, "somewhere", processed)
        assert context.arrival_time == arrival
        bundle = Bundle(BUNDLE.key, context=leaving(context, processed))
    assert bundle.context == Context("camera", "somewhere", 2, None, 500)


def test_filters_see_how_long_it_has_been_here_already():
    seen = content_of(Context("camera", "link", 2, 1_000, 300), now=1_200)
    assert seen == {
        "origin": "camera",
        "sender": "link",
        "hopCnt": 2,
        "arrivalTime": 1_000,
        "brokerLatencyTime": 200,
        "travelTime": 500,
    }


def test_without_a_filter_everything_passes_and_of_several_one_suffices():
    seen = {"hopCnt": 3}
    assert passes((), seen)
    assert passes((within(2), within(4)), seen)
    assert not passes((within(1), within(2)), seen)


@pytest.mark.parametrize(
    ("filter_", "farther"),
    [
        (within(3), within(2)),
        (within(1), None),
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
def test_a_filter_one_broker_farther_away(filter_, farther):
    assert carried(filter_) == farther


contexts = st.builds(
    Context,
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
def test_what_passes_here_has_passed_the_broker_before(filter_, context):
    """Going on only adds hops and time, so no broker on the way drops what its owner would take."""
    here = received(Bundle(Key("a", 1), context=leaving(context, 110)), "next", 120)
    if passes((filter_,), content_of(here, 120)):
        before = carried(filter_)
        assert before is not None
        assert passes((before,), content_of(context, 110))


def test_where_nothing_could_pass_nothing_is_stored():
    sub = Bundle(Key("s", 1), incoming=(within(1),), subscriptions=(Subscription(Filter()),), payloads=("p",))
    assert onward(sub) == Bundle(Key("s", 1), payloads=("p",))
