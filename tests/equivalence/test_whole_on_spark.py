"""Few cases of many conditions each, on Spark: filters, components and correlations in one definition."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast import parse
from support.runtimes import RUNTIMES, engine, in_order, session
from support.whole import WITH_TABLES, cut, definitions, histories, visible

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 60)
a_few_large = settings(
    max_examples=max(1, EXAMPLES // 100),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # Spark is too slow to look for a smaller one
)
long = histories(least=20, most=60).filter(lambda events: len({event.source for event in events}) > 1)
"""Of one case alone, hypothesis would try the simplest, in which nothing happens."""
many = definitions(least=8, most=12, kinds=WITH_TABLES)


@a_few_large
@given(text=many, events=long)
def test_definitions_of_all_kinds_replay_on_spark_as_in_the_engine(text, events):
    app = parse(text)
    assert visible(RUNTIMES["spark"](app, events)) == visible(engine(app, events))


@a_few_large
@given(text=many, events=long, data=st.data())
def test_definitions_of_all_kinds_run_live_on_spark_as_in_the_engine(text, events, data):
    lives, spark = pytest.importorskip("support.live"), session()

    def run(here, app, **how):
        how |= {"checkpoint": here.checkpoint, "every": None, "settle": 0, "shards": 3}
        hf.spark.run(hf.spark.live(app, here.inbox, **how), spark)

    app, parts = parse(text), data.draw(cut(in_order(events), parts=2))
    assert visible(lives.in_parts(app, parts, run)) == visible(engine(app, events))


SCHEMA = (
    "topic string, time timestamp, source string, sequence bigint, x double, "
    "value double, depth double, n bigint, road string, wet boolean"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@a_few_large
@given(text=many, events=long, data=st.data())
def test_definitions_of_all_kinds_run_on_frames_in_any_order_and_partitions(text, events, data):
    chance = Random(data.draw(st.integers(0, 99)))
    rows = [
        (e.topic, to_datetime(e.time), e.source, e.sequence, *(e.location or [None]), *e.attributes.values())
        for e in events
    ]
    chance.shuffle(rows)
    frame = session().createDataFrame(rows, SCHEMA).repartition(chance.randint(1, 4))
    app = parse(text)
    found = hf.spark.replay(app, frame).toArrow().to_pylist()
    assert sorted(map(in_a_row, found)) == sorted(in_a_row(as_row(n)) for n in engine(app, events))


def as_row(n):
    """A notification as a row of a frame has it."""
    event = n.event
    return {
        "id": n.id,
        "subscription": n.subscription,
        "scope": n.scope,
        "status": n.status,
        "time": to_datetime(event.time),
        "since": to_datetime(n.since),
        "topic": event.topic,
        "source": event.source,
        "sequence": event.sequence,
        "place": event.place,
        "location": event.location and [*event.location],
        **event.attributes,
    }


def to_datetime(at):
    return None if at is None else EPOCH + timedelta(microseconds=at)


def in_a_row(row):
    """A row as text: where topics declare different types for an attribute its column is text."""
    known = {name: value for name, value in row.items() if value is not None and value == value}
    return str(sorted((n, str(v).lower() if isinstance(v, bool) else str(v)) for n, v in known.items()))
