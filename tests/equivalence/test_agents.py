"""Agents in an overlay: what they report is what the relation machine says, once all is quiet."""

from __future__ import annotations

from itertools import groupby

import pytest

from holdfast.protocols.agents.hosting import Hosting
from holdfast.protocols.agents.library import RELATIONSHIP, active
from holdfast.protocols.cbps.broker import Broker
from holdfast.protocols.cbps.client import Heard, Submit, Withdraw, advertise, publish
from holdfast.protocols.cbps.event import advertised, to_content
from holdfast.runtimes.overlay.conditions import condition
from holdfast.runtimes.overlay.memory.brokers import Overlay
from support.agents import oracle, related, walks

MEET = related("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")
TEAM = related("""topic User ()
group Team of User ("ann", "bob", "eve")
relate Together all of Team within 15 m until 25 m""")
LINKS = [(2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3), (8, 3), (9, 3)]
"""The network of the thesis: 1-{2,3}, 2-{4,5,6}, 3-{7,8,9}."""
HOMES = {"ann": 5, "bob": 7, "eve": 8}


def network(seed=None):
    overlay = Overlay(seed=seed)
    for i in range(1, 10):
        overlay.broker(f"b{i}", machine=Hosting(Broker(condition)))
    for child, parent in LINKS:
        overlay.connect(f"b{child}", f"b{parent}")
    overlay.client("subscriber", "b1")
    overlay.settle()
    return overlay


def publishers(overlay, one, names):
    (topic,) = one.listens
    for name in names:
        overlay.client(name, f"b{HOMES[name]}")
        overlay.ask(name, advertise("mine", advertised(topic, source=name)))
    overlay.settle()


def watch(overlay, one, using):
    overlay.ask("subscriber", Submit(active(one.name, one.relation, using), "relation"))
    overlay.settle()


def agents(overlay):
    return {
        name: sorted(hosted.part.name for hosted in host.state.agents.values())
        for name, host in overlay.nodes.items()
        if name.startswith("b") and name[1:].isdigit() and host.state.agents
    }


def told(overlay):
    heard = [what.content for what in overlay.take("subscriber") if isinstance(what, Heard)]
    return [
        (c["time"], c.get("scope"), c["status"], c["source"], c["sequence"])
        for c in heard
        if RELATIONSHIP in c and c["status"] != "unknown"
    ]


@pytest.mark.parametrize("publishers_first", [True, False])
def test_agents_start_beside_the_publishers_and_nowhere_else(publishers_first):
    """T8: in either order, at brokers 5 and 7; brokers 4, 6, 8 and 9 are sent nothing of it."""
    overlay = network()
    names = ("ann", "bob")
    if publishers_first:
        publishers(overlay, MEET, names)
    watch(overlay, MEET, "range_ring")
    if not publishers_first:
        publishers(overlay, MEET, names)
    assert agents(overlay) == {"b5": ["Meet/ann,bob/ann"], "b7": ["Meet/ann,bob/bob"]}
    for i in (4, 6, 8, 9):
        stored = overlay.nodes[f"b{i}"].state.routing.in_force.values()
        assert not any(one.bundle.active for one in stored)


def test_agents_end_when_the_subscription_or_the_publisher_goes():
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    overlay.kill("bob")
    overlay.settle()
    assert agents(overlay) == {"b5": ["Meet/ann,bob/ann"]}
    overlay.ask("subscriber", Withdraw("relation"))
    overlay.settle()
    assert agents(overlay) == {}


@pytest.mark.parametrize(
    ("one", "using", "names"),
    [
        (MEET, "range_ring", ("ann", "bob")),
        (MEET, "parallel_line", ("ann", "bob")),
        (TEAM, "centre_of_mass", ("ann", "bob", "eve")),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_what_agents_report_is_what_the_machine_says(one, using, names, seed):
    overlay = network(seed)
    publishers(overlay, one, names)
    watch(overlay, one, using)
    events, found = walks(names, 40, seed, together=0.0, jump=0.02, step=6.0), []
    for _, some in groupby(events, key=lambda event: event.time):
        for event in some:
            overlay.ask(event.source, publish(to_content(event)))
        overlay.settle()
        found += told(overlay)
    assert sorted(found) == oracle(one, events)


def test_raw_readings_do_not_leave_the_broker_of_their_publisher():
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    for event in walks(("ann", "bob"), 3, 0, size=5000.0, step=1.0, jump=0.0, idle=0.0):
        overlay.ask(event.source, publish(to_content(event)))
        overlay.settle()
    before = sum(overlay.traffic.values())
    for event in walks(("ann", "bob"), 30, 0, size=5000.0, step=1.0, jump=0.0, idle=0.0):
        overlay.ask(event.source, publish(to_content(event)))
        overlay.settle()
    assert sum(overlay.traffic.values()) == before + 60


def test_a_lost_connection_is_told_and_what_is_certain_is_found_again():
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 1, 5.0)
    assert [row[2] for row in told(overlay)] == ["ingress"]
    overlay.cut("b3", "b1")
    overlay.settle()
    lost = [what.content["status"] for what in overlay.take("subscriber") if isinstance(what, Heard)]
    assert lost == ["unknown"]
    overlay.connect("b3", "b1")
    overlay.settle()
    say(overlay, "bob", 2, 6.0)
    assert [row[2] for row in told(overlay)] == ["ingress"]


def say(overlay, name, number, x):
    content = {"topic": "User", "time": number, "source": name, "sequence": number, "x": x, "y": 0.0}
    overlay.ask(name, publish(content))
    overlay.settle()
