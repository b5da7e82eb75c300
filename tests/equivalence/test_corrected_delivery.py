"""A subscriber that received a notification receives every later correction of it, also after its release
and in storms of edits, late readings, and lost brokers and connections."""

from __future__ import annotations

import pytest

from holdfast.errors import Unsupported
from holdfast.model.event import Event
from holdfast.model.instant import BEGINNING, SECOND
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.protocols.cbps.client import (
    ConditionChange,
    ConditionUnknown,
    ReleaseSubscription,
    SubscriptionClosed,
    watch,
)
from holdfast.network.protocols.cbps.runner import ConditionRunner
from support.corrected import standing
from support.subscribers import SubscriberScenario

WITHIN = 10
FORM = (
    "topic T (value float)\n"
    f"state Warm on T [value > {{}}; value < {{}}] per source ordered 1 s late correct {WITHIN} s"
)
SOAK = [pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 103)]


class Corrected(SubscriberScenario):
    """The scenario with, for each subscription, the readings, the notifications, and the time of its
    release."""

    def __init__(self, seed):
        self.deliveries, self.bands, self.until = {}, {}, {}
        super().__init__("a state", seed)

    def edit(self, who):
        if who in self.present:
            self.release(who)
        self.serial += 1
        name = self.present[who] = f"{who} {self.serial}"
        high = self.chance.choice((20, 25, 30))
        self.logs[name], self.deliveries[name], self.bands[name] = [], [], (high, high - 5)
        self.net.ask(who, watch(name, FORM.format(high, high - 5)))

    def release(self, who):
        name = self.present.pop(who)
        self.net.settle()
        self.receive()
        self.net.ask(who, ReleaseSubscription(name))
        self.until[name] = self.net.nodes[who].state.pairing.corrections_until.get(name, BEGINNING)
        self.receive()

    def say(self, name, value, *, late=0):
        event = super().say(name, value, late=late)
        for log in self.deliveries.values():
            log.append(event)

    def receive(self):
        for who in ("s0", "s1"):
            for what in self.net.take(who):
                match what:
                    case ConditionChange(name, output) if output.status not in ("known", "late"):
                        self.logs[name].append(
                            (output.scope, output.status, output.since, output.event.order)
                        )
                    case ConditionUnknown(name, _, scope, since):
                        self.logs[name].append((scope, "unknown", since, None))
                    case SubscriptionClosed(name):
                        self.logs[name].append("closed")

    def finish(self):
        """Release all; then everything ends, and time comes beyond all corrections."""
        for who in list(self.present):
            self.release(who)
        for name in ("p0", "p1", "p2") * 2:
            self.say(name, 0.0)
        self.net.advance(60 * SECOND)
        self.net.settle()
        self.receive()


def in_order(readings, high, low, until):
    """The notifications that readings in order give for scopes that start before an instant."""
    since, rows = {}, []
    for event in sorted(readings, key=lambda event: event.order):
        value, source = event.attributes["value"], event.source
        if source not in since and value > high:
            since[source] = event.time
            rows += [(source, "ingress", None, event.order)] if event.time < until else []
        elif source in since and value < low:
            start = since.pop(source)
            rows += [(source, "egress", start, event.order)] if start < until else []
    return rows


def orphans(log):
    """Scopes whose start was notified without an end, a retraction or an unknown."""
    held = set()
    for scope, status, since, order in (entry for entry in log if entry != "closed"):
        match status:
            case "ingress":
                held.add((scope, order[0]))
            case "reopened":
                held.add((scope, since))
            case "egress" | "unknown":
                held.discard((scope, since))
            case "retracted":
                held.discard((scope, order[0]))
    return held


def storm(world, rounds, *, trouble):
    chance = world.chance
    for _ in range(rounds):
        late = chance.choice((0, 0, 0, 2, 5, WITHIN - 1)) * SECOND
        world.say(chance.choice(("p0", "p1", "p2")), chance.choice((12.0, 18.0, 28.0, 35.0, 38.0)), late=late)
        if chance.random() < 0.1:
            world.edit(chance.choice(("s0", "s1")))
        if trouble and chance.random() < 0.15:
            world.trouble()


@pytest.mark.parametrize("seed", [*range(3), *SOAK])
def test_notifications_minus_retractions_equal_a_replay_in_order(seed):
    """The comparison covers every subscription up to its release."""
    world = Corrected(seed)
    storm(world, 60, trouble=False)
    world.finish()
    moments = [[entry[3][0] for entry in log[:-1]] for log in world.logs.values()]
    assert any(some != sorted(some) for some in moments), "something was corrected"
    for name, log in world.logs.items():
        assert log[-1] == "closed", (name, log)
        expected = in_order(world.deliveries[name], *world.bands[name], world.until[name])
        assert standing(log[:-1], 1) == standing(expected, 1), name
        assert orphans(log) == set()


@pytest.mark.parametrize("seed", [*range(3), *SOAK])
def test_every_start_has_its_end_after_brokers_are_lost(seed):
    world = Corrected(seed)
    storm(world, 60, trouble=True)
    world.heal()
    world.finish()
    assert sum(entry[1] == "ingress" for log in world.logs.values() for entry in log) > 5
    for name, log in world.logs.items():
        assert orphans(log) == set(), (name, log)
        assert "closed" in log, (name, log)
    assert all(not world.net.nodes[who].state.bundles for who in ("s0", "s1"))


def test_a_released_subscriber_receives_the_correction_of_an_end():
    """The start comes earlier, and the end too."""
    world = Corrected(1)
    world.say("p0", 35.0)
    world.say("p0", 3.0)
    world.say("p1", 3.0)
    world.say("p1", 3.0)
    world.release("s0")
    assert [entry[1] for entry in world.logs["s0 1"]] == ["ingress", "egress"], "it may still be corrected"
    world.say("p0", 35.0, late=5 * SECOND)
    log = world.logs["s0 1"]
    assert [entry[1] for entry in log] == ["ingress", "egress", "reopened", "retracted", "ingress", "egress"]
    assert [entry[2] for entry in log if entry[1] == "egress"] == [SECOND, 0]
    world.net.advance(60 * SECOND)
    world.net.settle()
    world.receive()
    assert log[-1] == "closed", "by the clock alone"


def test_a_late_reading_does_not_increase_the_lag_of_the_others():
    running = ConditionRunner.start(compile_condition(FORM.format(25, 20)))
    for second in range(20):
        running.process(Event("T", second * SECOND, "p", {"value": 0.0}, second), (second + 1) * SECOND)
    running.process(Event("T", 11 * SECOND, "p", {"value": 30.0}, 99), 20 * SECOND)
    assert running.lag == SECOND


def test_an_ended_scope_is_not_reported_as_known():
    watched = compile_condition(FORM.format(25, 22))
    running, emitted = ConditionRunner.start(watched), []

    def hear(second, value):
        event = Event("T", second * SECOND, "p", {"value": value}, second)
        emitted.extend(
            (one.status, one.event.time // SECOND) for one in running.process(event, second * SECOND)
        )

    hear(50, 30.0)
    hear(60, 23.0)
    running.state, lost = watched.mark_uncertain(running.state, None)
    assert len(lost) == 1
    hear(70, 10.0)
    hear(75, 23.0)
    hear(69, 30.0)
    assert emitted == [("ingress", 50), ("egress", 70)]


def test_corrected_states_with_minimum_durations_are_refused_on_brokers():
    with pytest.raises(Unsupported, match="has minimum durations and corrects earlier notifications"):
        compile_condition(FORM.format("25 for 2 s", "20"))
