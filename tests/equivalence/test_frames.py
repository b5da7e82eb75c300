"""A DataFrame says what the engine says, however its rows are cut, mixed and collapsed."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import App, Event, check, parse
from holdfast.lang import ops
from support.histories import REGIONS, TOPIC, histories, subscriptions
from support.runtimes import engine, output, session

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 60) // 10
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


def notified(app: App, frame, **options):
    """The notifications of a frame, in order."""
    from holdfast.runtimes.spark.frames.replay import replay
    from holdfast.runtimes.spark.table import from_table

    found = replay(app, frame, **options).toArrow()
    notifications = output(list(from_table(check(app).topics, found)))
    assert sorted(n.id for n in notifications) == sorted(found.column("id").to_pylist())
    return notifications


def visible(notifications):
    return [(n.id, n.subscription, n.scope, n.status, n.since, n.event.order) for n in notifications]


@settings(max_examples=EXAMPLES)
@given(
    subs=subscriptions(most=3),
    more=st.none() | subscriptions(most=2),
    events=histories(most=60, latest=30),
    span=st.sampled_from([None, 1, 2, 5, 40]),
    seed=st.integers(0, 9),
)
def test_random_definitions_over_random_frames(subs, more, events, span, seed):
    others = [ops.Subscribe(f"d{i}", *_rest(sub)) for i, sub in enumerate(more or [])]
    app = App((ops.DeclareTopic(TOPIC), *REGIONS, *subs, *others))
    assert visible(notified(app, frame_of(events, seed), span=span)) == visible(engine(app, events))


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
def test_rows_without_a_sequence_are_numbered_by_what_they_say(events, seed):
    from holdfast.runtimes.spark.frames.rows import events as rows_of
    from holdfast.runtimes.spark.plan import Work

    app = parse(UNNUMBERED)
    first, again = (frame_of(events, s, numbered=False) for s in (seed, seed + 1))
    found = visible(notified(app, first, span=None))
    assert found == visible(notified(app, again, span=1))
    seen = rows_of(Work(check(app)), first).collect()
    numbered = [
        Event(
            "Reading",
            (row.time.astimezone(UTC) - EPOCH) // timedelta(microseconds=1),
            row.source,
            dict(zip(("a", "b", "n", "k", "flag"), row[6:], strict=True)),
            row.sequence,
        )
        for row in seen
    ]
    assert found == visible(engine(app, numbered))


STICKY = """
topic Reading (a float, b float, n int, k text, flag bool)
state  Up     on Reading [a >= 1; a <= 0] {scope}
state  Toggle on Reading [n == 3; n == 3] {scope}
state  Both   on Reading [n > 1; n == 2] {scope}
filter Peak   on Reading where b > 2
"""


@pytest.mark.parametrize("span", [1, 7, 40])
@pytest.mark.parametrize("scope", ["per k", "per k within source", ""])
def test_stretches_of_every_kind_collapse_without_a_trace(scope, span):
    chance = Random(span)
    now = {"a": 0.5, "b": 0.0, "n": 0, "k": "x", "flag": None}
    events = []
    for i in range(400):
        if chance.random() < 0.15:
            now |= {"a": chance.choice([0.0, 0.5, 1.0, None]), "n": chance.choice([0, 1, 2, 3])}
        now |= {"b": chance.choice([0.0] * 9 + [3.0]), "k": chance.choice(["x", "y", None])}
        events.append(Event("Reading", i // 2, chance.choice(["s1", "s2"]), dict(now), i))
    app = parse(STICKY.format(scope=scope))
    found = notified(app, frame_of(events, span), span=span)
    assert visible(found) == visible(engine(app, events))
    assert {n.subscription for n in found} == {"Up", "Toggle", "Both", "Peak"}


LONG = """
topic Reading (a float, b float, n int, k text, flag bool)
state  Up   on Reading [a > 25; a < 22] per source
state  Odd  on Reading [n > 1; n < 1] per source
filter Peak on Reading where a > 26.9
"""


def test_a_long_history_is_collapsed_by_itself_and_says_the_same(tmp_path, monkeypatch):
    from holdfast.runtimes.spark.frames import collapse, replay, rows
    from holdfast.runtimes.spark.plan import Work

    widths = []
    monkeypatch.setattr(replay, "width", lambda *of: widths.append(collapse.width(*of)) or widths[-1])
    events = [
        Event(
            "Reading",
            i * 1000,
            f"s{i % 5}",
            {
                "a": 23.5 + 3.5 * math.sin(i / 4000 + i % 5),
                "b": None,
                "n": i // 9000,
                "k": None,
                "flag": None,
            },
            i,
        )
        for i in range(60_000)
    ]
    frame_of(events).write.parquet(str(tmp_path / "history"))
    history = session().read.parquet(str(tmp_path / "history"))
    app = parse(LONG)
    found = notified(app, history)
    assert len(found) > 60
    assert visible(found) == visible(engine(app, events))
    (width,) = widths
    every = rows.events(Work(check(app)), history)
    few = collapse.collapsed(every, collapse.stretches(check(app).conditions, naming(app)), width)
    assert few.count() < every.count() / 4


def naming(app):
    from holdfast.runtimes.spark.frames.rows import naming

    return lambda topic: naming(check(app), topic)
