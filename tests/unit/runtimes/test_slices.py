"""Correlations over history on Spark, without Spark: what readers pack and shards step."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.compilers import gathering
from holdfast.lang.check import check
from holdfast.lang.parse import parse
from support.correlated import batches, checked, definitions, expected, heard, histories

slices = pytest.importorskip("holdfast.runtimes.spark.slices")
notice = pytest.importorskip("holdfast.runtimes.spark.table")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
stepping = pytest.importorskip("holdfast.runtimes.spark.live.shard")

EMPTY = msgspec.msgpack.encode(stepping.Shard())


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(definitions(), histories)
def test_slices_that_meet_in_shards_tell_what_the_whole_tells(monkeypatch, text, events):
    monkeypatch.setattr(gathering, "HOUR", 0)
    monkeypatch.setattr(gathering, "WINDOWS", 2)
    published = check(parse(text)).published
    told = []
    for number, one in enumerate(gathering.gatherings(checked(text).values())):
        shards = {}
        for reader in (events[::2], events[1::2]):  # two files that overlap
            for topic, batch in batches(one.topics, reader).items():
                for packed in slices.spread(number, one, topic, batch, shards=3):
                    row = packed.to_pylist()[0]
                    shards.setdefault(row["shard"], []).append(row["events"])
        for raw in shards.values():
            table = slices.told_of_slices(one, published, raw)
            told += notice.from_table(published, table)
            assert table.column("id").to_pylist() == [n.id for n in notice.from_table(published, table)]
    assert heard(text, events, told) == expected(text, events)


@settings(max_examples=20)
@given(definitions(), histories, st.integers(1, 5))
def test_a_live_shard_goes_on_from_batch_to_batch(text, events, size):
    published = check(parse(text)).published
    operators = dict(enumerate(gathering.gatherings(checked(text).values())))
    machines = stepping.Machines([], operators)
    shards, told = {}, []
    for at in range(0, len(events), size):
        arrived = events[at : at + size]
        packets = {}
        for number, one in operators.items():
            for topic, batch in batches(one.topics, arrived).items():
                for packed in pack.gathered(number, one, topic, batch, shards=2):
                    row = packed.to_pylist()[0]
                    packets.setdefault(row["shard"], []).append(stepping.Packet(number, 0, row["events"]))
        reached = msgspec.msgpack.encode({e.topic: e.time for e in arrived if e.topic in machines.progress})
        for shard in (0, 1):
            mine = [*packets.get(shard, ()), stepping.Packet(pack.PROGRESS, 0, reached)]
            kept = msgspec.msgpack.decode(shards.get(shard, EMPTY), type=stepping.Shard)
            kept, said = stepping.stepped(machines, published, kept, mine, is_first=shard == 0)
            shards[shard] = msgspec.msgpack.encode(kept)
            told += notice.from_table(published, said.told)
    assert heard(text, events, told) == expected(text, events)
