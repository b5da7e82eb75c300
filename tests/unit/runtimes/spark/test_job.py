"""Spark jobs: numbered operators that can be pickled to executors."""

from __future__ import annotations

import pickle

import pytest

from holdfast import check, parse

plan = pytest.importorskip("holdfast.runtimes.spark.job")

TOPICS = """
topic T (value float, note text)
topic U (value float, note text)
region Hall = rectangle (0, 0) (9, 9)
"""
WARM = "state Warm on T [value > 25; value < 22] per source\n"
SLOW = "state Slow on T [value > 25; value < 22] per source ordered 5 s\n"
MEAN = "state Mean A = avg T over 1 min each source enter A.value > 25 exit A.value < 22\n"
PEAK = "state Peak A = max U over 1 min enter A.value > 35 exit A.value < 30\n"
BOTH = "correlate Both within 2 s  U.value > 1  T.value > 2\n"


def job(*subscriptions: str, **how):
    return plan.Job(check(parse(TOPICS + "".join(subscriptions))), **how)


def test_a_job_can_be_pickled_after_use():
    first = job(WARM, MEAN)
    assert len(first.operators) == 2
    again = pickle.loads(pickle.dumps(first))
    assert again == first
    assert {i: one.record for i, one in again.operators.items()} == {
        i: one.record for i, one in first.operators.items()
    }


def test_the_consumers_of_a_topic_and_their_columns_are_known():
    found = job(WARM, MEAN, PEAK)
    assert {topic: [i for i, _ in some] for topic, some in found.pushdown.consumers.items()} == {
        "T": [0, 1],
        "U": [2],
    }
    assert found.pushdown.decisive_columns["T"] > {"value", "time", "place", "note"}
    assert job(WARM).pushdown.decisive_columns == {"T": {"value", "source"}}


def test_events_with_all_columns_are_needed_whole_by_every_operator():
    assert [one.needed_columns is None for one in job(WARM, MEAN).operators.values()] == [True, False]
    assert all(one.needed_columns is None for one in job(WARM, MEAN, all_columns=True).operators.values())


@pytest.mark.parametrize(
    ("subscriptions", "watermark_topics"),
    [
        ((WARM,), {}),
        ((SLOW, PEAK), {"Slow": {"T"}, "Peak": {"U"}}),
        ((MEAN, PEAK), {"Mean": {"T", "U"}, "Peak": {"T", "U"}}),
        ((PEAK, BOTH), {"Peak": {"U"}, "Both": {"T", "U"}}),
    ],
)
def test_the_watermark_follows_the_topics_that_advance_it(subscriptions, watermark_topics):
    found = job(*subscriptions)
    assert {
        name: set(one.clock) for one in found.watermark_operators.values() for name in one.subscriptions
    } == watermark_topics
    assert found.watermark_topics == frozenset().union(*watermark_topics.values())


@pytest.mark.parametrize(("subscriptions", "shards"), [((WARM,), 4), ((WARM, BOTH), 4), ((WARM, MEAN), 16)])
def test_more_work_for_each_shard_gives_more_shards(subscriptions, shards):
    assert plan.Job.on_history(job(*subscriptions).checked).shards(2) == shards
