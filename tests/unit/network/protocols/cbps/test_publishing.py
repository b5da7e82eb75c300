"""The cost of publishing for a client that advertises many sources."""

from __future__ import annotations

import random

import pytest

from holdfast.errors import UsageError
from holdfast.model.event import Event
from holdfast.model.protocol import Asked, Joined, Received, Started
from holdfast.model.topic import Attribute, Topic
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.protocols.cbps import content as matching
from holdfast.network.protocols.cbps.client import (
    CbpsClient,
    WithdrawSubmission,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.network.protocols.cbps.message import Bundle, BundleKey, PublishedNotification
from holdfast.network.protocols.cbps.promises import PromiseIndex, fulfils
from holdfast.network.protocols.cbps.ranges import type_of

READINGS = Topic("Temperature", (Attribute("value", "float"),))


def client_of(sources):
    machine = CbpsClient("p", compile_condition)
    state = machine.initial()
    for given in (
        Started(0, 1),
        Joined(0, "hub"),
        *(Asked(0, advertise(one, advertisement_for(READINGS, source=one))) for one in sources),
        Asked(0, subscribe("mine", Filter((Constraint("topic", "text", "=", "Temperature"),)))),
    ):
        state, _ = machine.handle(state, given)
    return machine, state


def reading(source, **attributes):
    return to_content(Event("Temperature", 0, source, attributes or {"value": 21.5}, 0))


@pytest.fixture
def comparison_count(monkeypatch):
    """How many filters were compared with a notification."""
    from holdfast.network.protocols.cbps import client, promises

    count, satisfied = [0], matching.satisfies

    def count_calls(*given):
        count[0] += 1
        return satisfied(*given)

    for module in (client, promises):
        monkeypatch.setattr(module, "satisfies", count_calls)
    return count


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_an_event_is_compared_with_the_advertisement_of_its_source_only(size, comparison_count):
    machine, state = client_of([f"s{i}" for i in range(size)])
    state, effects = machine.handle(state, Asked(0, publish(reading(f"s{size - 1}"))))
    assert len(effects) == 1
    assert comparison_count[0] == 1


def test_an_arriving_event_is_compared_with_subscriptions_only(comparison_count):
    machine, state = client_of([f"s{i}" for i in range(1_000)])
    bundle = Bundle(BundleKey("q", 1), notifications=(PublishedNotification(reading("x")),))
    for listed in (state.bundles, state.promises._by_pins):
        assert listed  # what must not be looked at
    state.bundles = _Unread(state.bundles)
    state, effects = machine.handle(state, Received(0, "hub", bundle))
    assert len(effects) == 1
    assert comparison_count[0] == 1


def test_a_fulfilled_advertisement_is_found_whatever_it_pins():
    chance = random.Random(2)
    values = {"a": (1, 1.0, 2, True), "b": ("x", "y"), "x": (0.0, 1), "place": ("here", "there")}

    def promise():
        names = chance.sample(list(values), chance.randrange(4))
        pinned = [(name, chance.choice(values[name])) for name in names]
        return Filter(tuple(Constraint(name, type_of(value), "=", value) for name, value in pinned))

    for _ in range(300):
        some = [promise() for _ in range(chance.randrange(5))]
        promises = PromiseIndex()
        promises.add(some)
        content = {name: chance.choice(values[name]) for name in values if chance.random() < 0.6}
        assert promises.fulfils_any(content) == any(fulfils(content, one) for one in some)


class _Unread(dict):
    """Cannot be gone through."""

    def items(self):
        raise AssertionError("all that is stored was gone through")

    values = __iter__ = items


def test_publishing_without_an_advertisement_is_refused():
    chance = random.Random(1)
    names = [f"s{i}" for i in range(30)]
    machine, state = client_of(names)
    for _ in range(20):
        name = names.pop(chance.randrange(len(names)))
        state, _ = machine.handle(state, Asked(0, WithdrawSubmission(name)))
        with pytest.raises(UsageError, match="advertise it first"):
            machine.handle(state, Asked(0, publish(reading(name))))
        state, effects = machine.handle(state, Asked(0, publish(reading(chance.choice(names)))))
        assert len(effects) == 1
    with pytest.raises(UsageError, match="advertise it first"):
        machine.handle(state, Asked(0, publish(reading(names[0], value="warm"))))


def test_an_advertisement_made_twice_holds_until_both_are_withdrawn():
    machine, state = client_of(["s1"])
    state, _ = machine.handle(state, Asked(0, advertise("again", advertisement_for(READINGS, source="s1"))))
    state, _ = machine.handle(state, Asked(0, advertise("other", advertisement_for(READINGS, source="s2"))))
    state, _ = machine.handle(state, Asked(0, WithdrawSubmission("s1")))
    machine.handle(state, Asked(0, publish(reading("s1"))))
    state, _ = machine.handle(state, Asked(0, WithdrawSubmission("again")))
    with pytest.raises(UsageError, match="advertise it first"):
        machine.handle(state, Asked(0, publish(reading("s1"))))
