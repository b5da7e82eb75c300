"""The examples of spec/state-filters.md and spec/sps.md §3.1–3.3, run as they are printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Engine, Event, parse

MINUTE = 60_000_000
Reading = tuple[str, dict[str, Any]]  # a source and its attributes


def replay_numbers(
    holdfast: Any, folder: Path, definition: str, readings: Iterable[Reading]
) -> dict[str, list[int]]:
    """Which readings each subscription lets pass, by their numbers, through the command line."""
    app, data = folder / "app.hf", folder / "data.jsonl"
    app.write_text(definition, encoding="utf-8")
    with data.open("w", encoding="utf-8") as file:
        for minute, (source, attributes) in enumerate(readings):
            at = f"2007-09-13T{minute // 60:02}:{minute % 60:02}:00Z"
            file.write(json.dumps({"time": at, "source": source, **attributes}) + "\n")
    passed: dict[str, list[int]] = {}
    for line in holdfast("replay", app, "-i", data).lines:
        at = line["time"]
        passed.setdefault(line["subscription"], []).append(int(at[11:13]) * 60 + int(at[14:16]))
    return passed


def push_numbers(definition: str, topic: str, readings: Iterable[Reading]) -> list[tuple[str, int]]:
    """The numbers that each subscription passes through the engine, event by event."""
    engine = Engine(parse(definition))
    found = []
    for minute, (source, attributes) in enumerate(readings):
        for note in engine.push(Event(topic, minute * MINUTE, source, attributes)):
            found.append((note.subscription, note.event.time // MINUTE))
    return found


def values(name: str, numbers: Sequence[float], source: str = "s1") -> list[Reading]:
    return [(source, {name: number}) for number in numbers]


# --- state-filters.md -----------------------------------------------------------------------------

WARMNESS = "topic Temperature (temperature float)\nwarmness: [temperature > 25; temperature < 22]\n"
WARM = [24, 26, 27, 23, 21.9, 20, 25, 25.1]


def test_warmness_passes_26_then_21_9_then_25_1(holdfast: Any, tmp_path: Path) -> None:
    passed = replay_numbers(holdfast, tmp_path, WARMNESS, values("temperature", WARM))
    assert [WARM[i] for i in passed["warmness"]] == [26, 21.9, 25.1]
    assert [WARM[i] for _, i in push_numbers(WARMNESS, "Temperature", values("temperature", WARM))] == [
        26,
        21.9,
        25.1,
    ]


SIGHTING = "topic Sighting (Name text, Location text)\n"
SIGHTINGS: list[Reading] = [
    ("door", {"Name": name, "Location": location})
    for name, location in [
        ("John", "FE04"),
        ("Ann", "FE05"),
        ("John", "FE05"),
        ("John", "FE05"),
        ("Ann", "FE01"),
        ("John", "FE01"),
    ]
]


def test_john_enters_with_the_third_sighting_and_leaves_with_the_last(holdfast: Any, tmp_path: Path) -> None:
    printed = '[(Name == "John") && (Location == "FE05");(Name == "John") && (Location != "FE05")]\n'
    (passed,) = replay_numbers(holdfast, tmp_path, SIGHTING + printed, SIGHTINGS).values()
    assert passed == [2, 5]
    assert [i for _, i in push_numbers(SIGHTING + printed, "Sighting", SIGHTINGS)] == [2, 5]


def test_a_momentary_condition_passes_every_match_and_no_other_event(holdfast: Any, tmp_path: Path) -> None:
    (passed,) = replay_numbers(holdfast, tmp_path, SIGHTING + '[Name == "John"; true]\n', SIGHTINGS).values()
    assert passed == [0, 2, 3, 5]
    assert [i for _, i in push_numbers(SIGHTING + '[Name == "John"; true]', "Sighting", SIGHTINGS)] == [
        0,
        2,
        3,
        5,
    ]


def test_a_momentary_condition_is_atomic_and_never_active() -> None:
    engine = Engine(parse(SIGHTING + '[Name == "John"; true]'))
    notes = engine.push(Event("Sighting", 0, "door", {"Name": "John", "Location": "FE05"}))
    assert [note.status for note in notes] == ["atomic"]
    assert engine.holding() == []


def test_a_static_exit_of_false_never_ends(holdfast: Any, tmp_path: Path) -> None:
    definition = "topic Temperature (temperature float)\n[temperature > 25; false]\n"
    (passed,) = replay_numbers(holdfast, tmp_path, definition, values("temperature", WARM)).values()
    assert [WARM[i] for i in passed] == [26]


def test_a_content_filter_migrates_as_a_momentary_state(holdfast: Any, tmp_path: Path) -> None:
    definition = (
        "topic Temperature (temperature float)\n"
        "filter Content on Temperature where temperature > 25\n"
        "state Paper on Temperature [temperature > 25; true]\n"
        "state Thesis on Temperature [temperature > 25; temperature > 25]\n"
    )
    passed = replay_numbers(holdfast, tmp_path, definition, values("temperature", WARM))
    assert passed["Content"] == passed["Paper"] == passed["Thesis"] == [1, 2, 7]


def test_all_examples_of_the_paper_parse_in_one_file(holdfast: Any, tmp_path: Path) -> None:
    app = tmp_path / "paper.hf"
    app.write_text(
        "topic Temperature (temperature float)\ntopic Sighting (Name text, Location text)\n"
        "warmness: [temperature > 25; temperature < 22]\n"
        '[(Name == "John") && (Location == "FE05");(Name == "John") && (Location != "FE05")]\n'
        '[Name == "John"; true]\n'
    )
    ran = holdfast("check", app)
    assert ran.status == 0, ran.err


# --- sps.md §3.1: mines ---------------------------------------------------------------------------

MINES = """
topic Mine (methane float, temp float)
s = {methane > 500, (methane < 500) || (temp < 20), U}
s_1 = methane > 500
s_2 = (methane < 500) || (temp < 20)
"""
GAS = [
    ("methane", 400, False),
    ("temp", 25, False),
    ("methane", 600, True),
    ("methane", 700, False),
    ("temp", 25, False),
    ("methane", 500, False),
    ("temp", 18, True),
    ("methane", 650, True),
    ("temp", 18, True),
    ("temp", 18, False),
    ("methane", 300, False),
]


def test_mines_deliver_onset_and_end_where_content_filters_deliver_nearly_everything(
    holdfast: Any, tmp_path: Path
) -> None:
    readings: list[Reading] = [("probe-" + name, {name: number}) for name, number, _ in GAS]
    passed = replay_numbers(holdfast, tmp_path, MINES, readings)
    assert passed["s"] == [i for i, (_, _, passes) in enumerate(GAS) if passes]
    dropped = {("temp", 25), ("methane", 500)}
    assert sorted({*passed["s_1"], *passed["s_2"]}) == [
        i for i, (name, number, _) in enumerate(GAS) if (name, number) not in dropped
    ]
    state = [i for name, i in push_numbers(MINES, "Mine", readings) if name == "s"]
    assert state == passed["s"]


# --- sps.md §3.2: office --------------------------------------------------------------------------

OFFICE = """
topic Office (temp float)
region office_1
let T_l = 20
let T_h = 26
let T_p = (T_l + T_h) / 2
s = {temp > T_h, temp ≤ T_p, {region : office_1}}
s_1 = temp > T_h
s_2 = temp ≤ T_p
"""
DAY = [24, 26, 27, 28, 25, 23.5, 23, 22, 27]


def test_office_regulation_starts_and_stops_cooling(holdfast: Any, tmp_path: Path) -> None:
    readings: list[Reading] = [("t1", {"temp": number, "place": "office_1"}) for number in DAY]
    elsewhere: list[Reading] = [("t2", {"temp": 40, "place": "office_2"}), ("t2", {"temp": 0, "place": None})]
    passed = replay_numbers(holdfast, tmp_path, OFFICE, readings + elsewhere)
    assert [DAY[i] for i in passed["s"]] == [27, 23, 27]
    content = sorted(i for i in {*passed["s_1"], *passed["s_2"]} if i < len(DAY))
    assert [DAY[i] for i in content] == [27, 28, 23, 22, 27]


def test_office_regulation_is_active_at_its_end_and_reports_its_region(holdfast: Any, tmp_path: Path) -> None:
    (tmp_path / "app.hf").write_text(OFFICE, encoding="utf-8")
    (tmp_path / "data.jsonl").write_text(
        "".join(
            json.dumps({"time": f"2007-09-13T00:0{i}:00Z", "source": "t1", "temp": temp, "place": "office_1"})
            + "\n"
            for i, temp in enumerate(DAY)
        )
    )
    ran = holdfast("replay", tmp_path / "app.hf", "-i", tmp_path / "data.jsonl")
    mine = [line for line in ran.lines if line["subscription"] == "s"]
    assert [line["status"] for line in mine] == ["ingress", "egress", "ingress"]
    assert {line["scope"] for line in mine} == {"office_1"}
    assert mine[1]["since"] == "2007-09-13T00:02:00.000000Z"


# --- sps.md §3.3 ----------------------------------------------------------------------------------


def test_freezing_delivers_the_first_reading_below_zero_and_the_first_that_is_not(
    holdfast: Any, tmp_path: Path
) -> None:
    definition = "topic Weather (temp float)\nstate Freezing on Weather [temp < 0; temp >= 0] per source\n"
    numbers = [2, 0, -0.1, -5, -3, 0, 1, -1, 4]
    passed = replay_numbers(holdfast, tmp_path, definition, values("temp", numbers))
    assert passed["Freezing"] == [2, 5, 7, 8]


def test_night_is_one_universal_scope_and_brightness_is_one_for_each_room(
    holdfast: Any, tmp_path: Path
) -> None:
    definition = (
        "topic Light (lux float, room text)\n"
        "state Night on Light [lux < 10; lux > 20]\n"
        "state Bright on Light [lux > 500; lux < 400] per room\n"
    )
    readings: list[Reading] = [
        (room, {"lux": lux, "room": room})
        for room, lux in [("a", 5), ("b", 5), ("a", 600), ("b", 700), ("b", 300), ("a", 450), ("a", 399)]
    ]
    passed = replay_numbers(holdfast, tmp_path, definition, readings)
    assert passed == {"Night": [0, 2], "Bright": [2, 3, 4, 6]}


NESTED_REGIONS = """
topic Office (temp float)
region x in xu
region u in xu
region xu
s = {temp > 26, temp <= 23, {region: x, region: u, region: xu}}
"""
NESTED_LEVELS = """
gazetteer "places.toml"
topic Office (temp float)
state s on Office [temp > 26; temp <= 23] scope inner within outer
"""
NESTED_KEYS = """
topic Office (temp float, all text)
state s on Office [temp > 26; temp <= 23] per source within all
"""


@pytest.mark.parametrize("definition", [NESTED_REGIONS, NESTED_LEVELS, NESTED_KEYS])
def test_scopes_x_and_u_inside_xu(definition: str, holdfast: Any, tmp_path: Path) -> None:
    (tmp_path / "places.toml").write_text('[inner]\nx = { in = "xu" }\nu = { in = "xu" }\n[outer]\nxu = {}\n')
    readings: list[Reading] = [
        (source, {"temp": temp, "place": source, "all": "xu"})
        for source, temp in [("x", 27), ("u", 28), ("x", 28), ("x", 22), ("u", 22), ("u", 27)]
    ]
    assert replay_numbers(holdfast, tmp_path, definition, readings)["s"] == [0, 3, 5]


def test_the_momentary_form_of_the_thesis_passes_11_12_13(holdfast: Any, tmp_path: Path) -> None:
    numbers = [9, 11, 12, 8, 13]
    definition = "topic T (temp float)\ns = {temp>10, temp>10, U}\nt: [temp>10; true]\n"
    passed = replay_numbers(holdfast, tmp_path, definition, values("temp", numbers))
    assert [numbers[i] for i in passed["s"]] == [11, 12, 13]
    assert passed["t"] == passed["s"]


PAIRS = [
    "temp > 26; temp <= 23",
    "temp > 10; temp > 10",
    "temp > 10; true",
    "temp > 10; false",
    "temp < 0; temp > -5",
]


@given(
    pair=st.sampled_from(PAIRS),
    numbers=st.lists(st.sampled_from([-9.0, -3.0, 0.0, 5.0, 11.0, 23.0, 25.0, 27.0, None]), max_size=40),
    replicas=st.integers(2, 4),
)
def test_replicas_in_series_equal_one_filter(pair: str, numbers: list[float | None], replicas: int) -> None:
    definition = f"topic T (temp float)\nstate S on T [{pair}]\n"
    stream = [Event("T", i, "s", {"temp": number}, i + 1) for i, number in enumerate(numbers)]
    single = Engine(parse(definition))
    once = [note.event for event in stream for note in single.push(event)]
    engines = [Engine(parse(definition)) for _ in range(replicas)]
    series = [note.event for event in stream for note in chain(engines, event)]
    assert series == once


def chain(engines: Sequence[Engine], event: Event) -> list[Any]:
    """The output of the last engine when the output of each feeds the next."""
    notes = engines[0].push(event)
    for engine in engines[1:]:
        notes = [later for note in notes for later in engine.push(note.event)]
    return notes


def test_a_state_filter_sends_at_6_and_75_where_a_validity_filter_repeats_itself(
    holdfast: Any, tmp_path: Path
) -> None:
    definition = "topic T (temp float)\nstate Above on T [temp > 10; !(temp > 10)] per source\n"
    samples = list(range(0, 100, 3))
    (tmp_path / "app.hf").write_text(definition)
    (tmp_path / "data.csv").write_text(
        "time,source,temp\n"
        + "".join(f"{minute * 60},s,{12 if 6 <= minute <= 72 else 8}\n" for minute in samples)
    )
    ran = holdfast("replay", tmp_path / "app.hf", "-i", tmp_path / "data.csv", "--time-unit", "s")
    assert [line["time"][11:16] for line in ran.lines] == ["00:06", "01:15"]
