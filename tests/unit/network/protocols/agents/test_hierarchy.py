"""Observers and a mediator report sums with the results of the relation machine."""

from __future__ import annotations

import random
from functools import partial

import pytest

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.network.protocols.agents.best import best_of
from holdfast.network.protocols.agents.hierarchy import (
    NO_VOLATILITY,
    RESERVE,
    SumMediator,
    TermValue,
    sum_agents,
)
from holdfast.network.protocols.agents.talk import AgentReading
from support.agents import oracle, relationship_of, run

ROADS = """topic Loop (speed float m/s)
route North on Loop.speed ("a" 100 m, "b" 200 m, "c" 150 m)
route South on Loop.speed ("d" 180 m, "e" 220 m)
"""
QUICKER = relationship_of(
    ROADS
    + "relate Quicker when travel_time(North) + 5 s < travel_time(South) until travel_time(South) + 5 s "
    "< travel_time(North)"
)
SHARED = relationship_of(
    """topic Loop (speed float m/s)
route North on Loop.speed ("a" 100 m, "b" 200 m)
route South on Loop.speed ("c" 120 m, "b" 200 m)
relate Quicker when travel_time(North) + 1 s < travel_time(South)"""
)
BEST = relationship_of(
    ROADS + 'route East on Loop.speed ("b" 350 m)\nrelate Best best of (North, South, East) by 2 s'
)
SLOW = relationship_of(ROADS + "relate Jam slow North nominal 30 s")


def drives(names, steps, seed):
    """Speeds that change a little, and now and then much; sometimes a road stands still."""
    chance = random.Random(seed)
    speed = {name: chance.uniform(8, 14) for name in names}
    events = []
    for step in range(steps):
        for name in names:
            change = chance.uniform(-8, 8) if chance.random() < 0.05 else chance.uniform(-0.5, 0.5)
            speed[name] = 0.0 if chance.random() < 0.01 else min(max(speed[name] + change, 0.5), 20.0)
            time = (step + 1) * SECOND + (0 if chance.random() < 0.5 else len(events) % 7)
            events.append(Event("Loop", time, name, {"speed": speed[name]}, len(events)))
    return sorted(events, key=lambda event: event.time)


def made(relation, tie, moves=NO_VOLATILITY, **how):
    if relation.kind == "best":
        return best_of(relation, tie.terms, moves)
    return sum_agents(relation, tie.terms[0], moves, **how)


def with_values(events):
    """The events for the harness of agents: the speed as a position on a line."""
    return [
        Event(e.topic, e.time, e.source, e.attributes, e.sequence, (e.attributes["speed"],)) for e in events
    ]


@pytest.mark.parametrize("one", [QUICKER, SLOW, SHARED, BEST], ids=["quicker", "slow", "shared", "best"])
@pytest.mark.parametrize("seed", range(10))
def test_a_hierarchy_reports_the_results_of_the_machine(one, seed):
    events = drives("abcde", 80, seed)
    moves = {"a": 5.0, "d": 0.3} if seed % 2 else NO_VOLATILITY
    emitted, counted = run(one, partial(made, moves=moves), with_values(events), seed=seed)
    assert emitted == oracle(one, events)
    assert counted["messages"] < 6 * counted["readings"]


@pytest.mark.parametrize("one", [SLOW, BEST], ids=["slow", "best"])
def test_more_volatile_members_get_wider_ranges(one):
    *_, top = made(one.relation, one.relation.ties[0], {"a": 3.0})
    events = drives("abcde", 3, 1)
    run(one, lambda *_: [*made(*_)[:-1], top], with_values(events))
    assert top.ranges["a"] == pytest.approx(3 * top.ranges["b"])
    assert top.ranges["b"] == pytest.approx(top.ranges["c"])


def test_routes_with_very_different_times_send_few_messages():
    """With roads on which little changes, the best of several costs few messages."""
    calm = [
        Event("Loop", (i // 5 + 1) * SECOND, "abcde"[i % 5], {"speed": 10 + (i * 7 % 5) / 50}, i)
        for i in range(500)
    ]
    emitted, counted = run(BEST, made, with_values(calm))
    assert emitted == oracle(BEST, calm)
    assert counted["messages"] < 0.1 * counted["readings"]


def test_an_observer_computes_minutes_from_miles_an_hour():
    """T16: scalar 12, 60 mph are 0.2 minutes; a bound of 0.25 keeps that to itself."""
    (observer, *_) = made(SLOW.relation, SLOW.relation.ties[0])
    observer.term = type(observer.term)(observer.term.member, 12.0, reciprocal=True)
    observer.origin, observer.range = 0.0, 0.25
    assert observer.on_reading(AgentReading(0, 0, (60.0,))) == []
    assert observer.value == pytest.approx(0.2)
    assert len(observer.on_reading(AgentReading(1, 1, (12.0,)))) == 1


def test_a_mediator_assigns_only_its_cache():
    """With four fifths taken for all, the ranges together exceed the room, and a sum passes the bound
    while all members are silent."""
    for printed in (False, True):
        top = SumMediator("m", ("x", "y", "z"), QUICKER.relation, printed=printed)
        reading = AgentReading(0, 0, (0.0,))
        top.last_values = {
            name: TermValue(value, reading) for name, value in zip("xyz", (1.0, 3.0, 4.0), strict=True)
        }
        top.ranges = {"x": 0.0, "y": 5.0, "z": 4.5}
        ((_, reset),) = top.on_message("x", TermValue(0.0, AgentReading(1, 1, (0.0,))))
        room = top.total + 5
        assert reset.range == pytest.approx(3.0 if printed else 2.5)
        assert (sum(top.ranges.values()) > room) == printed
        worst = top.total - 0.999 * sum(top.ranges.values())
        assert QUICKER.relation.enter.within.holds(worst) == printed
    assert 0 < RESERVE < 1
