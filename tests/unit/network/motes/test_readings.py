"""The values of sensors: generated from random numbers of their own, or played from a file."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from statistics import fmean, stdev

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import InputError
from holdfast.model.event import Event
from holdfast.model.instant import HOUR, MINUTE, SECOND
from holdfast.model.topic import Attribute, Topic
from holdfast.network.motes.fault import ScenarioError
from holdfast.network.motes.readings import (
    Constant,
    RandomWalk,
    Recorded,
    Sine,
    UniformReadings,
    average,
    load_recording,
    require_fitting,
    simulate_sample,
    to_recording,
)

AIR = Topic("Air", (Attribute("value", "float"), Attribute("count", "int"), Attribute("room", "text")))


def sense_all(measured, times, seed: int = 1) -> list:
    sense = measured.sense(0, Random(seed))
    return [sense(now) for now in times]


def test_a_constant_is_always_the_same():
    assert sense_all(Constant("west"), [0, 5]) == ["west", "west"]


def test_uniform_readings_fill_the_range_and_differ_by_seed():
    values = sense_all(UniformReadings(10.0, 20.0), range(1000))
    assert 10 <= min(values) < 10.1
    assert 19.9 < max(values) <= 20
    assert values != sense_all(UniformReadings(10.0, 20.0), range(1000), seed=2)
    assert sense_all(UniformReadings(), [0], seed=3) == [Random(3).random()]


def test_a_random_walk_moves_by_steps_within_its_bounds():
    values = sense_all(RandomWalk(start=20, step=2, low=15, high=25), range(2000))
    assert (min(values), max(values)) == (15, 25)
    free = sense_all(RandomWalk(start=0, step=0.5), range(2000))
    assert stdev(b - a for a, b in pairwise(free)) == pytest.approx(0.5, rel=0.05)


def test_a_sine_rises_and_falls_in_a_period():
    day = Sine(mean=20, swing=5)
    assert sense_all(day, [0, 6 * HOUR, 12 * HOUR, 18 * HOUR]) == pytest.approx([20, 25, 20, 15])
    noisy = sense_all(Sine(mean=20, swing=0, noise=2), range(2000))
    assert fmean(noisy) == pytest.approx(20, abs=0.2)
    assert stdev(noisy) == pytest.approx(2, rel=0.1)
    behind = {sense_all(Sine(mean=0, swing=1, period=HOUR, lag=HOUR), [0], seed)[0] for seed in range(5)}
    assert len(behind) == 5
    with pytest.raises(ScenarioError, match="period: a period takes some time"):
        Sine(mean=0, swing=1, period=0)


def test_means_cover_the_readings_since_the_last_and_other_values_are_the_latest():
    """[D62] Four readings in a second, the last of them now."""
    read = {
        0: {"value": 1.0, "count": 1, "room": "a", "on": True},
        250: {"value": 2.0, "count": 2, "room": "b", "on": True},
        500: {"value": None, "count": 4, "room": "c", "on": True},
        750: {"value": 6.0, "count": 4, "room": "d", "on": False},
    }
    sample = average(lambda now: read[now], 250, 4)
    assert sample(750) == {"value": 3.0, "count": 3, "room": "d", "on": False}


def test_readings_have_the_types_of_the_topic():
    readings = {"value": UniformReadings(), "count": RandomWalk(start=5, step=3), "room": Constant("12")}
    sample = simulate_sample(readings, AIR, 0, Random(1))
    found = [sample(now) for now in range(5)]
    assert all(type(each["count"]) is int and type(each["value"]) is float for each in found)
    assert {each["room"] for each in found} == {"12"}


@pytest.mark.parametrize(
    ("readings", "message"),
    [
        ({"vlaue": UniformReadings()}, "vlaue: topic 'Air' has no 'vlaue'. Did you mean 'value'?"),
        ({"room": UniformReadings()}, "room: 'room' is of kind text"),
        ({"value": Constant("warm")}, "value: 'value' is of kind float"),
    ],
)
def test_readings_that_do_not_fit_the_topic_are_refused(readings, message):
    with pytest.raises(ScenarioError) as caught:
        require_fitting(readings, AIR)
    assert str(caught.value).startswith(message)


# From a file.

CSV = """\
ts,room,co2
2024-05-01T08:00:00,b,410
2024-05-01T08:00:00,a,400
2024-05-01T08:02:00,a,420
2024-05-01T08:01:00,a,
"""
CO2 = Topic("CO2", (Attribute("value", "float"),))
MAP = {"time": "ts", "source": "room", "value": "co2"}


def test_a_recording_is_played_from_the_start_of_a_publisher(tmp_path):
    (tmp_path / "rooms.csv").write_text(CSV)
    recording = load_recording(Recorded(file="rooms.csv", map=MAP), CO2, tmp_path)
    sample = recording.sample(0, "a", 10 * SECOND)
    times = [10 * SECOND, 10 * SECOND + MINUTE - 1, 10 * SECOND + MINUTE, 10 * SECOND + 3 * MINUTE, HOUR]
    assert [sample(now)["value"] for now in times] == [400, 400, None, 420, 420]


def test_nodes_play_their_own_source_or_one_after_the_other():
    recording = to_recording([Event("CO2", 0, "a", {"value": 1.0}), Event("CO2", 0, "b", {"value": 2.0})])
    assert recording.sample(0, "b", 0)(0) == {"value": 2.0}
    assert [recording.sample(i, "x", 0)(0)["value"] for i in range(3)] == [1.0, 2.0, 1.0]


def test_parquet_files_and_numeric_times_are_read(tmp_path):
    table = pa.table({"time": [0, 60], "source": ["a", "a"], "value": [1.5, 2.5]})
    pq.write_table(table, tmp_path / "rooms.parquet")
    recording = load_recording(Recorded(file="rooms.parquet", time_unit="s"), CO2, tmp_path)
    assert [recording.sample(0, "a", 0)(now)["value"] for now in (0, MINUTE)] == [1.5, 2.5]


def test_a_file_without_readings_is_refused(tmp_path):
    (tmp_path / "none.csv").write_text("time,source,value\n")
    with pytest.raises(InputError, match="there is no reading of 'CO2' in it"):
        load_recording(Recorded(file="none.csv"), CO2, tmp_path)


def test_a_history_is_played_by_the_nodes_of_its_sources_or_by_one_after_the_other():
    recording = to_recording(
        [Event("CO2", 0, "a", {"value": 1.0}), Event("CO2", 0, "b", {"value": 2.0})], "c"
    )
    assert [recording.source(i, name, "ab") for i, name in enumerate("ab")] == ["a", "b"]
    assert recording.source(0, "x", "xb") is None, "where some are called as sources are, others play none"
    assert [recording.source(i, name, "vwxyz") for i, name in enumerate("vwxyz")] == [
        "a",
        "b",
        "c",
        None,
        None,
    ]
