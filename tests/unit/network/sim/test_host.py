"""A protocol machine runs on a node as it is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from holdfast.model.instant import SECOND
from holdfast.model.protocol import (
    EVERYBODY,
    Asked,
    CancelTimer,
    Deliver,
    Drop,
    Fired,
    Received,
    Send,
    SetTimer,
    Spread,
    Started,
)
from holdfast.network.sim.host import NodeHost
from holdfast.network.sim.network import Network, Setup
from holdfast.network.sim.node import Node
from holdfast.network.sim.propagation import UnitDisk
from holdfast.network.sim.routing.geographic import Geographic
from holdfast.network.sim.routing.ledger import MessageLedger
from holdfast.network.sim.routing.router import Router
from holdfast.network.sim.topology import uniform
from support.air import links


@dataclass(frozen=True)
class EchoState:
    inputs: tuple = ()
    beats: int = 0


@dataclass(frozen=True)
class Beacon:
    """Sends a hello to all peers every second; answers a hello; drops a peer after three."""

    quiet: bool = False
    patience: int = 3

    def initial(self):
        return EchoState()

    def handle(self, state, given):
        state = replace(state, inputs=(*state.inputs, given))
        match given:
            case Started(now):
                return state, [] if self.quiet else [
                    SetTimer("beat", now + SECOND),
                    SetTimer("never", now + 7),
                ]
            case Fired(now, "beat"):
                state = replace(state, beats=state.beats + 1)
                return state, [
                    Send(EVERYBODY, f"hello {state.beats}", cause="beacon"),
                    CancelTimer("once"),
                    SetTimer("beat", now + 5 * SECOND),
                    SetTimer("beat", now + SECOND),
                ]
            case Received(_, sender, message) if message.startswith("hello"):
                effects = [Deliver((sender, message)), Send(sender, "thanks", cause="answer")]
                if message == f"hello {self.patience}":
                    effects.append(Drop(sender, "too chatty"))
                return state, effects
            case Asked(_, request):
                return state, [Send("1", request)]
        return state, []


@dataclass(frozen=True)
class Hop:
    origin: int
    type: str
    message: object


class OneHop:
    """Routing for neighbours only: a message goes over one link or not at all."""

    def __init__(self, node):
        self._node, self._handlers = node, {}
        node.link.listen(self._received)

    def send(self, destination, type, message, size, cause=""):
        self._node.link.send(destination, Hop(self._node.id, type, message), size, cause)

    def register_handler(self, type, peek, callback):
        if not peek:
            self._handlers[type] = callback

    def _received(self, frame):
        if frame.payload.type in self._handlers:
            self._handlers[frame.payload.type](frame.payload)


@dataclass
class HostBench:
    hosts: dict[int, NodeHost] = field(default_factory=dict)
    delivered: list = field(default_factory=list)
    network: Network = None


def bench(**setup) -> HostBench:
    """Node 0 sends a hello; nodes 1 and 2 listen; 2 has a link only to 1."""
    made = HostBench()
    made.network = Network(Setup(positions=[(0, 0)] * 3, propagation=links((0, 1), (1, 2)), **setup))

    def boot(node: Node) -> None:
        made.hosts[node.id] = NodeHost(
            node,
            Beacon(quiet=node.id != 0),
            OneHop(node),
            size=len,
            deliver=lambda node, what: made.delivered.append((node.id, what)),
            cause="beacon protocol",
        )

    made.network.boot(boot)
    return made


def test_sends_timers_and_deliveries_work_and_messages_of_a_dropped_peer_are_ignored():
    made = bench()
    made.network.run(5 * SECOND + SECOND // 2)
    assert made.delivered == [(1, ("0", f"hello {i}")) for i in (1, 2, 3)]
    inputs = made.hosts[0].state.inputs
    assert [type(i).__name__ for i in inputs] == [
        "Started", "Fired", "Fired",  # the start, the timer that fires once, the first beat
        "Received", "Fired", "Received", "Fired", "Received", "Fired", "Fired",
    ]  # fmt: skip
    assert [i.now for i in inputs if i == Fired(i.now, "beat")] == [SECOND * n for n in (1, 2, 3, 4, 5)]


def test_energy_goes_to_the_cause_of_a_send_or_to_that_of_the_host():
    made = bench()
    made.hosts[0].ask("thanks for nothing")
    made.network.run(3 * SECOND)
    by_cause = made.network.by_cause()
    assert {"", "beacon", "answer", "beacon protocol"} == set(by_cause)
    assert all(joules > 0 for joules in by_cause.values())


def test_a_machine_sees_the_clock_of_its_node():
    made = bench(drift_ppm={0: 1000.0})
    made.network.run(10 * SECOND)
    emitted = [given.now for given in made.hosts[0].state.inputs if isinstance(given, Fired)]
    assert emitted == [7, *(SECOND * n for n in range(1, 11))]


def test_random_numbers_are_given_at_the_start_and_are_new_after_a_restart():
    made = bench()
    first = made.hosts[0].state.inputs[0]
    made.network.at(SECOND + 500_000, lambda: made.network.kill(0))
    made.network.at(4 * SECOND, lambda: made.network.restart(0))
    made.network.run(5 * SECOND + 100_000)
    second = made.hosts[0].state.inputs[0]
    assert isinstance(second, Started)
    assert second.now == 4 * SECOND
    assert second.seed != first.seed == bench().hosts[0].state.inputs[0].seed
    assert made.delivered == [(1, ("0", "hello 1")), (1, ("0", "hello 1"))]


def test_a_machine_can_start_from_a_stored_state():
    made = bench()
    node = made.network.nodes[0]
    host = NodeHost(
        node, Beacon(quiet=True), OneHop(node), size=len, stored_state=EchoState(beats=9), kind="again"
    )
    assert host.state.beats == 9


# To all nodes of a rectangle.


class Announcer:
    """Sends to a rectangle when it is asked to, and hands over what comes."""

    def initial(self):
        return None

    def handle(self, state, given):
        match given:
            case Asked(_, Spread() as effect):
                return state, [effect]
            case Received(_, _, message):
                return state, [Deliver(message)]
        return state, []


@pytest.mark.parametrize("seed", range(12))
def test_every_node_of_a_rectangle_is_reached_by_radio_also_over_outside_nodes(seed):
    """Forty nodes anywhere; a message for each of sixteen squares, from a node that may be elsewhere."""
    chance = random.Random(seed)
    placed = uniform(40, 100.0, 100.0, 25.0, seed)
    network = Network(Setup(positions=placed.positions, propagation=UnitDisk(25.0), seed=seed))
    hosts, came, ledger = {}, [], MessageLedger(placed.positions)

    def boot(node: Node) -> None:
        router = Router(node, Geographic(placed.positions), ledger)
        hosts[node.id] = NodeHost(
            node, Announcer(), router, size=len, deliver=lambda node, what: came.append((what, node.id))
        )

    network.boot(boot)
    due, squares = [], [(25.0 * column, 25.0 * row) for column in range(4) for row in range(4)]
    for i, (left, low) in enumerate(squares):
        area, name = ((left, low), (left + 25.0, low + 25.0)), f"square {i}"
        due += [
            (name, n) for n, (x, y) in enumerate(placed.positions)
            if left <= x <= left + 25 and low <= y <= low + 25
        ]  # fmt: skip
        start = chance.randrange(40)
        network.at(
            (30 + i) * SECOND, lambda start=start, area=area, name=name: hosts[start].ask(Spread(*area, name))
        )
    network.run(60 * SECOND)
    assert sorted(came) == sorted(due)
    spread = [entry for entry in ledger.entries.values() if entry.expected]
    assert all(len(entry.arrivals) == entry.expected for entry in spread)
