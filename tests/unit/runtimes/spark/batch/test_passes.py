"""A replay on Spark that is read more than once."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from holdfast import Event, check, parse
from holdfast.files.reading import Reading
from holdfast.runtimes.spark.batch.replay import Replay
from support.runtimes import parquet_files, session

WARM = "topic T (value float)\nstate Warm on T [value > 25; value < 22] per source"


def test_every_pass_over_a_replay_on_spark_starts_its_counts_at_zero():
    checked = check(parse(WARM))
    events = [
        Event("T", i * 1_000_000, "s1", {"value": value}, i)
        for i, value in enumerate((20.0, 26.0, 21.0, 27.0))
    ]
    with parquet_files(checked, events) as files:
        replay = Replay(checked, files, Reading(checked.topics), spark=session())
        first = [n.to_json() for n in replay]
        counted = dict(replay.passed), replay.kept, replay.holding()
        assert [n["status"] for n in first] == ["ingress", "egress", "ingress"]
        assert counted[0] == {"Warm": 3}
        assert [n.to_json() for n in replay] == first
        assert (dict(replay.passed), replay.kept, replay.holding()) == counted
