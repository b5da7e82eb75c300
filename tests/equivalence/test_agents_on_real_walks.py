"""Every strategy on real walks equals the relation machine: in memory with overtaking messages, and over
TCP with delays."""

from __future__ import annotations

import random
from importlib.resources import files
from itertools import combinations

import pytest

from holdfast.network.protocols.agents.code_store import digest_of
from holdfast.network.protocols.agents.shipped import STARLARK
from support.agents import oracle, relationship_of
from support.agents_in_memory import AgentsInMemory
from support.agents_on_tcp import AgentsOnTcp, run
from support.patience import PATIENCE
from support.real_walks import real_walks

RING = files("holdfast").joinpath("examples/agents/ring.star").read_text()
FEW = ("walk-57", "walk-59", "walk-47")
"""Who meet several times in their first twelve minutes."""
SOME = ("walk-13", "walk-22", "walk-29", "walk-32", "walk-17", "walk-60")
"""Who meet often in seven hours."""
LONGEST = 0.008
"""Seconds that a piece is on its way between brokers, at most."""


def meeting(names, using):
    pairs = ", ".join(f'("{a}", "{b}")' for a, b in combinations(names, 2))
    return relationship_of(f"""topic User (east float)
relate Meet (a User, b User) pairs {pairs}
  when distance(a, b) <= 10 m until distance(a, b) >= 50 m using {using}""")


def together(names, using):
    listed = ", ".join(f'"{name}"' for name in names)
    return relationship_of(f"""topic User (east float)
group Team of User ({listed})
relate Together all of Team within 40 m until 60 m using {using}""")


def some_of(names, using):
    listed = ", ".join(f'"{name}"' for name in names)
    return relationship_of(f"""topic User (east float)
group Team of User ({listed})
relate Some at least 3 of Team within 20 m until 30 m using {using}""")


def eastward(names, using):
    pairs = ", ".join(f'("{a}", "{b}")' for a, b in combinations(names, 2))
    return relationship_of(f"""topic User (east float)
relate East (a User, b User) pairs {pairs}
  when a.east - b.east > 10 until a.east - b.east < -10 using {using}""")


STRATEGIES = {
    "range_ring": (meeting, FEW, SOME),
    "parallel_line": (meeting, FEW, SOME),
    "centre_of_mass": (together, ("walk-57", "walk-47", "walk-29"), ("walk-01", "walk-24", "walk-31")),
    "counting": (some_of, FEW, SOME),
    "hierarchy": (eastward, FEW, SOME),
    STARLARK: (meeting, FEW[:2], SOME[:2]),
}
each = pytest.mark.parametrize("using", STRATEGIES)


def case(using, *, long):
    define, few, some = STRATEGIES[using]
    names = some if long else few
    events = real_walks(names, end=None if long else 25)
    one = define(names, "range_ring" if using == STARLARK else using)
    expected = oracle(one, events)
    assert len(expected) >= (10 if long else 4)
    return one, names, events, expected


def in_memory(using, seed, *, long):
    one, names, events, expected = case(using, long=long)
    world = AgentsInMemory(one, names, using, code=RING if using == STARLARK else "", seed=seed)
    for event in events:
        world.say(event)
    assert world.rows() == expected


def over_tcp(using, *, long):
    one, names, events, expected = case(using, long=long)
    chance = random.Random(1)

    async def story(world):
        for event in events:
            await world.say(event)
        assert world.rows() == expected

    code = RING if using == STARLARK else ""
    world = AgentsOnTcp(
        one, names, using, code=code, allowed=(digest_of(RING),), wait=lambda: chance.uniform(0, LONGEST)
    )
    run(world, story, 3600 if long else 3 * PATIENCE)


@each
def test_agents_in_memory_equal_the_machine_on_real_walks(using):
    in_memory(using, 1, long=False)


@each
def test_agents_over_tcp_with_delays_equal_the_machine_on_real_walks(using):
    over_tcp(using, long=False)


@each
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_agents_in_memory_equal_the_machine_on_hours_of_real_walks(using, seed):
    in_memory(using, seed, long=True)


@each
@pytest.mark.soak
def test_agents_over_tcp_with_delays_equal_the_machine_on_hours_of_real_walks(using):
    over_tcp(using, long=True)
