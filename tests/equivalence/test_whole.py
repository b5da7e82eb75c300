"""Filters, components and correlations in one definition: each runtime says what one event at a time says."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast import check, parse
from support.overlays import told
from support.runtimes import RUNTIMES, engine, in_order, output, session
from support.whole import KEYS, KINDS, components, cut, definitions, filters, histories, visible

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 60)
few = settings(max_examples=max(1, EXAMPLES // 2))
fewer = settings(max_examples=max(1, EXAMPLES // 6))
a_few_large = settings(
    max_examples=max(2, EXAMPLES // 100),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # Spark is too slow to look for a smaller one
)
large = {"events": histories(least=20, most=60), "data": st.data()}

whole_numbers_together = {
    **KINDS,
    "Component": partial(components, keys=tuple(key for key in KEYS if "n" not in key.split(", "))),
}
"""Kinds of conditions in which no component keeps an int apart: Spark may take it for a float."""


@pytest.mark.parametrize("name", ["engine in batches", "replay"])
@few
@given(text=definitions(), events=histories())
def test_in_this_process(name, text, events):
    app = parse(text)
    assert visible(RUNTIMES[name](app, events)) == visible(engine(app, events))


# --- on an overlay -----------------------------------------------------------------------------------


@few
@given(text=definitions(kinds={"Filter": filters}, deliveries=("",)), events=histories(least=8))
def test_on_an_overlay(text, events):
    app = parse(text)
    assert visible(told(app, events)) == visible(engine(app, events))


# --- on Spark, without Spark -------------------------------------------------------------------------


@few
@given(text=definitions(kinds=whole_numbers_together), events=histories())
def test_history_in_shards_and_stages(text, events):
    sharded = pytest.importorskip("support.sharded")
    app = parse(text)
    assert visible(sharded.sharded(app, events)) == visible(engine(app, events))


@fewer
@given(text=definitions(kinds=whole_numbers_together), events=histories(least=1), data=st.data())
def test_files_as_they_arrive(text, events, data):
    lives = pytest.importorskip("support.live")

    def run(here, app, sink, **how):
        lives.Stream(here.live(app, sink=sink, shards=3, **how), readers=2).run()

    assert visible(arriving(text, events, data, run)) == visible(engine(parse(text), events))


def arriving(text, events, data, run):
    """What is heard of events that come in order of time, in files; each part meets a query started anew."""
    lives = pytest.importorskip("support.live")
    app, heard = parse(text), {}
    with lives.site() as here:
        parts = data.draw(cut(in_order(events)))
        for number, some in enumerate(parts, 1):
            for topic in check(app).topics:
                here.put(f"{number}-{topic.name}.parquet", topic, [e for e in some if e.topic == topic.name])
            run(here, app, lambda n: heard.setdefault(n.id, n), finish=number == len(parts))
    return output(heard.values())


# --- on Spark: few cases, of many conditions each ----------------------------------------------------

many = definitions(least=8, most=12, kinds=whole_numbers_together)


@a_few_large
@given(text=many, **large)
def test_history_on_spark(text, events, data):
    app = parse(text)
    assert visible(RUNTIMES["spark"](app, events)) == visible(engine(app, events))


@a_few_large
@given(text=many, **large)
def test_live_on_spark(text, events, data):
    spark = session()

    def run(here, app, sink, **how):
        how = {"every": None, "settle": 0, "shards": 3, **how}
        hf.spark.run(hf.spark.live(app, here.inbox, checkpoint=here.checkpoint, sink=sink, **how), spark)

    assert visible(arriving(text, events, data, run)) == visible(engine(parse(text), events))


SCHEMA = (
    "topic string, time timestamp, source string, sequence bigint, x double, "
    "value double, level double, n bigint, road string, wet boolean"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@a_few_large
@given(text=many, **large)
def test_a_frame_of_rows_in_any_order_and_partitions(text, events, data):
    chance = Random(data.draw(st.integers(0, 99)))
    rows = [
        (e.topic, moment(e.time), e.source, e.sequence, *(e.location or [None]), *e.attributes.values())
        for e in events
    ]
    chance.shuffle(rows)
    frame = session().createDataFrame(rows, SCHEMA).repartition(chance.randint(1, 4))
    app, span = parse(text), data.draw(st.sampled_from([None, 1_000_000]))
    found = hf.spark.replay(app, frame, span=span).toArrow().to_pylist()
    assert sorted(map(in_a_row, found)) == sorted(in_a_row(as_row(n)) for n in engine(app, events))


def as_row(n):
    """A notification as a row of a frame has it."""
    event = n.event
    return {
        "id": n.id,
        "subscription": n.subscription,
        "scope": n.scope,
        "status": n.status,
        "time": moment(event.time),
        "since": moment(n.since),
        "topic": event.topic,
        "source": event.source,
        "sequence": event.sequence,
        "place": event.place,
        "location": event.location and [*event.location],
        **event.attributes,
    }


def moment(at):
    return None if at is None else EPOCH + timedelta(microseconds=at)


def in_a_row(row):
    """What is known of a row, as text: where topics differ in the kind of an attribute its column is text."""
    known = {name: value for name, value in row.items() if value is not None and value == value}
    return str(sorted((n, str(v).lower() if isinstance(v, bool) else str(v)) for n, v in known.items()))
