"""Correlations on Spark, without Spark: readers, shards, states, crashes; the answer is what trying finds."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import check, parse
from holdfast.files.reading import Reading
from support.correlated import definitions, expected, heard, histories
from support.runtimes import written

source = pytest.importorskip("holdfast.runtimes.spark.history.reader")
shard = pytest.importorskip("holdfast.runtimes.spark.history.shard")
plan = pytest.importorskip("holdfast.runtimes.spark.plan")
replay = pytest.importorskip("holdfast.runtimes.spark.history.replay")
notice = pytest.importorskip("holdfast.runtimes.table")
lives = pytest.importorskip("support.live")

few = settings(max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 50) // 10)


@few
@given(definitions(), histories, st.randoms(use_true_random=False))
def test_readers_and_shards_of_history_tell_what_trying_every_combination_finds(text, events, chance):
    checked = check(parse(text))
    work, reading = plan.Work.on_history(checked), Reading(checked.topics)
    with written(checked, events) as files:
        job = source.Job(work, reading, tuple(replay.tasks(files, reading, 1)), shards=3)
        rows = [row for i in range(len(job.tasks)) for row in source.run(job, i)]
    chance.shuffle(rows)
    by_shard = {}
    for row in rows:
        by_shard.setdefault((row.column("machine")[0], row.column("shard")[0]), []).append(row)
    step = shard.finished(work, lambda report: None)
    told = [
        note
        for key, mine in by_shard.items()
        for batch in step(key, iter(mine))
        for note in notice.from_table(work.published, pa.Table.from_batches([batch]))
    ]
    assert heard(text, events, told) == expected(text, events)


@few
@given(definitions(deliveries=("ordered 9 s",)), histories)
def test_files_as_they_arrive_tell_what_trying_every_combination_finds(text, events):
    assert heard(text, events, lives.live(parse(text), events)) == expected(text, events)


@few
@given(
    definitions(deliveries=("ordered 9 s",)), histories, st.lists(st.sampled_from(lives.CRASHES), max_size=4)
)
def test_a_query_that_dies_and_starts_again_loses_nothing_and_repeats_nothing(text, events, crashes):
    told = {}
    with lives.site() as here:
        live = here.live(
            parse(text), sink=lambda n: told.setdefault(n.id, n), shards=2, finish=True, batch_bytes=2000
        )
        for i, event in enumerate(events):
            topic = next(topic for topic in live.checked.topics if topic.name == event.topic)
            here.put(f"{i:04d}.parquet", topic, [event])
        for crash in (*crashes, None):
            with suppress(lives.Crash):
                lives.Stream(live, readers=2, chance=Random(len(crashes))).run(crash)
    assert heard(text, events, told.values()) == expected(text, events)
