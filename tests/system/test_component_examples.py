"""The examples of spec/sps.md §3.5–3.8: the thesis' tables, run as they are printed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Engine, Event, parse, replay
from support import thesis
from support.fused import marks, reading

SECOND = 1_000_000


def at(seconds: float, topic: str, road: float, value: float | None = None, source: str = "s") -> Event:
    attributes = {} if value is None else {"value": float(value)}
    return Event(topic, round(seconds * SECOND), source, attributes, location=(float(road),))


def run_components(definition: str, events: list[Event], name: str | None = None) -> list[tuple[Any, ...]]:
    """The output (scope, status, seconds) of a definition, or of one component."""
    output = Engine(parse(definition)).run(sorted(events, key=lambda event: event.time))
    return [(n.scope, n.status, n.event.time / SECOND) for n in output if name in (None, n.subscription)]


def short(rows: list[tuple[Any, ...]]) -> str:
    return " ".join(f"{status[:2]}{seconds:g}" for _, status, seconds in rows)


# --- 3.5 traffic congestion, singular ----------------------------------------------------------

MEANS = [
    *(at(1, "InductiveLoop", road, value) for road, value in {7: 3, 8: 2, 9: 4, 11: 1}.items()),
    *(at(2, "CarSpeed", road, value) for road, value in {7: 5, 8: 5, 9: 6, 11: 30}.items()),
]
RECOVERY = [at(100, "CarSpeed", 7, 10), at(200, "CarSpeed", 7, 16)]


def test_two_of_four_roads_are_congested_and_one_recovers_beyond_the_dead_band():
    output = list(Engine(parse(thesis.TABLE_5_4)).run(MEANS + RECOVERY))
    assert [(n.scope, n.status, n.event.attributes["level"]) for n in output] == [
        ("7.0", "ingress", 5.0),
        ("9.0", "ingress", 6.0),
        ("7.0", "egress", 16.0),
    ]
    assert [n.event.location for n in output] == [(7.0,), (9.0,), (7.0,)]
    assert {n.event.topic for n in output} == {"TrafficCongestion"}


@pytest.mark.parametrize(
    ("how", "congested", "found"),
    [
        ("one", (7,), [(None, "ingress", 2)]),
        ("one", (7, 9), []),
        ("all", (7, 8, 9, 11), [(None, "ingress", 2)]),
        ("all", (7, 9), []),
        ("any", (7, 9), [(None, "ingress", 2)]),
    ],
)
def test_quantifiers_count_exactly_one_road_all_roads_or_any(how, congested, found):
    table = thesis.TABLE_5_4.replace("multiple: separate", f"multiple: {how}")
    events = [
        event
        for road in (7, 8, 9, 11)
        for event in (
            at(1, "InductiveLoop", road, 3 if road in congested else 1),
            at(2, "CarSpeed", road, 5),
        )
    ]
    assert run_components(table, events) == found


# --- 3.6 decompositions ------------------------------------------------------------------------

WATCHERS = """
topic InductiveLoop (value float)
topic CarSpeed (value float)
state IL_High A = InductiveLoop each location enter A.value > 2.5 exit A.value < 2.5
state CarSpeed_Slow A = CarSpeed each location enter A.value < 7 exit A.value > 15 set value = A.value
"""
TRACE = [  # IL_High in 1, CarSpeed_Slow in 2, eg 5, in 8, IL_High eg 10, CarSpeed_Slow eg 12
    at(1, "InductiveLoop", 7, 3), at(2, "CarSpeed", 7, 5), at(5, "CarSpeed", 7, 20),
    at(8, "CarSpeed", 7, 5), at(10, "InductiveLoop", 7, 1), at(12, "CarSpeed", 7, 20),
]  # fmt: skip
STATUS_TESTS = thesis.TABLE_5_10_A.replace("B.valid && (A", "B.valid && B.status == ingress && (A").replace(
    "!B.valid &&", "B.valid && B.status == egress &&"
)


def test_the_literal_table_5_10_flaps():
    """Hazard 19: an end is valid until the next start, and an old end is invalid during the next."""
    per_tick = WATCHERS + thesis.TABLE_5_10_A + "tick 1 s"
    assert short(run_components(per_tick, TRACE, "TrafficCongestion")) == "in2 eg5 in6 eg7 in8 eg9"
    on_events = WATCHERS + thesis.TABLE_5_10_A
    assert short(run_components(on_events, TRACE, "TrafficCongestion")) == "in2 eg5 in8 eg10"


@pytest.mark.parametrize("tick", ["", "tick 1 s"])
def test_status_comparisons_give_the_intended_transitions(tick):
    definition = WATCHERS + STATUS_TESTS + tick
    assert short(run_components(definition, TRACE, "TrafficCongestion")) == "in2 eg5 in8 eg12"


def test_the_three_tables_of_5_10_run_together():
    found = run_components(thesis.TABLE_5_10, MEANS + RECOVERY, "TrafficCongestion")
    assert found[:2] == [("7.0", "ingress", 2), ("9.0", "ingress", 2)]


def fires(values: dict[float, list[float]]) -> list[Event]:
    return [at(t, "Temperature", x, v) for x, column in values.items() for t, v in enumerate(column)]


@pytest.mark.parametrize("table", [thesis.TABLE_5_11_A, thesis.TABLE_5_11], ids=["singular", "decomposed"])
def test_a_fire_starts_when_every_sensor_is_hot(table):
    both = fires({-5: [20, 60, 60, 25], 5: [20, 40, 60, 25]})
    assert run_components(table, both, "Fire") == [(None, "ingress", 2), (None, "egress", 3)]
    one_is_not_hot = fires({-5: [20, 60, 60, 25], 5: [20, 50, 50, 25]})
    assert run_components(table, one_is_not_hot, "Fire") == []


# --- 3.7 reliable detection and rate control ---------------------------------------------------


def test_a_heartbeat_component_emits_at_0_11_22_and_33_seconds():
    table = "topic CarSpeed_Slow (value float)" + thesis.TABLE_5_14_A + "here (7) tick 1 s"
    events = [at(0, "CarSpeed_Slow", 7, 5), at(35, "CarSpeed_Slow", 7, 5)]
    assert short(run_components(table, events)) == "at0 at11 at22 at33"


RELIABLE = (
    WATCHERS + "topic CarSpeed_Slow_HB (value float)" + thesis.TABLE_5_14_B.replace(
        "B.valid && (A", "B.valid && B.status == ingress && (A"
    ).replace("!B.valid &&", "B.valid && B.status == egress &&") + "tick 1 s"
)  # fmt: skip


def test_a_detection_is_revoked_when_heartbeats_stop_and_none_starts_without_them():
    beats = [at(t, "CarSpeed_Slow_HB", 7) for t in range(0, 21, 5)]
    later = [at(t, "CarSpeed", 7, 5) for t in range(10, 60, 10)]
    found = run_components(RELIABLE, TRACE[:2] + beats + later, "TrafficCongestion_Reliable")
    assert found == [("7.0", "ingress", 2), ("7.0", "egress", 31)]
    assert run_components(RELIABLE, TRACE[:2] + later, "TrafficCongestion_Reliable") == []


def test_connected_roads_continue_while_one_road_is_cut_off():
    """Disconnected operation: InfoS time does not stop for those that have their data."""
    beats = [at(t, "CarSpeed_Slow_HB", 7) for t in range(0, 6, 5)]
    other = [at(t, topic, 9, v) for t in (30,) for topic, v in (("InductiveLoop", 3), ("CarSpeed", 5))]
    found = run_components(RELIABLE, TRACE[:2] + beats + other + [at(31, "CarSpeed", 9, 5)], "IL_High")
    assert found == [("7.0", "ingress", 1), ("9.0", "ingress", 30)]


def test_a_component_samples_at_half_a_hertz_and_reports_changes_of_ten_per_cent():
    hertz = [at(t, "Temperature", 0, 20) for t in range(1, 10)]
    assert short(run_components(thesis.TABLE_5_15, hertz, "Temperature_0.5Hz")) == "at1 at3 at5 at7 at9"
    values = [20, 21, 22, 23, 24, 24.3, 21]
    output = Engine(parse(thesis.TABLE_5_15)).run([at(t, "Temperature", 0, v) for t, v in enumerate(values)])
    changes = [n.event.attributes["value"] for n in output if n.subscription == "Temperature_10%Change"]
    assert changes == [20, 22, 24.3, 21]


# --- 3.8 journey planner -----------------------------------------------------------------------


def test_a_user_receives_starts_and_ends_within_two_junctions():
    """As printed, with the host at the position of the user; and without a host, from the readings of the
    user."""
    printed = WATCHERS + STATUS_TESTS + "topic User ()" + thesis.TABLE_5_16 + "here User"
    users = [at(0, "User", 6, source="ann"), at(0, "User", 20, source="bob")]
    assert run_components(printed, users + TRACE, "TrafficCongestionNear") == [
        ("ann,7.0", "atomic", 2),
        ("ann,7.0", "atomic", 5),
        ("ann,7.0", "atomic", 8),
        ("ann,7.0", "atomic", 12),
    ]
    alternative = printed.replace("|A.location - B.location|", "|A.location - 0^r|")
    assert run_components(alternative, users + TRACE, "TrafficCongestionNear") == run_components(
        printed, users + TRACE, "TrafficCongestionNear"
    )


def test_a_user_who_arrives_later_receives_only_the_next_change():
    printed = WATCHERS + STATUS_TESTS + "topic User ()" + thesis.TABLE_5_16 + "here User"
    drive = [at(0, "User", 20, source="bob"), at(6, "User", 8, source="bob")]
    assert [t for _, _, t in run_components(printed, drive + TRACE, "TrafficCongestionNear")] == [8, 12]


# --- real readings -----------------------------------------------------------------------------

JAM = """
topic Road (avg_speed float km/h, vehicle_count float)
state Jam
  A = avg Road over 30 min each source
  B = sum Road over 15 min each source
  enter A.avg_speed < 45 km/h && B.vehicle_count > 20
  exit A.avg_speed > 55 km/h
"""
MINUTE = 60 * SECOND


def test_real_roads_jam_when_a_plain_rolling_computation_finds_it(data: Path, tmp_path: Path) -> None:
    whole = pq.read_table(data / "aarhus-traffic" / "traffic-2014-08.parquet")
    roads = sorted(set(whole["report_id"].to_pylist()))[::90]
    some = whole.filter(
        pc.and_(
            pc.is_in(whole["report_id"], pa.array(roads, pa.int32())),
            pc.less(whole["time"], pa.scalar(datetime(2014, 8, 4), whole["time"].type)),
        )
    )
    pq.write_table(some, tmp_path / "roads.parquet")
    found = [
        (n.scope, n.status, n.event.time)
        for n in replay(JAM, tmp_path / "roads.parquet", map={"source": "report_id"})
    ]
    times = np.asarray(some["time"].cast(pa.timestamp("us")).cast(pa.int64()))
    columns = [np.asarray(some[name], float) for name in ("avg_speed", "vehicle_count")]
    ids = np.asarray(some["report_id"])
    expected = [
        (str(road), status, now)
        for road in roads
        for status, now in jams(times[ids == road], *(c[ids == road] for c in columns), int(times.max()))
    ]
    assert found == sorted(expected, key=lambda row: (row[2], row[0]))
    assert len(found) > 10


def jams(times: Any, speeds: Any, counts: Any, end: int) -> Iterator[tuple[str, int]]:
    """The jams of one road, from all readings in each window at each instant."""
    instants = np.unique(np.concatenate([times, times + 30 * MINUTE + 1, times + 15 * MINUTE + 1]))
    holds = False
    for now in instants[instants <= end].tolist():
        half_hour, quarter = ((times >= now - m * MINUTE) & (times <= now) for m in (30, 15))
        if not half_hour.any():
            continue
        speed, count = speeds[half_hour].mean(), counts[quarter].sum()
        if speed > 55 if holds else quarter.any() and speed < 45 and count > 20:
            holds = not holds
            yield "ingress" if holds else "egress", now


# --- what holds now, of all places ---

CITY = """topic Level (value float)
state Episode on Level each location
  enter value > 10   set open = 1
  exit  value < 5    set open = 0
state City
  A = Episode sum location whatever status
  enter A.open >= 2
  exit  A.open < 2
"""


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from((1.0, 7.0, 12.0))), min_size=6, max_size=40)
)
def test_a_city_alarm_counts_the_places_where_an_episode_lasts(rows):
    """The sum over the latest event of each place, whatever its status, is how many hold."""
    holding, alarm, expected = set(), False, []
    for second, (place, value) in enumerate(rows):
        before = len(holding)
        if value > 10:
            holding.add(place)
        elif value < 5:
            holding.discard(place)
        if len(holding) != before and alarm != (len(holding) >= 2):
            alarm = not alarm
            expected.append(("ingress" if alarm else "egress", second))
    readings = [reading(t, "Level", place, value) for t, (place, value) in enumerate(rows)]
    assert marks(CITY, readings, "City") == expected
