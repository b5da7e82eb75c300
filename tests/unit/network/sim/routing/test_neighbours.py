"""Neighbours by their beacons: what arrives, both ways."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from holdfast.model.instant import SECOND
from holdfast.network.sim.routing.neighbours import BEACON, Beacons, NeighbourTable, Pace


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9, 1.0])
def test_quality_converges_to_the_share_of_beacons_that_arrive(share):
    random, found = Random(3), []
    neighbours = NeighbourTable(node=0)
    for number in range(1, 1000):
        if random.random() < share:
            neighbours.on_beacon(7, number, (), number)
            found.append(neighbours.known[7].quality)
    assert sum(found[50:]) / len(found[50:]) == pytest.approx(share, abs=0.12)


def test_one_lucky_beacon_does_not_make_a_link_good():
    neighbours = NeighbourTable(node=0)
    neighbours.on_beacon(7, 20, (), 0)
    assert neighbours.known[7].quality < 0.3


def test_a_link_counts_only_when_the_other_end_reports_our_beacons():
    neighbours = NeighbourTable(node=0)
    neighbours.on_beacon(7, 1, (), 0)
    assert neighbours.known[7].both_ways == 0
    neighbours.on_beacon(7, 2, ((3, 0.9), (0, 0.5)), 1)
    assert neighbours.known[7].both_ways == pytest.approx(neighbours.known[7].quality * 0.5)
    neighbours.on_beacon(7, 3, ((3, 0.9),), 2)
    assert neighbours.known[7].back == 0.5, "this time it spoke of others"


def test_reports_contain_the_best_neighbours_and_the_others_in_turn():
    neighbours = NeighbourTable(node=0)
    for node in range(1, 21):
        for number in range(1, 30 if node <= 8 else 2):
            neighbours.on_beacon(node, number, (), 0)
    reports = [{node for node, _ in neighbours.report()} for _ in range(3)]
    assert all(set(range(1, 9)) < report for report in reports)
    assert all(len(report) == 12 for report in reports)
    assert set().union(*reports) == set(range(1, 21))


def test_a_silent_neighbour_is_removed_and_a_restarted_one_is_new():
    neighbours = NeighbourTable(node=0)
    assert neighbours.on_beacon(7, 5, (), 0)
    assert not neighbours.on_beacon(7, 6, (), 10)
    assert neighbours.on_beacon(7, 1, (), 20), "its numbers begin again"
    assert 7 in neighbours.near(100, silence=80)
    assert 7 not in neighbours.near(101, silence=80)


def test_beacons_are_frequent_at_first_and_then_rare():
    beacons, pace, random, now, times = Beacons(1 * SECOND, 8 * SECOND), Pace(), Random(1), 0, []
    timer = pace.first(beacons, now, random)
    for _ in range(12):
        assert timer.timer == BEACON
        now = timer.at
        times.append(now)
        timer = pace.next(beacons, now, random)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert times[0] <= 1 * SECOND
    assert gaps[0] <= 2 * SECOND
    assert all(4 * SECOND <= gap <= 8 * SECOND for gap in gaps[3:])
    assert pace.is_slow(beacons)
    pace.first(beacons, now, random)
    assert not pace.is_slow(beacons)
