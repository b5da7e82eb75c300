"""A DataFrame gives the notifications of the engine for any partitioning and order of its rows."""

from __future__ import annotations

import logging
import math
import os
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.functions import spark_partition_id

from holdfast import App, Event, UsageError, check, parse
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from support import correlated
from support.histories import REGIONS, TOPIC, histories, subscriptions
from support.runtimes import engine, output, session

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 60) // 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = (
    "time timestamp, source string, sequence bigint, place string, x double, "
    "a double, b double, n bigint, k string, flag boolean"
)


@pytest.fixture(scope="module", autouse=True)
def running():
    return session()


def frame_of(events: Sequence[Event], seed: int = 0, *, numbered: bool = True):
    """The events in another order, in so many partitions as chance will have it."""
    chance = Random(seed)
    rows = [
        (EPOCH + timedelta(microseconds=e.time), e.source, e.sequence, e.place, (e.location or [None])[0],
         *e.attributes.values())
        for e in events
    ]  # fmt: skip
    chance.shuffle(rows)
    frame = session().createDataFrame(rows, SCHEMA).repartition(chance.randint(1, 3))
    return frame if numbered else frame.drop("sequence")


def notifications_of(app: App, frame, **options):
    """The notifications of a frame, in order."""
    from holdfast.runtimes.spark.frames.replay import replay
    from holdfast.runtimes.table import from_table

    found = replay(app, frame, **options).toArrow()
    notifications = output(list(from_table(check(app).output_topics, found)))
    assert sorted(n.id for n in notifications) == sorted(found.column("id").to_pylist())
    return notifications


def visible(notifications):
    return [(n.id, n.subscription, n.scope, n.status, n.since, n.event.order) for n in notifications]


PLANS = ("files", "native", "closed", "packed")


@contextmanager
def lay_out(events: Sequence[Event], how: str, seed: int, *, numbered: bool = True):
    """Make a frame of the events: plain rows, cached, partitioned by ranges of time, or from files."""
    frame = frame_of(events, seed, numbered=numbered)
    if how == "files":
        with tempfile.TemporaryDirectory() as folder:
            parts = 1 + seed % 3
            ranges = frame.repartitionByRange(parts, "time") if seed % 2 else frame.repartition(parts)
            for i, table in enumerate(_tables(ranges)):
                pq.write_table(table, f"{folder}/{i}.parquet", row_group_size=7)
            yield session().read.parquet(folder)
        return
    if how == "ranges":
        frame = frame.repartitionByRange(3, "time")
    if how != "rows":
        frame = frame.cache()
    yield frame
    frame.unpersist()


def _tables(frame):
    """A table of each partition."""
    whole = frame.withColumn("@part", spark_partition_id()).toArrow()
    parts = whole.column("@part").to_pylist()
    return [
        whole.filter(pa.array([part == one for part in parts], pa.bool_())).drop(["@part"])
        for one in sorted({0, *parts})
    ]


def by_every_plan(app: App, frame) -> dict[str, list]:
    """The notifications of the frame by each plan that fits it, and by the chosen plan."""
    with log_plans() as taken:
        found = {"taken": visible(notifications_of(app, frame))}
    found[taken[0]] = found["taken"]
    for plan in [one for one in PLANS if one not in found]:
        with suppress(UsageError):  # it does not fit this frame
            found[plan] = visible(notifications_of(app, frame, plan=plan))
    return found


@contextmanager
def log_plans():
    """Collect the names of the chosen plans from the log."""
    plans, log, to = [], logging.getLogger("holdfast.spark"), logging.Handler(logging.INFO)
    to.emit = lambda record: plans.append(record.args[0])
    before = log.level
    log.addHandler(to)
    log.setLevel(logging.INFO)
    try:
        yield plans
    finally:
        log.setLevel(before)
        log.removeHandler(to)


@settings(max_examples=EXAMPLES)
@given(
    subs=subscriptions(most=3),
    more=st.none() | subscriptions(most=2),
    events=histories(most=60, latest=30),
    how=st.sampled_from(["rows", "cached", "ranges", "files"]),
    seed=st.integers(0, 9),
)
def test_random_definitions_over_random_frames_give_the_notifications_of_the_engine(
    subs, more, events, how, seed
):
    others = [DefineState(f"d{i}", *_rest(sub)) for i, sub in enumerate(more or [])]
    app = App((ops.DeclareTopic(TOPIC), *REGIONS, *subs, *others))
    wanted = visible(engine(app, events))
    with lay_out(events, how, seed) as frame:
        for plan, found in by_every_plan(app, frame).items():
            assert found == wanted, plan


def _rest(sub):
    return sub.topic, sub.enter, sub.exit, sub.per, sub.scope, sub.delivery


UNNUMBERED = """
topic Reading (a float, b float, n int, k text, flag bool)
state  Up    on Reading [a >= 1; a <= 0] per k
state  Inner on Reading [flag; !flag] per k within source
filter Big   on Reading where n > 2
"""


@settings(max_examples=max(1, EXAMPLES // 3))
@given(events=histories(most=60, latest=3), seed=st.integers(0, 9))
def test_rows_without_a_sequence_are_numbered_by_their_values(events, seed):
    app = parse(UNNUMBERED)
    first, again = (frame_of(events, s, numbered=False) for s in (seed, seed + 1))
    found = visible(notifications_of(app, first))
    assert found == visible(notifications_of(app, again))
    assert found == visible(engine(app, number_events(app, first, ("a", "b", "n", "k", "flag"))))


STICKY = """
topic Reading (a float, b float, n int, k text, flag bool)
state  Up     on Reading [a >= 1; a <= 0] {scope}
state  Toggle on Reading [n == 3; n == 3] {scope}
state  Both   on Reading [n > 1; n == 2] {scope}
filter Peak   on Reading where b > 2
"""


@pytest.mark.parametrize(
    ("how", "scope", "fitting"),
    [
        ("rows", "per k", {"packed"}),
        pytest.param("ranges", "per k", {"closed", "packed"}, marks=pytest.mark.soak),
        ("ranges", "per k within source", {"closed", "packed"}),
        ("files", "", {"files", "packed"}),
    ],
)
def test_every_plan_gives_the_same_intervals_for_states_of_every_kind(how, scope, fitting):
    app = parse(STICKY.format(scope=scope))
    events = sticky(7, ["x", "y", None])
    with lay_out(events, how, seed=4) as frame:
        found = by_every_plan(app, frame)
    assert found.keys() - {"taken"} >= fitting
    wanted = visible(engine(app, events))
    assert {row[1] for row in wanted} == {"Up", "Toggle", "Both", "Peak"}
    for plan, emitted in found.items():
        assert emitted == wanted, plan


def test_every_plan_distinguishes_scopes_of_several_keys():
    app = parse(STICKY.format(scope="per k, source"))
    events = sticky(7, ["x", "x,s1", 'x"', "\\,", None])
    with lay_out(events, "rows", seed=4) as frame:
        found = by_every_plan(app, frame)
    wanted = visible(engine(app, events))
    assert {row[2] for row in wanted if '"' in (row[2] or "")}
    for plan, emitted in found.items():
        assert emitted == wanted, plan


def sticky(seed, keys, count=400):
    """Events of which many do what the one before has done; two and two at one time."""
    chance = Random(seed)
    now = {"a": 0.5, "b": 0.0, "n": 0, "k": "x", "flag": None}
    events = []
    for i in range(count):
        if chance.random() < 0.15:
            now |= {"a": chance.choice([0.0, 0.5, 1.0, None, math.nan]), "n": chance.choice([0, 1, 2, 3])}
        now |= {"b": chance.choice([0.0] * 9 + [3.0, math.nan]), "k": chance.choice(keys)}
        events.append(Event("Reading", i // 2, chance.choice(["s1", "s2"]), dict(now), i))
    return events


APART = """
topic Reading (a float, b float, n int, k text, flag bool)
state  Up    on Reading [a >= 1; a <= 0] per k
state  Odd   on Reading [n > 1; n < 1] per k
state  Stays on Reading [n > 2; false] per k
filter Peak  on Reading where b > 2
state  Whole on Reading [n > 1; n < 1]
"""


@pytest.mark.parametrize(
    ("how", "numbered"),
    [
        ("files", True),
        ("ranges", False),
        pytest.param("files", False, marks=pytest.mark.soak),
        pytest.param("ranges", True, marks=pytest.mark.soak),
    ],
)
def test_every_plan_handles_states_whose_predicates_exclude_one_another(how, numbered):
    app, events = parse(APART), sticky(11, ["x", "y\x1f", "z, é", None])
    events += events[::7]  # rows that are alike in everything
    with lay_out(events, how, 5, numbered=numbered) as frame:
        found = by_every_plan(app, frame)
    assert found.keys() >= {"native", "packed", "files" if how == "files" else "closed"}
    assert found["packed"] == found["taken"]
    assert all(output == found["packed"] for output in found.values())
    assert {row[1] for row in found["packed"]} == {"Up", "Odd", "Stays", "Peak", "Whole"}
    if numbered:
        assert found["packed"] == visible(engine(app, events))


LIGHT = """
topic Reading (a float{key})
state Up on Reading [a >= 1; a <= 0] per {scope}
"""


@pytest.mark.parametrize(("key", "scope"), [("", "source"), (", k text", "k"), (", k text, n int", "k")])
def test_rows_of_one_instant_are_ordered_by_their_values_in_any_partition(key, scope):
    app, chance = parse(LIGHT.format(key=key, scope=scope)), Random(3)
    names = [one.name for one in check(app).topics[0].attributes]
    values = {"a": [0.0, 0.5, 1.0, 2.0, -0.0, math.nan, None], "k": ["x", "y", None], "n": [1, 2, None]}
    rows = [
        (EPOCH + timedelta(seconds=chance.randrange(12)), chance.choice(["s1", "s2"]),
         *(chance.choice(values[name]) for name in names))
        for _ in range(150)
    ]  # fmt: skip
    types = {"a": "double", "k": "string", "n": "bigint"}
    schema = ", ".join(["time timestamp", "source string", *(f"{name} {types[name]}" for name in names)])
    frame = session().createDataFrame(rows + rows[::7], schema)
    output = {}
    for parts, plan in ((1, "packed"), (1, "native"), (5, "native")):
        output[parts, plan] = visible(notifications_of(app, frame.repartition(parts), plan=plan))
    wanted = visible(engine(app, number_events(app, frame, names)))
    assert len({row[5][0] for row in wanted}) < len(wanted)  # several at one time
    assert all(found == wanted for found in output.values()), output.keys()


def number_events(app: App, frame, names):
    """The rows as events, with the sequences that they get."""
    from holdfast.runtimes.spark.frames.rows import events as rows_of
    from holdfast.runtimes.spark.job import Job

    return [
        Event(
            "Reading",
            (row.time.astimezone(UTC) - EPOCH) // timedelta(microseconds=1),
            row.source,
            dict(zip(names, row[-len(names) :], strict=True)),
            row.sequence,
        )
        for row in rows_of(Job(check(app)), frame)
        .select("time", "source", "sequence", *_laid_columns(app))
        .collect()
    ]


def _laid_columns(app: App):
    """The columns of attributes in rows that were laid out."""
    return [f"`{i} {one.name}`" for i, one in enumerate(check(app).topics[0].attributes)]


@settings(max_examples=EXAMPLES)
@given(text=correlated.definitions(), events=correlated.histories, seed=st.integers(0, 9))
def test_correlations_are_equal_after_spark_filters_rows_by_range(text, events, seed):
    rows = [
        (e.topic, EPOCH + timedelta(microseconds=e.time), e.source, e.sequence,
         *[*(e.location or ()), None, None][:2],
         *(e.attributes.get(name) for name in ("value", "speed", "gusts", "place_")))
        for e in events
    ]  # fmt: skip
    Random(seed).shuffle(rows)
    frame = session().createDataFrame(
        rows,
        "topic string, time timestamp, source string, sequence bigint, x double, y double, "
        "value double, speed double, gusts bigint, place_ string",
    )
    emitted = notifications_of(parse(text), frame.repartition(2))
    assert correlated.as_counts(text, events, emitted) == correlated.oracle(text, events)


def test_rows_outside_the_ranges_of_correlations_never_reach_python():
    from holdfast.runtimes.spark.frames.rows import events as rows_of
    from holdfast.runtimes.spark.job import Job

    job = Job.on_history(check(parse(STORM)))
    rows = [(EPOCH + timedelta(seconds=i), "s", "Pass", float(i), None) for i in range(20)]
    frame = session().createDataFrame(
        rows, "time timestamp, source string, topic string, wind double, cold double"
    )
    assert sorted(row["0 wind"] for row in rows_of(job, frame).collect()) == [3, 4, 5, 17, 18, 19]


STORM = """
topic Pass (wind float, cold float)
correlate Calm within 2 min wind in [3, 5] cold <= 0
correlate Gale within 2 min wind >= 17 cold <= 0
"""
