"""Agents in an overlay report the results of the relation machine once the overlay is quiet."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import groupby

import msgspec
import pytest

from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.agents.follower import ReportFollower
from holdfast.network.protocols.agents.host import AgentHost
from holdfast.network.protocols.agents.library import (
    ADDRESS,
    RELATIONSHIP,
    active_bundle,
    address,
    disable_agents,
)
from holdfast.network.protocols.agents.ring import RingMove
from holdfast.network.protocols.agents.talk import AgentReading
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import (
    AgentsInterrupted,
    ReceivedNotification,
    ReleaseSubscription,
    ReplaceActive,
    SubmissionRefused,
    Submit,
    SubscriptionClosed,
    WithdrawSubmission,
    advertise,
    publish,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.network.protocols.cbps.message import (
    Bundle,
    BundleKey,
    CbpsSubscription,
    PublishedNotification,
    RoutingSlip,
)
from support.agents import oracle, relationship_of, walks

MEET = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")
NEAR = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob")
  when distance(a, b) <= 60 m until distance(a, b) >= 80 m""")
TEAM = relationship_of("""topic User ()
group Team of User ("ann", "bob", "eve")
relate Together all of Team within 15 m until 25 m""")
SOME = relationship_of("""topic User ()
group Team of User ("ann", "bob", "eve")
relate Some at least 2 of Team within 10 m until 15 m""")
UNEVEN = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob") when distance(a, b) <= 10 m until distance(a, b) >= 30 m
  using range_ring (volatility a 9, enlarged 1.5)""")
LINKS = [(2, 1), (3, 1), (4, 2), (5, 2), (6, 2), (7, 3), (8, 3), (9, 3)]
"""The network of the thesis: 1-{2,3}, 2-{4,5,6}, 3-{7,8,9}."""
HOMES = {"ann": 5, "bob": 7, "eve": 8}


def network(seed=None):
    overlay = Overlay(seed=seed)
    for i in range(1, 10):
        overlay.broker(f"b{i}", machine=AgentHost(CbpsBroker(compile_condition)))
    for child, parent in LINKS:
        overlay.connect(f"b{child}", f"b{parent}")
    overlay.client("subscriber", "b1")
    overlay.settle()
    return overlay


def publishers(overlay, one, names):
    (topic,) = one.listens
    for name in names:
        overlay.client(name, f"b{HOMES[name]}")
        overlay.ask(name, advertise("mine", advertisement_for(topic, source=name)))
    overlay.settle()


def watch(overlay, one, using):
    overlay.ask("subscriber", Submit(active_bundle(one.name, one.relation, using, one.settings), "relation"))
    overlay.settle()


def agents(overlay):
    return {
        name: sorted(hosted.parameters.name for hosted in host.state.agents.values())
        for name, host in overlay.nodes.items()
        if name.startswith("b") and name[1:].isdigit() and host.state.agents
    }


def emissions(overlay):
    received = [what.content for what in overlay.take("subscriber") if isinstance(what, ReceivedNotification)]
    return [
        (c["time"], c.get("scope"), c["status"], c["source"], c["sequence"])
        for c in received
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


def test_agents_end_with_the_subscription_or_the_publisher():
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    overlay.kill("bob")
    overlay.settle()
    assert agents(overlay) == {"b5": ["Meet/ann,bob/ann"]}
    overlay.ask("subscriber", WithdrawSubmission("relation"))
    overlay.settle()
    assert agents(overlay) == {}


@pytest.mark.parametrize(
    ("one", "using", "names"),
    [
        (MEET, "range_ring", ("ann", "bob")),
        (UNEVEN, "range_ring", ("ann", "bob")),
        (MEET, "parallel_line", ("ann", "bob")),
        (TEAM, "centre_of_mass", ("ann", "bob", "eve")),
        (SOME, "counting", ("ann", "bob", "eve")),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_agents_report_the_results_of_the_machine(one, using, names, seed):
    overlay = network(seed)
    publishers(overlay, one, names)
    watch(overlay, one, using)
    events, found = walks(names, 40, seed, together=0.0, jump=0.02, step=6.0), []
    for _, some in groupby(events, key=lambda event: event.time):
        for event in some:
            overlay.ask(event.source, publish(to_content(event)))
        overlay.settle()
        found += emissions(overlay)
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


def test_a_lost_connection_is_reported_and_the_state_is_restored():
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 1, 5.0)
    assert [row[2] for row in emissions(overlay)] == ["ingress"]
    overlay.cut("b3", "b1")
    overlay.settle()
    lost = {
        what.content["status"]
        for what in overlay.take("subscriber")
        if isinstance(what, ReceivedNotification)
    }
    assert lost == {"unknown"}
    overlay.connect("b3", "b1")
    overlay.settle()
    say(overlay, "bob", 2, 6.0)
    assert [row[2] for row in emissions(overlay)] == ["ingress"]


def test_no_client_can_pose_as_an_agent():
    """Neither a client that knows the address of an agent, nor one that lays a way to it, nor the agents of
    another subscription of the same name change what is reported."""
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 1, 100.0)
    (hosted,) = overlay.nodes["b5"].state.agents.values()
    ann, bob = address(hosted.place[0], hosted.parameters.name), next(iter(hosted.partners))
    before = repr(hosted.built.agent)
    overlay.client("mallory", "b7")
    lie = RingMove(9, 9, AgentReading(5, 5, (1.0, 0.0)), hosted.built.agent.current, 0.0, 9, 1)
    forged = PublishedNotification({ADDRESS: ann, "sender": bob})
    payload = msgspec.msgpack.encode(lie).hex()
    way = CbpsSubscription(Filter((Constraint(ADDRESS, "text", "=", bob),)))
    slip = RoutingSlip("subscription", hosted.strategy.slip)
    overlay.ask("mallory", Submit(Bundle(BundleKey("", 0), notifications=(forged,), payloads=(payload,))))
    overlay.ask("mallory", Submit(Bundle(BundleKey("", 0), slips=(slip,), subscriptions=(way,)), "way"))
    overlay.ask("mallory", Submit(active_bundle("Mine", NEAR.relation, "range_ring"), "mine"))
    overlay.settle()
    assert repr(hosted.built.agent) == before
    assert len(hosted.ways_to_partners) == 1
    assert emissions(overlay) == []
    say(overlay, "ann", 2, 1.0)
    say(overlay, "bob", 3, 50.0)  # near for mallory only
    assert statuses(overlay, "mallory") == ["ingress"]
    assert statuses(overlay, "subscriber") == []


def test_agents_per_subscriber_are_limited_and_refusals_reported():
    overlay = Overlay()
    overlay.broker("b1", machine=AgentHost(CbpsBroker(compile_condition), max_per_subscriber=1))
    overlay.client("subscriber", "b1")
    HOMES.update(ann=1, bob=1)
    try:
        publishers(overlay, MEET, ("ann", "bob"))
    finally:
        HOMES.update(ann=5, bob=7)
    watch(overlay, MEET, "range_ring")
    (refused,) = [what for what in overlay.take("subscriber") if isinstance(what, SubmissionRefused)]
    assert "may have 1 agents" in refused.why
    assert agents(overlay) == {}


def test_parameters_are_reset_while_agents_run_and_agents_may_be_disabled():
    """The same agents continue with other bounds. Disabled agents end, and enabled ones start as unknown."""
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 1, 50.0)
    assert emissions(overlay) == []
    (before,) = overlay.nodes["b5"].state.agents.values()
    overlay.ask("subscriber", ReplaceActive("relation", active_bundle("Meet", NEAR.relation, "range_ring")))
    overlay.settle()
    (after,) = overlay.nodes["b5"].state.agents.values()
    assert after is before
    assert [row[2] for row in emissions(overlay)] == ["ingress"]
    overlay.ask("subscriber", ReplaceActive("relation", active_bundle("Meet", MEET.relation, "range_ring")))
    overlay.settle()
    assert [row[2] for row in emissions(overlay)] == ["egress"]
    paused = disable_agents(active_bundle("Meet", MEET.relation, "range_ring"))
    overlay.ask("subscriber", ReplaceActive("relation", paused))
    overlay.settle()
    assert agents(overlay) == {}
    overlay.ask("subscriber", ReplaceActive("relation", active_bundle("Meet", MEET.relation, "range_ring")))
    overlay.settle()
    say(overlay, "ann", 2, 0.0)
    say(overlay, "bob", 3, 5.0)
    assert [row[2] for row in emissions(overlay)] == ["ingress"]


@pytest.mark.parametrize("apart_by", [100.0, 20.0])
def test_a_start_before_agents_are_disabled_is_followed_by_unknown_and_then_the_state(apart_by):
    """The two part, or perhaps not, while no agent watches."""
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    following = ReportFollower("Meet", MEET.relation)

    def news():
        received = [
            what
            for what in overlay.take("subscriber")
            if isinstance(what, ReceivedNotification | AgentsInterrupted)
        ]
        return [getattr(one, "status", "unknown") for what in received for one in following.process(what, 0)]

    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 1, 5.0)
    assert news() == ["ingress"]
    overlay.ask(
        "subscriber",
        ReplaceActive("relation", disable_agents(active_bundle("Meet", MEET.relation, "range_ring"))),
    )
    overlay.settle()
    assert news() == ["unknown"]
    say(overlay, "bob", 2, apart_by)
    overlay.ask("subscriber", ReplaceActive("relation", active_bundle("Meet", MEET.relation, "range_ring")))
    overlay.settle()
    say(overlay, "ann", 3, 0.0)
    say(overlay, "bob", 4, apart_by)
    assert news() == (["egress"] if apart_by == 100 else [])
    say(overlay, "bob", 5, 200.0)
    assert news() == ([] if apart_by == 100 else ["egress"])


def test_a_start_before_the_settings_change_gets_its_end():
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 1, 5.0)
    assert [row[2] for row in emissions(overlay)] == ["ingress"]
    bundle = active_bundle("Meet", UNEVEN.relation, "range_ring", UNEVEN.settings)
    overlay.ask("subscriber", ReplaceActive("relation", bundle))
    overlay.settle()
    say(overlay, "ann", 2, 1.0)
    say(overlay, "bob", 3, 90.0)
    assert [row[2] for row in emissions(overlay) if row[2] != "ingress"] == ["egress"]


def test_a_late_reading_is_not_taken_for_the_current_one():
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 5, 100.0)
    say(overlay, "bob", 3, 5.0)  # older
    assert emissions(overlay) == []
    say(overlay, "bob", 6, 5.0)
    assert [row[2] for row in emissions(overlay)] == ["ingress"]


@pytest.mark.parametrize(
    ("one", "using"),
    [
        (MEET, "range_ring"),
        (UNEVEN, "range_ring"),
        (MEET, "parallel_line"),
        (TEAM, "centre_of_mass"),
        (SOME, "counting"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_positions_of_one_to_three_coordinates_give_the_results_of_the_machine(one, using, seed):
    """A coordinate that only some have counts as 0; y without x is no position, and infinity is none."""
    overlay, chance, found, events = network(seed), random.Random(seed), [], []
    names = sorted({member.source for tie in one.relation.ties for member in tie.members})
    publishers(overlay, one, names)
    watch(overlay, one, using)
    for event in walks(names, 40, seed, together=0.0, jump=0.02, step=6.0):
        whole = (*event.location, chance.uniform(0, 9))
        event = replace(event, location=whole[: chance.choice((1, 2, 2, 3))])
        content = to_content(event)
        lacks = chance.random()
        if lacks < 0.1:
            content.pop("x")
        elif lacks < 0.2:
            content["x"] = math.inf
        else:
            events.append(event)
        overlay.ask(event.source, publish(content))
        overlay.settle()
        found += emissions(overlay)
    assert sorted(found) == oracle(one, events)


def test_other_settings_make_other_agents():
    """Both agents compute with the same partition of the room, so neither continues with the old one."""
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    bundle = active_bundle("Meet", UNEVEN.relation, "range_ring", UNEVEN.settings)
    overlay.ask("subscriber", ReplaceActive("relation", bundle))
    overlay.settle()
    rings = [hosted.built.agent for i in (5, 7) for hosted in overlay.nodes[f"b{i}"].state.agents.values()]
    assert [(ring.name, ring.enlarged) for ring in rings] == [("ann", 1.5), ("bob", 1.5)]
    assert [ring.share for ring in rings] == pytest.approx([0.9, 0.1])


def test_after_a_release_the_end_of_a_delivered_start_is_delivered():
    """The release happens while ann and bob are together: eve's arrival is not notified, their parting is,
    and agents end."""
    overlay = network()
    one = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob"), ("ann", "eve")
  when distance(a, b) <= 10 m until distance(a, b) >= 30 m""")
    publishers(overlay, one, ("ann", "bob", "eve"))
    watch(overlay, one, "range_ring")
    say(overlay, "ann", 0, 0.0)
    say(overlay, "bob", 1, 5.0)
    say(overlay, "eve", 2, 90.0)
    assert [row[1:3] for row in emissions(overlay)] == [("ann,bob", "ingress")]
    overlay.ask("subscriber", ReleaseSubscription("relation"))
    say(overlay, "eve", 3, 6.0)
    assert overlay.take("subscriber") == []
    say(overlay, "bob", 4, 70.0)
    received = overlay.take("subscriber")
    assert [what.content["status"] for what in received if isinstance(what, ReceivedNotification)] == [
        "egress"
    ]
    assert received[-1] == SubscriptionClosed("relation")
    assert agents(overlay) == {}


def test_a_failing_agent_ends_alone_and_its_subscriber_is_informed(monkeypatch):
    overlay = network()
    publishers(overlay, MEET, ("ann", "bob"))
    watch(overlay, MEET, "range_ring")
    overlay.client("other", "b1")
    overlay.ask("other", Submit(active_bundle("Other", MEET.relation, "parallel_line"), "other"))
    overlay.settle()
    agent = next(iter(overlay.nodes["b5"].state.agents.values())).built.agent
    monkeypatch.setattr(agent, "on_reading", lambda reading: 1 / 0)
    say(overlay, "ann", 0, 0.0)
    (refused,) = [what for what in overlay.take("subscriber") if isinstance(what, SubmissionRefused)]
    assert "ZeroDivisionError" in refused.why
    assert agents(overlay) == {"b5": ["Other/ann,bob/ann"], "b7": ["Other/ann,bob/bob"]}
    say(overlay, "bob", 1, 5.0)
    assert [
        what.content["status"] for what in overlay.take("other") if isinstance(what, ReceivedNotification)
    ] == ["ingress"]


def statuses(overlay, name):
    return [what.content["status"] for what in overlay.take(name) if isinstance(what, ReceivedNotification)]


def say(overlay, name, number, x):
    content = {"topic": "User", "time": number, "source": name, "sequence": number, "x": x, "y": 0.0}
    overlay.ask(name, publish(content))
    overlay.settle()
