"""Whoever was told a start is told its end: also after asking for no more starts, while definitions are
edited, readings come late, and brokers and connections are lost."""

from __future__ import annotations

import pytest

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.model.topic import Attribute, Topic
from holdfast.protocols.cbps.client import Closed, Release, Told, Unknown, advertise, publish, watch
from holdfast.protocols.cbps.event import advertised, to_content
from support.storm import Storm

T = Topic("T", (Attribute("value", "float"),))
FORMS = {
    "a state": "topic T (value float)\nstate Warm on T [value > {}; value < {}] per source",
    "a state at a broker": "topic T (value float)\n"
    "state Warm on T [value > {}; value < {}] per source ordered 1 s late apply",
    "a guard": "topic T (value float)\nstate Warm on T [value > {} for 2 s; value < {}] per source",
}
LINKS = [("b1", "b0"), ("b2", "b0"), ("b3", "b1")]
HOMES = {"p0": "b1", "p1": "b2", "p2": "b3", "s0": "b0", "s1": "b3"}


class World(Storm):
    """Four brokers, three publishers, and two subscribers with a log for each of their subscriptions."""

    def __init__(self, form, seed):
        super().__init__(LINKS, HOMES, seed)
        self.form, self.time, self.serial = form, 0, 0
        for name in ("p0", "p1", "p2"):
            self.net.ask(name, advertise("mine", advertised(T, source=name)))
        self.logs, self.present, self.released = {}, {}, set()
        for who in ("s0", "s1"):
            self.edit(who)
        self.net.settle()

    def edit(self, who):
        """Another definition in place of the present one, which is released."""
        if who in self.present:
            self.release(who)
        self.serial += 1
        name = self.present[who] = f"{who} {self.serial}"
        self.logs[name] = []
        high = self.chance.choice((20, 25, 30))
        self.net.ask(who, watch(name, FORMS[self.form].format(high, high - 5)))

    def release(self, who):
        name = self.present.pop(who)
        self.net.settle()
        self.hear()
        self.net.ask(who, Release(name))
        self.released.add(name)
        self.logs[name].append("released")

    def say(self, name, value, *, late=0):
        self.time += SECOND
        self.net.advance(SECOND)
        event = Event("T", self.time - late, name, {"value": value}, self.time)
        self.net.ask(name, publish(to_content(event)))
        self.net.settle()
        self.hear()

    def hear(self):
        for who in ("s0", "s1"):
            for what in self.net.take(who):
                match what:
                    case Told(name, said) if said.status in ("ingress", "egress"):
                        self.logs[name].append((said.scope, said.status, said.event.sequence))
                    case Unknown(name, _, scope):
                        self.logs[name].append((scope, "unknown", None))
                    case Closed(name):
                        self.logs[name].append("closed")

    def heal(self):
        super().heal()
        self.net.settle()
        self.hear()


SOAK = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 104)]


def orphans(log):
    """Scopes that were told to start and not to end; nothing starts twice, or once it is released."""
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
def test_in_storms_of_edits_losses_and_late_readings_no_start_is_left_alone(form, seed):
    world = World(form, seed)
    chance = world.chance
    for _ in range(60):
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
    world.hear()
    assert sum(entry[1] == "ingress" for log in world.logs.values() for entry in log if len(entry) == 3) > 5
    for name, log in world.logs.items():
        assert orphans(log) == set(), (name, log)
        assert "closed" in log, (name, log)
    assert all(not world.net.nodes[who].state.bundles for who in ("s0", "s1"))


def test_the_end_that_comes_after_a_release_is_the_one_that_others_hear():
    world = World("a state", 1)
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
