"""A file and Python make equal scenarios, and equal runs."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import MILLISECOND, MINUTE, SECOND
from holdfast.network.motes.cbps import Cbps
from holdfast.network.motes.dds import Dds
from holdfast.network.motes.failure import Cut, Drift, Heal, Kill, Partition
from holdfast.network.motes.nodes import Grid, RandomNodes, Uniform
from holdfast.network.motes.readings import Constant, RandomWalk, Recorded, Sine
from holdfast.network.motes.routing import Flooding, IdGrid, OnDemand, Tree
from holdfast.network.motes.run import check, run
from holdfast.network.motes.scenario import (
    AsMeasured,
    Energy,
    Publisher,
    Radio,
    Scenario,
    Subscriber,
)
from holdfast.network.motes.study import read_text
from holdfast.network.motes.traffic import Flow, PointTarget
from holdfast.network.protocols.dds.deployment import ReliableSettings, RotationSettings
from holdfast.network.sim.energy import Rest
from holdfast.network.sim.mac import Aloha, Csma, LowPowerListening, Tdma
from holdfast.network.sim.propagation import LogDistance, UnitDisk
from support.protocols import scenario_text

ALL = """\
name: all of it
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
links: {kind: log-distance, exponent: 2.5, shadowing: 4 dB, loss-at-1-m: 41 dB, quality: [0.8, 1]}
radio: {chip: cc2420-tossim, power: -10 dBm, co-channel: 2 dB}
mac: {kind: low-power-listening, interval: 50 ms, wake: preamble}
routing: {kind: id-grid, resends: 1, jitter: 5 ms}
energy: {platform: telosb, battery: 2 kJ, mains: [0], rest: {radio: sleep}, delays: true, sampling: 2 ms}
traffic:
  - {from: {any: 2}, to: [0, 1], every: 1.5 s, size: 30, name: noise, start: 1 s, stop: 1 min}
definition: "topic T (value float, room text)  state Warm on T [value > 25; value < 22] per source"
protocol:
  {kind: dds, mode: EATDDS, level: 0.5, rendezvous: [4], reliable: {rto: 150 ms}, rotation: {round: 1 min}}
publishers:
  - topic: T
    from: [1, 2]
    every: 10 s
    sampled: 250 ms
    phase: together
    readings: {value: {kind: walk, start: 20, step: 0.5}, room: {kind: constant, value: west}}
subscribers:
  - {node: 4, to: [Warm, T], start: 1 s}
failures:
  - {kind: kill, at: 10 s, nodes: [3]}
  - {kind: cut, at: 11 s, links: [[0, 1]]}
  - {kind: partition, at: 12 s, groups: [[0], [1, 2]]}
  - {kind: heal, at: 13 s}
  - {kind: drift, at: 14 s, nodes: [5], by: 50 ppm}
duration: 70 s
warm-up: 20 s
until-first-death: true
"""
IN_PYTHON = Scenario(
    name="all of it",
    nodes=Grid(3, 3, 10.0),
    links=LogDistance(2.5, shadowing_db=4.0, loss_at_1_m_db=41.0, quality=(0.8, 1.0)),
    radio=Radio(chip="cc2420-tossim", power=-10.0, co_channel=2.0),
    mac=LowPowerListening(interval=50 * MILLISECOND, wake="preamble"),
    routing=IdGrid(resends=1, jitter=5 * MILLISECOND),
    energy=Energy(
        platform="telosb",
        battery=2000.0,
        mains=(0,),
        rest=Rest(radio="sleep"),
        delays=True,
        sampling=2 * MILLISECOND,
    ),
    traffic=(
        Flow(
            from_=RandomNodes(2),
            to=(0, 1),
            every=1_500 * MILLISECOND,
            size=30,
            name="noise",
            start=SECOND,
            stop=MINUTE,
        ),
    ),
    definition="topic T (value float, room text)  state Warm on T [value > 25; value < 22] per source",
    protocol=Dds(
        mode="EATDDS",
        level=0.5,
        rendezvous=(4,),
        reliable=ReliableSettings(rto=150 * MILLISECOND),
        rotation=RotationSettings(round=MINUTE),
    ),
    publishers=(
        Publisher(
            topic="T",
            from_=(1, 2),
            every=10 * SECOND,
            sampled=250 * MILLISECOND,
            phase="together",
            readings={"value": RandomWalk(start=20.0, step=0.5), "room": Constant("west")},
        ),
    ),
    subscribers=(Subscriber(node=4, to=("Warm", "T"), start=SECOND),),
    failures=(
        Kill(10 * SECOND, (3,)),
        Cut(11 * SECOND, ((0, 1),)),
        Partition(12 * SECOND, ((0,), (1, 2))),
        Heal(13 * SECOND),
        Drift(14 * SECOND, (5,), 50.0),
    ),
    duration=70 * SECOND,
    warm_up=20 * SECOND,
    until_first_death=True,
)


def test_a_file_and_python_make_equal_scenarios_and_equal_runs():
    (point,) = read_text(ALL).points
    assert point.case.scenario == IN_PYTHON
    assert run(point.case, 3) == run(check(IN_PYTHON), 3)


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("links: {kind: disk, range: 15 m, interference: 30 m}", "links", UnitDisk(15.0, 30.0)),
        ("links: {kind: disk, range: 15 m, quality: [0.5, 1]}", "links", UnitDisk(15.0, quality=(0.5, 1))),
        ("mac: {kind: aloha}", "mac", Aloha()),
        ("mac: {kind: csma, congestion: [300 us, 2.5 ms]}", "mac", Csma(congestion=(300, 2_500))),
        ("routing: {kind: on-demand, resends: 0, second: false, buffers: 1}", "routing",
         OnDemand(resends=0, second=False, buffers=1)),
        ("mac: {kind: tdma, slots: [0, 1, 2, 3], slot: 10 ms}", "mac", Tdma(slots=(0, 1, 2, 3), slot=10_000)),
        ("routing: {kind: tree, sinks: [0], metric: hops}", "routing", Tree(sinks=(0,), metric="hops")),
        ("protocol: {kind: cbps, brokers: [0], rto: 2 s}", "protocol", Cbps(brokers=(0,), rto=2 * SECOND)),
        ("traffic: [{from: all, to: {x: 3 m, y: 4 m}, every: 1 s}]", "traffic",
         (Flow(from_="all", to=PointTarget(3.0, 4.0), every=SECOND),)),
        ("energy: {battery: null}", "energy", Energy()),
    ],
)  # fmt: skip
def test_every_type_of_value_can_be_written_in_yaml(text, field, value):
    routing = "" if "routing" in text else "routing: {kind: geographic}\n"
    nodes = "nodes: {kind: grid, rows: 2, columns: 2, spacing: 5 m}\n"
    definition = "definition: topic T (value float)\n" if "protocol" in text else ""
    (point,) = read_text(f"{nodes}{routing}{definition}duration: 5 s\n{text}\n").points
    assert getattr(point.case.scenario, field) == value


def test_omitted_keys_have_their_defaults():
    (point,) = read_text("nodes: {kind: grid, rows: 1, columns: 2, spacing: 5 m}\nduration: 5 s\n").points
    assert point.case.scenario == Scenario(nodes=Grid(1, 2, 5.0), duration=5 * SECOND)
    assert (point.case.scenario.mac, point.case.scenario.routing) == (Csma(), Flooding())


def test_readings_can_be_recorded():
    text = scenario_text().replace(
        "readings: {value: {kind: uniform}}", "recorded: {file: a.csv, time-unit: ms}"
    )
    with pytest.raises(UsageError, match=r"a\.csv"):
        read_text(text)
    publisher = Publisher(topic="T", every=SECOND, recorded=Recorded(file="a.csv", time_unit="ms"))
    assert publisher.readings == {}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scenario(nodes=Grid(1, 1, 1.0), duration=0), "duration: a run takes some time"),
        (lambda: Energy(battery=0.0), "battery: a battery holds more than nothing"),
        (lambda: Sine(mean=0, swing=1, period=-1), "period: a period takes some time"),
        (lambda: check(Scenario(nodes=Grid(2, 2, -1.0), duration=9)), "nodes.spacing: a grid of 2 rows"),
        (
            lambda: check(Scenario(nodes=Grid(2, 2, 1.0), duration=9, links=AsMeasured())),
            "links.kind: nobody",
        ),
        (
            lambda: check(
                Scenario(
                    nodes=Uniform(count=2, width=1.0, height=1.0, reach=2.0),
                    duration=9,
                    failures=(Kill(1, ("x",)),),
                )
            ),
            "failures.0.nodes.0: there is no node 'x'",
        ),
    ],
)
def test_an_error_in_python_names_the_path_to_the_value(make, message):
    with pytest.raises(UsageError, match=message):
        make()
