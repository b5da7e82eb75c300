"""Shards of history, without Spark: what readers pack and shards step."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast.compilers import slices
from holdfast.lang.check import check
from holdfast.lang.parse import parse
from support.correlated import batches, definitions, expected, heard, histories

shard = pytest.importorskip("holdfast.runtimes.spark.history.shard")
notice = pytest.importorskip("holdfast.runtimes.table")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
plan = pytest.importorskip("holdfast.runtimes.spark.plan")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(definitions(), histories)
def test_slices_that_meet_in_shards_tell_what_the_whole_tells(monkeypatch, text, events):
    monkeypatch.setattr(slices, "HOUR", 0)
    monkeypatch.setattr(slices, "MARGINS", 2)
    work = plan.Work.on_history(check(parse(text)))
    told = []
    for number, one in work.operators.items():
        shards = {}
        for reader in (events[::2], events[1::2]):  # two files that overlap
            for topic, batch in batches(one.topics, reader).items():
                for packed in pack.spread(pack.Mine(number, one, topic, batch), shards=3):
                    row = packed.to_pylist()[0]
                    shards.setdefault(row["shard"], []).append(row["events"])
        for raw in shards.values():
            table = notice.identified(shard.step_shard(work, number, raw)[0])
            told += notice.from_table(work.published, table)
            assert table.column("id").to_pylist() == [n.id for n in notice.from_table(work.published, table)]
    assert heard(text, events, told) == expected(text, events)
