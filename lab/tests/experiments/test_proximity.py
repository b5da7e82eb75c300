"""Buddies: walks that are drawn, and what is judged of them."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.errors import HoldfastError
from holdfast_lab.experiments.proximity.claim import RULES, claims
from holdfast_lab.experiments.proximity.measure import ProximityMeasurement, measure
from holdfast_lab.experiments.proximity.scene import ProximityScene


def wandering(users=8, readings=60, step=8.0):
    chance = np.random.default_rng(7)
    places = np.cumsum(chance.uniform(-step, step, (users, readings, 2)), axis=1)
    pairs = tuple((a, b) for a in range(users) for b in range(a + 1, users))
    return ProximityScene(places, tuple(u % 4 for u in range(users)), pairs)


def test_agents_of_all_users_agree_with_the_machine():
    found = measure(wandering(), 30.0)
    assert found.is_exact
    assert found.reports > 20
    assert found.originals == 28 * 2 * 60


@pytest.mark.parametrize("using", ["range_ring", "parallel_line"])
def test_more_frequent_readings_hardly_add_notifications(using):
    scene = wandering(step=40.0)
    scene = ProximityScene(scene.places[:, :30], scene.home, scene.pairs)
    places = np.repeat(scene.places, 17, axis=1)
    once, often = (
        measure(scene, 30.0, using),
        measure(ProximityScene(places, scene.home, scene.pairs), 30 / 17, using),
    )
    assert once.is_exact
    assert often.is_exact
    assert often.rings == once.rings


def test_most_messages_are_saved_on_real_walks_and_nearly_all_with_frequent_readings():
    try:
        drawn = ProximityScene.draw(None)
    except HoldfastError as error:
        pytest.skip(str(error))
    scene = ProximityScene(drawn.places[:60], drawn.home, tuple((a, a + 30) for a in range(0, 30, 3)))
    once, often = measure(scene, 30.0), measure(scene.faster(17), 30 / 17)
    assert once.is_exact
    assert often.is_exact
    assert once.reports
    assert once.reduction >= 0.82
    assert often.reduction >= 0.95


def test_every_claim_has_a_rule_and_a_verdict():
    one = ProximityMeasurement(348_112, 57_348, 4_626, True, 0.75, 1_028)
    assert one.hops("basic") == 2.5
    assert one.hops("first common node") == pytest.approx(0.773, abs=2e-3)
    assert one.hops("Fulcrum") == pytest.approx(0.279, abs=2e-3)
    judged = claims({"all": one, "sample": one, "sample, 17 x": one})
    assert [claim.id for claim in judged] == list(RULES)
    assert [claim.holds for claim in judged] == [True, True, True, False, False, False]
