"""Agents report the results of the relation machine for any assignment of sources to publishers."""

from __future__ import annotations

from importlib.resources import files

import pytest

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.network.protocols.agents.code_store import digest_of
from support.gateways import NAMES, SHIPPED, STRATEGIES, GatewayScenario, chance_of, in_order

RING = files("holdfast").joinpath("examples/agents/ring.star").read_text()
GATEWAYS = {"g4": "b4", "g5": "b5", "g7": "b7", "h7": "b7", "g9": "b9"}
each = pytest.mark.parametrize("using", STRATEGIES)
SEEDS = [*range(3), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 40)]]
seeds = pytest.mark.parametrize("seed", SEEDS)


def world(using, seed=None):
    one, strategy = STRATEGIES[using]
    code = RING if using == SHIPPED else ""
    return GatewayScenario(one, strategy, seed=seed, code=code, allowed=frozenset((digest_of(RING),)))


def walk(world, chance, steps, choose):
    """Readings of all sources by the gateway that is chosen; how often something started or ended."""
    count = 0
    for _ in range(steps):
        event = world.reading(chance.choice(NAMES), chance)
        received, expected = world.send(choose(event.source), event)
        if world.unknown:  # then only what is certain
            emitted = world.following.last_status
            assert {s for s in emitted if emitted[s] == "ingress"} <= world.machine.active(), event
            assert not {s for s in emitted if emitted[s] == "egress"} & world.machine.active(), event
        else:
            assert received == in_order(expected), event
        count += len(expected)
    return count


@each
@seeds
@pytest.mark.parametrize("when", ["first", "before the subscriber", "after", "in between"])
def test_a_stranger_that_advertises_a_source_and_sends_nothing_changes_nothing(using, seed, when):
    chance, one = chance_of(using, seed, when), world(using, seed)
    stranger = lambda: one.gateway("stranger", chance.choice(("b6", "b8", "b4", "b1")), chance.choice(NAMES))  # noqa: E731
    if when == "first":
        stranger()
    one.gateway("g4", "b4", "ann")
    one.gateway("g7", "b7", "bob", "eve")
    if when == "before the subscriber":
        stranger()
    one.subscribe()
    if when == "after":
        stranger()
    homes = {"ann": "g4", "bob": "g7", "eve": "g7"}
    count = walk(one, chance, 15, homes.get)
    if when == "in between":
        stranger()
    assert count + walk(one, chance, 25, homes.get) > 0
    assert one.unknown == 0


@each
@seeds
@pytest.mark.parametrize("first", ["gateways", "subscriber"])
def test_readings_of_a_source_may_arrive_by_another_gateway_that_advertises_only_the_topic(
    using, seed, first
):
    chance, one = chance_of(using, seed, first), world(using, seed)
    if first == "subscriber":
        one.subscribe()
    for name, home in GATEWAYS.items():
        one.gateway(name, home)
    if first == "gateways":
        one.subscribe()
    assert walk(one, chance, 50, lambda _: chance.choice(list(GATEWAYS))) > 0
    assert one.unknown == 0


@each
@seeds
def test_a_source_that_moves_from_gateway_to_gateway_is_followed(using, seed):
    """The source is advertised at the new gateway before it is withdrawn at the old one."""
    chance, one = chance_of(using, seed), world(using, seed)
    one.subscribe()
    homes = {}
    for name in NAMES:
        homes[name] = chance.choice(list(GATEWAYS))
        one.gateway(homes[name], GATEWAYS[homes[name]], name)
    count = 0
    for _ in range(12):
        count += walk(one, chance, 5, homes.get)
        name, old = chance.choice(NAMES), dict(homes)
        homes[name] = chance.choice([gateway for gateway in GATEWAYS if gateway != homes[name]])
        one.gateway(homes[name], GATEWAYS[homes[name]], name)
        count += walk(one, chance, chance.choice((0, 1, 12)), homes.get)
        one.withdraw(old[name], name)
    assert count > 0
    assert one.unknown == 0 or using == SHIPPED  # whose code hands nothing over


@each
@seeds
def test_a_reading_that_is_older_than_the_latest_of_its_source_changes_nothing(using, seed):
    """Whether it comes by the same gateway or another."""
    chance, one = chance_of(using, seed), world(using, seed)
    one.subscribe()
    for name, home in GATEWAYS.items():
        one.gateway(name, home)
    count = 0
    for _ in range(30):
        source, gateway = chance.choice(NAMES), chance.choice(list(GATEWAYS))
        late = one.reading(source, chance)
        event = one.reading(source, chance)
        received, expected = one.send(gateway, event)
        assert received == in_order(expected), event
        count += len(expected)
        received, expected = one.send(chance.choice(list(GATEWAYS)), late)
        assert received == expected == [], late
    assert count > 0


@each
@seeds
def test_readings_in_any_order_give_the_latest_of_all_sources(using, seed):
    """Readings of different sources also arrive out of order. The final status follows from the latest
    readings."""
    chance, one = chance_of(using, seed), world(using, seed)
    one.subscribe()
    for name, home in GATEWAYS.items():
        one.gateway(name, home)
    for _ in range(8):
        events = [one.reading(chance.choice(NAMES), chance) for _ in range(5)]
        for event in sorted(events, key=lambda _: chance.random()):
            received, expected = one.send(chance.choice(list(GATEWAYS)), event)
            assert [row[1:3] for row in received] == [row[1:3] for row in in_order(expected)], event
    assert one.unknown == 0


@each
def test_gateways_that_sent_nothing_may_withdraw_one_after_the_other(using):
    """None of them has anything to hand over, so the next begins without a doubt."""
    one = world(using)
    one.gateway("g6", "b6", *NAMES)
    one.gateway("g4", "b4")
    one.gateway("g3", "b3")
    one.gateway("g8", "b8", *NAMES)
    one.subscribe()
    chance = chance_of(using)
    for name in NAMES:
        one.withdraw("g6", name)
        one.withdraw("g8", name)
    count = walk(one, chance, 40, lambda _: chance.choice(("g3", "g4")))
    assert count > 0
    assert one.unknown == 0 or using == SHIPPED  # whose code hands nothing over


@each
@seeds
def test_gateways_can_be_added_and_removed_while_every_source_is_advertised_somewhere(using, seed):
    """Strangers advertise a source or the topic alone, send late readings, or send nothing."""
    chance, one = chance_of(using, seed), world(using, seed)
    advertised = {("g0", "all")}
    one.gateway("g0", "b3")

    def senders(source):
        return sorted({gateway for gateway, of in advertised if of in (source, "all")})

    count, subscribed = 0, chance.choice((0, 5, 15))
    for i in range(60):
        if i == subscribed:
            one.subscribe()
        what = chance.random()
        if what < 0.2:
            gateway, of = f"g{chance.randrange(8)}", chance.choice((*NAMES, "all"))
            if (gateway, of) not in advertised:
                advertised.add((gateway, of))
                home = one.homes.get(gateway, f"b{chance.randint(1, 9)}")
                one.gateway(gateway, home, *([] if of == "all" else [of]))
        elif what < 0.35:
            gateway, of = gone = chance.choice(sorted(advertised))
            advertised.discard(gone)
            if all(senders(name) for name in NAMES):
                one.withdraw(gateway, of)
            else:
                advertised.add(gone)
        elif i >= subscribed:
            late = one.reading(name := chance.choice(NAMES), chance)
            count += walk(one, chance, 1, lambda source: chance.choice(senders(source)))
            event = one.reading(name, chance)
            received, expected = one.send(chance.choice(senders(name)), event)
            assert one.unknown or received == in_order(expected), event
            count += len(expected)
            received, expected = one.send(chance.choice(senders(name)), late)
            assert received == expected == [], late
    assert count > 0
    assert one.unknown == 0 or using == SHIPPED
    for at in (0, 200, 0, 200):  # all together, then far apart
        for i, name in enumerate(NAMES * 2):
            one.number, one.time = one.number + 1, one.time + SECOND
            attributes = {a.name: 30.0 - i if at == 0 else 1.0 for a in one.topic.attributes}
            event = Event("User", one.time, name, attributes, one.number, (float(at * (i % 3)), 0.0))
            one.send(senders(name)[0], event)
        emitted = one.following.last_status
        assert {scope for scope in emitted if emitted[scope] == "ingress"} == one.machine.active()
