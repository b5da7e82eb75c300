"""Routes: agents report correct results, and an overlay sends the counted number of messages."""

from __future__ import annotations

import random
from itertools import groupby

from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.agents.host import AgentHost
from holdfast.network.protocols.agents.library import RELATIONSHIP, active_bundle
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import ReceivedNotification, Submit, advertise, publish
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast_lab.experiments.traffic.claim import RULES, claims
from holdfast_lab.experiments.traffic.measure import LOOP, Environment, Watched, environment, watch
from holdfast_lab.experiments.traffic.scene import READINGS, Roads


def roads():
    """Six sensors in a circle, whose times wander."""
    chance = random.Random(3)
    names = [f"s{i}" for i in range(6)]
    seconds = {}
    for name in names:
        value, seconds[name] = 60.0, []
        for _ in range(READINGS):
            value = min(max(value + chance.uniform(-8, 8), 20.0), 160.0)
            seconds[name].append(value)
    after = {name: (names[(i + 1) % 6],) for i, name in enumerate(names)}
    return Roads(seconds, dict.fromkeys(names, 60.0), after)


def test_agents_of_a_route_agree_with_the_machine():
    ways, chance = roads(), random.Random(1)
    for length in (2, 4, 6):
        route = ways.route(length, chance)
        assert len(set(route)) == length
        found = watch(ways, route)
        assert found.is_exact
        assert found.reports


def test_an_overlay_sends_the_counted_number_of_messages():
    ways = roads()
    route = ways.route(3, random.Random(1))
    overlay = Overlay()
    overlay.broker("hub", machine=AgentHost(CbpsBroker(compile_condition, name="hub")))
    for name in route:
        overlay.broker(
            f"at {name}", to=["hub"], machine=AgentHost(CbpsBroker(compile_condition, name=f"at {name}"))
        )
        overlay.client(name, f"at {name}")
        overlay.ask(name, advertise("mine", advertisement_for(LOOP, source=name)))
    overlay.client("subscriber", "hub")
    overlay.ask("subscriber", Submit(active_bundle("Jam", ways.relation(route), "hierarchy"), "jam"))
    overlay.settle()
    for _, some in groupby(ways.events(route), key=lambda event: event.time):
        for event in some:
            overlay.ask(event.source, publish(to_content(event)))
        overlay.settle()
    found = watch(ways, route)
    reports = [
        w
        for w in overlay.take("subscriber")
        if isinstance(w, ReceivedNotification) and RELATIONSHIP in w.content
    ]
    assert len(reports) == found.reports
    hosts = [node.state for node in overlay.nodes.values() if hasattr(node.state, "agents")]
    agents = [hosted for state in hosts for hosted in state.agents.values()]
    assert len(agents) == 4
    submitted = sum(hosted.state.sequence for hosted in agents)  # two subscriptions of each among it
    assert submitted - 2 * len(agents) == found.messages + found.reports


def test_routes_computed_together_cost_the_sum_of_each():
    one, other = Watched(("a", "b"), 10, 2, True), Watched(("b", "c", "d"), 30, 0, True)
    found = environment([one, other], 50, random.Random(1))
    assert found.sensors == 4
    longer = found.observers - 100
    assert found.reported == 12 * (50 - longer) + 30 * longer
    assert found.basic == 0.5 * (1 + found.observers / 4)


def test_every_claim_has_a_rule_and_a_verdict():
    pool = [Watched(("a",), 1, 1, True)]
    rows = [Environment(17, 69, 160, 190), Environment(625, 322, 5736, 77_000)]
    judged = claims(pool, rows)
    assert [claim.id for claim in judged] == list(RULES)
    assert [claim.holds for claim in judged] == [True, True, True, True]
