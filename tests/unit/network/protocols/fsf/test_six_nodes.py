"""The paper's example, by hand: three subscriptions, six nodes, eleven readings, every link.  [J12]

    n1 (a) ─┐
    n2 (b) ─┼─ n4 ── n5 ── n6 (users)
    n3 (c) ─┘

    s1: 50 < a < 80, 10 < b < 30                δt = 10 s
    s2:              20 < b < 40, 2 < c < 20
    s3: 55 < a < 75, 15 < b < 35, 5 < c < 15

All advertisements come to n6 over n5 and n4, so a subscription travels whole to n4, where the ways to its
sensors part.
"""

import math

import pytest

from holdfast.model.correlation import Correlation, RangeFilter, Simple
from holdfast.model.instant import SECOND
from holdfast.network.overlay.memory.fsf import FsfNetwork
from holdfast.network.protocols.fsf.policy import POLICIES

LINKS = [("n1", "n4"), ("n2", "n4"), ("n3", "n4"), ("n4", "n5"), ("n5", "n6")]
HOMES = {"a": "n1", "b": "n2", "c": "n3"}


def range_of(low, attribute, high):
    """``low < attribute < high`` of the sensor of that name."""
    return RangeFilter(attribute, math.nextafter(low, math.inf), math.nextafter(high, -math.inf), attribute)


SUBSCRIPTIONS = {
    "s1": Correlation((range_of(50, "a", 80), range_of(10, "b", 30)), 10 * SECOND),
    "s2": Correlation((range_of(20, "b", 40), range_of(2, "c", 20)), 10 * SECOND),
    "s3": Correlation((range_of(55, "a", 75), range_of(15, "b", 35), range_of(5, "c", 15)), 10 * SECOND),
}

READINGS = [
    (1, "a", 60), (2, "b", 25), (3, "c", 10),  # all of s1, s2 and s3
    (20, "b", 33), (21, "c", 3),  # s2; for s3 c is too low
    (40, "a", 70),  # wanted by s1 and s3, but alone
    (60, "a", 57), (61, "b", 12),  # s1; for s3 b is too low
    (80, "a", 58), (81, "b", 33),  # for s1 b is too high; for s3 c is missing
    (100, "a", 90),  # no user's
]  # fmt: skip


def example(approach, subscriptions=SUBSCRIPTIONS, links=LINKS):
    network = FsfNetwork(links, POLICIES[approach])
    for sensor, node in HOMES.items():
        network.advertise(node, sensor, sensor)
    for name, wanted in subscriptions.items():
        network.subscribe("n6", name, wanted)
    return network


def publish(network):
    for time, sensor, value in READINGS:
        network.publish(HOMES[sensor], Simple(sensor, sensor, time * SECOND, value))


def links(**load):
    """``n1_n4=2`` is two over the link from n1 to n4."""
    return {tuple(link.split("_")): count for link, count in load.items() if count}


OPERATORS = {
    # Everything goes to n4, from which the five others are six links away, and no further.
    "centralized": links(n6_n5=3, n5_n4=3),
    # Two parts of s1, two of s2, three of s3.
    "naive": links(n6_n5=3, n5_n4=3, n4_n1=2, n4_n2=3, n4_n3=2),
    # The a of s3 is covered by that of s1, its c by that of s2; no single operator covers 15 < b < 35.
    "operator-placement": links(n6_n5=3, n5_n4=3, n4_n1=1, n4_n2=3, n4_n3=1),
    "multi-join": links(n6_n5=3, n5_n4=3, n4_n1=1, n4_n2=3, n4_n3=1),
    "multi-join-named": links(n6_n5=3, n5_n4=3, n4_n1=1, n4_n2=3, n4_n3=1),
    "multi-join-again": links(n6_n5=3, n5_n4=3, n4_n1=1, n4_n2=3, n4_n3=1),
    # 10 < b < 30 and 20 < b < 40 cover it together: nothing of s3 travels beyond n4.
    "fsf": links(n6_n5=3, n5_n4=3, n4_n1=1, n4_n2=2, n4_n3=1),
    "fsf-exact": links(n6_n5=3, n5_n4=3, n4_n1=1, n4_n2=2, n4_n3=1),
}

EVENTS = {
    # All readings to n4.  Result sets to n6: s1 {60 25} {57 12}, s2 {25 10} {33 3}, s3 {60 25 10}: 11.
    "centralized": links(n1_n4=5, n2_n4=4, n3_n4=2, n4_n5=11, n5_n6=11),
    # a: 60, 70, 57, 58 for s1 and s3.  b: 25 for all, 33 and 33 for s2 and s3, 12 for s1.
    # c: 10 for s2 and s3, 3 for s2.
    "naive": links(n1_n4=8, n2_n4=8, n3_n4=3, n4_n5=11, n5_n6=11),
    # s3's sets of a and c are made at n4, where they were found to be covered.
    "operator-placement": links(n1_n4=4, n2_n4=8, n3_n4=2, n4_n5=11, n5_n6=11),
    # Each once.  Beyond n4: a with b, b with a (s1); b with c, c with b (s2); for s3 a with b, b with c,
    # c with a: so a = 58 goes on, since 33 is beside it, though no c is.
    "multi-join": links(n1_n4=4, n2_n4=4, n3_n4=2, n4_n5=8, n5_n6=8),
    "multi-join-named": links(n1_n4=4, n2_n4=4, n3_n4=2, n4_n5=8, n5_n6=8),
    # At n5 58 has no 33 beside it any more.
    "multi-join-again": links(n1_n4=4, n2_n4=4, n3_n4=2, n4_n5=8, n5_n6=7),
    # Each once.  Beyond n4: 60 25 10, 33 3, 57 12.
    "fsf": links(n1_n4=4, n2_n4=4, n3_n4=2, n4_n5=7, n5_n6=7),
    "fsf-exact": links(n1_n4=4, n2_n4=4, n3_n4=2, n4_n5=7, n5_n6=7),
}

DUE = {"s1": {60, 25, 57, 12}, "s2": {25, 10, 33, 3}, "s3": {60, 25, 10}}
WITH_FALSE_POSITIVES = {
    "multi-join": {
        "s1": {60, 25, 57, 12, 58},  # 58 came for s3
        "s2": {25, 10, 33, 3},
        "s3": {60, 25, 10, 57, 58, 33},  # 57 came for s1, 33 for s2; 58 is its own
    },
    "multi-join-named": DUE | {"s3": {60, 25, 10, 58}},
}


@pytest.mark.parametrize("approach", POLICIES)
def test_the_traffic_of_each_approach_equals_the_hand_computed_one(approach):
    network = example(approach)
    publish(network)
    assert network.subscriptions == OPERATORS[approach]
    assert network.publications == EVENTS[approach]
    assert network.subscription_load == sum(OPERATORS[approach].values())
    assert network.publication_load == sum(EVENTS[approach].values())


@pytest.mark.parametrize("approach", POLICIES)
def test_users_receive_their_events_and_with_binary_joins_some_more(approach):
    network = example(approach)
    publish(network)
    values = {name: {event.value for event in events} for name, events in network.delivered.items()}
    assert values == WITH_FALSE_POSITIVES.get(approach, DUE)


def test_the_third_subscription_is_split_where_the_paths_to_its_sensors_part():
    two = {name: SUBSCRIPTIONS[name] for name in ("s1", "s2")}
    before, after = example("fsf-exact", two), example("fsf-exact")
    assert after.subscriptions - before.subscriptions == links(n6_n5=1, n5_n4=1)


def test_a_sensor_can_be_at_the_node_where_the_paths_part():
    at_n2 = [("n1", "n2"), ("n3", "n2"), ("n2", "n4"), ("n4", "n5"), ("n5", "n6")]
    network = example("fsf-exact", links=at_n2)
    publish(network)
    assert network.subscriptions == links(n6_n5=3, n5_n4=3, n4_n2=3, n2_n1=1, n2_n3=1)
    assert network.publications == links(n1_n2=4, n3_n2=2, n2_n4=7, n4_n5=7, n5_n6=7)
    assert {name: {event.value for event in events} for name, events in network.delivered.items()} == DUE
