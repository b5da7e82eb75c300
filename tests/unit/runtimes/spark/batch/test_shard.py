"""Shards of history, without Spark: what readers pack and shards step."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast import Event
from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.engine import slices
from holdfast.model.batch import from_events
from support.correlated import as_counts, batches, definitions, histories, oracle

shard = pytest.importorskip("holdfast.runtimes.spark.batch.shard")
notice = pytest.importorskip("holdfast.runtimes.table")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
plan = pytest.importorskip("holdfast.runtimes.spark.job")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(definitions(), histories)
def test_slices_combined_in_shards_emit_what_the_whole_history_emits(monkeypatch, text, events):
    monkeypatch.setattr(slices, "HOUR", 0)
    monkeypatch.setattr(slices, "MARGINS", 2)
    job = plan.Job.on_history(check(parse(text)))
    emitted = []
    for number, one in job.operators.items():
        shards = {}
        for reader in (events[::2], events[1::2]):  # two files that overlap
            for topic, batch in batches(one.topics, reader).items():
                for packed in pack.pack_history(pack.OperatorEvents(number, one, topic, batch), shards=3):
                    row = packed.to_pylist()[0]
                    shards.setdefault(row["shard"], []).append(row["payload"])
        for raw in shards.values():
            table = notice.add_ids(shard.run_shard(job, number, raw)[0])
            emitted += notice.from_table(job.published, table)
            assert table.column("id").to_pylist() == [n.id for n in notice.from_table(job.published, table)]
    assert as_counts(text, events, emitted) == oracle(text, events)


ONE_MOMENT = """topic T (v float)
state A on T [v > 1 for 5 min; v < 0] unknown after 4 min
state Some = at least 1 of A until fewer than 1
"""


@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_a_later_stage_consumes_transitions_of_one_time_in_their_order(monkeypatch, memory):
    """At 5 min it holds by the reading of ``b``, and that of ``a`` is too long ago; from disk, too."""
    monkeypatch.setattr(shard, "MEMORY", memory)
    rows = [(0, "a", 0.5), (0, "b", 2.0), (1, "a", 2.0), (20, "b", 2.0)]
    events = [Event("T", at * 60_000_000, source, {"v": v}, i) for i, (at, source, v) in enumerate(rows)]
    job = plan.Job.on_history(check(parse(ONE_MOMENT)))
    (first, lower), (second, _) = sorted(job.operators.items(), key=lambda each: each[1].links.stage)
    packed = pack.pack_history(
        pack.OperatorEvents(first, lower, "T", from_events(lower.topics["T"], events)), shards=1
    )
    _, output = shard.run_shard(job, first, [row.to_pylist()[0]["payload"] for row in packed])
    passed = pack.pack_derived(job.operators, output, 1)
    table, _ = shard.run_shard(job, second, [row.to_pylist()[0]["payload"] for row in passed])
    emitted = notice.from_table(job.published, notice.add_ids(table))
    assert [(n.status, n.event.time // 60_000_000) for n in emitted] == [
        ("ingress", 5),
        ("egress", 5),
        ("ingress", 20),
    ]
