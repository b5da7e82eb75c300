"""Every routing protocol on graphs without radios: what is promised of all of them, and of each."""

from __future__ import annotations

from collections import Counter
from math import dist
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.sim.frame import BROADCAST
from holdfast.network.sim.routing.datagram import HOP_LIMIT, NO_ROOM, NO_ROUTE, Datagram
from holdfast.network.sim.routing.flooding import Flooding
from holdfast.network.sim.routing.geographic import Geographic
from holdfast.network.sim.routing.ondemand import OnDemand, RouteRequest
from holdfast.network.sim.routing.overhear import IdGrid, Notice
from holdfast.network.sim.routing.tree import Tree
from support.ether import Ether, distances, grid_graph
from support.planes import Plane, disks

SETTLED = 20 * SECOND
"""By then beacons have told everybody of everybody."""

PROTOCOLS = ("flooding", "geographic", "on demand", "tree")


def protocol(name: str, plane: Plane, sink: int):
    return {
        "flooding": Flooding(limit=len(plane.places)),
        "geographic": Geographic(plane.places, limit=1000),
        "on demand": OnDemand(limit=len(plane.places)),
        "tree": Tree((sink,)),
    }[name]


@pytest.mark.parametrize("name", PROTOCOLS)
@given(plane=disks(most=16), data=st.data())
def test_a_reachable_destination_receives_a_message_once(name, plane, data):
    nodes = st.integers(0, len(plane.places) - 1)
    start, end = data.draw(nodes), data.draw(nodes)
    if start == end:
        return
    ether = Ether(protocol(name, plane, end), plane.graph)
    ether.send(SETTLED, start, end)
    ether.run(SETTLED + 10 * SECOND)
    assert [node for node, _ in ether.delivered] == [end]
    assert ether.delivered[0][1].hops >= distances(plane.graph, start)[end]


@pytest.mark.parametrize("name", PROTOCOLS)
@given(plane=disks(most=10), seed=st.integers(0, 2**32), data=st.data())
def test_nothing_is_lost_silently_when_links_lose_frames(name, plane, seed, data):
    """Every datagram is delivered, discarded for a reason, or still held; machines never fail."""
    random = Random(seed)
    nodes = st.integers(0, len(plane.places) - 1)
    start, end = data.draw(nodes), data.draw(nodes)
    if start == end:
        return
    ether = Ether(protocol(name, plane, end), plane.graph, loses=lambda a, b: random.random() < 0.3)
    for number in range(1, 6):
        ether.send(SETTLED + number * SECOND, start, end, number)
    ether.run(SETTLED + 20 * SECOND)
    came = {d.number for _, d in ether.delivered}
    ended = {d.number for _, d, _ in ether.discarded}
    held = {d.number for state in ether.states.values() for d in ether.machine.held(state)}
    if name == "flooding":
        assert not held
    else:
        assert came | ended | held == {1, 2, 3, 4, 5}


# Geographic.


def test_a_walk_returns_also_where_one_end_of_a_link_overtakes_the_other():
    """Node 3 got no acknowledgement of node 4 and passes it over, while node 4 uses the link.  What comes by
    that link is on another face than the walk began on, and would never meet its first link again."""
    places = [(83.5, 69.2), (73.6, 63.0), (55.1, 61.0), (48.2, 62.7), (28.7, 51.4), (32.2, 40.5)]
    places += [(35.5, 39.3), (54.4, 33.9), (61.3, 52.2)]
    graph = {
        a: {b for b in range(len(places)) if a != b and dist(places[a], places[b]) <= 25}
        for a in range(len(places))
    }
    ether = Ether(Geographic(tuple(places)), graph)
    ether.run(SETTLED)
    ether.states[3].distrusted[4] = SETTLED + 10 * SECOND
    ether.send(SETTLED, 5, (66.0, 95.0))
    ether.run(SETTLED + 5 * SECOND)
    assert ether.discarded == []
    assert [node for node, _ in ether.delivered] == [0]
    assert ether.delivered[0][1].hops < 40


# Flooding.


@given(disks(most=16), st.data())
def test_a_flood_reaches_all_nodes_and_each_sends_once(plane, data):
    start = data.draw(st.integers(0, len(plane.places) - 1))
    ether = Ether(Flooding(limit=100, jitter=0), plane.graph)
    ether.send(0, start, BROADCAST)
    ether.run(10 * SECOND)
    far = distances(plane.graph, start)
    assert {node: d.hops for node, d in ether.delivered} == {n: hops for n, hops in far.items() if n != start}
    assert Counter(node for node, _ in ether.transmitted) == Counter(plane.graph.keys())


@given(disks(most=16), st.integers(1, 5))
def test_a_flood_ends_at_its_hop_limit(plane, limit):
    ether = Ether(Flooding(limit=limit, jitter=0), plane.graph)
    ether.send(0, 0, BROADCAST)
    ether.run(10 * SECOND)
    assert {n for n, _ in ether.delivered} == {
        n for n, h in distances(plane.graph, 0).items() if 0 < h <= limit
    }
    assert {why for _, _, why in ether.discarded} <= {HOP_LIMIT}


# ID-based routing.


@given(st.integers(2, 8), st.integers(2, 8), st.data())
def test_a_grid_forwards_in_the_larger_of_rows_and_columns(rows, columns, data):
    nodes = st.integers(0, rows * columns - 1)
    start, end = data.draw(nodes), data.draw(nodes)
    if start == end:
        return
    graph = grid_graph(rows, columns)
    ether = Ether(IdGrid(rows, columns), graph)
    ether.send(0, start, end)
    ether.run(10 * SECOND)
    ((node, datagram),) = ether.delivered
    assert (node, datagram.hops) == (end, distances(graph, start)[end])
    assert len(ether.transmitted) == datagram.hops, "nobody was asked twice, nothing else was sent"


def test_a_silent_neighbour_is_asked_again_and_then_skipped():
    ether = Ether(IdGrid(3, 3, resends=2), grid_graph(3, 3))
    ether.down = {4}
    ether.send(0, 0, 8, number=1)
    ether.send(5 * SECOND, 0, 8, number=2)
    ether.run(20 * SECOND)
    assert [node for node, _ in ether.delivered] == [8, 8]
    asked = [effect.to for node, effect in ether.transmitted if node == 0 and effect.what.number == 1]
    assert asked == [4, 4, 4, 1], "rule e, two resends [D54], then the next shortest path"
    again = [effect.to for node, effect in ether.transmitted if node == 0 and effect.what.number == 2]
    assert 4 not in again, "it is distrusted for a while"


def test_a_neighbour_that_sends_again_is_trusted_again():
    ether = Ether(IdGrid(3, 3), grid_graph(3, 3))
    ether.down = {4}
    ether.send(0, 0, 8, number=1)
    ether.at(5 * SECOND, ether.down.clear)
    ether.send(6 * SECOND, 4, 1, number=1)
    ether.send(7 * SECOND, 0, 8, number=2)
    ether.run(20 * SECOND)
    assert [effect.to for n, effect in ether.transmitted if n == 0 and effect.what.number == 2] == [4]


def test_a_node_answers_a_repeated_datagram_with_a_notice_and_forwards_it_once():
    deaf = {"now": True}
    ether = Ether(
        IdGrid(1, 4, resends=5), grid_graph(1, 4), loses=lambda a, b: (a, b) == (1, 0) and deaf["now"]
    )
    ether.at(300 * MILLISECOND, lambda: deaf.update(now=False))
    ether.send(0, 0, 3)
    ether.run(10 * SECOND)
    assert [node for node, _ in ether.delivered] == [3]
    by_one = [effect.what for node, effect in ether.transmitted if node == 1]
    assert sum(isinstance(what, Datagram) for what in by_one) == 1
    assert sum(isinstance(what, Notice) for what in by_one) >= 1
    assert not ether.discarded


def test_datagrams_to_a_dead_node_end_after_a_few_frames_and_their_sender_is_notified():
    """They once travelled from neighbour to neighbour: a sender that repeats them made an endless storm."""
    ether = Ether(IdGrid(5, 5), grid_graph(5, 5))
    ether.down = {12}
    for number in range(1, 201):
        ether.send(number * 400 * MILLISECOND, 0, 12, number)
    ether.run(30 * SECOND)
    assert len(ether.transmitted) < 200, "far fewer frames than datagrams are given up"
    at_sender = [datagram.number for node, datagram, why in ether.discarded if (node, why) == (0, NO_ROUTE)]
    assert len(at_sender) > 40
    ether.at(35 * SECOND, ether.down.clear)
    ether.run(100 * SECOND)
    came = [datagram.number for node, datagram in ether.delivered]
    assert came[-1] == 200
    assert came == list(range(came[0], 201)), "after a pause all arrive again"
    assert came[0] * 400 * MILLISECOND <= 35 * SECOND + IdGrid(5, 5).distrust


def test_a_datagram_does_not_circle_a_silent_destination():
    places = tuple((float(n % 5), float(n // 5)) for n in range(25))
    ether = Ether(Geographic(places), grid_graph(5, 5))
    ether.at(SETTLED, lambda: ether.down.add(12))
    for number in range(1, 51):
        ether.send(SETTLED + number * SECOND, 0, 12, number)
    ether.run(SETTLED + 60 * SECOND)
    carried = [effect for _, effect in ether.transmitted if isinstance(effect.what, Datagram)]
    assert len(carried) < 50 * 4
    assert {datagram.number for _, datagram, _ in ether.discarded} == set(range(1, 51))


def test_a_datagram_without_a_path_is_discarded_with_that_reason():
    ether = Ether(IdGrid(1, 4), grid_graph(1, 4))
    ether.down = {2}
    ether.send(0, 0, 3)
    ether.run(60 * SECOND)
    assert [(node, why) for node, _, why in ether.discarded] == [(1, NO_ROUTE)]
    assert all(not list(ether.machine.held(state)) for state in ether.states.values())


@given(st.sets(st.integers(0, 24), max_size=8), st.integers(0, 24), st.integers(0, 24))
def test_datagrams_are_routed_around_dead_nodes_or_given_up(dead, start, end):
    if start == end or {start, end} & dead:
        return
    ether = Ether(IdGrid(5, 5), grid_graph(5, 5))
    ether.down = dead
    ether.send(0, start, end)
    ether.run(120 * SECOND)
    came = [node for node, _ in ether.delivered]
    assert came in ([end], []) or set(came) == {end}
    assert came or ether.discarded


# On demand.


def next_hops(ether: Ether, target: int) -> dict[int, int]:
    found = {}
    for node, state in ether.states.items():
        route = state.routes.get(target)
        if route is not None and not route.broken and route.until > ether.now:
            found[node] = route.by
    return found


def assert_no_loop(ether: Ether) -> None:
    for target in ether.states:
        hops = next_hops(ether, target)
        for start in hops:
            node, seen = start, set()
            while node in hops and node != target:
                assert node not in seen, f"a loop to {target} at {sorted(seen)}"
                seen.add(node)
                node = hops[node]


@given(disks(most=9), st.integers(0, 2**32))
def test_routes_never_form_a_loop_whatever_links_do(plane, seed):
    """The reason for sequence numbers: links break and come back while routes are being made."""
    random = Random(seed)
    ether = Ether(OnDemand(keep=3 * SECOND), plane.graph, loses=lambda a, b: random.random() < 0.1)
    links, nodes = list(plane.links), list(plane.graph)
    for number in range(1, 25):
        at = number * 200 * MILLISECOND
        a, b = random.choice(links)
        change = random.choice((ether.cut, ether.mend))
        ether.at(at, lambda change=change, a=a, b=b: change(a, b))
        start, end = random.choice(nodes), random.choice(nodes)
        if start != end:
            ether.send(at + 1, start, end, number)
    ether.watch = lambda: assert_no_loop(ether)
    ether.run(12 * SECOND)


def test_a_route_is_requested_once_and_expires_when_unused():
    line = {0: {1}, 1: {0, 2}, 2: {1}}
    ether = Ether(OnDemand(keep=30 * SECOND), line)
    for number, at in enumerate((0, 20, 40, 100), 1):
        ether.send(at * SECOND, 0, 2, number)
    ether.run(110 * SECOND)
    assert len(ether.delivered) == 4
    asked = [
        effect.what
        for node, effect in ether.transmitted
        if node == 0 and isinstance(effect.what, RouteRequest)
    ]
    assert len(asked) == 2, "at the beginning, and after 60 s in which nobody used it"


def test_a_broken_link_is_reported_and_bypassed():
    ring = {0: {1, 3}, 1: {0, 2}, 2: {1, 3}, 3: {0, 2}}
    ether = Ether(OnDemand(jitter=0), ring)
    ether.send(0, 0, 2, number=1)
    ether.run(1 * SECOND)
    first = next_hops(ether, 2)[0]
    ether.at(2 * SECOND, lambda: ether.cut(first, 2))
    for number in (2, 3):
        ether.send(number * 2 * SECOND, 0, 2, number)
    ether.run(20 * SECOND)
    assert [d.number for _, d in ether.delivered] == [1, 3]
    assert [(node, d.number) for node, d, _ in ether.discarded] == [(first, 2)]
    assert next_hops(ether, 2)[0] != first


def test_losses_of_a_link_are_final_without_resends_and_a_second_route():
    """TYMO, the DYMO of TinyOS: a frame that is not acknowledged takes the route and the datagram with it."""
    ring = {0: {1, 3}, 1: {0, 2}, 2: {1, 3}, 3: {0, 2}}
    ether = Ether(OnDemand(jitter=0, resends=0, second=False), ring)
    ether.send(0, 0, 2, number=1)
    ether.run(1 * SECOND)
    ether.at(2 * SECOND, lambda: ether.cut(0, next_hops(ether, 2)[0]))
    for number in (2, 3):
        ether.send(number * 2 * SECOND, 0, 2, number)
    ether.run(20 * SECOND)
    assert [d.number for _, d in ether.delivered] == [1, 3]
    assert [(node, d.number) for node, d, _ in ether.discarded] == [(0, 2)]


def test_with_one_forwarding_buffer_a_second_datagram_is_dropped():
    star = {0: {4}, 1: {4}, 2: {4}, 3: {4}, 4: {0, 1, 2, 3}}

    def sent(buffers: int | None) -> tuple[int, list[tuple[int, str]]]:
        ether = Ether(OnDemand(jitter=0, buffers=buffers), star)
        for at in (0, 5 * SECOND):
            for origin in (0, 1, 2):
                ether.send(at, origin, 3, number=1 + at)
        ether.run(20 * SECOND)
        return len(ether.delivered), [(node, why) for node, _, why in ether.discarded]

    assert sent(None) == (6, [])
    came, dropped = sent(1)
    assert came < 6
    assert set(dropped) == {(4, NO_ROOM)}
    assert came + len(dropped) == 6


def test_an_unknown_target_is_given_up_after_several_tries():
    ether = Ether(OnDemand(tries=3, room=2), {0: {1}, 1: {0}, 2: set()})
    for number in range(1, 5):
        ether.send(number, 0, 2, number)
    ether.run(60 * SECOND)
    asked = [effect for node, effect in ether.transmitted if node == 0]
    assert len(asked) == 3
    assert sorted((d.number, why) for _, d, why in ether.discarded) == [
        (1, NO_ROUTE), (2, NO_ROUTE), (3, NO_ROOM), (4, NO_ROOM),
    ]  # fmt: skip


# Trees.


@given(disks(most=14), st.data())
def test_a_tree_by_hops_is_a_shortest_path_tree(plane, data):
    sink = data.draw(st.integers(0, len(plane.places) - 1))
    machine = Tree((sink,), metric="hops")
    ether = Ether(machine, plane.graph)
    ether.run(60 * SECOND)
    costs = {node: machine.cost(state, sink) for node, state in ether.states.items()}
    assert costs == distances(plane.graph, sink)


@given(disks(most=12), st.data())
def test_a_parent_is_always_cheaper_once_costs_are_known(plane, data):
    sink = data.draw(st.integers(0, len(plane.places) - 1))
    machine = Tree((sink,))
    ether = Ether(machine, plane.graph)
    ether.run(200 * SECOND)
    for node, state in ether.states.items():
        if node != sink:
            parent = state.parents[sink]
            assert machine.cost(ether.states[parent], sink) < machine.cost(state, sink)


def test_a_good_detour_is_better_than_a_bad_link():
    """Two hops that always work against one that works in two of five times."""
    random = Random(7)
    graph = {0: {1, 2}, 1: {0, 2}, 2: {0, 1}}
    bad = {(0, 2), (2, 0)}
    by_hops, by_etx = (
        Ether(Tree((0,), metric=metric), graph, loses=lambda a, b: (a, b) in bad and random.random() < 0.6)
        for metric in ("hops", "etx")
    )
    for ether in (by_hops, by_etx):
        ether.run(600 * SECOND)
    assert by_etx.states[2].parents == {0: 1}
    assert by_hops.states[2].parents == {0: 0}


def test_a_tree_grows_again_round_a_dead_node():
    ether = Ether(Tree((0,)), grid_graph(3, 3))
    for number in range(1, 11):
        ether.send(number * 20 * SECOND, 8, 0, number)
    ether.at(50 * SECOND, lambda: ether.down.add(ether.states[8].parents[0]))
    ether.run(300 * SECOND)
    assert [d.number for _, d in ether.delivered] == list(range(1, 11))


def test_several_sinks_have_a_tree_each():
    ether = Ether(Tree((0, 8)), grid_graph(3, 3))
    ether.send(SETTLED, 1, 8, number=1)
    ether.send(SETTLED, 7, 0, number=1)
    ether.run(SETTLED + 5 * SECOND)
    assert {(node, d.origin) for node, d in ether.delivered} == {(8, 1), (0, 7)}
