"""The DDS family at work: on simulated motes, and as processes that talk over UDP."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from holdfast.errors import UsageError
from holdfast.lang.parse import parse
from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.protocols.dds import request
from holdfast.protocols.dds.deployment import Deployment, Discovery, Reliable
from holdfast.protocols.dds.interest import Interest
from holdfast.protocols.dds.level import BEST_EFFORT, FULL
from holdfast.protocols.dds.message import UNIT, Message
from holdfast.protocols.dds.participant import Participant
from holdfast.protocols.dds.topic import Topic, Topics
from holdfast.runtimes.overlay.udp import UdpHost, Weather, listen
from holdfast.runtimes.sensornet import setups
from holdfast.runtimes.sensornet.conditions import on_motes
from holdfast.runtimes.sensornet.run import Run, run
from holdfast.runtimes.sensornet.scenario import Failure, Subscription
from holdfast.sim.propagation import LogDistance
from support.chaos import PATIENCE

SHORT = {"duration": 60 * SECOND}
MODES = ("DefTDDS", "BLTDDS", "HyTDDS", "EATDDS")


# On simulated motes.


@pytest.mark.parametrize("hops", [1, 3, 5])
def test_by_way_of_the_rendezvous_node_the_hops_double(hops):
    """AT8: six hops are three to the RN and three onwards; the least is two."""
    ran = Run(setups.rtdds_rto(400 * MILLISECOND, hops, **SHORT))
    assert ran.finish().pdr == 1.0
    middle = ran.scenario.table[0]
    sent = [entry for entry in ran.ledger.entries.values() if entry.cause == "data" and entry.arrivals]
    there = {arrival.hops for e in sent if e.destination == middle for arrival in e.arrivals.values()}
    onward = {arrival.hops for e in sent if e.origin == middle for arrival in e.arrivals.values()}
    assert there == onward == {hops}


def test_discovery_takes_ten_subscriptions_each_and_notifications_or_rebroadcasts():
    """AT15: five pairs of subscriber and topic; Def and Hy say 50 times what BL says to all 48 others."""
    found = {mode: run(setups.modes(mode, 10 * SECOND, BEST_EFFORT, **SHORT)) for mode in MODES}
    assert found["DefTDDS"].discovery_messages == 50
    assert found["HyTDDS"].messages["Subscribe"] == 50
    assert 0 < found["HyTDDS"].messages["Notification"] <= 90
    assert found["BLTDDS"].messages["Subscribe"] == 50
    assert 50 * 40 < found["BLTDDS"].discovery_messages <= 50 * 49
    assert all(outcome.undiscovered == 0 for outcome in found.values())
    assert found["DefTDDS"].discovery_ms < found["HyTDDS"].discovery_ms, "one overlay hop against two"


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_brings_every_sample_to_every_subscriber_if_asked_to(mode):
    """The five publishers of Table 10, through collisions that lose half of what is sent once."""
    best, full = (run(setups.modes(mode, 4 * SECOND, level, **SHORT)) for level in (BEST_EFFORT, FULL))
    assert full.pdr == 1.0
    assert best.pdr < 0.7
    assert full.expected == best.expected == 15 * (2 * 2 + 2 * 2 + 1)
    assert best.retransmitted == 0 < full.retransmitted
    assert full.eed_ms > best.eed_ms
    assert best.conserved
    assert full.conserved


def test_scheduling_without_interference_lets_best_effort_through():
    """[D32] 25 publishers that sample at the same time, or each in its slot."""
    with_it, without = (
        run(setups.rtdds_load(25, 5 * SECOND, BEST_EFFORT, ifs=ifs, **SHORT)) for ifs in (True, False)
    )
    assert with_it.pdr > 2 * without.pdr


def test_the_baseline_without_middleware_sends_straight_to_the_base_station():
    """[D62] The middleware's samples go by way of the rendezvous node, and take longer."""
    with_it, without = (run(setups.middleware_cost(it, **SHORT)) for it in (True, False))
    assert without.discovery_messages == 0
    assert without.messages == {"Data": without.issued}
    assert with_it.eed_ms > without.eed_ms
    assert with_it.transmissions > without.transmissions


def test_the_role_of_rendezvous_node_moves_while_samples_flow():
    """EATDDS on radios: a round of 40 s, batteries that tell who has most."""
    scenario = setups.modes("EATDDS", 4 * SECOND, duration=200 * SECOND, battery_j=5.0)
    terms = replace(scenario.rotation, round=40 * SECOND, reports=40 * SECOND, sign=15 * SECOND)
    outcome = run(replace(scenario, rotation=terms))
    assert outcome.counted["terms"] >= 6
    assert outcome.pdr == 1.0


def test_a_rendezvous_node_that_dies_is_a_single_point_of_failure_only_where_it_does_not_rotate():
    killed = tuple(Failure(40 * SECOND, node) for node in setups.RENDEZVOUS)
    found = {}
    for mode in ("DefTDDS", "HyTDDS", "EATDDS"):
        scenario = setups.modes(mode, 8 * SECOND, duration=160 * SECOND, failures=killed, routing="id-grid")
        terms = replace(scenario.rotation, sign=8 * SECOND)
        found[mode] = run(replace(scenario, rotation=terms))
    assert all(outcome.conserved for outcome in found.values())
    assert found["DefTDDS"].pdr < 0.3
    assert found["HyTDDS"].pdr == 1.0
    assert found["EATDDS"].pdr > 0.8
    assert found["EATDDS"].counted["taken over"] >= 3


def warming(node: int, now: int, chance: Random) -> dict[str, float]:
    """A temperature that goes up and down within five minutes, with some noise."""
    return {"value": 24 + 5 * math.sin(now / (300 * SECOND) * math.tau + node) + chance.uniform(-0.5, 0.5)}


def test_state_filters_on_the_motes_save_messages_and_joules():
    """The same subscribers, the same readings: samples to all of them, or only what starts and ends."""
    text = "topic T (value float)\nstate Warm on T [value > 25; value < 22] per source"
    scenario = setups.modes("HyTDDS", 3 * SECOND, duration=300 * SECOND, readings=warming)
    watching = tuple(
        Subscription(each.node, Interest(topic=each.interest.topic, condition="Warm"), each.name)
        for each in scenario.subscriptions
    )
    samples = run(scenario)
    states = run(replace(scenario, subscriptions=watching, conditions=on_motes(parse(text).check())))
    assert states.pdr == 1.0
    assert 9 <= states.delivered < samples.delivered / 20
    assert states.messages["Data"] < samples.messages["Data"] / 20
    assert states.energy.total_mj < samples.energy.total_mj / 3


def test_adaptive_reliability_on_motes_keeps_the_share_that_was_asked_for():
    """ARQoS at 90 % where best effort brings half."""
    scenario = setups.rtdds_load(10, 2 * SECOND, BEST_EFFORT, ifs=False, duration=200 * SECOND)
    asking = tuple(replace(each, percent=90) for each in scenario.subscriptions)
    best, adaptive = run(scenario), run(replace(scenario, subscriptions=asking))
    assert best.pdr < 0.5
    assert best.pdr + 0.2 < adaptive.pdr < 1.0
    assert adaptive.messages["Switch"] > 0
    assert {each.reliable for each in adaptive.rounds} == {False, True}
    assert all(each.pdr > 0.95 for each in adaptive.rounds if each.reliable), "so it switches back each time"


def test_volts_for_a_bit_follow_only_if_the_thesis_counted_messages():
    """AT17: 1.47 V for 471,561 and 517,322 messages of 20 bytes."""
    for messages, volts in ((471_561, 1.94832e-08), (517_322, 1.77597e-08)):
        assert (3 - 1.53) / (messages * UNIT * 8) == pytest.approx(volts, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: setups.rtdds_rto(SECOND, 6), "from 1 to 5"),
        (lambda: setups.rtdds_load(40, SECOND), "from 1 to 33"),
        (lambda: setups.rtdds_partial(2, SECOND), "from 0 to 1"),
        (lambda: setups.modes("HyTDDS", table=(50,)), "nodes are 0 to 48"),
        (lambda: setups.modes("HyTDDS", ipi=0), "above 0"),
        (lambda: Weather(loss=1.0), "below 1"),
    ],
)
def test_a_set_up_that_cannot_be_says_why(make, says):
    with pytest.raises(UsageError, match=says):
        make()


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(2))
def test_a_real_radio_and_nodes_that_die_one_after_the_other(mode, seed):
    """The whole of Table 10 with path loss in place of the disk: nothing is lost without a cause."""
    draw = Random(seed)
    killed = tuple(Failure(draw.randrange(1000) * SECOND, node) for node in draw.sample(range(49), 12))
    back = tuple(
        Failure(min(each.at + 60 * SECOND, 999 * SECOND), each.node, "restart") for each in killed[::2]
    )
    scenario = setups.modes(
        mode,
        2 * SECOND,
        seed=seed,
        failures=killed + back,
        propagation=LogDistance(3.5, 4.0),
        routing="id-grid",
    )
    outcome = run(scenario)
    assert outcome.conserved
    assert 0 < outcome.pdr < 1


# As processes.

WEATHER = ("--loss", "0.3", "--twice", "0.1", "--late", "10", "--rto", "25")


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", "dds", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[list[dict], str]:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()], err


def test_processes_exchange_samples_through_a_loss_of_30_percent():
    """One reader wants everything; the other, above 20, everything, and of the rest what happens to come."""
    port = free_port()
    values = [n if n % 4 else n + 20 for n in range(16)]
    to = ("--peer", f"writer=127.0.0.1:{port}", *WEATHER)
    full = start("read", "--name", "full", "--level", "full", "-n", len(values), *to)
    part = start("read", "--name", "part", "--level", 20, "--seed", 1, *to)
    writer = start(
        "write", *values, "--listen", f"127.0.0.1:{port}", "--subscribers", 2, "--seed", 2, *WEATHER
    )
    try:
        _, said = finished(writer)
        came, _ = finished(full)
    finally:
        part.terminate()
    assert [sample["value"] for sample in came] == values
    assert "16 published" in said
    assert " 0 sent again" not in said
    some = [json.loads(line) for line in part.communicate(timeout=PATIENCE)[0].splitlines()]
    numbers = [sample["sequence"] for sample in some]
    assert numbers == sorted(set(numbers)), "in order, none twice"
    assert [sample["value"] for sample in some if sample["value"] > 20] == [v for v in values if v > 20]


@pytest.mark.parametrize(("mode", "percent"), [("DefTDDS", None), ("HyTDDS", None), ("DefTDDS", 100.0)])
def test_sockets_of_one_process_meet_at_a_rendezvous_node(mode, percent):
    """Three nodes on loopback, three of ten datagrams lost: all samples arrive, by ACK or by NACK."""
    level = FULL if percent is None else BEST_EFFORT
    deployment = Deployment(
        topics=Topics((Topic(0, "heat", level=level),)),
        table=("rn",),
        publishers={0: ("writer",)},
        mode=mode,
        reliable=Reliable(rto=20 * MILLISECOND),
        discovery=Discovery(repeats=500, every=20 * MILLISECOND),
    )
    told: dict[str, list] = {"writer": [], "rn": [], "reader": []}

    async def work() -> None:
        hosts = {
            name: UdpHost(
                name,
                Participant(deployment, name),
                Message,
                {},
                told[name].append,
                Weather(0.3, 0.2, 5_000, n),
            )
            for n, name in enumerate(told)
        }
        for host in hosts.values():
            await listen(host, ("127.0.0.1", 0))
        for host in hosts.values():
            host.peers |= {name: other.address for name, other in hosts.items() if other is not host}
        writer, reader = hosts["writer"], hosts["reader"]
        writer.ask(request.Advertise("heat"))
        reader.ask(request.Subscribe("all", Interest(topic="heat")))
        while not any(isinstance(what, request.Registered) for name in told for what in told[name]):
            await asyncio.sleep(0.01)
        if percent is not None:
            reader.ask(request.Assure("heat", percent))
            while not writer.state.histories:
                await asyncio.sleep(0.01)
        for value in range(15):
            writer.ask(request.Publish("heat", {"value": value}))
        while len([1 for what in told["reader"] if isinstance(what, request.Notify)]) < 15:
            await asyncio.sleep(0.01)
        for host in hosts.values():
            host.close()
        assert sum(host.counted["lost on purpose"] for host in hosts.values()) > 0

    asyncio.run(asyncio.wait_for(work(), PATIENCE))
    came = [what.values["value"] for what in told["reader"] if isinstance(what, request.Notify)]
    assert came == list(range(15))


def test_a_datagram_of_nobody_we_understand_is_counted_and_ignored():
    async def work() -> Counter[str]:
        deployment = setups.modes("HyTDDS").deployment()
        host = UdpHost("7", Participant(deployment, "7"), Message, {}, lambda what: None)
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
    port, via = free_port(), free_port()
    there = ("--via", "rendezvous", "--peer", f"rendezvous=127.0.0.1:{via}")
    rendezvous = start("meet", "--listen", f"127.0.0.1:{via}", *WEATHER)
    try:
        reader = start("read", *there, "--level", "full", "-n", 10, *WEATHER)
        writer = start("write", *range(200), *there, "--listen", f"127.0.0.1:{port}", "--settle", 1, *WEATHER)
        came, _ = finished(reader)
    finally:
        rendezvous.terminate()
        writer.terminate()
        for process in (rendezvous, writer):
            process.communicate(timeout=PATIENCE)
    values = [sample["value"] for sample in came]
    assert values == list(range(int(values[0]), int(values[0]) + 10)), "from when it was known, all in order"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["read", "--level", "some"], "--level some: best-effort, full, or a number"),
        (["read", "--peer", "writer"], "write it as NAME=HOST:PORT"),
        (["read", "--loss", "1.5"], "from 0 to below 1"),
        (["read", "--percent", "101"], "from 0 (best effort) to 100"),
        (["write", "--listen", "nowhere"], "HOST:PORT"),
        (["write", "1", "--name", "x", "--writer", "y"], "no publisher of 'Reading'"),
    ],
)
def test_wrong_use_is_told(holdfast, words, says):
    ran = holdfast("dds", *words)
    assert ran.status == 2
    assert says in ran.err
