"""The simulated network: transmissions per second by size and density, beside simpy's bare event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from importlib.util import find_spec
from math import pi, sqrt
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from holdfast.model.instant import SECOND
from holdfast.model.space import Rectangle, contains
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps import request
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.sim.chance import stream
from holdfast.network.sim.clock import Clock
from holdfast.network.sim.field import Field
from holdfast.network.sim.mac import Csma
from holdfast.network.sim.network import Network, Setup, Totals
from holdfast.network.sim.node import Boot, Node
from holdfast.network.sim.propagation import LogDistance
from holdfast.network.sim.routing.ledger import MessageLedger
from holdfast.network.sim.routing.overhear import IdGrid
from holdfast.network.sim.routing.router import Router
from holdfast.network.sim.topology import uniform

from . import Row, measure_time

EVENTS = 500_000
NODES = (50, 500, 2_000)
NEIGHBOURS = 15
DENSITIES = (5, 10, 20, 40)
QUADS, PUBLISHED = (2_000, 100), 20
"""Nodes and subscribers of Quad-PubSub, and its events."""
TRANSMISSIONS = 20_000  # about, in each run among neighbours
PERIOD = 20 * SECOND
PATH = LogDistance(3.5)
REACH = 46.0  # metres, where that path loss leaves a frame that can be synchronised to

ROWS, COLUMNS, SPACING, DURATION = 7, 7, 100 / 6, 1000 * SECOND
PUBLISHERS = {0: 48, 6: 42, 21: 27, 42: 6, 48: 0}
"""Who publishes, and to whom: across the grid of the thesis [D69]."""


def run(progress: Callable[[str], None]) -> list[Row]:
    """The grid of the thesis, sizes, densities, and the event loop alone."""
    return [
        grid(progress),
        *sizes(progress),
        *densities(progress),
        *event_loops(progress),
        quads(progress),
    ]


def grid(progress: Callable[[str], None]) -> Row:
    """49 nodes, 1000 s, 5 publishers, one message each 2 s, over ID-based routing."""
    progress("49 nodes, 1000 s")
    timing = measure_time(_grid, 3)
    totals, delivered, neighbours, processor = timing.result
    detail = {
        "messages": len(PUBLISHERS) * DURATION // (2 * SECOND),
        "delivered": delivered,
        "transmissions": totals.transmissions,
        "events": totals.events,
        "neighbours": neighbours,
        "processor_s": processor,
        "worst_s": timing.worst,
    }
    what = "49 nodes, 1000 s, 5 publishers, one message each 2 s"
    return Row(what, timing.best, "s", "≤ 5 s", timing.best <= 5, detail)


def _grid() -> tuple[Totals, int, float, float]:
    places = [(column * SPACING, row * SPACING) for row in range(ROWS) for column in range(COLUMNS)]
    network = Network(Setup(positions=places, propagation=PATH, mac=Csma(), seed=1))
    ledger = MessageLedger(places)
    delivered: list[Any] = []

    def boot(node: Node) -> None:
        router = Router(node, IdGrid(ROWS, COLUMNS), ledger)
        router.register_handler("reading", False, delivered.append)

        def publish(_: Any) -> None:
            router.send(PUBLISHERS[node.id], "reading", None, 20, "reading")
            node.after(2 * SECOND, publish)

        if node.id in PUBLISHERS:
            node.after(node.random.randrange(2 * SECOND), publish)

    network.boot(boot)
    start = time.process_time()
    network.run(DURATION)
    seconds = time.process_time() - start
    totals = network.totals()
    assert totals.is_conserved()
    return totals, len(delivered), _mean_neighbours(network), seconds


def sizes(progress: Callable[[str], None]) -> Iterator[Row]:
    """Every node sends to its nearest neighbour, in networks of one density and several sizes."""
    for nodes in NODES:
        progress(f"{nodes:,} nodes, about {NEIGHBOURS} neighbours")
        rate, detail = _among_neighbours(nodes, NEIGHBOURS)
        yield Row(f"{nodes:,} nodes, about {NEIGHBOURS} neighbours", rate, "transmissions/s", detail=detail)


def densities(progress: Callable[[str], None]) -> Iterator[Row]:
    """The same in one size and several densities: what a transmission costs for each who hears it."""
    hearers, costs = [], []
    for neighbours in DENSITIES:
        progress(f"500 nodes, about {neighbours} neighbours")
        rate, detail = _among_neighbours(500, neighbours)
        hearers.append(detail["hearers"])
        costs.append(1e6 / rate)
        yield Row(f"500 nodes, about {neighbours} neighbours", rate, "transmissions/s", detail=detail)
    slope, fixed = np.polyfit(hearers, costs, 1)
    why = (
        "a transmission starts and ends once at everybody who hears it, so its cost grows with the hearers "
        "(neighbours, and those whom it only disturbs) and not with the nodes of the network"
    )
    yield Row(
        "a transmission, for each who hears it",
        float(slope),
        "µs",
        detail={"fixed_us": float(fixed), "why": why},
    )


def _among_neighbours(nodes: int, neighbours: int) -> tuple[float, dict[str, Any]]:
    """Transmissions per second of wall time, and what they were; the better of two runs."""
    runs = []
    for _ in range(2):
        network = _random_network(nodes, neighbours)
        network.boot(_chatting(network))
        timing = measure_time(partial(network.run, TRANSMISSIONS // 2 * PERIOD // nodes), 1)
        runs.append((timing.best, network))
    seconds, network = min(runs, key=itemgetter(0))
    totals = network.totals()
    assert totals.is_conserved()
    detail = {
        "wall_s": seconds,
        "simulated_s": totals.time / SECOND,
        "transmissions": totals.transmissions,
        "events_per_s": totals.events / seconds,
        "neighbours": _mean_neighbours(network),
        "hearers": sum(len(network.receptions(node.id)) for node in network.nodes) / nodes,
    }
    return totals.transmissions / seconds, detail


def _chatting(network: Network) -> Boot:
    """Everybody sends to the neighbour who hears it best."""
    nearest = {
        node.id: max(receptions, key=attrgetter("power_mw")).node
        for node in network.nodes
        if (receptions := network.receptions(node.id))
    }

    def boot(node: Node) -> None:
        def say(_: Any) -> None:
            node.link.send(nearest[node.id], None, 20)
            node.after(PERIOD, say)

        if node.id in nearest:
            node.after(node.random.randrange(PERIOD), say)

    return boot


def _random_network(nodes: int, neighbours: int) -> Network:
    """Nodes anywhere in a square that is as large as gives them so many neighbours (fewer at its edge)."""
    side, chance = sqrt(nodes * pi * REACH**2 / neighbours), stream(1, "benchmark", nodes, neighbours)
    places = [(chance.uniform(0, side), chance.uniform(0, side)) for _ in range(nodes)]
    return Network(Setup(positions=places, propagation=PATH, mac=Csma(), seed=1))


def _mean_neighbours(network: Network) -> float:
    return sum(map(len, network.receivers().values())) / len(network.nodes)


def quads(progress: Callable[[str], None]) -> Row:
    """Quad-PubSub without radios: subscribers to a region, one after the other, then events of it."""
    nodes, subscribers = QUADS
    progress(f"Quad-PubSub, {nodes:,} nodes")
    timing = measure_time(partial(_quads, nodes, subscribers), 1)
    delivered, due, network = timing.result
    assert delivered == due, (delivered, due)
    detail = {"events_told": delivered, "hops": sum(network.hops.values())}
    what = f"Quad-PubSub, {nodes:,} nodes, {subscribers} subscribers, {PUBLISHED} events"
    return Row(what, timing.best, "s", "≤ 60 s", timing.best <= 60, detail)


def _quads(nodes: int, subscribers: int) -> tuple[int, int, FieldNetwork]:
    side = 11.5 * sqrt(nodes)  # as dense as the thesis' 2,000 in 512 × 512
    places = uniform(nodes, side, side, 30.0, 1).positions
    deployment = QpsDeployment(tree=ScopeTree((0.0, 0.0), side, 5), topics=("T",))
    network = FieldNetwork(Field(places, 30.0), lambda node: QpsBroker(deployment, places[node]))
    chance = stream(1, "quads")
    wanted = Rectangle((side / 8, side / 8), (side / 2, side / 2))
    inside = [n for n, at in enumerate(network.field.places) if contains(wanted, at)]
    for node in inside:
        x, y = network.field.places[node]
        network.ask(node, request.QpsAdvertiseRequest("s", "T", Rectangle((x, y), (x + 1e-3, y + 1e-3))))
    for node in chance.sample(range(nodes), subscribers):
        network.ask(node, request.QpsSubscribeRequest("u", "T", wanted))
    network.settle()
    for _ in range(PUBLISHED):
        node = chance.choice(inside)
        network.ask(node, request.QpsPublishRequest("s", "T", network.field.places[node], {}))
    network.settle()
    return len(network.delivered), PUBLISHED * subscribers, network


def event_loops(progress: Callable[[str], None]) -> Iterator[Row]:
    """Timers that set themselves again, a hundred at a time, and nothing else."""
    progress("event loops")
    ours = EVENTS / measure_time(_timers, 3).best
    yield Row("events per second, the clock alone", ours, "events/s", detail={"events": EVENTS})
    if find_spec("simpy"):
        theirs = EVENTS / measure_time(_timers_in_simpy, 3).best
        detail = {"events": EVENTS, "holdfast_is_times_faster": ours / theirs}
        yield Row("the same by simpy", theirs, "events/s", detail=detail)


def _timers() -> None:
    clock = Clock()

    def again(period: int) -> None:
        clock.after(period, again, period)

    for period in range(1, 101):
        clock.after(period, again, period)
    happened = until = 0
    while happened < EVENTS:
        until += 1_000
        happened += clock.run(until)


def _timers_in_simpy() -> None:
    import simpy

    environment = simpy.Environment()
    happened = 0

    def again(period: int) -> Generator[Any, Any, None]:
        nonlocal happened
        while True:
            yield environment.timeout(period)
            happened += 1

    for period in range(1, 101):
        environment.process(again(period))
    while happened < EVENTS:
        environment.run(until=environment.now + 1_000)
