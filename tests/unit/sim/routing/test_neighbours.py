"""Neighbours by their beacons: what arrives, both ways."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from holdfast.model.instant import SECOND
from holdfast.sim.routing.neighbours import BEACON, Beacons, Neighbours, Pace


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9, 1.0])
def test_quality_comes_to_what_arrives(share):
    random, found = Random(3), []
    neighbours = Neighbours(node=0)
    for number in range(1, 1000):
        if random.random() < share:
            neighbours.hear(7, number, (), number)
            found.append(neighbours.known[7].quality)
    assert sum(found[50:]) / len(found[50:]) == pytest.approx(share, abs=0.12)


def test_one_beacon_by_luck_is_no_quality():
    neighbours = Neighbours(node=0)
    neighbours.hear(7, 20, (), 0)
    assert neighbours.known[7].quality < 0.3


def test_a_link_counts_only_when_the_other_end_says_that_it_hears_us():
    neighbours = Neighbours(node=0)
    neighbours.hear(7, 1, (), 0)
    assert neighbours.known[7].both_ways == 0
    neighbours.hear(7, 2, ((3, 0.9), (0, 0.5)), 1)
    assert neighbours.known[7].both_ways == pytest.approx(neighbours.known[7].quality * 0.5)
    neighbours.hear(7, 3, ((3, 0.9),), 2)
    assert neighbours.known[7].back == 0.5, "this time it spoke of others"


def test_reports_tell_the_best_always_and_the_others_in_turn():
    neighbours = Neighbours(node=0)
    for node in range(1, 21):
        for number in range(1, 30 if node <= 8 else 2):
            neighbours.hear(node, number, (), 0)
    reports = [{node for node, _ in neighbours.report()} for _ in range(3)]
    assert all(set(range(1, 9)) < report for report in reports)
    assert all(len(report) == 12 for report in reports)
    assert set().union(*reports) == set(range(1, 21))


def test_who_is_silent_for_long_is_forgotten_and_who_begins_again_is_new():
    neighbours = Neighbours(node=0)
    assert neighbours.hear(7, 5, (), 0)
    assert not neighbours.hear(7, 6, (), 10)
    assert neighbours.hear(7, 1, (), 20), "its numbers begin again"
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
