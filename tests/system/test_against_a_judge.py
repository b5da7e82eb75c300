"""The program beside an independent implementation (support/judge.py), line by line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Engine, Event, Notification, parse
from support.judge import (
    EPOCH,
    Gazetteer,
    Predicate,
    Subscription,
    absolute,
    attribute,
    both,
    by,
    compare,
    compute,
    either,
    instant,
    intervals,
    is_between,
    judge,
    negate,
    to_printed,
)

Row = dict[str, Any]

ATTRIBUTES = {
    "value": "float",
    "n": "int",
    "m": "int",
    "ok": "bool",
    "room": "text",
    "floor": "text",
    "building": "text",
}
TOPIC = f"topic Reading ({', '.join(f'{name} {kind}' for name, kind in ATTRIBUTES.items())})\n"

value, n, m, ok, room, floor = (attribute(name) for name in ("value", "n", "m", "ok", "room", "floor"))


def sub(
    name: str, enter: Predicate, leave: Predicate | bool, *scopes: Any, topic: str = "Reading"
) -> Subscription:
    return Subscription(name, topic, list(ATTRIBUTES), enter, leave, scopes)


# --- the data -------------------------------------------------------------------------------------

START = 1_700_000_000_000_000
HUGE = 1 << 53
VALUES = [
    9.0,
    10.0,
    10.5,
    18.0,
    20.0,
    22.0,
    21.9,
    23.0,
    25.0,
    25.1,
    26.0,
    40.0,
    -3.5,
    0.0,
    math.inf,
    -math.inf,
]
SOURCES = ["s1", "s2", "s10", "S3", "é", "z\u00df", "\uffee", "\U0001f600", 'quo"te', "com,ma"]


def readings(seed: int, count: int = 300, span: int = 90) -> list[Row]:
    """Readings in no order, with ties in time, missing values, NaN and infinity."""
    rng = random.Random(seed)

    def maybe(draw: Callable[[], Any], p: float = 0.1) -> Any:
        return None if rng.random() < p else draw()

    rows: list[Row] = []
    for _ in range(count):
        name = maybe(lambda: rng.choice("abc"))
        rows.append(
            {
                "time": START + rng.randrange(span) * 500_000 + rng.choice([0, 0, 0, 1]),
                "source": rng.choice(SOURCES),
                "topic": "Reading",
                "value": maybe(lambda: math.nan if rng.random() < 0.08 else rng.choice(VALUES)),
                "n": maybe(lambda: rng.choice([0, 1, 2, 3, 5, 10, 20, -7, HUGE, HUGE + 1, -HUGE - 1])),
                "m": maybe(lambda: rng.choice([0, 1, 2, 4, HUGE, HUGE + 1])),
                "ok": maybe(lambda: rng.random() < 0.5, 0.25),
                "room": name,
                "floor": maybe(lambda: rng.choice("12")),
                "building": maybe(lambda: rng.choice(["B", "C"]), 0.05),
            }
        )
    return rows


def with_sequences(rows: Sequence[Row], rank: int = 0) -> list[Row]:
    return [{**row, "sequence": (rank << 32) + i} for i, row in enumerate(rows)]


# --- files ----------------------------------------------------------------------------------------

Stamp = Callable[[int], str]


def zulu(at: int) -> str:
    return (EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def columns(rows: Sequence[Row]) -> list[str]:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return [name for name in names if name != "sequence"]


def write_csv(
    path: Path, rows: Sequence[Row], stamp: Stamp = zulu, names: Mapping[str, str] | None = None
) -> None:
    names = names or {}
    wanted = columns(rows)
    text = io.StringIO()
    out = csv.writer(text)
    out.writerow([names.get(name, name) for name in wanted])
    for row in rows:
        cells = []
        for name in wanted:
            cell = row.get(name)
            if name == "time":
                cell = stamp(cell)
            elif isinstance(cell, bool):
                cell = "true" if cell else "false"
            cells.append("" if cell is None else cell if isinstance(cell, str) else repr(cell))
        out.writerow(cells)
    write(path, text.getvalue())


def write_jsonl(
    path: Path, rows: Sequence[Row], stamp: Stamp = zulu, names: Mapping[str, str] | None = None
) -> None:
    names = names or {}
    lines = []
    for i, row in enumerate(rows):
        shown = {}
        for name, cell in row.items():
            if name == "sequence" or (cell is None and i % 2):  # missing is null, or not there at all
                continue
            if name == "time":
                cell = stamp(cell)
            elif isinstance(cell, float) and math.isinf(cell):
                cell = repr(cell)
            elif isinstance(cell, float) and math.isnan(cell):
                cell = None
            shown[names.get(name, name)] = cell
        lines.append(json.dumps(shown, ensure_ascii=bool(i % 2)) + "\n")
    write(path, "".join(lines))


def write(path: Path, text: str) -> None:
    raw = text.encode("utf-8")
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


ARROW = {"float": pa.float64(), "int": pa.int64(), "bool": pa.bool_(), "text": pa.string()}


def write_parquet(
    path: Path, rows: Sequence[Row], stamp: Stamp | None = None, names: Mapping[str, str] | None = None
) -> None:
    """Small row groups, so that several are read."""
    names = names or {}
    arrays, header = [], []
    for name in columns(rows):
        kind = (
            pa.timestamp("us", "UTC")
            if name == "time"
            else pa.float64()
            if name in ("x", "y", "z")
            else ARROW.get(ATTRIBUTES.get(name, "text"), pa.string())
        )
        arrays.append(pa.array([row.get(name) for row in rows], kind, from_pandas=False))
        header.append(names.get(name, name))
    pq.write_table(pa.Table.from_arrays(arrays, header), path, row_group_size=max(50, len(rows) // 8))


WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


# --- the definitions ------------------------------------------------------------------------------

PLACES = Gazetteer(
    {
        "rooms": {
            "101": {"in": "floor-1"},
            "102": {"in": "floor-1"},
            "201": {"in": "floor-2"},
            "301": {"in": "floor-3"},
        },
        "floors": {"floor-1": {"in": "east"}, "floor-2": {"in": "east"}, "floor-3": {"in": "west"}},
        "buildings": {"east": {}, "west": {}},
    }
)
SHAPES = Gazetteer(
    {
        "rooms": {
            "lab": {"in": "ground", "rectangle": [0, 0, 10, 10]},
            "hall": {"in": "ground", "circle": [25, 5, 4]},
            "shed": {"in": "yard", "polygon": [[50, 0], [60, 0], [60, 10], [55, 4], [50, 10]]},
        },
        "floors": {
            "ground": {"in": "site", "rectangle": [-1, -1, 40, 20]},
            "yard": {"in": "site", "rectangle": [45, -5, 70, 20]},
        },
        "sites": {"site": {"rectangle": [-100, -100, 100, 100]}},
    }
)
SENSORS = Gazetteer(
    {
        "rooms": {
            "north": {"in": "wing", "sources": ["s1", "é"]},
            "south": {"in": "wing", "sources": ["s2", 'quo"te']},
        },
        "wings": {"wing": {}},
    }
)


@dataclass
class Definition:
    text: str
    subscriptions: list[Subscription]
    gazetteer: Gazetteer | None = None
    options: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        text = TOPIC + self.text
        if self.gazetteer is not None:
            text = 'gazetteer "places.toml"\n' + text
            (folder / "places.toml").write_text(toml(self.gazetteer), encoding="utf-8")
        path = folder / "app.hf"
        path.write_text(text, encoding="utf-8")
        return path


def toml(gazetteer: Gazetteer) -> str:
    lines = []
    for level, regions in gazetteer.levels.items():
        lines.append(f"[{level}]")
        for name, region in regions.items():
            entries = ", ".join(
                f"{key} = {json.dumps(entry, ensure_ascii=False)}" for key, entry in region.items()
            )
            lines.append(f'"{name}" = {{ {entries} }}')
    return "\n".join(lines) + "\n"


def warm(row: Any) -> bool | None:
    return compare(value(row), ">", 25)


def cool(row: Any) -> bool | None:
    return compare(value(row), "<", 22)


DEFINITIONS = {
    "thresholds by source, room and for everything": Definition(
        """
        state Warm on Reading [value > 25; value < 22] per source
        state WarmRoom on Reading [value > 25; value < 22] per room
        state WarmAll on Reading [value > 25; value < 22]
        """,
        [
            sub("Warm", warm, cool, by("source")),
            sub("WarmRoom", warm, cool, by("room")),
            sub("WarmAll", warm, cool),
        ],
    ),
    "Kleene's logic": Definition(
        """
        state A on Reading [value > 25 || ok; !(value >= 22) && n != 3] per room
        state B on Reading [not (ok and value < 20); ok or !(n > 2)] per source
        state C on Reading [!ok; ok] per floor
        filter D on Reading where (ok || !ok) && !(value > 20 && n > 2)
        """,
        [
            sub(
                "A",
                lambda r: either(warm(r), ok(r)),
                lambda r: both(negate(compare(value(r), ">=", 22)), compare(n(r), "!=", 3)),
                by("room"),
            ),
            sub(
                "B",
                lambda r: negate(both(ok(r), compare(value(r), "<", 20))),
                lambda r: either(ok(r), negate(compare(n(r), ">", 2))),
                by("source"),
            ),
            sub("C", lambda r: negate(ok(r)), ok, by("floor")),
            sub(
                "D",
                lambda r: both(
                    either(ok(r), negate(ok(r))),
                    negate(both(compare(value(r), ">", 20), compare(n(r), ">", 2))),
                ),
                True,
            ),
        ],
    ),
    "toggling, momentary and lasting": Definition(
        """
        state Toggle on Reading [value > 10; value > 10]
        state ToggleEach on Reading [value > 10; value > 10] per source
        state Moment on Reading [value > 10; true] per room
        state Forever on Reading [value > 10; false] per room
        filter High on Reading where value > 10
        filter HighEach on Reading where value > 10 per floor
        """,
        [
            sub("Toggle", *[lambda r: compare(value(r), ">", 10)] * 2),
            sub("ToggleEach", *[lambda r: compare(value(r), ">", 10)] * 2, by("source")),
            sub("Moment", lambda r: compare(value(r), ">", 10), True, by("room")),
            sub("Forever", lambda r: compare(value(r), ">", 10), False, by("room")),
            sub("High", lambda r: compare(value(r), ">", 10), True),
            sub("HighEach", lambda r: compare(value(r), ">", 10), True, by("floor")),
        ],
    ),
    "text and booleans": Definition(
        """
        state Here on Reading [(room == "a") && (floor == "1"); (room == "a") && (floor != "1")] per building
        state Not on Reading [room != "b" && ok == true; room == "b" || ok == false] per source
        filter Odd on Reading where source == "quo\\"te" || source == "com,ma" || room == floor
        """,
        [
            sub(
                "Here",
                lambda r: both(compare(room(r), "==", "a"), compare(floor(r), "==", "1")),
                lambda r: both(compare(room(r), "==", "a"), compare(floor(r), "!=", "1")),
                by("building"),
            ),
            sub(
                "Not",
                lambda r: both(compare(room(r), "!=", "b"), compare(ok(r), "==", True)),
                lambda r: either(compare(room(r), "==", "b"), compare(ok(r), "==", False)),
                by("source"),
            ),
            sub(
                "Odd",
                lambda r: either(
                    compare(r["source"], "==", 'quo"te'),
                    compare(r["source"], "==", "com,ma"),
                    compare(room(r), "==", floor(r)),
                ),
                True,
            ),
        ],
    ),
    "arithmetic": Definition(
        """
        state Ratio on Reading [value / n > 2; abs(value - n) < 8] per source
        state Sum on Reading [2 * value + 1 >= 46.2 - n * 0; |value| - 10 < 0.5] per room
        state Neg on Reading [-value < -20; value - value == 0 && -(value) > -20] per floor
        filter Zero on Reading where 1 / n == 1 || value / 0 > 1 || !(0 / value > 1)
        """,
        [
            sub(
                "Ratio",
                lambda r: compare(compute("/", value(r), n(r)), ">", 2),
                lambda r: compare(absolute(compute("-", value(r), n(r))), "<", 8),
                by("source"),
            ),
            sub(
                "Sum",
                lambda r: compare(
                    compute("+", compute("*", 2, value(r)), 1),
                    ">=",
                    compute("-", 46.2, compute("*", n(r), 0)),
                ),
                lambda r: compare(compute("-", absolute(value(r)), 10), "<", 0.5),
                by("room"),
            ),
            sub(
                "Neg",
                lambda r: compare(compute("-", 0.0, value(r)), "<", -20),
                lambda r: both(
                    compare(compute("-", value(r), value(r)), "==", 0),
                    compare(compute("-", 0.0, value(r)), ">", -20),
                ),
                by("floor"),
            ),
            sub(
                "Zero",
                lambda r: either(
                    compare(compute("/", 1, n(r)), "==", 1),
                    compare(compute("/", value(r), 0), ">", 1),
                    negate(compare(compute("/", 0, value(r)), ">", 1)),
                ),
                True,
            ),
        ],
    ),
    "several keys, of every kind": Definition(
        """
        state Pair on Reading [value > 25; value < 22] per room, floor
        state Triple on Reading [value > 20; value < 20] per source, n, ok
        state Number on Reading [value > 20; value < 20] per value
        state Whole on Reading [value > 20; value < 20] per n
        state Flag on Reading [value > 20; value < 20] per ok
        """,
        [
            sub("Pair", warm, cool, by("room", "floor")),
            sub(
                "Triple",
                lambda r: compare(value(r), ">", 20),
                lambda r: compare(value(r), "<", 20),
                by("source", "n", "ok"),
            ),
            *(
                sub(name, lambda r: compare(value(r), ">", 20), lambda r: compare(value(r), "<", 20), by(key))
                for name, key in (("Number", "value"), ("Whole", "n"), ("Flag", "ok"))
            ),
        ],
    ),
    "keys within keys": Definition(
        """
        state Two on Reading [value > 25; value < 22] per room within floor
        state Three on Reading [value > 25; value <= 23] per room within floor within building
        state Both on Reading [value > 20; n > 2] per source within room, floor within building
        state Moments on Reading [value > 25; true] per room within floor
        state Toggles on Reading [value > 20; value > 20] per source within room within building
        """,
        [
            sub("Two", warm, cool, by("room"), by("floor")),
            sub(
                "Three", warm, lambda r: compare(value(r), "<=", 23), by("room"), by("floor"), by("building")
            ),
            sub(
                "Both",
                lambda r: compare(value(r), ">", 20),
                lambda r: compare(n(r), ">", 2),
                by("source"),
                by("room", "floor"),
                by("building"),
            ),
            sub("Moments", warm, True, by("room"), by("floor")),
            sub(
                "Toggles",
                lambda r: compare(value(r), ">", 20),
                lambda r: compare(value(r), ">", 20),
                by("source"),
                by("room"),
                by("building"),
            ),
        ],
    ),
    "whole numbers beyond 2^53": Definition(
        f"""
        state Exact on Reading [n >= {HUGE + 1}; n == {HUGE}] per source
        state Less on Reading [n < -{HUGE}; n > m] per room
        state Same on Reading [n == m; n != m] per floor
        """,
        [
            sub(
                "Exact",
                lambda r: compare(n(r), ">=", HUGE + 1),
                lambda r: compare(n(r), "==", HUGE),
                by("source"),
            ),
            sub("Less", lambda r: compare(n(r), "<", -HUGE), lambda r: compare(n(r), ">", m(r)), by("room")),
            sub(
                "Same", lambda r: compare(n(r), "==", m(r)), lambda r: compare(n(r), "!=", m(r)), by("floor")
            ),
        ],
    ),
    "ranges, chains and parameters": Definition(
        """
        let low = 20
        let high = low + 5.1
        state In on Reading [value in [low, high]; !(value in [low - 2, high + 0.9])] per source
        state Chain on Reading [low <= value < 25; value <= 10 || value > 25] per room
        state Mixed on Reading [n in [2, 10]; not n in [1, 20]] per floor
        """,
        [
            sub(
                "In",
                lambda r: is_between(value(r), 20, 25.1),
                lambda r: negate(is_between(value(r), 18, 20 + 5.1 + 0.9)),
                by("source"),
            ),
            sub(
                "Chain",
                lambda r: both(compare(20, "<=", value(r)), compare(value(r), "<", 25)),
                lambda r: either(compare(value(r), "<=", 10), compare(value(r), ">", 25)),
                by("room"),
            ),
            sub(
                "Mixed",
                lambda r: is_between(n(r), 2, 10),
                lambda r: negate(is_between(n(r), 1, 20)),
                by("floor"),
            ),
        ],
    ),
    "parameters from the command line": Definition(
        """
        let high = 99
        let wanted = "nowhere"
        state Warm on Reading [value > high; value < 22] per source
        filter There on Reading where room == wanted
        """,
        [
            sub("Warm", warm, cool, by("source")),
            sub("There", lambda r: compare(room(r), "==", "a"), True),
        ],
        options=["--let", "high=25", "--let", "wanted=a"],
    ),
    "the notations of the papers": Definition(
        """
        warmness: [value > 25; value < 22] per source
        s = {value > 26, value ≤ 23, U}
        s_1 = value > 26
        """,
        [
            sub("warmness", warm, cool, by("source")),
            sub("s", lambda r: compare(value(r), ">", 26), lambda r: compare(value(r), "<=", 23)),
            sub("s_1", lambda r: compare(value(r), ">", 26), True),
        ],
    ),
    "rooms in floors in buildings, by place": Definition(
        """
        state Heat on Reading [value > 25; value < 22] scope rooms within floors within buildings
        state Floor on Reading [value > 25; value < 22] scope rooms within floors
        state Room on Reading [value > 25; value < 22] scope rooms
        state Building on Reading [value > 25; value < 22] scope buildings
        state Skip on Reading [value > 20; value < 20] scope rooms within buildings
        state Some on Reading [value > 25; value < 22] scope "101", "201", "floor-3"
        state Moment on Reading [value > 25; true] scope rooms within floors within buildings
        """,
        [
            sub("Heat", warm, cool, *map(PLACES.level, ("rooms", "floors", "buildings"))),
            sub("Floor", warm, cool, *map(PLACES.level, ("rooms", "floors"))),
            sub("Room", warm, cool, PLACES.level("rooms")),
            sub("Building", warm, cool, PLACES.level("buildings")),
            sub(
                "Skip",
                lambda r: compare(value(r), ">", 20),
                lambda r: compare(value(r), "<", 20),
                *map(PLACES.level, ("rooms", "buildings")),
            ),
            sub("Some", warm, cool, PLACES.among("101", "201", "floor-3")),
            sub("Moment", warm, True, *map(PLACES.level, ("rooms", "floors", "buildings"))),
        ],
        PLACES,
    ),
    "keys within regions": Definition(
        """
        state Source on Reading [value > 25; value < 22] per source scope rooms
        state Both on Reading [value > 25; value < 22] per room, n within floor scope buildings
        """,
        [
            sub("Source", warm, cool, by("source"), PLACES.level("rooms")),
            sub("Both", warm, cool, by("room", "n"), by("floor"), PLACES.level("buildings")),
        ],
        PLACES,
    ),
    "shapes in shapes, by coordinates": Definition(
        """
        state Heat on Reading [value > 25; value < 22] scope rooms within floors within sites
        state Floor on Reading [value > 25; value < 22] scope rooms within floors
        state Room on Reading [value > 25; value < 22] scope rooms
        """,
        [
            sub("Heat", warm, cool, *map(SHAPES.level, ("rooms", "floors", "sites"))),
            sub("Floor", warm, cool, *map(SHAPES.level, ("rooms", "floors"))),
            sub("Room", warm, cool, SHAPES.level("rooms")),
        ],
        SHAPES,
    ),
    "rooms by their sensors": Definition(
        """
        state Heat on Reading [value > 25; value < 22] scope rooms within wings
        state Room on Reading [value > 25; value < 22] scope rooms
        """,
        [
            sub("Heat", warm, cool, *map(SENSORS.level, ("rooms", "wings"))),
            sub("Room", warm, cool, SENSORS.level("rooms")),
        ],
        SENSORS,
    ),
}


def place_rows(rows: Sequence[Row], gazetteer: Gazetteer | None, seed: int = 5) -> list[Row]:
    """The rows with places or coordinates, as the gazetteer needs them."""
    rng = random.Random(seed)
    if gazetteer is PLACES:
        names = [name for regions in PLACES.levels.values() for name in regions]
        return [{**row, "place": rng.choice([*names, *names, "elsewhere", None])} for row in rows]
    if gazetteer is SHAPES:
        spots = [
            (5, 5),
            (1.5, 9),
            (25, 6),
            (28, 7),
            (15, 15),
            (55, 2),
            (55, 8),
            (51, 1),
            (65, 0),
            (-50, 50),
            (500, 0),
        ]
        placed_rows = []
        for row in rows:
            x, y = rng.choice([*spots, (None, None)])
            placed_rows.append(
                {**row, "x": None if x is None else float(x), "y": None if y is None else float(y)}
            )
        return placed_rows
    return list(rows)


# --- one file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_replay_prints_what_the_judge_expects(
    name: str, format: str, tmp_path: Path, holdfast: Any
) -> None:
    definition = DEFINITIONS[name]
    rows = place_rows(readings(seed=len(name)), definition.gazetteer)
    path = tmp_path / f"data.{format}"
    WRITERS[format](path, rows)
    app = definition.write(tmp_path)
    expected = judge(with_sequences(rows), definition.subscriptions)
    assert len(expected) > 20, "a test that sees nothing"
    arguments = ["replay", app, "--input", path, *definition.options]
    assert holdfast(*arguments).lines == expected
    assert holdfast(*arguments, "--as", "intervals").lines == intervals(expected)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_contain_the_same_notifications_as_lines(format: str, tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["thresholds by source, room and for everything"]
    rows = readings(seed=3)
    write_csv(tmp_path / "data.csv", rows)
    output = tmp_path / f"out.{format}"
    assert (
        holdfast("replay", definition.write(tmp_path), "-i", tmp_path / "data.csv", "-o", output).status == 0
    )
    expected = judge(with_sequences(rows), definition.subscriptions)
    if format == "csv":
        with output.open(encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        assert [row["time"] for row in found] == [line["time"] for line in expected]
        scopes = [row["scope"] for row in found]
        assert scopes == [line["scope"] or "" for line in expected]
    else:
        found = pq.read_table(output).to_pylist()
        assert [instant(int(row["time"].timestamp() * 1e6 + 0.5)) for row in found] == [
            line["time"] for line in expected
        ]
        assert [row["scope"] for row in found] == [line["scope"] for line in expected]
    assert [row["subscription"] for row in found] == [line["subscription"] for line in expected]
    assert [row["status"] for row in found] == [line["status"] for line in expected]
    assert [row["source"] for row in found] == [line["source"] for line in expected]


# --- units, topics, names, clocks -----------------------------------------------------------------


def test_units_are_compared_after_conversion(tmp_path: Path, holdfast: Any) -> None:
    app = tmp_path / "app.hf"
    app.write_text(
        "topic Reading (value float °C, n int)\n"
        "state Warm on Reading [value > 77 °F; value < 295.15 K] per source\n"
        "filter Hot on Reading where value >= 104 °F\n",
        encoding="utf-8",
    )
    rows = readings(seed=8)
    write_csv(tmp_path / "data.csv", rows)
    subscriptions = [
        sub("Warm", warm, cool, by("source")),
        sub("Hot", lambda r: compare(value(r), ">=", 40), True),
    ]
    for subscription in subscriptions:
        subscription.attributes = ["value", "n"]
    ran = holdfast("replay", app, "-i", tmp_path / "data.csv")
    assert ran.lines == judge(with_sequences(rows), subscriptions)


TOPICS = (
    "topic Reading (value float, room text)\ntopic Other (value float, ok bool)\n"
    "state B on Reading [value > 25; value < 22] per source\n"
    "state A on Other [value > 20; ok] per source\n"
    "filter C on Other where value > 25\n"
)


def two_topics() -> tuple[list[Row], list[Subscription]]:
    rng = random.Random(4)
    rows = [{**row, "topic": rng.choice(["Reading", "Other"])} for row in readings(seed=12)]
    subscriptions = [
        sub("B", warm, cool, by("source")),
        sub("A", lambda r: compare(value(r), ">", 20), ok, by("source"), topic="Other"),
        sub("C", warm, True, topic="Other"),
    ]
    subscriptions[0].attributes = ["value", "room"]
    subscriptions[1].attributes = subscriptions[2].attributes = ["value", "ok"]
    return rows, subscriptions


@pytest.mark.parametrize("format", WRITERS)
def test_a_topic_column_selects_the_topic_of_a_row(format: str, tmp_path: Path, holdfast: Any) -> None:
    rows, subscriptions = two_topics()
    app, path = tmp_path / "app.hf", tmp_path / f"data.{format}"
    app.write_text(TOPICS)
    WRITERS[format](path, rows)
    assert holdfast("replay", app, "-i", path).lines == judge(with_sequences(rows), subscriptions)


def test_files_may_be_of_different_topics(tmp_path: Path, holdfast: Any) -> None:
    rows, subscriptions = two_topics()
    app = tmp_path / "app.hf"
    app.write_text(TOPICS)
    first = [row for row in rows if row["topic"] == "Reading"]
    second = [row for row in rows if row["topic"] == "Other"]
    write_csv(tmp_path / "a.csv", [{k: v for k, v in row.items() if k != "topic"} for row in first])
    write_jsonl(tmp_path / "b.jsonl.gz", [{k: v for k, v in row.items() if k != "topic"} for row in second])
    ran = holdfast(
        "replay", app, "-i", f"Reading={tmp_path / 'a.csv'}", "-i", f"Other={tmp_path / 'b.jsonl.gz'}"
    )
    assert ran.lines == judge(with_sequences(first) + with_sequences(second, 1), subscriptions)


@pytest.mark.parametrize("format", WRITERS)
def test_map_renames_columns(format: str, tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["thresholds by source, room and for everything"]
    rows = readings(seed=21)
    names = {"time": "ts", "source": "Sensor Id", "value": "temp (C)", "topic": "t o p i c"}
    path = tmp_path / f"data.{format}"
    WRITERS[format](path, rows, names=names)
    renames = ",".join(f"{ours}={theirs}" for ours, theirs in names.items())
    ran = holdfast("replay", definition.write(tmp_path), "-i", path, "--map", renames)
    assert ran.lines == judge(with_sequences(rows), definition.subscriptions)


@pytest.mark.parametrize("zone", ["Europe/London", "America/St_Johns", "UTC"])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_times_without_a_zone_are_interpreted_in_the_given_zone(
    zone: str, format: str, tmp_path: Path, holdfast: Any
) -> None:
    definition = DEFINITIONS["thresholds by source, room and for everything"]
    rows = readings(seed=22)
    summer = 1_688_000_000_000_000 - START
    rows = [{**row, "time": row["time"] + (summer if i % 2 else 0)} for i, row in enumerate(rows)]

    def local(at: int) -> str:
        return (
            (EPOCH + timedelta(microseconds=at))
            .astimezone(ZoneInfo(zone))
            .replace(tzinfo=None)
            .isoformat(" " if at % 2 else "T")
        )

    path = tmp_path / f"data.{format}"
    WRITERS[format](path, rows, stamp=local)
    ran = holdfast("replay", definition.write(tmp_path), "-i", path, "--zone", zone)
    assert ran.lines == judge(with_sequences(rows), definition.subscriptions)


def test_one_column_may_contain_times_in_many_notations(tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["thresholds by source, room and for everything"]
    rows = readings(seed=23)
    clocks = [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))]

    def mixed_notation(at: int) -> str:
        instant = EPOCH + timedelta(microseconds=at)
        return instant.astimezone(clocks[at // 500_000 % 3]).isoformat("T" if at % 3 else " ")

    write_csv(tmp_path / "data.csv", rows, stamp=mixed_notation)
    ran = holdfast("replay", definition.write(tmp_path), "-i", tmp_path / "data.csv")
    assert ran.lines == judge(with_sequences(rows), definition.subscriptions)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1e6), ("ms", 1e3), ("us", 1), ("ns", 1e-3)])
def test_times_may_be_numbers_since_1970(unit: str, factor: float, tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["thresholds by source, room and for everything"]
    rows = [{**row, "time": row["time"] // 1_000_000 * 1_000_000} for row in readings(seed=24)]
    write_csv(tmp_path / "data.csv", rows, stamp=lambda at: str(round(at / factor)))
    ran = holdfast("replay", definition.write(tmp_path), "-i", tmp_path / "data.csv", "--time-unit", unit)
    assert ran.lines == judge(with_sequences(rows), definition.subscriptions)


def test_a_time_format_option_parses_times(tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["thresholds by source, room and for everything"]
    rows = readings(seed=25)

    def odd(at: int) -> str:
        return (EPOCH + timedelta(microseconds=at)).strftime("%d.%m.%Y %H-%M-%S,%f")

    write_csv(tmp_path / "data.csv", rows, stamp=odd)
    ran = holdfast(
        "replay",
        definition.write(tmp_path),
        "-i",
        tmp_path / "data.csv",
        "--time-format",
        "%d.%m.%Y %H-%M-%S,%f",
    )
    assert ran.lines == judge(with_sequences(rows), definition.subscriptions)


def test_differences_of_whole_numbers_are_whole_numbers(tmp_path: Path, holdfast: Any) -> None:
    definition = Definition(
        "state Gap on Reading [n - m > 0; n - m < 0] per room",
        [
            sub(
                "Gap",
                lambda r: compare(compute("-", n(r), m(r)), ">", 0),
                lambda r: compare(compute("-", n(r), m(r)), "<", 0),
                by("room"),
            )
        ],
    )
    rows = readings(seed=27)
    write_csv(tmp_path / "data.csv", rows)
    ran = holdfast("replay", definition.write(tmp_path), "-i", tmp_path / "data.csv")
    assert ran.lines == judge(with_sequences(rows), definition.subscriptions)


def test_an_explicit_sequence_decides_ties(tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["toggling, momentary and lasting"]
    rows = readings(seed=26, span=4)
    rng = random.Random(1)
    sequence = list(range(len(rows)))
    rng.shuffle(sequence)
    text = io.StringIO()
    write_csv(tmp_path / "plain.csv", rows)
    with (tmp_path / "plain.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    out = csv.writer(text)
    out.writerow(["sequence", *lines[0]])
    out.writerows([str(number), *line] for number, line in zip(sequence, lines[1:], strict=True))
    (tmp_path / "data.csv").write_text(text.getvalue(), encoding="utf-8")
    expected = judge(
        [{**row, "sequence": number} for row, number in zip(rows, sequence, strict=True)],
        definition.subscriptions,
    )
    ran = holdfast("replay", definition.write(tmp_path), "-i", tmp_path / "data.csv")
    assert ran.lines == expected


# --- several files --------------------------------------------------------------------------------


def test_several_overlapping_files_of_several_formats_replay_in_order(tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["keys within keys"]
    rows = readings(seed=31, count=600)
    folder = tmp_path / "data"
    folder.mkdir()
    names = ["a.csv", "b.jsonl", "c.parquet", "d.csv.gz", "e.jsonl.gz", "f.parquet"]
    everything: list[Row] = []
    for rank, name in enumerate(names):
        part = rows[rank::6]
        WRITERS[name.split(".")[1]](folder / name, part)
        everything += with_sequences(part, rank)
    app = definition.write(tmp_path)
    expected = judge(everything, definition.subscriptions)
    assert holdfast("replay", app, "-i", folder).lines == expected
    assert holdfast("replay", app, "-i", folder / "*").lines == expected
    assert holdfast("replay", app, "-i", folder, "--as", "intervals").lines == intervals(expected)


def test_consecutive_files_that_share_a_timestamp_replay_in_order(tmp_path: Path, holdfast: Any) -> None:
    definition = DEFINITIONS["thresholds by source, room and for everything"]
    rows = sorted(readings(seed=32, span=30), key=lambda row: row["time"])
    folder = tmp_path / "data"
    folder.mkdir()
    everything: list[Row] = []
    for rank in range(10):
        part = rows[rank * 30 : rank * 30 + 30]
        write_parquet(folder / f"{9 - rank}.parquet", part)
        everything += with_sequences(part, 9 - rank)
    ran = holdfast("replay", definition.write(tmp_path), "-i", folder)
    assert ran.lines == judge(everything, definition.subscriptions)


@pytest.mark.parametrize(
    ("format", "count"),
    [
        ("csv", 30_000),
        pytest.param("csv", 60_000, marks=pytest.mark.soak),
        pytest.param("parquet", 60_000, marks=pytest.mark.soak),
    ],
)
def test_a_shuffled_overlapping_folder_equals_the_sorted_one_in_little_memory(
    format: str, count: int, tmp_path: Path, holdfast: Any
) -> None:
    rng = random.Random(6)
    names = [f"sensor-{i:03}" for i in range(200)]
    rows: list[Row] = [
        {
            "time": START + i * 20_000,
            "source": rng.choice(names),
            "value": rng.choice([20.5, 21.0, 23.0, 26.0, 27.5, math.nan]),
            "room": rng.choice("abcd"),
        }
        for i in range(count)
    ]
    app = tmp_path / "app.hf"
    app.write_text(
        "topic Reading (value float, room text)\n"
        "state Warm on Reading [value > 25; value < 22] per source\n"
        "state All on Reading [value > 25; value < 22]\n"
        "state Nested on Reading [value > 25; value < 22] per source within room\n"
    )
    ordered, mixed_notation = tmp_path / "sorted", tmp_path / "shuffled"
    ordered.mkdir()
    mixed_notation.mkdir()
    for i in range(4):
        WRITERS[format](ordered / f"{i}.{format}", rows[i * count // 4 : (i + 1) * count // 4])
    rng.shuffle(rows)
    for i in range(4):
        WRITERS[format](mixed_notation / f"{i}.{format}", rows[i::4])
    subscriptions = [
        sub("Warm", warm, cool, by("source")),
        sub("All", warm, cool),
        sub("Nested", warm, cool, by("source"), by("room")),
    ]
    for subscription in subscriptions:
        subscription.attributes = ["value", "room"]
    expected = judge([{**row, "topic": "Reading", "sequence": 0} for row in rows], subscriptions)
    assert holdfast("replay", app, "-i", ordered).lines == expected
    assert (
        holdfast("replay", app, "-i", mixed_notation, "--memory", "1", "--scratch", tmp_path).lines
        == expected
    )
    assert {path.name for path in tmp_path.iterdir()} == {"app.hf", "sorted", "shuffled"}, (
        "scratch files stay"
    )


# --- chance ---------------------------------------------------------------------------------------

FLOATS = st.none() | st.sampled_from([*VALUES, math.nan, -0.0]) | st.floats(width=64)
WHOLE = st.none() | st.integers(-3, 3) | st.integers(-(2**62), 2**62)
WORDS = st.none() | st.sampled_from(["a", "b", "1", "2", "a,b", "ü"])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "time": st.integers(0, 6).map(lambda i: START + i * 500_000),
            "source": st.sampled_from(SOURCES[:4]),
            "topic": st.just("Reading"),
            "value": FLOATS,
            "n": WHOLE,
            "m": WHOLE,
            "ok": st.none() | st.booleans(),
            "room": WORDS,
            "floor": WORDS,
            "building": WORDS,
        }
    ),
    min_size=1,
    max_size=60,
)
CHOSEN = [
    "thresholds by source, room and for everything",
    "Kleene's logic",
    "toggling, momentary and lasting",
    "keys within keys",
    "whole numbers beyond 2^53",
    "ranges, chains and parameters",
    "text and booleans",
]


@settings(max_examples=30)
@given(
    rows=ROWS, name=st.sampled_from(CHOSEN), format=st.sampled_from(list(WRITERS)), files=st.integers(1, 3)
)
def test_the_judge_agrees_for_random_rows(
    rows: list[Row], name: str, format: str, files: int, holdfast: Any
) -> None:
    definition = DEFINITIONS[name]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text) / "data"
        folder.mkdir()
        everything: list[Row] = []
        for rank in range(files):
            part = rows[rank::files]
            if part:
                WRITERS[format](folder / f"{rank}.{format}", part)
                everything += with_sequences(part, rank)
        ran = holdfast("replay", definition.write(Path(text)), "-i", folder, *definition.options)
        expected = judge(everything, definition.subscriptions)
        assert ran.lines == expected


# --- definitions by chance ------------------------------------------------------------------------

Written = tuple[str, Callable[[Any], Any]]  # the text of an expression and what it means


def number_leaves() -> st.SearchStrategy[Written]:
    constants = st.sampled_from([0, 1, 2, 3, 10, 22, 25]) | st.sampled_from([0.5, 2.5, 22.0, 25.1])
    return st.sampled_from([("value", value), ("value", value), ("n", n)]) | constants.map(
        lambda c: (repr(c), lambda r: c)
    )


def float_of(written: Written) -> Written:
    """Arithmetic is over floats, whatever the attributes are."""
    text, mean = written

    def as_float(r: Any) -> Any:
        found = mean(r)
        return None if found is None else float(found)

    return text, as_float


def arithmetic(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    def binary(sign: str, left: Written, right: Written) -> Written:
        (a, f), (b, g) = float_of(left), float_of(right)
        return f"({a} {sign} {b})", lambda r: compute(sign, f(r), g(r))

    def magnitude(written: Written, bars: bool) -> Written:
        text, f = float_of(written)
        return (f"abs({text})" if not bars or "|" in text else f"| {text} |"), lambda r: absolute(f(r))

    def minus(written: Written) -> Written:
        text, f = float_of(written)
        return f"(-{text})", lambda r: compute("-", -0.0, f(r))

    return (
        st.builds(binary, st.sampled_from("+-*/"), inner, inner)
        | st.builds(magnitude, inner, st.booleans())
        | st.builds(minus, inner)
    )


NUMBERS = st.recursive(number_leaves(), arithmetic, max_leaves=4)
SIGNS = st.sampled_from([">", "<", ">=", "<=", "==", "!="])


def comparison(left: Written, sign: str, right: Written) -> Written:
    (a, f), (b, g) = left, right
    return f"{a} {sign} {b}", lambda r: compare(f(r), sign, g(r))


def range_of(inner: Written, low: float, high: float) -> Written:
    text, f = inner
    return f"{text} in [{low}, {high}]", lambda r: is_between(f(r), low, high)


def word(name: str, sign: str, text: str) -> Written:
    get = attribute(name)
    return f'{name} {sign} "{text}"', lambda r: compare(get(r), sign, text)


def logic(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    def join(sign: str, left: Written, right: Written) -> Written:
        (a, f), (b, g) = left, right
        kleene = both if sign in ("&&", "and") else either
        return f"({a}) {sign} ({b})", lambda r: kleene(f(r), g(r))

    def invert(sign: str, written: Written) -> Written:
        text, f = written
        return f"{sign} ({text})", lambda r: negate(f(r))

    return st.builds(join, st.sampled_from(["&&", "||", "and", "or"]), inner, inner) | st.builds(
        invert, st.sampled_from(["!", "not"]), inner
    )


# What is constant is folded, and an exit that is always true makes a condition momentary: static exits
# are drawn by themselves, and every other comparison mentions an attribute.
MENTIONING = NUMBERS.filter(lambda written: "value" in written[0] or "n" in written[0])
PREDICATES = st.recursive(
    st.builds(comparison, MENTIONING, SIGNS, NUMBERS)
    | st.builds(range_of, MENTIONING, st.sampled_from([0, 2.5, 20]), st.sampled_from([22, 25.1]))
    | st.builds(
        word,
        st.sampled_from(["room", "floor", "source"]),
        st.sampled_from(["==", "!="]),
        st.sampled_from("ab1"),
    )
    | st.just(("ok", ok)),
    logic,
    max_leaves=5,
)
STATIC = st.sampled_from([("true", True), ("false", False)])
KEYS = st.lists(st.sampled_from(["source", "room", "floor", "n", "ok"]), unique=True, max_size=4)


@st.composite
def subscriptions(draw: st.DrawFn, name: str) -> tuple[str, Subscription]:
    entrance, enter = draw(PREDICATES)
    kind = draw(st.sampled_from(["state", "state", "state", "filter", "same"]))
    keys = draw(KEYS)
    cuts = sorted(draw(st.sets(st.integers(1, 3), max_size=2)))
    levels = [part for a, b in zip([0, *cuts], [*cuts, 9], strict=True) if (part := keys[a:b])]
    per = f" per {' within '.join(', '.join(level) for level in levels)}" if levels else ""
    scopes = [by(*level) for level in levels]
    if kind == "filter":
        return f"filter {name} on Reading where {entrance}{per}", sub(name, enter, True, *scopes)
    leaving, leave = draw(PREDICATES | STATIC) if kind == "state" else (entrance, enter)
    return f"state {name} on Reading [{entrance}; {leaving}]{per}", sub(name, enter, leave, *scopes)


SMALL = st.none() | st.integers(-3, 30)
SMALL_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "time": st.integers(0, 6).map(lambda i: START + i * 500_000),
            "source": st.sampled_from(["a", "b", "s1"]),
            "topic": st.just("Reading"),
            "value": st.none() | st.sampled_from([*VALUES, math.nan]) | st.integers(-5, 30).map(float),
            "n": SMALL,
            "m": SMALL,
            "ok": st.none() | st.booleans(),
            "room": WORDS,
            "floor": WORDS,
            "building": WORDS,
        }
    ),
    min_size=1,
    max_size=50,
)


@settings(max_examples=40)
@given(data=st.data(), rows=SMALL_ROWS, format=st.sampled_from(list(WRITERS)))
def test_the_judge_agrees_for_random_definitions(
    data: st.DataObject, rows: list[Row], format: str, holdfast: Any
) -> None:
    drawn = [data.draw(subscriptions(f"S{i}"), label=f"S{i}") for i in range(3)]
    definition = Definition("\n".join(text for text, _ in drawn), [subscription for _, subscription in drawn])
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        WRITERS[format](folder / f"data.{format}", rows)
        ran = holdfast("replay", definition.write(folder), "-i", folder / f"data.{format}")
        assert ran.lines == judge(with_sequences(rows), definition.subscriptions)


def as_lines(notes: Sequence[Notification]) -> list[dict[str, Any]]:
    """The notifications of an engine in the order and form of a replay."""
    lines = [note.to_json() for note in sorted(notes, key=lambda note: note.order)]
    for line in lines:
        del line["id"]
        line["attributes"] = {name: to_printed(cell) for name, cell in line["attributes"].items()}
    return lines


@settings(max_examples=40)
@given(data=st.data(), rows=SMALL_ROWS)
def test_the_engine_emits_the_same_event_by_event_and_batch_by_batch(
    data: st.DataObject, rows: list[Row]
) -> None:
    drawn = [data.draw(subscriptions(f"S{i}"), label=f"S{i}") for i in range(3)]
    app = parse(TOPIC + "\n".join(text for text, _ in drawn))
    expected = judge(with_sequences(rows), [subscription for _, subscription in drawn])
    ordered = sorted(with_sequences(rows), key=lambda row: (row["time"], row["source"], row["sequence"]))
    events = [
        Event(
            "Reading", row["time"], row["source"], {name: row[name] for name in ATTRIBUTES}, row["sequence"]
        )
        for row in ordered
    ]
    assert as_lines(list(Engine(app).run(events))) == expected
    columns = {
        "time": pa.array([row["time"] for row in ordered], pa.timestamp("us", "UTC")),
        "source": pa.array([row["source"] for row in ordered]),
        "sequence": pa.array([row["sequence"] for row in ordered]),
        **{
            name: pa.array([row[name] for row in ordered], ARROW[kind], from_pandas=False)
            for name, kind in ATTRIBUTES.items()
        },
    }
    whole = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(rows)), max_size=3), label="cuts"))
    engine = Engine(app)
    notes: list[Notification] = []
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        notes += engine.push_batch("Reading", whole.slice(start, end - start))
        engine = Engine.restore(app, engine.snapshot())
    assert as_lines(notes + engine.finish()) == expected
