"""Motes in a loss-free network give the notifications of the engine in this process.

Messages of different sources overtake each other, so notifications are compared scope by scope.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.event import Notification
from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.motes.case import resolve_files
from holdfast.network.motes.cbps import Cbps
from holdfast.network.motes.dds import Dds
from holdfast.network.motes.direct import Direct
from holdfast.network.motes.nodes import Grid
from holdfast.network.motes.qps import Qps
from holdfast.network.motes.readings import Constant, RandomWalk
from holdfast.network.motes.routing import Geographic, OnDemand
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.scenario import Protocol, Publisher, Scenario, Subscriber
from holdfast.network.sim.propagation import UnitDisk
from holdfast.runtimes.local.engine import Engine

TOPIC = "topic T (value float, room text)\n"
ALONE = """\
state Warm on T [value > 22; value < 20] per source
state Toggled on T [value > 21; value > 21] per source
filter Hot on T where value > 23
"""
TOGETHER = """\
state Room on T [value > 22; value < 20] per room
state Nested on T [value > 22; value < 20] per source within room
state Any on T [value > 23; value < 19]
state Late on T [value > 22; value < 20] per room ordered 5 s
region West = rectangle (-1, -1) (15, 100)
region East = rectangle (15, -1) (100, 100)
state Where on T [value > 22; value < 20] scope West, East
"""
MANY = """\
topic U (value float)
state Stuffy
  A = avg T over 20 s each room
  enter A.value > 21.5    set level = A.value
  exit  A.value < 20.5    set level = A.value
state Lasting
  A = avg T over 20 s each room
  enter A.value > 21.2 for 3 s
  exit  A.value < 20.8 for 3 s
correlate Both within 6 s, 25 m
  T >= 21
  U >= 21
"""
ROOMS = {0: "a", 1: "a", 2: "b", 3: "b", 5: "a", 7: "b", 8: "b"}
SINK = 4
START, END = 30 * SECOND, 190 * SECOND


def scenario(definition: str, protocol: Protocol, nodes: tuple[int, ...] = tuple(ROOMS)) -> Scenario:
    """A grid of nine; publishers take turns, so that no two readings are on their way at once."""
    return Scenario(
        nodes=Grid(3, 3, 10.0),
        links=UnitDisk(15.0),
        routing=OnDemand(),
        definition=TOPIC + definition,
        protocol=protocol,
        publishers=tuple(
            Publisher(
                topic="T",
                from_=node,
                every=8 * SECOND,
                readings={
                    "value": RandomWalk(start=21, step=1.5, low=17, high=25),
                    "room": Constant(ROOMS[node]),
                },
                phase="together",
                start=START + i * SECOND,
                stop=END,
            )
            for i, node in enumerate(nodes)
        ),
        subscribers=(Subscriber(node=SINK),),
        duration=END + 30 * SECOND,
    )


def by_scope(emitted: list[Notification], numbered: bool) -> dict:
    found = defaultdict(list)
    for each in emitted:
        event = each.event
        about = (each.status, event.time, event.source, event.attributes, each.since)
        found[each.subscription, each.scope].append((*about, each.id if numbered else None))
    return found


def compare(given: Scenario, seed: int, numbered: bool = True, folder: Path = Path()) -> SimulationRun:
    """Run a simulation and require the notifications of the engine."""
    run = SimulationRun(resolve_files(given, folder), seed)
    outcome = run.finish()
    engine = Engine(given.definition, base=folder)
    emitted = [each for event in run.account.published for each in engine.push(event)]
    emitted += engine.advance(given.duration - run.account.allowance)
    assert by_scope([what for _, _, what in run.account.notifications], numbered) == by_scope(
        emitted, numbered
    )
    for row in outcome.subscriptions:
        assert (
            row["expected"] == row["delivered"] == sum(t.subscription == row["subscription"] for t in emitted)
        )
        assert row["unexpected"] == 0
    return run


BROKERS = {
    "everywhere": Cbps(),
    "few": Cbps(brokers=(4, 0, 8)),
    "one elsewhere": Cbps(brokers=(6,)),
    "in a row": Cbps(brokers=(0, 1, 2, 5, 8), links=((0, 1), (1, 2), (2, 5), (5, 8)), root=8),
}


@pytest.mark.parametrize("mode", ["DefTDDS", "BLTDDS", "HyTDDS", "EATDDS"])
def test_conditions_on_the_publishers_nodes(mode):
    """DDS numbers the samples of a condition, so ids are its own."""
    run = compare(scenario(ALONE, Dds(mode=mode)), 1, numbered=False)
    assert len(run.account.notifications) > 10


@pytest.mark.parametrize("brokers", BROKERS)
def test_conditions_on_brokers_and_at_the_subscriber(brokers):
    together = TOGETHER.replace("state Late on T [value > 22; value < 20] per room ordered 5 s\n", "")
    run = compare(scenario(ALONE + together, BROKERS[brokers]), 1)
    assert len(run.account.notifications) > 25


@pytest.mark.parametrize("protocol", [Direct(), Dds(mode="HyTDDS", level="full"), Cbps()])
def test_conditions_that_look_at_many_sensors(protocol):
    """Wherever they come by, they are evaluated at the subscriber, by events and by its clock."""
    given_ = scenario(MANY, protocol)
    also = Publisher(
        topic="U",
        from_=6,
        every=7 * SECOND,
        readings={"value": RandomWalk(start=21, step=1.5, low=17, high=25)},
        phase="together",
        start=START + 500 * MILLISECOND,
        stop=END,
    )
    run = compare(replace(given_, publishers=(*given_.publishers, also)), 1, not isinstance(protocol, Dds))
    assert {what.subscription for _, _, what in run.account.notifications} == {"Stuffy", "Lasting", "Both"}


STACKED = """\
topic U (value float)
state Stuffy
  A = avg T over 20 s each room
  enter A.value > 21.5    set level = A.value
  exit  A.value < 20.5    set level = A.value
state Alarm
  S = max Stuffy over 20 s
  enter S.level > 21.5    set level = S.level
  exit  S.level < 20.8    set level = S.level
state Doubled
  S = max Alarm over 20 s
  U = avg U over 20 s
  enter S.level > 21.5 && U.value > 20
  exit  S.level < 20.8
"""


@pytest.mark.parametrize("to", [("Doubled",), ("Alarm", "Stuffy"), ()])
@pytest.mark.parametrize("protocol", [Direct(), Dds(mode="HyTDDS", level="full"), Cbps(), Qps(levels=2)])
def test_conditions_on_conditions_receive_the_readings_that_their_upstreams_need(protocol, to):
    """A subscription to the upper one alone got nothing once: its only topic was that of the lower one."""
    given_ = scenario(STACKED, protocol)
    also = Publisher(
        topic="U",
        from_=6,
        every=7 * SECOND,
        readings={"value": RandomWalk(start=21, step=1.5, low=17, high=25)},
        phase="together",
        start=START + 500 * MILLISECOND,
        stop=END,
    )
    subscribers = (Subscriber(node=SINK, to=to, start=10 * SECOND),)
    case = replace(given_, publishers=(*given_.publishers, also), subscribers=subscribers)
    if isinstance(protocol, Qps):
        case = replace(case, routing=Geographic())
    run = SimulationRun(resolve_files(case), 1)
    outcome = run.finish()
    engine = Engine(case.definition)
    emitted = [each for event in run.account.published for each in engine.push(event)]
    emitted += engine.advance(case.duration - run.account.allowance)
    wanted = to or ("Stuffy", "Alarm", "Doubled")
    assert {row["subscription"] for row in outcome.subscriptions} == set(wanted)
    for row in outcome.subscriptions:
        due = sum(each.subscription == row["subscription"] for each in emitted)
        assert row["expected"] == row["delivered"] == due > 0
        assert (row["unexpected"], row["readings"] > 100) == (0, True)


def test_conditions_at_the_subscriber():
    assert len(compare(scenario(ALONE + TOGETHER, Direct()), 1).account.notifications) > 25


TABLED = """\
table Limits "limits.csv" (source text, high float, low float)
state Over on T [value > Limits.high; value < Limits.low] per source
filter Above on T where value > Limits.high + 1
"""


@pytest.mark.parametrize("protocol", [Dds(mode="DefTDDS"), Dds(mode="HyTDDS"), Cbps(), Direct()])
def test_motes_use_one_band_for_all_rows_of_a_table_and_the_subscriber_uses_the_rows(protocol, tmp_path):
    (tmp_path / "limits.csv").write_text("source,high,low\n0,22,20\n3,23.5,22\n7,24,19\n*,24.5,23\n")
    given_ = scenario(TABLED, protocol)
    run = compare(given_, 1, not isinstance(protocol, Dds), tmp_path)
    assert {what.subscription for _, _, what in run.account.notifications} == {"Over", "Above"}
    assert len(run.account.notifications) > 10


@pytest.mark.parametrize("protocol", [Dds(mode="HyTDDS"), Cbps()])
def test_samples_relevant_to_no_row_stay_on_their_mote(protocol, tmp_path):
    (tmp_path / "limits.csv").write_text("source,high,low\n0,90,80\n*,99,98\n")
    run = compare(scenario(TABLED, protocol), 1, False, tmp_path)
    assert len(run.account.published) > 100
    assert not [cause for cause in run.account._sent if cause.endswith((" data", " notification"))]


PROTOCOLS = [Direct(), Dds(mode="HyTDDS"), *BROKERS.values()]


@settings(max_examples=12)
@given(
    st.sampled_from(PROTOCOLS),
    st.sets(st.sampled_from(sorted(ROOMS)), min_size=1, max_size=4),
    st.floats(18, 24),
    st.floats(18, 24),
    st.integers(0, 1000),
)
def test_random_bands_on_random_nodes_equal_the_engine(protocol, nodes, enter, leave, seed):
    text = f"state S on T [value > {enter:.1f}; value < {leave:.1f}] per source\n"
    given_ = scenario(text, protocol, tuple(sorted(nodes)))
    compare(given_, seed, numbered=not isinstance(protocol, Dds))


def test_several_subscribers_get_equal_notifications():
    given_ = scenario(ALONE, Cbps())
    run = SimulationRun(
        resolve_files(replace(given_, subscribers=(Subscriber(node=4), Subscriber(node=6, to="Warm")))), 1
    )
    run.finish()
    emitted = {
        node: [
            each.id for _, wish, each in run.account.notifications if (wish.node, wish.name) == (node, "Warm")
        ]
        for node in (4, 6)
    }
    assert sorted(emitted[4]) == sorted(emitted[6]) != []


def test_disorder_within_the_allowance_does_not_change_results():
    """Publishers some milliseconds apart: samples overtake one another, and 'ordered' puts them back."""
    given_ = scenario("state Late on T [value > 22; value < 20] per room ordered 2 s\n", Direct())
    close = tuple(
        replace(each, start=START + 5 * i * MILLISECOND) for i, each in enumerate(given_.publishers)
    )
    run = compare(replace(given_, publishers=close), 1)
    came = [(arrival.at, e.sent) for e in run.ledger.entries.values() for arrival in e.arrivals.values()]
    sent = [sent for _, sent in sorted(came)]
    assert sent != sorted(sent)
    assert len(run.account.notifications) > 25
