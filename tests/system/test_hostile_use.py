"""Errors of careless users at the engine and the command line."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast import Engine, Event, HoldfastError, Notification, parse

SECOND = 1_000_000
UTC = pa.timestamp("us", "UTC")
TOPIC = "topic T (value float, n int, name text, ok bool)\n"
WARM = TOPIC + "state Warm on T [value > 25; value < 22] per source\n"


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def as_rows(notes: list[Notification]) -> list[tuple[Any, ...]]:
    return [(n.subscription, n.status, n.scope, n.since, n.event.time, n.event.source) for n in notes]


# --- one event or a batch -------------------------------------------------------------------------

TWO = {"time": pa.array([0, SECOND], UTC), "source": pa.array(["a", "a"]), "value": pa.array([26.0, 21.0])}
STARTED = [("Warm", "ingress", "a", None, 0, "a"), ("Warm", "egress", "a", 0, SECOND, "a")]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([0, 1], pa.timestamp("s", "UTC")),
        pa.array([0, 1_000], pa.timestamp("ms")),
        pa.array([0, 1_000_000_000], pa.timestamp("ns")),
        pa.array([0, 1_000_000_000], pa.timestamp("ns", "Europe/London")),
    ],
    ids=lambda times: str(times.type),
)
def test_a_batch_of_times_in_another_unit_is_converted(times: pa.Array) -> None:
    assert as_rows(Engine(parse(WARM)).push_batch("T", batch(**{**TWO, "time": times}))) == STARTED


@pytest.mark.parametrize(
    "times",
    [
        pa.array([0, 1_000_000_001], pa.timestamp("ns", "UTC")),
        pa.array([0, 1 << 40], pa.timestamp("s", "UTC")),
        pa.array([0, 1 << 62], pa.timestamp("ms")),
    ],
    ids=lambda times: str(times.type),
)
def test_a_batch_of_times_that_are_not_microseconds_of_a_year_is_refused(times: pa.Array) -> None:
    engine = Engine(parse(WARM))
    with pytest.raises(HoldfastError, match="column 'time'"):
        engine.push_batch("T", batch(**{**TWO, "time": times}))
    assert as_rows(engine.push_batch("T", batch(**TWO))) == STARTED


@pytest.mark.parametrize(
    "columns",
    [
        {"value": pa.array([26, 21])},
        {"value": pa.array([26, 21], pa.int8())},
        {"value": pa.array([26.0, 21.0], pa.float32())},
        {"value": pa.array([26.0, 21.0]).dictionary_encode()},
        {"source": pa.array(["a", "a"]).dictionary_encode()},
        {"source": pa.array(["a", "a"], pa.large_string())},
        {"name": pa.nulls(2), "n": pa.nulls(2), "ok": pa.nulls(2)},
        {"name": pa.array(["q", None]).dictionary_encode(), "n": pa.array([1, None], pa.int16())},
        {"other": pa.array([1, 2]), "place": pa.array([None, "p"]), "x": pa.array([1, None])},
    ],
    ids=lambda columns: ", ".join(f"{name} {column.type}" for name, column in columns.items()),
)
def test_a_batch_of_like_types_gives_declared_kinds(columns: dict[str, pa.Array]) -> None:
    definition = WARM + 'filter N on T where n > 100 || name == "never" || ok\n'
    notes = Engine(parse(definition)).push_batch("T", batch(**{**TWO, **columns}))
    assert as_rows(notes) == STARTED
    for note in notes:
        assert type(note.event.attributes["value"]) is float
        assert type(note.event.source) is str


@pytest.mark.parametrize(
    "columns",
    [
        {"value": pa.array(["26", "21"])},
        {"n": pa.array(["26", "21"])},
        {"n": pa.array([1.5, 2.0])},
        {"n": pa.array([1, 2**63], pa.uint64())},
        {"ok": pa.array([1, 0])},
        {"name": pa.array([1, 2])},
        {"time": pa.array(["2020-01-01", "2020-01-02"])},
        {"time": pa.array([0, None], UTC)},
        {"source": pa.array(["a", None])},
        {"source": pa.array([1, 2])},
        {"sequence": pa.array(["1", "2"])},
    ],
    ids=lambda columns: ", ".join(f"{name} {column.type}" for name, column in columns.items()),
)
def test_a_batch_of_wrong_types_is_refused_before_anything_changes(columns: dict[str, pa.Array]) -> None:
    definition = (
        WARM + 'filter N on T where n > 100 || name == "never" || ok\nstate K on T [value > 1; n > 1] per n\n'
    )
    engine = Engine(parse(definition))
    with pytest.raises(HoldfastError):
        engine.push_batch("T", batch(**{**TWO, **columns}))
    assert engine.holding() == []
    assert as_rows(engine.push_batch("T", batch(**TWO))) == STARTED


def test_a_batch_needs_its_time_and_source() -> None:
    engine = Engine(parse(WARM))
    for name in ("time", "source"):
        with pytest.raises(HoldfastError, match=name):
            engine.push_batch("T", batch(**{k: v for k, v in TWO.items() if k != name}))


@pytest.mark.parametrize(
    "event",
    [
        Event("T", None, "a", {"value": 26}),  # type: ignore[arg-type]
        Event("T", "2020-01-01", "a", {"value": 26}),  # type: ignore[arg-type]
        Event("T", 0.5, "a", {"value": 26}),  # type: ignore[arg-type]
        Event("T", 1 << 70, "a", {"value": 26}),
        Event("T", 0, None, {"value": 26}),  # type: ignore[arg-type]
        Event("T", 0, 5, {"value": 26}),  # type: ignore[arg-type]
        Event("T", 0, "a", {"value": 10**400}),
        Event("T", 0, "a", {"value": "26"}),
        Event("T", 0, "a", {"value": True}),
        Event("T", 0, "a", {"n": 1 << 63}),
        Event("T", 0, "a", {"valeu": 26}),
        Event("U", 0, "a", {"value": 26}),
    ],
    ids=lambda event: f"{event.topic} {event.time} {event.source} {event.attributes}"[:50],
)
def test_an_event_of_wrong_types_is_refused_before_anything_changes(event: Event) -> None:
    engine = Engine(parse(WARM + "state Late on T [value > 25; value < 22] per source ordered 10 s\n"))
    with pytest.raises(HoldfastError):
        engine.push(event)
    engine.snapshot()
    assert engine.holding() == []


def histories(seed: int, count: int = 120) -> list[Event]:
    rng = random.Random(seed)
    values = [0.0, 22.0, 26.0, None, float("nan"), float("inf")]
    return [
        Event(
            "T",
            (i + rng.randrange(-8, 8)) * SECOND,
            rng.choice("abc"),
            {"value": rng.choice(values), "n": rng.choice([1, 2, None]), "name": None, "ok": None},
            i + 1,
        )
        for i in range(count)
    ]


def as_batch(events: list[Event]) -> pa.RecordBatch:
    return batch(
        time=pa.array([event.time for event in events], UTC),
        source=pa.array([event.source for event in events]),
        sequence=pa.array([event.sequence for event in events]),
        value=pa.array([event.attributes["value"] for event in events], pa.float64(), from_pandas=False),
        n=pa.array([event.attributes["n"] for event in events], pa.int64()),
    )


DELIVERIES = TOPIC + "".join(
    f"state S{i} on T [value > 25; value < 22] {scope} {delivery}\n"
    for i, (scope, delivery) in enumerate(
        itertools.product(
            ["", "per source", "per source within n"],
            ["timely", "ordered 2 s", "ordered 10 s", "ordered 4 s late apply"],
        )
    )
)


@pytest.mark.parametrize("seed", range(5))
def test_single_events_equal_batches_of_one_event_including_late_counts(seed: int) -> None:
    events, single, batched = histories(seed), Engine(parse(DELIVERIES)), Engine(parse(DELIVERIES))
    for event in events:
        assert as_rows(single.push(event)) == as_rows(batched.push_batch("T", as_batch([event])))
        assert single.late_counts == batched.late_counts
    assert as_rows(single.finish()) == as_rows(batched.finish())


def test_an_event_older_than_the_watermark_is_late_although_nothing_was_held_back() -> None:
    engine = Engine(parse(TOPIC + "state Warm on T [value > 25; value < 22] ordered 2 s\n"))
    engine.push(Event("T", 100 * SECOND, "a", {"value": 20}))
    engine.advance(200 * SECOND)
    engine.advance(300 * SECOND)
    assert engine.push(Event("T", 250 * SECOND, "a", {"value": 30})) == []
    assert engine.late_counts == {"Warm": 1}
    assert engine.finish() == []


@pytest.mark.parametrize("seed", range(5))
def test_disorder_within_the_wait_makes_no_difference(seed: int) -> None:
    ordered = WARM.replace("per source", "per source ordered 16 s")
    found = list(Engine(parse(ordered)).run(histories(seed)))
    expected = list(Engine(parse(WARM)).run(sorted(histories(seed), key=lambda event: event.order)))
    assert as_rows(found) == as_rows(expected)


def test_many_keys_with_many_values_are_kept_apart() -> None:
    keys = [f"k{i}" for i in range(6)]
    definition = f"topic T (value float, {', '.join(f'{key} int' for key in keys)})\n"
    definition += f"state S on T [value > 1; value < 1] per {', '.join(keys)}\n"
    size, rng = 5_000, np.random.default_rng(1)
    columns = {key: rng.permutation(size) for key in keys}
    notes = Engine(parse(definition)).push_batch(
        "T",
        batch(
            time=pa.array(np.arange(size)).cast(UTC),
            source=pa.array(["a"] * size),
            value=pa.array(np.full(size, 2.0)),
            **{key: pa.array(column) for key, column in columns.items()},
        ),
    )
    scopes = [",".join(str(columns[key][i]) for key in keys) for i in range(size)]
    assert [note.scope for note in sorted(notes, key=lambda note: note.event.time)] == scopes


def test_two_hundred_subscriptions_run_in_several_machines() -> None:
    definition = TOPIC + "".join(
        f"state S{i:03} on T [value > {i}; value < {i} - 0.5] per source\n" for i in range(200)
    )
    single, batched = Engine(parse(definition)), Engine(parse(definition))
    notes = single.push(Event("T", 0, "a", {"value": 100.5}, 1))
    assert sorted(note.subscription for note in notes) == [f"S{i:03}" for i in range(101)]
    again = Engine.restore(parse(definition), single.snapshot())
    assert len(again.holding()) == 101
    assert len(again.push(Event("T", 1, "a", {"value": -1}, 2))) == 101
    both = batch(
        time=pa.array([0, 1], UTC),
        source=pa.array(["a", "a"]),
        sequence=pa.array([1, 2]),
        value=pa.array([100.5, -1.0]),
    )
    assert len(batched.push_batch("T", both)) == 202


# --- restarts ---------------------------------------------------------------------------------------


def test_a_restart_anywhere_neither_repeats_nor_loses_notifications() -> None:
    straight, stopped = Engine(parse(DELIVERIES)), Engine(parse(DELIVERIES))
    for i, event in enumerate(histories(7)):
        assert as_rows(straight.push(event)) == as_rows(stopped.push(event))
        if i % 3 == 0:
            stopped = Engine.restore(parse(DELIVERIES), stopped.snapshot())
    assert straight.late_counts == stopped.late_counts
    assert as_rows(straight.finish()) == as_rows(stopped.finish())


def test_late_events_remain_readable_after_a_restart() -> None:
    definition = TOPIC + "state Warm on T [value > 25; value < 22] ordered 1 s\n"
    engine = Engine(parse(definition))
    for time in (0, 100, 200, 50):
        engine.push(Event("T", time * SECOND, "a", {"value": 30}))
    assert as_rows(engine.late) == [("Warm", "late", None, None, 50 * SECOND, "a")]
    assert as_rows(Engine.restore(parse(definition), engine.snapshot()).late) == as_rows(engine.late)


def test_a_damaged_snapshot_is_refused_with_a_message() -> None:
    definition = TOPIC + "state Warm on T [value > 25; value < 22] per source ordered 10 s\n"
    engine = Engine(parse(definition))
    engine.push(Event("T", 0, "a", {"value": 30}))
    snapshot = engine.snapshot()
    assert len(Engine.restore(parse(definition), snapshot).finish()) == 1
    for at in range(len(snapshot)):
        for damaged in (snapshot[:at], snapshot[:at] + bytes([snapshot[at] ^ 0xFF]) + snapshot[at + 1 :]):
            with pytest.raises(HoldfastError, match="not a snapshot of an engine, or it is damaged"):
                Engine.restore(parse(definition), damaged)


# --- subscribers --------------------------------------------------------------------------------------


def test_a_callback_may_unsubscribe_another_condition() -> None:
    engine, received = Engine(parse(WARM + WARM.split("\n")[1].replace("Warm", "Zoo") + "\n")), []

    def first(note: Notification) -> None:
        received.append("Warm")
        if "Zoo" in engine.subscriptions:
            engine.unsubscribe("Zoo")

    engine.subscribe("Warm", first)
    engine.subscribe("Zoo", lambda note: received.append("Zoo"))
    engine.push(Event("T", 0, "a", {"value": 30}))
    engine.push(Event("T", 1, "a", {"value": 10}))
    assert received == ["Warm", "Warm"]
    assert engine.subscriptions == ["Warm"]


def test_a_callback_may_subscribe_and_push() -> None:
    engine, received = Engine(parse(WARM)), []

    def first(note: Notification) -> None:
        if note.status == "ingress":
            engine.subscribe(
                "state New on T [value > 0; value < 0] per source", lambda note: received.append(note.status)
            )
            engine.push(Event("T", 1, "a", {"value": 5}))

    engine.subscribe("Warm", first)
    engine.push(Event("T", 0, "a", {"value": 30}))
    engine.push(Event("T", 2, "a", {"value": -1}))
    assert received == ["ingress", "egress"]


def test_a_failing_callback_does_not_affect_other_subscribers() -> None:
    engine, received = Engine(parse(WARM + "filter All on T where value > 0\n")), []
    engine.subscribe("Warm", lambda note: 1 / 0)
    engine.subscribe("All", lambda note: received.append(note.status))
    with pytest.raises(ZeroDivisionError):
        engine.push(Event("T", 0, "a", {"value": 30}))
    assert received == ["atomic"]
    assert [held.subscription for held in engine.holding()] == ["Warm"]


def test_unnamed_conditions_can_be_subscribed_to_one_after_the_other() -> None:
    engine = Engine(parse(TOPIC))
    first, second = engine.subscribe("[value > 1; value < 1]"), engine.subscribe("[value > 2; value < 2]")
    assert first.name != second.name
    engine.push(Event("T", 0, "a", {"value": 1.5}))
    assert (len(list(first)), len(list(second))) == (1, 0)


def test_a_condition_that_joins_an_equal_one_starts_without_state() -> None:
    engine = Engine(parse(WARM))
    engine.push(Event("T", 0, "a", {"value": 30}))
    later = engine.subscribe("state Later on T [value > 25; value < 22] per source")
    engine.push(Event("T", 1, "a", {"value": 10}))
    assert list(later) == []
    engine.push(Event("T", 2, "a", {"value": 30}))
    assert [note.status for note in later] == ["ingress"]


# --- files --------------------------------------------------------------------------------------------

NAMES = TOPIC + 'filter Empty on T where name == ""\nstate Named on T [name != "x"; name == "x"] per name\n'


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_an_empty_text_is_a_value_in_files_as_in_events(format: str, tmp_path: Path, holdfast: Any) -> None:
    events = [Event("T", i * SECOND, "a", {"name": name}, i + 1) for i, name in enumerate(["", None, "y"])]
    expected = sorted(as_rows(list(Engine(parse(NAMES)).run(events))), key=lambda line: (line[4], line[0]))
    assert [line[0] for line in expected] == ["Empty", "Named", "Named"]
    (tmp_path / "app.hf").write_text(NAMES)
    rows = [{"name": event.attributes["name"], "source": "a", "time": event.time} for event in events]
    path = tmp_path / f"data.{format}"
    if format == "jsonl":
        lines = [{**row, "time": f"1970-01-01T00:00:0{i}Z"} for i, row in enumerate(rows)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        table = pa.Table.from_pylist(rows).append_column("value", pa.nulls(3, pa.float64()))
        table = table.append_column("n", pa.nulls(3, pa.int64())).append_column("ok", pa.nulls(3, pa.bool_()))
        times = table.column("time").cast(UTC)
        pq.write_table(table.set_column(table.schema.get_field_index("time"), "time", times), path)
    found = holdfast("replay", tmp_path / "app.hf", "-i", path).lines
    assert [line["subscription"] for line in found] == [line[0] for line in expected]


def test_a_coordinate_without_the_previous_one_is_treated_alike_in_files_and_events(
    tmp_path: Path, holdfast: Any
) -> None:
    definition = TOPIC + "filter Y on T where y > 3\nfilter X on T where x > 0\n"
    (tmp_path / "app.hf").write_text(definition)
    (tmp_path / "data.csv").write_text(
        "time,source,value,n,name,ok,x,y\n1970-01-01T00:00:00Z,a,1,1,a,true,,5\n"
    )
    found = holdfast("replay", tmp_path / "app.hf", "-i", tmp_path / "data.csv").lines
    locations = [tuple(line["location"]) if line["location"] else None for line in found] or [None]
    event = Event("T", 0, "a", {}, 1, locations[0])
    again = Engine(parse(definition)).push(event)
    assert [note.subscription for note in again] == [line["subscription"] for line in found]


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["events", "intervals"])
def test_attributes_may_be_named_like_the_columns_of_the_output(
    format: str, form: str, tmp_path: Path, holdfast: Any
) -> None:
    names = ["id", "status", "subscription", "since", "start", "end", "duration", "open"]
    (tmp_path / "app.hf").write_text(
        f"topic T (value float, {', '.join(f'{name} text' for name in names)})\n"
        "state Warm on T [value > 25; value < 22] per source\n"
    )
    cells = ",".join(f"my {name}" for name in names)
    (tmp_path / "data.csv").write_text(
        f"time,source,value,{','.join(names)}\n2020-01-01T00:00:00Z,s1,26,{cells}\n"
    )
    output = tmp_path / f"out.{format}"
    ran = holdfast("replay", tmp_path / "app.hf", "-i", tmp_path / "data.csv", "-o", output, "--as", form)
    assert ran.status == 0, ran.err
    if format == "csv":
        header, row = (line.split(",") for line in output.read_text().splitlines())
    else:
        table = pq.read_table(output)
        header, row = table.column_names, list(table.to_pylist()[0].values())
    assert len(set(header)) == len(header)
    assert {f"my {name}" for name in names} <= set(row)
    assert dict(zip(header, row, strict=True))["subscription"] == "Warm"


def test_byte_order_marks_carriage_returns_and_quoted_line_breaks_are_read(
    tmp_path: Path, holdfast: Any
) -> None:
    (tmp_path / "app.hf").write_bytes(b"\xef\xbb\xbf" + NAMES.replace("\n", "\r\n").encode())
    (tmp_path / "data.csv").write_bytes(
        b"\xef\xbb\xbf"
        b'time,source,value,n,name,ok\r\n1969-12-31T23:59:59.5Z,"a ""b"", c",1,,"two\r\nlines",\r\n'
        b"2020-01-01T00:00:00.1234567+05:30,a,1,,x,\r\n"
    )
    lines = holdfast("replay", tmp_path / "app.hf", "-i", tmp_path / "data.csv").lines
    assert [(line["scope"], line["time"], line["source"]) for line in lines] == [
        ("two\r\nlines", "1969-12-31T23:59:59.500000Z", 'a "b", c')
    ]


def test_names_and_keys_may_be_in_any_script(tmp_path: Path, holdfast: Any) -> None:
    (tmp_path / "app.hf").write_text(
        "topic Tür (größe float, 名前 text)\nstate Offen_ñ on Tür [größe > 1; größe < 1] per 名前\n",
        encoding="utf-8",
    )
    (tmp_path / "data.jsonl").write_text(
        json.dumps({"time": "2020-01-01T00:00:00Z", "source": "🚪", "größe": 2, "名前": "\x1f,\x1e\u2028"})
        + "\n"
    )
    (line,) = holdfast("replay", tmp_path / "app.hf", "-i", tmp_path / "data.jsonl").out.split("\n")[:-1]
    shown = json.loads(line)
    assert (shown["subscription"], shown["scope"], shown["source"]) == ("Offen_ñ", "\x1f,\x1e\u2028", "🚪")
