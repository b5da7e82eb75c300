"""Datagrams to points, from neighbour to neighbour."""

from __future__ import annotations

import math
import random
from collections import deque

import msgspec
import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.model.protocol import (
    EVERYBODY,
    Asked,
    Deliver,
    Fired,
    Nearby,
    Received,
    Route,
    Send,
    Spread,
    Started,
)
from holdfast.network.overlay.relays import MOST_HOPS, RelayedDatagram, Relays, neighbours
from holdfast.network.sim.topology import uniform


class RelayEcho:
    """Sends what it is asked to, and hands over what comes."""

    def initial(self):
        return None

    def handle(self, state, given):
        match given:
            case Asked(_, effect):
                return state, [effect]
            case Received(_, _, message):
                return state, [Deliver(message)]
        return state, []


class Links:
    """Nodes by name, and datagrams between neighbours, one after the other."""

    def __init__(self, places, reach):
        self.places = places
        self.machines = {
            name: Relays(RelayEcho(), name, at, neighbours(places, name, reach), str)
            for name, at in places.items()
        }
        self.states = {name: machine.initial() for name, machine in self.machines.items()}
        self.emissions, self.sent, self.now = [], [], 0
        for name in places:
            self.give(name, Started(0, 0))

    def give(self, name, given):
        waiting = deque([(name, given)])
        while waiting:
            to, what = waiting.popleft()
            self.states[to], effects = self.machines[to].handle(self.states[to], what)
            for effect in effects:
                if isinstance(effect, Deliver):
                    self.emissions.append((to, effect.what))
                elif isinstance(effect, Send) and effect.to != EVERYBODY:
                    assert effect.to in self.machines[to].near
                    self.sent.append((to, effect.to))
                    waiting.append((effect.to, Received(self.now, to, effect.message)))

    def ask(self, name, effect):
        self.emissions, self.sent = [], []
        self.give(name, Asked(self.now, effect))
        return self.emissions


def draw_places(seed, count=25):
    placed = uniform(count, 64.0, 64.0, 20.0, seed)
    return {f"n{i}": place for i, place in enumerate(placed.positions)}


@pytest.mark.parametrize("seed", range(6))
def test_a_message_to_a_point_is_delivered_to_the_nearest_node_from_any_node(seed):
    places, chance = draw_places(seed), random.Random(seed)
    links = Links(places, 20.0)
    for _ in range(30):
        to = (chance.uniform(-10, 74), chance.uniform(-10, 74))
        nearest = min(places, key=lambda name: math.dist(places[name], to))
        assert links.ask(chance.choice(sorted(places)), Route(to, "x")) == [(nearest, "x")]


@pytest.mark.parametrize("seed", range(3))
def test_all_nodes_in_a_rectangle_receive_a_spread_message_once(seed):
    places = draw_places(seed, 40)
    links = Links(places, 20.0)
    low, high = (10.0, 10.0), (50.0, 50.0)
    inside = {name for name, at in places.items() if all(10 <= c <= 50 for c in at)}
    outside = min(places.keys() - inside)
    for start in (outside, min(inside)):
        emitted = links.ask(start, Spread(low, high, "x"))
        assert sorted(emitted) == sorted((name, "x") for name in inside)


@pytest.mark.parametrize("seed", range(40))
def test_all_nodes_of_a_small_rectangle_receive_a_spread_message_over_outside_nodes_too(seed):
    places, chance = draw_places(seed, 30), random.Random(seed)
    links = Links(places, 20.0)
    for _ in range(20):
        left, bottom = chance.uniform(0, 48), chance.uniform(0, 48)
        inside = [n for n, (x, y) in places.items() if left <= x <= left + 16 and bottom <= y <= bottom + 16]
        spread = Spread((left, bottom), (left + 16, bottom + 16), "x")
        emitted = links.ask(chance.choice(sorted(places)), spread)
        assert sorted(emitted) == sorted((name, "x") for name in inside)


def test_silent_nodes_are_bypassed_and_distant_ones_ignored():
    row = {"a": (0.0, 0.0), "b": (10.0, 0.0), "c": (20.0, 0.0), "d": (10.0, 8.0)}
    links = Links(row, 14.0)
    assert links.ask("a", Route((20.0, 0.0), "x")) == [("c", "x")]
    assert ("b", "c") in links.sent
    links.now = 10 * SECOND
    for name in ("a", "c", "d"):  # b has been silent for ten seconds
        for other in links.machines[name].near:
            if other != "b":
                links.states[name].last_signs[other] = links.now
    assert links.ask("a", Route((20.0, 0.0), "x")) == [("c", "x")]
    assert links.sent[:2] == [("a", "d"), ("d", "c")]
    assert links.ask("a", Nearby("x")) == [("d", "x")]
    links.give("a", Received(links.now, "c", RelayedDatagram((0.0, 0.0), msgspec.Raw(b"\xa1x"))))
    assert links.emissions == [("d", "x")]


def test_a_datagram_that_is_invalid_or_has_gone_too_far_is_dropped():
    links = Links({"a": (0.0, 0.0), "b": (10.0, 0.0)}, 14.0)
    links.give("a", Received(0, "b", RelayedDatagram((0.0, 0.0), msgspec.Raw(b"\x01"))))
    links.give("a", Received(0, "b", RelayedDatagram((0.0, 0.0), msgspec.Raw(b"\xa1x"), hops=MOST_HOPS)))
    assert links.emissions == []


def test_a_relay_sends_heartbeats():
    machine = Relays(RelayEcho(), "a", (0.0, 0.0), {"b": (1.0, 0.0)}, str)
    _, effects = machine.handle(machine.initial(), Fired(SECOND, "relays/beat"))
    assert [type(effect).__name__ for effect in effects] == ["Send", "SetTimer"]


def test_a_node_that_is_its_own_neighbour_or_at_an_occupied_position_is_refused():
    with pytest.raises(UsageError, match="its own neighbour"):
        Relays(RelayEcho(), "a", (0.0, 0.0), {"a": (1.0, 0.0)}, str)
    with pytest.raises(UsageError, match="two nodes stand at one point"):
        Relays(RelayEcho(), "a", (0.0, 0.0), {"b": (0.0, 0.0)}, str)
