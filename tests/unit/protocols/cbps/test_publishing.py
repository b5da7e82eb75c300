"""What publishing costs a client that advertises many sources."""

from __future__ import annotations

import random

import pytest

from holdfast.errors import UsageError
from holdfast.model.event import Event
from holdfast.model.protocol import Asked, Joined, Received, Started
from holdfast.model.topic import Attribute, Topic
from holdfast.protocols.cbps import content as matching
from holdfast.protocols.cbps.client import Client, Withdraw, advertise, publish, subscribe
from holdfast.protocols.cbps.content import Constraint, Filter
from holdfast.protocols.cbps.event import advertised, to_content
from holdfast.protocols.cbps.message import Bundle, Key, Notification
from holdfast.protocols.cbps.promising import Promises, keeps
from holdfast.protocols.cbps.ranges import type_of
from holdfast.runtimes.overlay.conditions import condition

READINGS = Topic("Temperature", (Attribute("value", "float"),))


def client_of(sources):
    machine = Client("p", condition)
    state = machine.initial()
    for given in (
        Started(0, 1),
        Joined(0, "hub"),
        *(Asked(0, advertise(one, advertised(READINGS, source=one))) for one in sources),
        Asked(0, subscribe("mine", Filter((Constraint("topic", "text", "=", "Temperature"),)))),
    ):
        state, _ = machine.handle(state, given)
    return machine, state


def reading(source, **attributes):
    return to_content(Event("Temperature", 0, source, attributes or {"value": 21.5}, 0))


@pytest.fixture
def compared(monkeypatch):
    """How many filters were compared with a notification."""
    from holdfast.protocols.cbps import client, promising

    count, satisfied = [0], matching.satisfied

    def counted(*given):
        count[0] += 1
        return satisfied(*given)

    for module in (client, promising):
        monkeypatch.setattr(module, "satisfied", counted)
    return count


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_an_event_is_compared_with_the_promise_of_its_source_however_many_there_are(size, compared):
    machine, state = client_of([f"s{i}" for i in range(size)])
    state, effects = machine.handle(state, Asked(0, publish(reading(f"s{size - 1}"))))
    assert len(effects) == 1
    assert compared[0] == 1


def test_an_event_that_arrives_is_compared_with_subscriptions_alone(compared):
    machine, state = client_of([f"s{i}" for i in range(1_000)])
    bundle = Bundle(Key("q", 1), notifications=(Notification(reading("x")),))
    for listed in (state.bundles, state.promises._by_pins):
        assert listed  # what must not be looked at
    state.bundles = _Unread(state.bundles)
    state, effects = machine.handle(state, Received(0, "hub", bundle))
    assert len(effects) == 1
    assert compared[0] == 1


def test_a_promise_that_is_kept_is_found_whatever_it_pins():
    chance = random.Random(2)
    values = {"a": (1, 1.0, 2, True), "b": ("x", "y"), "x": (0.0, 1), "place": ("here", "there")}

    def promise():
        names = chance.sample(list(values), chance.randrange(4))
        pinned = [(name, chance.choice(values[name])) for name in names]
        return Filter(tuple(Constraint(name, type_of(value), "=", value) for name, value in pinned))

    for _ in range(300):
        some = [promise() for _ in range(chance.randrange(5))]
        promises = Promises()
        promises.add(some)
        content = {name: chance.choice(values[name]) for name in values if chance.random() < 0.6}
        assert promises.keeps(content) == any(keeps(content, one) for one in some)


class _Unread(dict):
    """Cannot be gone through."""

    def items(self):
        raise AssertionError("all that is stored was gone through")

    values = __iter__ = items


def test_what_was_withdrawn_or_never_advertised_is_refused():
    chance = random.Random(1)
    names = [f"s{i}" for i in range(30)]
    machine, state = client_of(names)
    for _ in range(20):
        name = names.pop(chance.randrange(len(names)))
        state, _ = machine.handle(state, Asked(0, Withdraw(name)))
        with pytest.raises(UsageError, match="advertise it first"):
            machine.handle(state, Asked(0, publish(reading(name))))
        state, effects = machine.handle(state, Asked(0, publish(reading(chance.choice(names)))))
        assert len(effects) == 1
    with pytest.raises(UsageError, match="advertise it first"):
        machine.handle(state, Asked(0, publish(reading(names[0], value="warm"))))


def test_the_same_promise_twice_is_kept_until_both_are_withdrawn():
    machine, state = client_of(["s1"])
    state, _ = machine.handle(state, Asked(0, advertise("again", advertised(READINGS, source="s1"))))
    state, _ = machine.handle(state, Asked(0, advertise("other", advertised(READINGS, source="s2"))))
    state, _ = machine.handle(state, Asked(0, Withdraw("s1")))
    machine.handle(state, Asked(0, publish(reading("s1"))))
    state, _ = machine.handle(state, Asked(0, Withdraw("again")))
    with pytest.raises(UsageError, match="advertise it first"):
        machine.handle(state, Asked(0, publish(reading("s1"))))
