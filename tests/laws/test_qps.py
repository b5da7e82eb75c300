"""Quad-PubSub: deliveries are those of a judge, whatever the network, the regions and the order."""

import math
import os

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.model.instant import SECOND
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from holdfast.network.protocols.qps.mapping import RoleMapping, by_resources, fallen_below
from support.fields import FieldScenario
from support.roaming import Roaming, Watchful

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 16)
few = settings(max_examples=EXAMPLES, deadline=None)
fewer = settings(max_examples=EXAMPLES // 8, deadline=None)
POLICIES = st.sampled_from(["best-effort", "guaranteed"])
TIRING = RoleMapping(
    suit=by_resources(16.0), compare=fallen_below(0.6), check=8 * SECOND, patience=20 * SECOND
)


@few
@given(st.integers(0, 2**32), POLICIES, st.booleans(), st.booleans())
@example(1905, "best-effort", False, False)  # publishers of one name, at the same time and place
def test_every_subscriber_gets_every_matching_event_once(seed, compliance, settled, wide):
    world = FieldScenario(seed, compliance, settled, wide)
    for _ in range(3):
        for _ in range(world.chance.randint(3, 12)):
            world.something()
        world.network.settle()
        world.came()
        due = world.publish()
        world.network.settle()
        assert world.came() == due
        world.require_partition()
        if compliance == "guaranteed":
            world.require_epsilon()


@fewer
@given(st.integers(0, 2**32), POLICIES)
def test_subscribers_with_guarantee_receive_the_area_without_a_publisher(seed, compliance):
    world = FieldScenario(seed, compliance, watched=True)
    for _ in range(3):
        for _ in range(world.chance.randint(2, 6)):
            world.something()
        world.network.run(180 * SECOND)  # leaves look again and again; the slowest ways take a minute
        world.require_coverage()


@fewer
@given(st.integers(0, 2**32))
def test_brokers_hand_over_while_events_pass_without_loss_or_duplicates(seed):
    world = FieldScenario(seed, options={"mapping": TIRING})
    for _ in range(2):
        for _ in range(world.chance.randint(3, 8)):
            world.something()
            world.work()
        world.rest()
        world.came()
        due = world.publish(2)
        for _ in range(10):
            world.work()
            world.network.run(world.chance.choice([SECOND // 2, 2 * SECOND]))
            due += world.publish(2)
        world.rest()
        assert world.came() == due
        assert not any(state.repeated for state in world.states.values())
        world.require_partition()


@fewer
@given(st.integers(0, 2**32), POLICIES, st.booleans())
def test_only_a_new_subscriber_receives_the_latest_of_each_publisher_once(seed, compliance, tiring):
    world = FieldScenario(
        seed, compliance, options={"keeps_latest": True, **({"mapping": TIRING} if tiring else {})}
    )
    for _ in range(3):
        for _ in range(world.chance.randint(3, 12)):
            world.something()
        for _ in range(6):
            world.work() if tiring else None
            world.network.run(world.chance.choice([SECOND // 2, 2 * SECOND]))
            world.publish(3)
        world.rest()
        world.came()
        client, due = world.newcomer()
        world.rest()
        came = world.came()
        assert due <= came  # of a publisher with several places, perhaps one for each
        assert all(who == client and times == 1 for (_, who, _), times in came.items())
        assert all(what.repeated for _, what in world.deliveries)


@fewer
@given(st.integers(0, 2**32), st.booleans())
def test_every_event_arrives_after_failures_and_none_arrives_twice(seed, tiring):
    mapping = TIRING if tiring else RoleMapping(check=8 * SECOND)
    world = FieldScenario(seed, options={"mapping": mapping, "renewal": 10 * SECOND})
    for _ in range(8):
        world.something()
    world.network.run(20 * SECOND)
    for _ in range(2):
        world.came()
        due = world.publish(3)
        for _ in range(3):
            world.crash()
            world.network.run(SECOND)
            due += world.publish(3)
        world.network.run(120 * SECOND)
        assert world.came() <= due
        due = world.publish()
        world.network.run(60 * SECOND)
        assert world.came() == due


@fewer
@given(st.integers(0, 2**32), st.booleans())
def test_subscribers_that_move_while_events_pass_receive_each_event_once(seed, tiring):
    world = Roaming(seed, options={"mapping": TIRING} if tiring else {})
    for _ in range(2):
        for _ in range(world.chance.randint(4, 10)):
            world.something()
        world.all_come()
        world.rest()
        world.came()
        due = world.publish(2)
        for _ in range(15):
            world.move()
            world.network.run(world.chance.choice([0, SECOND // 10, SECOND]))
            due += world.publish(2)
        world.all_come()
        world.rest()
        assert world.came() == due
        assert not any(stored.waiting for stored in world.known_subscribers)
        world.require_partition()


@fewer
@given(st.integers(0, 2**32))
def test_every_event_arrives_after_proxies_failed_and_none_arrives_twice(seed):
    world = Watchful(seed, options={"mapping": RoleMapping(check=8 * SECOND), "renewal": 10 * SECOND})
    for _ in range(8):
        world.something()
    world.all_come()
    world.live(2)
    for _ in range(2):
        world.came()
        due = world.publish(3)
        for _ in range(3):
            world.crash()
            world.network.run(SECOND)
            world.all_come()
            due += world.publish(3)
        world.live(12)
        assert world.came() <= due
        due = world.publish()
        world.live(6)
        assert world.came() == due


ANYWHERE = """\
nodes: {kind: uniform, count: 30, width: 80 m, height: 80 m, reach: 25 m}
links: {kind: disk, range: 25 m}
routing: {kind: geographic}
energy: {rest: {radio: sleep, mcu: sleep}}
definition: |
  topic T (value float)
protocol: {kind: qps, levels: LEVELS}
publishers:
  - {topic: T, from: {any: 10}, every: 10 s, start: 150 s, stop: 230 s, readings: {value: {kind: uniform}}}
subscribers:
  - {node: 3, to: T, start: 20 s}
  - {node: 17, to: T, start: 40 s}
duration: 240 s
"""


@settings(max_examples=max(4, EXAMPLES // 4), deadline=None)
@given(st.integers(1, 2**32), st.integers(2, 3))
def test_events_by_radio_are_received_from_every_publisher_of_a_random_layout(seed, levels):
    """Thirty nodes anywhere, whose leaves are often connected only outside of themselves."""
    case = read_text(ANYWHERE.replace("LEVELS", str(levels))).points[0].case
    run = SimulationRun(case, seed)
    (row,) = run.finish().subscriptions
    assert row["delivered"] == row["expected"] == 160
    places, tree = run.plan.topology.positions, run.family.deployment.tree
    held = [(role, node) for node, host in run.family.hosts.items() for role in host.state.own_roles]
    assert len(held) == len(dict(held)) > 0
    for role, node in held:
        address = tree.address(*role)
        assert node == min(range(len(places)), key=lambda n: math.dist(places[n], address))
