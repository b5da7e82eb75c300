"""The DDS family at work: processes, and sockets of one process, that talk over UDP."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections import Counter

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import MILLISECOND
from holdfast.network.overlay.udp import DatagramFaults, UdpHost, listen
from holdfast.network.protocols.dds import request
from holdfast.network.protocols.dds.deployment import DdsDeployment, DiscoverySettings, ReliableSettings
from holdfast.network.protocols.dds.interest import Interest
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL
from holdfast.network.protocols.dds.message import DdsMessage
from holdfast.network.protocols.dds.participant import DdsParticipant
from holdfast.network.protocols.dds.topic import DdsTopic, TopicSet
from support.patience import PATIENCE, free_port

WEATHER = ("--loss", "0.3", "--twice", "0.1", "--late", "10", "--rto", "25")


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "dds", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[list[dict], str]:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()], err


@pytest.mark.parametrize("via", [False, True], ids=["to the reader", "by way of a rendezvous node"])
def test_a_writer_ends_when_its_only_reader_left_silently(via):
    """The writer once repeated unacknowledged samples for ever."""
    port, middle = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    writer_at, middle_at = f"writer=127.0.0.1:{port}", f"rendezvous=127.0.0.1:{middle}"
    soon = ("--lease", 3, "--rto", 50)
    around = ("--via", "rendezvous", "--peer", middle_at) if via else ()
    others = [start("meet", "--listen", f"127.0.0.1:{middle}", "--peer", writer_at, *soon)] if via else []
    reader = start("read", "--level", "full", "--peer", writer_at, *around, *soon)
    values = range(100, 400)
    writer = start("write", *values, "--every", 0.02, "--listen", f"127.0.0.1:{port}", *around, *soon)
    others += [reader]
    try:
        assert json.loads(reader.stdout.readline())["value"] >= 100
        reader.kill()
        _, output = finish(writer)
    finally:
        for process in (*others, writer):
            process.kill()
            process.communicate()
    assert "300 published" in output


def test_processes_exchange_samples_despite_a_loss_of_30_percent():
    """One reader requires everything; the other only what is above 20, and accepts losses of the rest."""
    port = free_port(socket.SOCK_DGRAM)
    values = [n if n % 4 else n + 20 for n in range(16)]
    to = ("--peer", f"writer=127.0.0.1:{port}", *WEATHER)
    full = start("read", "--name", "full", "--level", "full", "-n", len(values), *to)
    part = start("read", "--name", "part", "--level", 20, "--seed", 1, *to)
    writer = start(
        "write", *values, "--listen", f"127.0.0.1:{port}", "--subscribers", 2, "--seed", 2, *WEATHER
    )
    try:
        _, output = finish(writer)
        came, _ = finish(full)
    finally:
        part.terminate()
    assert [sample["value"] for sample in came] == values
    assert "16 published" in output
    assert " 0 sent again" not in output
    some = [json.loads(line) for line in part.communicate(timeout=PATIENCE)[0].splitlines()]
    numbers = [sample["sequence"] for sample in some]
    assert numbers == sorted(set(numbers)), "in order, none twice"
    assert [sample["value"] for sample in some if sample["value"] > 20] == [v for v in values if v > 20]


@pytest.mark.parametrize(("mode", "percent"), [("DefTDDS", None), ("HyTDDS", None), ("DefTDDS", 100.0)])
def test_sockets_of_one_process_meet_at_a_rendezvous_node(mode, percent):
    """Three nodes on loopback, three of ten datagrams lost: all samples arrive, by ACK or by NACK."""
    level = FULL if percent is None else BEST_EFFORT
    deployment = DdsDeployment(
        topics=TopicSet((DdsTopic(0, "heat", level=level),)),
        table=("rn",),
        publishers={0: ("writer",)},
        mode=mode,
        reliable=ReliableSettings(rto=20 * MILLISECOND),
        discovery=DiscoverySettings(repeats=500, every=20 * MILLISECOND),
    )
    emitted: dict[str, list] = {"writer": [], "rn": [], "reader": []}

    async def work() -> None:
        hosts = {
            name: UdpHost(
                name,
                DdsParticipant(deployment, name),
                DdsMessage,
                {},
                emitted[name].append,
                DatagramFaults(0.3, 0.2, 5_000, n),
            )
            for n, name in enumerate(emitted)
        }
        for host in hosts.values():
            await listen(host, ("127.0.0.1", 0))
        for host in hosts.values():
            host.peers |= {name: other.address for name, other in hosts.items() if other is not host}
        writer, reader = hosts["writer"], hosts["reader"]
        writer.ask(request.DdsAdvertiseRequest("heat"))
        reader.ask(request.DdsSubscribeRequest("all", Interest(topic="heat")))
        while not any(
            isinstance(what, request.SubscriptionRegistered) for name in emitted for what in emitted[name]
        ):
            await asyncio.sleep(0.01)
        if percent is not None:
            reader.ask(request.AssureRequest("heat", percent))
            while not writer.state.histories:
                await asyncio.sleep(0.01)
        for value in range(15):
            writer.ask(request.DdsPublishRequest("heat", {"value": value}))
        while len([1 for what in emitted["reader"] if isinstance(what, request.DdsNotify)]) < 15:
            await asyncio.sleep(0.01)
        for host in hosts.values():
            host.close()
        assert sum(host.counted["lost on purpose"] for host in hosts.values()) > 0

    asyncio.run(asyncio.wait_for(work(), PATIENCE))
    came = [what.values["value"] for what in emitted["reader"] if isinstance(what, request.DdsNotify)]
    assert came == list(range(15))


def test_a_datagram_of_an_unknown_sender_is_counted_and_ignored():
    async def work() -> Counter[str]:
        deployment = DdsDeployment(topics=TopicSet((DdsTopic(0, "heat"),)), table=("7",), publishers={})
        host = UdpHost("7", DdsParticipant(deployment, "7"), DdsMessage, {}, lambda what: None)
        await listen(host, ("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for junk in (b"", b"\xff\x00", b"[1, 2]", b"\x92\xa1x\x91\xa4data"):
                stranger.sendto(junk, host.address)
        while host.counted["not understood"] < 4:
            await asyncio.sleep(0.01)
        host.close()
        return host.counted

    assert asyncio.run(asyncio.wait_for(work(), PATIENCE)) == {"not understood": 4}


@pytest.mark.soak
def test_three_processes_meet_at_a_rendezvous_node():
    port, via = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    there = ("--via", "rendezvous", "--peer", f"rendezvous=127.0.0.1:{via}")
    rendezvous = start("meet", "--listen", f"127.0.0.1:{via}", *WEATHER)
    try:
        reader = start("read", *there, "--level", "full", "-n", 10, *WEATHER)
        writer = start("write", *range(200), *there, "--listen", f"127.0.0.1:{port}", "--settle", 1, *WEATHER)
        came, _ = finish(reader)
    finally:
        rendezvous.terminate()
        writer.terminate()
        for process in (rendezvous, writer):
            process.communicate(timeout=PATIENCE)
    values = [sample["value"] for sample in came]
    assert values == list(range(int(values[0]), int(values[0]) + 10)), "from when it was known, all in order"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["read", "--level", "some"], "--level some: best-effort, full, or a number"),
        (["read", "--peer", "writer"], "write it as NAME=HOST:PORT"),
        (["read", "--loss", "1.5"], "from 0 to below 1"),
        (["read", "--percent", "101"], "from 0 (best effort) to 100"),
        (["write", "--listen", "nowhere"], "HOST:PORT"),
        (["write", "1", "--name", "x", "--writer", "y"], "no publisher of 'Reading'"),
    ],
)
def test_wrong_options_of_dds_are_usage_errors(holdfast, words, message):
    ran = holdfast("dds", *words)
    assert ran.status == 2
    assert message in ran.err


def test_an_impossible_loss_share_is_refused_with_a_reason():
    with pytest.raises(UsageError, match="below 1"):
        DatagramFaults(loss=1.0)
