"""A network for correlation subscriptions: who is refused, who waits, what comes back, what is forgotten."""

import math
from dataclasses import replace

import pytest

from holdfast.errors import InputError, Unsupported, UsageError
from holdfast.model.correlation import Correlation, RangeFilter, Simple
from holdfast.model.space import Circle, Rectangle, Region
from holdfast.network.overlay.memory.fsf import FsfNetwork
from holdfast.network.protocols.fsf.covering import ExactCovering
from holdfast.network.protocols.fsf.message import (
    SubscriptionAccepted,
    SubscriptionRefused,
    SubscriptionWaiting,
)
from holdfast.network.protocols.fsf.policy import POLICIES

LINE = [("n1", "n2"), ("n2", "n3")]
A, B = RangeFilter("a", 0, 10), RangeFilter("b", 0, 10)
BOTH = Correlation((A, B), within=5)


def line(approach="fsf-exact", sensors="ab", **options):
    """Sensors at n1, users at n3."""
    network = FsfNetwork(LINE, POLICIES[approach], **options)
    for sensor in sensors:
        network.advertise("n1", sensor, sensor)
    return network


def measure(network, *readings):
    for sensor, time, value in readings:
        network.publish("n1", Simple(sensor, sensor, time, value))


def values(network, name):
    return sorted(event.value for event in network.delivered[name])


# --- sources ---


@pytest.mark.parametrize("approach", POLICIES)
def test_a_subscription_without_a_source_is_refused_and_forwarded_nowhere(approach):
    network = line(approach, "a")
    assert network.subscribe("n3", "q", BOTH) == SubscriptionRefused("q", (B,))
    assert network.subscription_load == 0
    network.advertise("n1", "b", "b")
    assert network.subscribe("n3", "q", BOTH) == SubscriptionAccepted("q")


@pytest.mark.parametrize("approach", POLICIES)
def test_a_subscription_can_optionally_wait_for_its_source(approach):
    network = line(approach, "a")
    assert network.subscribe("n3", "q", BOTH, pending=True) == SubscriptionWaiting("q", (B,))
    measure(network, ("a", 0, 1.0))
    assert network.subscription_load == 0
    network.advertise("n1", "b", "b")
    assert network.answers["q"] == SubscriptionAccepted("q")
    measure(network, ("a", 10, 2.0), ("b", 11, 3.0))
    assert values(network, "q") == [2.0, 3.0]


def test_a_source_in_another_region_does_not_count():
    left = Region("left", Rectangle((0.0, 0.0), (1.0, 1.0)))
    network = FsfNetwork(LINE, POLICIES["fsf-exact"])
    network.advertise("n1", "s1", "a", (0.5, 0.5))
    network.advertise("n1", "s2", "b", (5.0, 5.0))
    assert network.subscribe("n3", "q", replace(BOTH, region=left)) == SubscriptionRefused("q", (B,))


@pytest.mark.parametrize("approach", POLICIES)
def test_a_subscription_waits_again_when_its_last_source_goes(approach):
    network = line(approach)
    network.subscribe("n3", "q", BOTH)
    network.withdraw("b")
    assert network.answers["q"] == SubscriptionWaiting("q", (B,))
    network.advertise("n1", "b2", "b")
    assert network.answers["q"] == SubscriptionAccepted("q")
    measure(network, ("a", 10, 1.0))
    network.publish("n1", Simple("b", "b2", 11, 2.0))
    assert values(network, "q") == [1.0, 2.0]


def test_a_new_source_elsewhere_becomes_a_partner():
    network = line()
    network.subscribe("n3", "q", BOTH)
    network.advertise("n2", "b2", "b")
    measure(network, ("a", 0, 1.0))
    network.publish("n2", Simple("b", "b2", 1, 2.0))
    assert values(network, "q") == [1.0, 2.0]


# --- covering ---


def test_covered_operators_are_sent_when_the_coverer_is_released():
    network = line()
    network.subscribe("n3", "wide", BOTH)
    narrow = Correlation((RangeFilter("a", 2, 4), RangeFilter("b", 2, 4)), within=5)
    network.subscribe("n3", "narrow", narrow)
    assert (network.subscription_load, network.covered_count) == (2, 1)
    network.unsubscribe("wide")
    assert network.subscription_load == 4
    measure(network, ("a", 0, 3.0), ("b", 1, 3.0), ("a", 2, 9.0))
    assert values(network, "narrow") == [3.0, 3.0]
    assert network.publications["n2", "n3"] == 2


@pytest.mark.parametrize(
    ("second", "load"),
    [
        (replace(BOTH, within=4), 2),  # a larger δt covers a smaller one
        (replace(BOTH, within=6), 4),
        (replace(BOTH, near=3.0), 2),  # and a larger δl
        (Correlation((A,), within=5), 4),  # other attributes are not compared
    ],
)
def test_a_larger_distance_covers_a_smaller_one(second, load):
    network = line()
    network.subscribe("n3", "first", BOTH)
    network.subscribe("n3", "second", second)
    assert network.subscription_load == load


LEFT = Region("left", Rectangle((0.0, 0.0), (1.0, 1.0)))
RIGHT = Region("right", Rectangle((1.0, 0.0), (2.0, 1.0)))
ALL = Region("all", Rectangle((0.0, 0.0), (2.0, 1.0)))


@pytest.mark.parametrize(
    ("filters", "regions", "covered"),
    [
        ((A,), (LEFT, RIGHT, ALL), 1),  # two regions cover a third together
        ((A, B), (LEFT, RIGHT, ALL), 0),  # an a on the left and a b on the right: only the third wants them
        ((A, B), (ALL, LEFT, RIGHT), 2),
        ((A, B), (None, ALL, Region("disc", Circle((1.0, 0.5), 0.5))), 2),
        ((A, B), (ALL, Region("disc", Circle((1.0, 0.5), 0.5))), 1),
        ((A, B), (LEFT, Region("named", sources=("s1",))), 0),
    ],
)
def test_a_region_is_an_attribute_of_every_event(filters, regions, covered):
    network = FsfNetwork(LINE, POLICIES["fsf-exact"])
    for attribute in "ab":
        network.advertise("n1", f"{attribute}1", attribute, (0.5, 0.5))
        network.advertise("n1", f"{attribute}2", attribute, (1.5, 0.5))
        network.advertise("n1", f"{attribute}3", attribute, (1.0, 0.5))
    for number, region in enumerate(regions):
        network.subscribe("n3", f"q{number}", Correlation(filters, 5, math.inf, region), pending=True)
    assert network.covered_count == covered


def test_undecided_operators_are_forwarded_and_counted():
    hurried = replace(POLICIES["fsf-exact"], filtering=ExactCovering(most=0))
    network = FsfNetwork(LINE, hurried)
    network.advertise("n1", "a", "a")
    for name, low, high in (("low", 0, 6), ("high", 5, 10), ("whole", 1, 9)):
        network.subscribe("n3", name, Correlation((RangeFilter("a", low, high),), 5))
    assert (network.test_count, network.covered_count, network.undecided_count) == (
        4,
        0,
        2,
    )  # at n3 and at n2
    assert network.subscription_load == 6


# --- events ---


def test_an_event_crosses_a_link_once_for_any_number_of_subscriptions():
    network = line()
    for number in range(3):
        ranges = RangeFilter("a", number, 10), RangeFilter("b", 0, 10 - number)
        network.subscribe("n3", f"q{number}", Correlation(ranges, 5 - number))
    measure(network, ("a", 0, 5.0), ("b", 1, 5.0), ("b", 2, 6.0), ("a", 3, 6.0))
    assert network.publications == {("n1", "n2"): 4, ("n2", "n3"): 4}
    naive = line("naive")
    for number in range(3):
        naive.subscribe("n3", f"q{number}", BOTH)
    measure(naive, ("a", 0, 5.0), ("b", 1, 5.0))
    assert naive.publications == {("n1", "n2"): 6, ("n2", "n3"): 6}


def test_an_event_waits_for_its_partner_and_is_forgotten_after_its_validity():
    network = line(validity=8)
    network.subscribe("n3", "q", BOTH)
    measure(network, ("a", 0, 1.0))
    assert network.publication_load == 0
    measure(network, ("b", 4, 2.0))
    assert values(network, "q") == [1.0, 2.0]
    measure(network, ("a", 20, 3.0), ("b", 17, 4.0))  # b is late by three, and 20 - 17 < 5
    assert values(network, "q") == [1.0, 2.0, 3.0, 4.0]
    measure(network, ("a", 40, 5.0), ("a", 50, 6.0))
    assert len(network.nodes["n1"].state.events) == 1


def test_an_event_without_a_location_is_near_no_other_event():
    network = line()
    network.subscribe("n3", "q", replace(BOTH, near=3.0))
    measure(network, ("a", 0, 1.0), ("b", 0, 1.0))
    assert values(network, "q") == []


# --- links ---


def test_both_sides_of_a_broken_link_know_and_it_can_be_mended():
    network = line()
    network.subscribe("n3", "q", BOTH)
    network.cut("n1", "n2")
    assert network.answers["q"] == SubscriptionWaiting("q", (A, B))
    measure(network, ("a", 0, 1.0), ("b", 0, 1.0))
    network.connect("n1", "n3")
    assert network.answers["q"] == SubscriptionAccepted("q")
    measure(network, ("a", 20, 2.0), ("b", 20, 3.0))
    assert values(network, "q") == [2.0, 3.0]


def test_the_paths_to_a_central_node_are_fixed():
    network = line("centralized")
    network.cut("n1", "n2")
    with pytest.raises(Unsupported, match="'n1' and 'n3' were never neighbours"):
        network.connect("n1", "n3")
    network.connect("n1", "n2")
    assert network.subscribe("n3", "q", BOTH) == SubscriptionAccepted("q")


def test_a_reused_row_has_no_memory_of_its_former_operator():
    network = line("naive")
    network.subscribe("n3", "first", BOTH)
    network.subscribe("n3", "stays", BOTH)
    measure(network, ("a", 0, 1.0), ("b", 0, 2.0))
    network.unsubscribe("first")
    network.subscribe("n3", "second", BOTH)
    measure(network, ("a", 1, 3.0))
    assert values(network, "second") == [1.0, 2.0, 3.0]
    assert values(network, "first") == [1.0, 2.0]


# --- wrong use ---


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Correlation((), 5), "has no filter"),
        (Correlation((A, A), 5), "two filters for one attribute"),
        (Correlation((A, RangeFilter("b", sensor="b")), 5), "names the sensors of some filters"),
        (Correlation((RangeFilter("a", 3, 2),), 5), r"allows no value of 'a': \[3, 2\] is empty"),
        (Correlation((RangeFilter("a", math.nan, 2),), 5), "allows no value"),
        (Correlation((A,), 0), "δt above zero"),
        (Correlation((A,), 5, 0.0), "δl above zero"),
    ],
)
def test_a_subscription_that_nothing_can_satisfy_is_an_error(wanted, message):
    with pytest.raises(UsageError, match=f"subscription 'q' .*{message}"):
        line().subscribe("n3", "q", wanted)


def test_errors_in_requests_are_precise():
    network = line()
    network.subscribe("n3", "storm", BOTH)
    with pytest.raises(UsageError, match="there is a subscription 'storm' at 'n3' already"):
        network.subscribe("n2", "storm", BOTH)
    with pytest.raises(UsageError, match=r"there is no subscription 'strom'. Did you mean 'storm'"):
        network.unsubscribe("strom")
    with pytest.raises(UsageError, match="there is no node 'n4'"):
        network.subscribe("n4", "other", BOTH)
    with pytest.raises(UsageError, match="there is a sensor 'a' at 'n1' already"):
        network.advertise("n2", "a", "a")
    with pytest.raises(UsageError, match="there is no sensor 'c'"):
        network.withdraw("c")
    with pytest.raises(InputError, match="no sensor 'a' is advertised at 'n2'"):
        network.publish("n2", Simple("a", "a", 0, 1.0))
    with pytest.raises(InputError, match="'a' is advertised with 'a' at None, but an event has 'a' at"):
        network.publish("n1", Simple("a", "a", 0, 1.0, (1.0, 2.0)))
    with pytest.raises(UsageError, match="must stay a tree"):
        network.connect("n1", "n3")
    with pytest.raises(UsageError, match="'n1' and 'n3' are not neighbours"):
        network.cut("n1", "n3")
    with pytest.raises(UsageError, match="closes a circle"):
        FsfNetwork([*LINE, ("n3", "n1")], POLICIES["naive"])
    with pytest.raises(UsageError, match="at least one node"):
        FsfNetwork([], POLICIES["naive"])
