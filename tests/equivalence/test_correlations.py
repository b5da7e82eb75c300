"""Correlations on Spark, without Spark: readers, shards, states, crashes; the answer is what trying finds."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import parse
from support.correlated import as_counts, definitions, histories, oracle

source = pytest.importorskip("holdfast.runtimes.spark.batch.reader")
shard = pytest.importorskip("holdfast.runtimes.spark.batch.shard")
plan = pytest.importorskip("holdfast.runtimes.spark.plan")
replay = pytest.importorskip("holdfast.runtimes.spark.batch.replay")
notice = pytest.importorskip("holdfast.runtimes.table")
lives = pytest.importorskip("support.live")

few = settings(max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 50) // 10)


@few
@given(
    definitions(deliveries=("ordered 9 s",)), histories, st.lists(st.sampled_from(lives.CRASHES), max_size=4)
)
def test_a_live_query_that_dies_and_restarts_neither_loses_nor_repeats_correlations(text, events, crashes):
    emitted = {}
    with lives.site() as here:
        live = here.live(
            parse(text), sink=lambda n: emitted.setdefault(n.id, n), shards=2, finish=True, batch_bytes=2000
        )
        for i, event in enumerate(events):
            topic = next(topic for topic in live.checked.topics if topic.name == event.topic)
            here.put(f"{i:04d}.parquet", topic, [event])
        for crash in (*crashes, None):
            with suppress(lives.Crash):
                lives.Stream(live, readers=2, chance=Random(len(crashes))).run(crash)
    assert as_counts(text, events, emitted.values()) == oracle(text, events)
