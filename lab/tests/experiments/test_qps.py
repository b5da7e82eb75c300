"""Quad-PubSub beside CODD and GHTD: the baselines against counting, the runs, the claims."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.network.sim.field import Field
from holdfast_lab.experiments.qps import claim, physical
from holdfast_lab.experiments.qps.codd import Codd
from holdfast_lab.experiments.qps.ghtd import Ghtd
from holdfast_lab.experiments.qps.measure import (
    CODD,
    GHTD,
    GUARANTEED,
    QPS,
    QpsLayout,
    denser,
    growing,
    looser,
)
from holdfast_lab.experiments.qps.outcome import QpsOutcome
from holdfast_lab.experiments.qps.quad import Quad
from holdfast_lab.experiments.qps.scene import EVENTS, QpsScene, QpsSetting
from holdfast_lab.experiments.qps.sweep import Sweep, messages
from holdfast_lab.experiments.qps.tiring import POSITION, by_energy, life
from holdfast_lab.experiments.registry import load

SMALL = QpsSetting(128.0, 120, 12, (32.0, 32.0), (64.0, 64.0))
PAGE = Path(__file__).resolve().parents[3] / "docs" / "experiments" / "qps.md"
NAMES = ("qps-subscribers", "qps-density", "qps-epsilon")


class Line:
    """Nodes in a row, one step apart; the region is the first two."""

    setting = QpsSetting(100.0, 10, 3, (0.0, 0.0), (20.0, 20.0))
    topic = "row"

    def __init__(self):
        self.field = Field([(5.0 + 10 * i, 5.0 + i / 100) for i in range(10)], 11.0)
        self.publishers = [0, 1]
        self.events = [0, 1, 1]


def test_codd_shares_a_path_that_a_subscription_meets():
    codd = Codd(Line())
    codd.subscribe(6)
    alone = codd.outcome()
    assert alone.links == 6 + 1  # a link at each node from 0 to 5, and the one to the subscriber
    assert alone.messages == pytest.approx((6 + 5 + 5) / 3)
    assert alone.hops == alone.messages
    codd.subscribe(9)
    codd.subscribe(4)
    shared = codd.outcome()
    assert shared.links == 9 + 3
    assert shared.messages == pytest.approx((9 + 8 + 8) / 9)
    assert shared.load == 2


def test_ghtd_sends_everything_to_one_node_and_from_there_to_each():
    ghtd = Ghtd(Line())
    meeting = ghtd._meeting
    for node in (6, 9):
        ghtd.subscribe(node)
    found = ghtd.outcome()
    there = [abs(meeting - node) for node in (0, 1, 1)]
    back = [abs(meeting - node) for node in (6, 9)]
    assert found.links == 2 + 2 * 2
    assert found.messages == pytest.approx((sum(there) + 3 * sum(back)) / 6)
    assert found.hops == pytest.approx(sum(there) / 3 + sum(back) / 2)


def test_equal_layouts_give_equal_outcomes_and_others_do_not():
    first = growing(SMALL, (2, 12), QpsLayout(0, 1))
    assert first == growing(SMALL, (2, 12), QpsLayout(0, 1))
    assert first != growing(SMALL, (2, 12), QpsLayout(0, 2))
    assert set(first) == {f"{name} {n}" for name in (QPS, CODD, GHTD) for n in (2, 12)}


def test_every_protocol_delivers_each_event_to_each_subscriber_over_links():
    scene = QpsScene(SMALL, 3)
    assert len(scene.events) == EVENTS
    assert set(scene.events) <= set(scene.publishers)
    codd, quad = Codd(scene), Quad(scene)
    for node in scene.subscribers:
        codd.subscribe(node)
        quad.subscribe(node)
    for node in scene.subscribers:
        way = [node]
        while way[-1] in codd._next:
            way.append(codd._next[way[-1]])
        assert all(b in scene.field.near(a) for a, b in pairwise(way))
        assert way[-1] in codd._entries
    assert quad.outcome().messages > 0  # which asserts that all was delivered


def test_points_of_a_sweep_have_their_settings():
    assert set(denser(SMALL, QpsLayout(100.0, 0))) == {QPS, CODD, GHTD}
    loose, tight = looser(SMALL, QpsLayout(2.0, 0)), looser(SMALL, QpsLayout(1.0, 0))
    assert set(loose) == {QPS, GUARANTEED}
    assert loose[GUARANTEED].subscribing < tight[GUARANTEED].subscribing


def sweep(points, **curves):
    """A layout in which each curve gives links, load, messages, hops and subscribing at each point."""
    runs = {
        (name, point): [
            QpsOutcome(*(int(curve(point)) if i in (0, 1, 4) else curve(point) for i in range(5)))
        ]
        for name, curve in curves.items()
        for point in points
    }
    return Sweep(points, runs)


def verdicts(claims):
    return {each.id: each.holds for each in claims}


def test_claims_about_subscribers_hold_and_fail_by_their_rules():
    points = (2.0, 50.0, 100.0, 200.0)
    right = sweep(points, QPS=lambda n: 2 * n, GHTD=lambda n: 2 * n, CODD=lambda n: 4 * n * n)
    assert verdicts(claim.about_subscribers(right)) == {
        "links-linear": True,
        "codd-links": False,
        "ghtd-dissemination": False,
        "load-half": False,
    }
    codd = {2.0: 12, 50.0: 300, 100.0: 420, 200.0: 500}
    slower = sweep(points, QPS=lambda n: n, GHTD=lambda n: 2 * n, CODD=codd.get)
    assert verdicts(claim.about_subscribers(slower))["links-linear"] is False
    assert verdicts(claim.about_subscribers(slower))["load-half"] is True


def test_claims_about_density_hold_and_fail_by_their_rules():
    points = (150.0, 500.0, 1000.0)
    ours = sweep(points, QPS=lambda n: 900 / n, GHTD=lambda n: 2000 / n, CODD=lambda n: n / 200)
    assert verdicts(claim.about_density(ours)) == {"qps-falls": True, "codd-rises": True, "crossover": True}
    flat = sweep(points, QPS=lambda _: 5, GHTD=lambda n: n, CODD=lambda _: 5)
    assert set(verdicts(claim.about_density(flat)).values()) == {False}


def test_claims_about_epsilon_hold_and_fail_by_their_rules():
    points = (1.0, 1.4, 1.8, 2.8)
    down = sweep(points, **{QPS: lambda e: 100 / e, GUARANTEED: lambda e: 100 / e})
    assert verdicts(claim.about_epsilon(down)) == {
        "latency-up": False,
        "messages-down": True,
        "links-down": True,
    }
    up = sweep(points, **{QPS: lambda e: 100 * e, GUARANTEED: lambda e: 100 * e})
    assert verdicts(claim.about_epsilon(up)) == {
        "latency-up": True,
        "messages-down": False,
        "links-down": False,
    }


def test_a_sweep_computes_means_and_their_intervals():
    runs = {("A", 1.0): [QpsOutcome(1, 1, x, 1.0, 1) for x in (1.0, 2.0, 3.0)]}
    found = Sweep([1.0], runs)
    assert found.mean(messages, "A", 1.0) == 2.0
    assert found.estimate(messages, "A", 1.0).half == pytest.approx(2.484, abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_lists_every_claim_and_the_experiment_is_registered(name):
    rules = {"qps-subscribers": claim.SUBSCRIBERS, "qps-density": claim.DENSITY, "qps-epsilon": claim.EPSILON}
    page = PAGE.read_text("utf-8")
    assert load(name).name == name
    assert all(f"`{each}`" in page for each in (name, *rules[name]))


def test_nodes_low_on_energy_hand_over_roles_and_live_longer():
    tired, still = life(0, by_energy()), life(0, POSITION)
    assert tired.minutes > still.minutes
    assert tired.handed > still.handed == 0
    assert tired.delivered == still.delivered == 1.0


def test_the_claims_of_the_physical_layer_are_on_the_page():
    assert load("qps-physical").name == "qps-physical"
    assert all(f"`{each}`" in PAGE.read_text("utf-8") for each in physical.RULES)
