"""A subscriber that received a start receives its end, also after its release, while definitions are
edited, readings are late, and brokers and connections are lost."""

from __future__ import annotations

import pytest

from holdfast.model.instant import SECOND
from support.subscribers import FORMS, SubscriberScenario

LONG = {"a guard": 150}
"""Readings of a storm: a guard, which edits and losses begin anew, tells fewer starts."""
SOAK = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 104)]


def orphans(log):
    """Scopes with a start and no end. No scope starts twice, and none starts after the release."""
    held, is_released = set(), False
    for entry in log:
        assert "closed" not in log[: log.index(entry)] or entry == "closed"
        if entry == "released":
            is_released = True
        elif entry != "closed":
            scope, status, _ = entry
            if status == "ingress":
                assert scope not in held
                assert not is_released
                held.add(scope)
            else:
                held.discard(scope)
    return held


@pytest.mark.parametrize("seed", [*range(4), *SOAK])
@pytest.mark.parametrize("form", FORMS)
def test_every_start_has_its_end_after_storms_of_edits_losses_and_late_readings(form, seed):
    world = SubscriberScenario(form, seed)
    chance = world.chance
    for _ in range(LONG.get(form, 60)):
        late = chance.choice((0, 0, 0, 3 * SECOND))
        world.say(chance.choice(("p0", "p1", "p2")), chance.choice((12.0, 18.0, 28.0, 35.0, 38.0)), late=late)
        if chance.random() < 0.15:
            world.edit(chance.choice(("s0", "s1")))
        if chance.random() < 0.15:
            world.trouble()
    world.heal()
    for who in list(world.present):
        world.release(who)
    for value in (0.0, 0.0, 0.0):
        for name in ("p0", "p1", "p2"):
            world.say(name, value)
    world.net.advance(60 * SECOND)
    world.net.settle()
    world.receive()
    assert sum(entry[1] == "ingress" for log in world.logs.values() for entry in log if len(entry) == 3) > 5
    for name, log in world.logs.items():
        assert orphans(log) == set(), (name, log)
        assert "closed" in log, (name, log)
    assert all(not world.net.nodes[who].state.bundles for who in ("s0", "s1"))


def test_the_end_after_a_release_equals_that_of_other_subscribers():
    world = SubscriberScenario("a state", 1)
    world.say("p0", 35.0)
    world.release("s0")
    world.say("p1", 35.0)
    world.say("p0", 36.0)
    world.say("p0", 3.0)
    world.say("p1", 3.0)
    released, other = world.logs["s0 1"], world.logs["s1 2"]
    assert released == [("p0", "ingress", SECOND), "released", ("p0", "egress", 4 * SECOND), "closed"]
    assert [entry for entry in other if entry[0] == "p0"] == [released[0], released[2]]
    assert [entry[1] for entry in other if entry[0] == "p1"] == ["ingress", "egress"]
