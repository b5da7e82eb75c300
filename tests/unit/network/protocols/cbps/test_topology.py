"""Brokers joined as anybody likes: one tree of the connections is used, and the others are spares."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import (
    ConditionChange,
    ConditionUnknown,
    ReceivedNotification,
    advertise,
    publish,
    subscribe,
    watch,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.event import advertisement_for
from holdfast.network.protocols.cbps.message import LinkState
from holdfast.network.protocols.cbps.topology import BrokerTopology, edges, reachable, spanning_tree
from support.overlays import often


def reachable_from(links, start):
    """All nodes to which a path leads."""
    found = {start}
    while more := {b for link in links if link & found for b in link} - found:
        found |= more
    return found


X = Filter((Constraint("x", "double", "any"),))


class MemoryMesh:
    """Brokers, with a subscriber at each and a publisher at the first."""

    def __init__(self, number, links, seed=None):
        self.messages = 0
        self.net = Overlay(seed=seed, tap=self._count)
        self.brokers = [f"b{i}" for i in range(number)]
        for name in self.brokers:
            self.net.broker(name)
            self.net.client(f"at {name}", to=name)
            self.net.ask(f"at {name}", subscribe("x", X))
        for a, b in links:
            self.net.connect(a, b)
        self.net.client("p", to="b0")
        self.net.ask("p", advertise("x", X))
        self.net.settle()

    def _count(self, *_):
        self.messages += 1

    def say(self, number):
        self.net.ask("p", publish({"x": float(number)}))
        self.net.settle()

    def deliveries(self):
        """The values that each subscriber has received since the last call."""
        return {
            name: [
                one.content["x"]
                for one in self.net.take(f"at {name}")
                if isinstance(one, ReceivedNotification)
            ]
            for name in self.brokers
        }

    def spares(self):
        return sum(self.net.nodes[b].state.account.get("spare", 0) for b in self.brokers) // 2


FOUR = list(combinations(["b0", "b1", "b2", "b3"], 2))
"""Four brokers, all joined."""


@pytest.mark.parametrize("seed", [None, *range(10)])
def test_four_brokers_all_joined_and_one_event_give_each_subscriber_one_line_and_fewer_than_500_messages(
    seed,
):
    mesh = MemoryMesh(4, FOUR, seed)
    mesh.say(1)
    assert mesh.deliveries() == {b: [1.0] for b in mesh.brokers}
    assert mesh.messages < 500
    assert mesh.spares() == 3


@pytest.mark.parametrize("lost", FOUR)
def test_a_spare_link_is_used_when_another_is_lost(lost):
    mesh = MemoryMesh(4, FOUR, seed=1)
    mesh.net.cut(*lost)
    mesh.net.settle()
    mesh.say(2)
    assert mesh.deliveries() == {b: [2.0] for b in mesh.brokers}
    assert mesh.spares() == 2


def test_a_broker_that_dies_loses_no_messages_of_the_others():
    mesh = MemoryMesh(4, FOUR, seed=1)
    mesh.net.kill("b2")
    mesh.net.settle()
    mesh.say(2)
    assert mesh.deliveries() == {"b0": [2.0], "b1": [2.0], "b2": [], "b3": [2.0]}


def test_a_connection_that_closes_a_cycle_has_no_effect_on_others():
    """A condition holds, and goes on to hold: the older connections stay in use."""
    net, warm = Overlay(), "topic T (value float) state Warm on T [value > 25; value < 22] per source"
    for name, to in (("a", []), ("b", ["a"]), ("c", ["b"])):
        net.broker(name, to=to)
    topic = net.nodes["a"].machine.conditions(warm).machine.topics["T"]
    net.client("sensor", to="a")
    net.client("office", to="c")
    net.ask("sensor", advertise("t", advertisement_for(topic, source="s")))
    net.ask("office", watch("warm", warm))
    net.settle()

    def say(n, value):
        event = {"topic": "T", "time": n, "source": "s", "sequence": n, "value": value}
        net.ask("sensor", publish(event))
        net.settle()

    say(1, 30.0)
    net.connect("a", "c")
    net.settle()
    say(2, 20.0)
    emitted = net.take("office")
    assert [one.notification.status for one in emitted if isinstance(one, ConditionChange)] == [
        "ingress",
        "egress",
    ]
    net.cut("a", "b")
    net.settle()
    say(3, 30.0)
    net.cut("a", "c")
    net.settle()
    assert [type(one) for one in net.take("office")] == [ConditionChange, ConditionUnknown]


def test_two_distant_brokers_of_one_name_are_distinguished():
    """Neither in memory nor on TCP can neighbours have one name; others may."""
    known = {node: LinkState(node, 1, links) for node, links in [
        ("x~1", (("hub~2", 1),)), ("hub~2", (("x~1", 1), ("y~3", 2))), ("y~3", (("hub~2", 2), ("x~4", 3))),
        ("x~4", (("y~3", 3),)),
    ]}  # fmt: skip
    assert len(spanning_tree(known)[0]) == 3
    assert set(reachable(known, "x~1")) == set(known)


nodes = st.sampled_from("abcdef")


@given(st.dictionaries(st.tuples(nodes, nodes), st.integers(1, 4)))
def test_the_tree_spans_connected_brokers_without_a_cycle_and_prefers_older_links(links):
    both = {(a, b): rank for (a, b), rank in links.items() if a < b}
    emitted: dict[str, dict[str, int]] = {}
    for (a, b), rank in both.items():
        emitted.setdefault(a, {})[b] = emitted.setdefault(b, {})[a] = rank
    known = {node: LinkState(node, 1, tuple(to.items())) for node, to in emitted.items()}
    chosen, _ = spanning_tree(known)
    assert len(edges(known)) == len(both)

    everything = {frozenset(edge) for edge in both}
    for node in known:
        assert reachable_from(chosen, node) == reachable_from(everything, node)
    for edge in chosen:
        assert any(reachable_from(chosen - {edge}, node) != reachable_from(chosen, node) for node in edge)
    for (a, b), rank in both.items():
        older = {frozenset(edge) for edge, other in both.items() if (other, *edge) < (rank, a, b)}
        assert (frozenset((a, b)) in chosen) == (b not in reachable_from(older, a))


deeds = st.lists(
    st.tuples(st.sampled_from(["join", "join", "cut", "say"]), st.integers(0, 9), st.integers(0, 9)),
    max_size=25,
)


@given(
    st.lists(
        st.tuples(nodes, st.dictionaries(nodes, st.integers(1, 3), max_size=4), st.integers(0, 2)),
        max_size=14,
    )
)
def test_incremental_updates_equal_a_full_recomputation(steps):
    it = BrokerTopology("a")
    it.known["a"] = LinkState("a", 1, tuple((node, 1) for node in "bcd"))
    list(it._recompute())
    for number, (node, links, limit) in enumerate(steps, 2):
        list(it.on_neighbours("peer", LinkState(node, number, tuple(sorted(links.items())), limit << 20)))
        assert it._tree == spanning_tree(it.known)[0]
        assert set(it.known) == set(reachable(it.known, "a"))
        bounds = [one.limit for one in it.known.values() if one.limit]
        assert it.common_limit == min(bounds, default=0)


@often
@given(number=st.integers(2, 5), script=deeds, seed=st.integers(0, 9))
def test_after_any_changes_of_links_every_reachable_subscriber_receives_each_event_once(number, script, seed):
    mesh, links, published = MemoryMesh(number, [], seed), set(), 0
    for deed, i, j in script:
        pair = frozenset((f"b{i % number}", f"b{j % number}"))
        if deed == "say":
            mesh.net.settle()
            published += 1
            mesh.say(published)
            reachable = reachable_from(links, "b0")
            assert mesh.deliveries() == {
                b: [float(published)] if b in reachable else [] for b in mesh.brokers
            }
        elif deed == "join" and len(pair) == 2 and pair not in links:
            links.add(pair)
            mesh.net.connect(*pair)
        elif deed == "cut" and pair in links:
            links.remove(pair)
            mesh.net.cut(*pair)
    mesh.net.settle()
    parts = {min(reachable_from(links, b)) for b in mesh.brokers}
    assert mesh.spares() == len(links) - (number - len(parts))
