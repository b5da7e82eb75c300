"""Quad-PubSub at work: processes, and sockets of one process, that talk over UDP."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from itertools import count

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.model.space import Rectangle
from holdfast.network.overlay.points import Alive, PointsNode
from holdfast.network.overlay.relays import Relays, Wire, neighbours
from holdfast.network.overlay.udp import DatagramFaults, UdpHost, listen
from holdfast.network.protocols.qps import request
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.envelope import Envelope
from holdfast.network.protocols.qps.mapping import RoleMapping
from holdfast.network.protocols.qps.physical import PhysicalNode
from holdfast.network.protocols.qps.tree import ScopeTree
from support.patience import PATIENCE, free_port

PLACES = {"a": (5.0, 5.0), "b": (60.0, 20.0), "c": (30.0, 70.0), "d": (90.0, 90.0), "e": (50.0, 50.0)}
WHOLE = Rectangle((0.0, 0.0), (100.0, 100.0))


def test_a_broker_on_a_socket_that_closes_is_replaced():
    """Every event comes, before and after; datagrams are held back, so that they overtake one another."""
    deployment = QpsDeployment(
        tree=ScopeTree((0.0, 0.0), 100.0, 2),
        topics=("T",),
        renewal=SECOND // 2,
        mapping=RoleMapping(check=SECOND // 2, patience=SECOND),
    )
    came: list[int] = []

    def on_delivery(what: object) -> None:
        if isinstance(what, request.QpsNotify):
            came.append(what.values["n"])

    def numbers() -> list[int]:
        return sorted(n for n in came if n >= 0)

    async def a_way(host: UdpHost, trial: int) -> None:
        """Publish events until one arrives at the subscriber, so that there is a path."""
        await asyncio.sleep(1.0)  # all nodes know all others
        host.ask(request.QpsPublishRequest("p", "T", PLACES["a"], {"n": trial}))
        async with asyncio.timeout(PATIENCE):
            while trial not in came:
                await asyncio.sleep(1.0)
                host.ask(request.QpsPublishRequest("p", "T", PLACES["a"], {"n": trial}))

    async def events(host: UdpHost, numbers: range) -> None:
        for n in numbers:
            host.ask(request.QpsPublishRequest("p", "T", PLACES["a"], {"n": n}))
            await asyncio.sleep(0.02)

    async def until(so) -> None:
        async with asyncio.timeout(PATIENCE):
            while not so():
                await asyncio.sleep(0.05)

    async def work() -> None:
        hosts = {}
        for name, place in PLACES.items():
            machine = PointsNode(PhysicalNode(deployment, place), name, PLACES)
            hosts[name] = UdpHost(name, machine, Envelope | Alive, {}, on_delivery, DatagramFaults(late=5000))
            await listen(hosts[name], ("127.0.0.1", 0))
        for name, host in hosts.items():
            host.peers |= {other: each.address for other, each in hosts.items() if other != name}
        hosts["a"].ask(request.QpsAdvertiseRequest("p", "T", Rectangle((4.0, 4.0), (6.0, 6.0))))
        hosts["d"].ask(request.QpsSubscribeRequest("s", "T", WHOLE, 5.0))
        await a_way(hosts["a"], -1)
        await events(hosts["a"], range(20))
        await until(lambda: len(numbers()) >= 20)
        brokers = [name for name, host in hosts.items() if host.state.inner.own_roles and name not in "ad"]
        for name in brokers[:1]:
            hosts.pop(name).close()
        await asyncio.sleep(2.5)  # who is silent is gone
        await a_way(hosts["a"], -2)
        await events(hosts["a"], range(20, 40))
        await until(lambda: len(numbers()) >= 40)
        for host in hosts.values():
            host.close()

    asyncio.run(work())
    assert numbers() == list(range(40))


GRID = {f"n{x}{y}": (10.0 + 20 * x + y / 10, 10.0 + 20 * y) for x in range(4) for y in range(3)}
REACH = 25.0


def test_twelve_sockets_that_reach_only_their_neighbours_relay_events_across_the_field():
    """From one corner to the other at least five hops away; each delivered event arrives once."""
    deployment = QpsDeployment(
        tree=ScopeTree((0.0, 0.0), 100.0, 2),
        topics=("T",),
        renewal=60 * SECOND,
        mapping=RoleMapping(check=60 * SECOND),
    )
    came: list[int] = []

    def on_delivery(what: object) -> None:
        if isinstance(what, request.QpsNotify):
            came.append(what.values["n"])

    async def work() -> None:
        hosts: dict[str, UdpHost] = {}
        for name, place in GRID.items():
            near = neighbours(GRID, name, REACH)
            machine = Relays(PhysicalNode(deployment, place), name, place, near, Envelope, 20 * SECOND)
            hosts[name] = UdpHost(name, machine, Wire, {}, on_delivery)
            await listen(hosts[name], ("127.0.0.1", 0))
        for host in hosts.values():
            host.peers |= {other: hosts[other].address for other in host.machine.near}
        x, y = GRID["n00"]
        hosts["n00"].ask(request.QpsAdvertiseRequest("p", "T", Rectangle((x - 1, y - 1), (x + 1, y + 1))))
        hosts["n32"].ask(request.QpsSubscribeRequest("s", "T", WHOLE, 5.0))
        async with asyncio.timeout(PATIENCE):
            for n in count():
                hosts["n00"].ask(request.QpsPublishRequest("p", "T", GRID["n00"], {"n": n}))
                await asyncio.sleep(0.02)
                if len(came) >= 20:
                    break
            while len(came) <= n - min(came):
                await asyncio.sleep(0.02)
        # five hops, over two brokers at most, so that two nodes or more only relay
        assert sum(host.state.relayed_count for host in hosts.values()) >= 2 * len(came)
        assert not any(host.counted["to nobody"] for host in hosts.values())
        for host in hosts.values():
            host.close()

    asyncio.run(work())
    assert sorted(came) == list(range(min(came), max(came) + 1))  # from the first event on, each once


@pytest.mark.soak
def test_nine_processes_relay_events_around_a_killed_process():
    places = {name: at for name, at in GRID.items() if name[1] != "3"}
    ports = {name: free_port(socket.SOCK_DGRAM) for name in places}

    def start(name: str, *words: object) -> subprocess.Popen[str]:
        near = neighbours(places, name, REACH)
        peers = [f"--peer={o}@{x},{y}=127.0.0.1:{ports[o]}" for o, (x, y) in near.items()]
        x, y = places[name]
        command = [sys.executable, "-m", "holdfast", "qps", f"--listen=127.0.0.1:{ports[name]}", "--relay"]
        return subprocess.Popen(
            [*command, *map(str, words), "--name", name, "--at", f"{x},{y}", *peers],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    others = {name: start(name) for name in places if name not in ("n00", "n22")}
    reader = start("n22", "--want", "0,0,40,40", "-n", 40)
    writer = start("n00", *range(5000), "--every", 0.1)
    try:
        first = [json.loads(reader.stdout.readline())["value"] for _ in range(10)]
        others["n11"].kill()  # in the middle
        rest = [
            json.loads(line)["value"] for line in reader.communicate(timeout=10 * PATIENCE)[0].splitlines()
        ]
    finally:
        for process in (*others.values(), writer, reader):
            process.kill()
            process.communicate()
    values = first + rest
    assert len(values) == len(set(values)) == 40


@pytest.mark.parametrize("topic", ["Reading", "Rain"])
def test_events_arrive_in_a_row_of_four_processes_whatever_the_topic_is_called(topic):
    """The first and the last stand in one leaf, and only the two between, which are outside, connect them.
    The topic decides which of the two acts for the leaf; of "Rain" nothing arrived."""
    at = {"a": (3, 27), "b": (6, 15), "c": (19, 15), "d": (23, 27)}
    row, ports = list(at), {name: free_port(socket.SOCK_DGRAM) for name in at}

    def start(name: str, *words: object) -> subprocess.Popen[str]:
        near = [row[i] for i in (row.index(name) - 1, row.index(name) + 1) if 0 <= i < len(row)]
        peers = [f"--peer={o}@{at[o][0]},{at[o][1]}=127.0.0.1:{ports[o]}" for o in near]
        command = [sys.executable, "-m", "holdfast", "qps", f"--listen=127.0.0.1:{ports[name]}", "--relay"]
        command += ["--side=50", "--levels=2", f"--topic={topic}", f"--name={name}", *peers]
        return subprocess.Popen(
            [*command, f"--at={at[name][0]},{at[name][1]}", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    others = [start("a"), start("c")]
    reader = start("b", "--want", "0,0,50,50", "-n", 10)
    writer = start("d", *range(5000), "--every", 0.1)
    try:
        values = [json.loads(line)["value"] for line in reader.communicate(timeout=PATIENCE)[0].splitlines()]
    finally:
        for process in (*others, writer, reader):
            process.kill()
            process.communicate()
    assert len(values) == len(set(values)) == 10


def test_processes_exchange_events_by_place():
    at = {"a": "10,10", "b": "50,50", "c": "90,90"}
    ports = {name: free_port(socket.SOCK_DGRAM) for name in at}

    def start(name: str, *words: object) -> subprocess.Popen[str]:
        peers = [f"--peer={other}@{at[other]}=127.0.0.1:{ports[other]}" for other in at if other != name]
        command = [sys.executable, "-m", "holdfast", "qps", f"--listen=127.0.0.1:{ports[name]}"]
        return subprocess.Popen(
            [*command, *map(str, words), "--name", name, "--at", at[name], *peers],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    middle = start("b")
    reader = start("c", "--want", "0,0,40,40", "-n", 3)
    writer = start("a", *range(3_000), "--every", 0.2)  # until it is stopped
    try:
        out, err = reader.communicate(timeout=PATIENCE)
    finally:
        for process in (middle, writer, reader):
            process.kill()
            process.communicate()
    assert reader.returncode == 0, err
    values = [json.loads(line) for line in out.splitlines()]
    assert [(each["source"], each["x"]) for each in values] == [("a", 10.0)] * 3
    assert [each["value"] for each in values] == sorted({each["value"] for each in values})


def test_a_node_without_a_position_or_at_an_occupied_one_is_refused():
    with pytest.raises(UsageError, match="does not stand anywhere"):
        PointsNode(None, "x", PLACES)
    with pytest.raises(UsageError, match="two nodes stand at one point"):
        PointsNode(None, "a", {"a": (1.0, 1.0), "b": (1.0, 1.0)})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--at", "3"], "--at 3: 2 numbers with commas"),
        (["--peer", "b=127.0.0.1:1"], "write it as NAME@X,Y=HOST:PORT"),
        (["--levels", "12"], "it has 1 to 10"),
        (["--want", "0,0,9,9", "--epsilon", "0.9"], "ε is 0.9; it is 1"),
        (["--want", "5,5,5,9"], "--want 5,5,5,9: the region (5, 5) to (5, 9) is empty"),
        (["--want", "9,9,0,0"], "its first corner is the lower left"),
        (["--want", "0,0,200,9"], "--want 0,0,200,9: the region (0, 0) to (200, 9) is not all in space"),
        (["--at", "200,3"], "(200.0, 3.0) is outside of space"),
        (["--peer", "a@200,3=127.0.0.1:9"], "(200.0, 3.0) is outside of space"),
        (["--peer", "node@1,1=127.0.0.1:9"], "this node's own"),
        (["--peer", "a@1,1=127.0.0.1:9", "--peer", "a@2,2=127.0.0.1:9"], "that of two peers"),
        (["nan"], "a reading is a number"),
    ],
)
def test_wrong_options_of_qps_are_usage_errors(holdfast, words, message):
    ran = holdfast("qps", *words)
    assert ran.status == 2
    assert message in ran.err
    assert "listens" not in ran.err  # before anything is started
