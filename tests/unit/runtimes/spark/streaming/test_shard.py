"""A shard of a live query, without Spark: it goes on from batch to batch, and a batch costs what changed."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Event, UsageError, check, parse
from holdfast.engine.ordered import Ordered
from holdfast.engine.waiting import PendingEvents
from holdfast.kinds.count.machine import CountGroup, CountMachine, CountState
from holdfast.model.batch import from_events, from_ipc
from holdfast.model.instant import BEGINNING, NEVER
from support import correlated, fused

stepping = pytest.importorskip("holdfast.runtimes.spark.streaming.shard")
state = pytest.importorskip("holdfast.runtimes.spark.streaming.processor")
stores = pytest.importorskip("holdfast.runtimes.spark.streaming.store")
notice = pytest.importorskip("holdfast.runtimes.table")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
plan = pytest.importorskip("holdfast.runtimes.spark.job")
lives = pytest.importorskip("support.live")
sharded = pytest.importorskip("support.sharded")

EMPTY = stepping.ShardState().to_bytes()


def _packet(row):
    return pack.Packet(pack.PacketKind(row["kind"]), row["operator"], row["part"], row["payload"])


def _watermarks(payload):
    return pack.Packet(pack.PacketKind.WATERMARKS, None, 0, payload)


@settings(max_examples=20)
@given(correlated.definitions(), correlated.histories, st.integers(1, 5))
def test_a_shard_continues_from_batch_to_batch(text, events, size):
    job = plan.Job(check(parse(text)))
    shards, emitted = {}, []
    for at in range(0, len(events), size):
        arrived = events[at : at + size]
        packets = {}
        for number, one in job.operators.items():
            for topic, batch in correlated.batches(one.topics, arrived).items():
                for packed in pack.pack(pack.OperatorEvents(number, one, topic, batch), shards=2):
                    row = packed.to_pylist()[0]
                    packets.setdefault(row["shard"], []).append(_packet(row))
        watermark = msgspec.msgpack.encode(
            {e.topic: e.time for e in arrived if e.topic in job.watermark_topics}
        )
        for shard in (0, 1):
            mine = [*packets.get(shard, ()), _watermarks(watermark)]
            next_change = stepping.ShardState.from_bytes(shards.get(shard, EMPTY))
            next_change, output = stepping.process_batch(job, stepping.Location(0, shard), next_change, mine)
            shards[shard] = next_change.to_bytes()
            emitted += notice.from_table(job.published, output.notifications)
    assert correlated.as_counts(text, events, emitted) == correlated.oracle(text, events)


# --- a batch stores its changes ----------------------------------------------------------------------

WARM = "topic T (v float)\nstate Warm on T [v > 25; v < 22] per source\nfilter Hot on T where v > 30\n"


class Store:
    """One shard in the store of a processor, batch by batch, and the sizes of its writes."""

    def __init__(self, text: str = WARM, tables: dict[str, pa.Table] | None = None) -> None:
        self.stored, self.written = lives.StoredState(), []
        self.use(text, tables)

    def use(self, text: str, tables: dict[str, pa.Table] | None = None) -> None:
        """Go on with another definition, as after a restart."""
        self.job = plan.Job(check(parse(text), tables=tables))
        self.processor = state.ShardProcessor(self.job, 0, 1)

    def take(self, values: dict[str, float], at: int, **more: object) -> list[tuple[str, str]]:
        watermark = msgspec.msgpack.encode(dict.fromkeys(self.job.watermark_topics, at))
        packets = [_watermarks(watermark)]
        for number, one in self.job.operators.items():
            events = [Event("T", at, source, {"v": v, **more}, at) for source, v in sorted(values.items())]
            batch = from_events(one.topics["T"], events)
            for packed in pack.pack(pack.OperatorEvents(number, one, "T", batch), shards=1):
                packets.append(SimpleNamespace(**packed.to_pylist()[0]))
        before = self.stored.stored
        self.processor.init(self.stored)
        rows = list(self.processor.handleInputRows((0,), iter(packets), None))
        self.written.append(
            sum(len(raw) for raw in self.stored.stored if not any(raw is old for old in before))
        )
        tables = [from_ipc(bytes(row.payload)) for row in rows if row.kind == pack.PacketKind.NOTIFICATIONS]
        emitted = [
            n for one in tables for n in notice.from_table(self.job.published, pa.Table.from_batches([one]))
        ]
        return sorted((n.scope or "", n.status) for n in emitted)


def test_the_output_of_a_shard_for_a_batch_is_one_packed_row():
    store, rows = Store(), []
    handle = store.processor.handleInputRows
    store.processor.handleInputRows = lambda *what: rows.extend(handle(*what)) or iter(rows)
    assert len(store.take({f"s{i:05}": 26.0 for i in range(1_000)}, 0)) == 1_000
    (emitted,) = [row for row in rows if row.kind == pack.PacketKind.NOTIFICATIONS]
    assert len(emitted.payload) < 150 * 1_000


def held(text: str, count: int, value: float) -> int:
    """The number of bytes that a shard stores for so many sources with that value."""
    store = Store(text)
    store.take({f"sensor-{i:07}": value for i in range(count)}, 0)
    return len(store.stored.value or b"")


def test_only_active_scopes_take_bytes_in_a_stored_shard():
    """Twenty, its key of fourteen characters, and eight for each further subscription."""
    one = "topic T (v float)\nstate Warm on T [v > 25; v < 22] per source\n"
    two = one + "state Mild on T [v > 20; v < 19] per source\n"
    empty = held(one, 0, 30.0)
    assert held(one, 10_000, 21.0) < empty + 1_000
    assert 30 < (held(one, 10_000, 30.0) - empty) / 10_000 < 38
    assert 6 < (held(two, 10_000, 30.0) - held(one, 10_000, 30.0)) / 10_000 < 10


def test_a_batch_writes_its_changes_and_not_the_whole_state():
    store = Store()
    store.take({f"s{i:05}": 26.0 for i in range(20_000)}, 0)
    assert store.take({"s00007": 21.0, "s00009": 24.0}, 1) == [("s00007", "egress")]
    assert store.take({"s00007": 27.0, "new": 26.0}, 2) == [("new", "ingress"), ("s00007", "ingress")]
    assert store.take({"s00007": 21.0, "s00008": 26.0}, 3) == [("s00007", "egress")]
    whole, *changes = store.written
    assert whole > 500_000
    assert max(changes) < 3_000


@pytest.mark.parametrize(
    "state",
    [
        "state Warm on T [v > 25 for 5 us; v < 22] per source",
        "state Warm on T [v > 25; v < 22] per source ordered 5 us",
        "levels Heat on T: low [v > 25; v < 22], high [v > 30; v < 28] per source",
        "state Warm\n  A = avg T over 1 s each source\n  enter A.v > 25\n  exit A.v < 22",
    ],
    ids=["guarded", "ordered", "levels", "component"],
)
def test_a_batch_writes_only_its_changes_for_every_machine(state):
    store = Store(f"topic T (v float)\n{state}\n")
    store.take({f"s{i:05}": 26.0 for i in range(5_000)}, 0)
    for at in range(1, 5):
        store.take({f"s{i:05}": 20.0 + at for i in range(3)}, at)
    *whole, third, fourth, fifth = store.written  # what waits for time to pass is evaluated in the second
    assert max(whole) > 100_000
    assert max(third, fourth, fifth) < 3_000


def test_a_state_with_many_changes_is_rewritten(monkeypatch):
    monkeypatch.setattr(stores, "LITTLE", 3 * stores.AT_LEAST)
    store = Store()
    store.take({f"s{i:05}": 26.0 for i in range(200)}, 0)
    lengths = []
    for at in range(1, 10):
        assert store.take({"a": 26.0 if at % 2 else 21.0}, at) == [("a", "ingress" if at % 2 else "egress")]
        lengths.append(len(store.stored.list))
    assert max(lengths) == 3
    assert lengths.count(0) >= 2


def test_patches_are_readable_by_a_definition_with_other_conditions():
    store = Store()
    store.take({f"s{i:05}": 26.0 for i in range(200)} | {"b": 20.0}, 0)
    store.take({"b": 31.0}, 1)
    assert store.stored.list
    store.use(WARM.replace("filter Hot on T where v > 30\n", ""))
    assert store.take({"s00007": 21.0, "b": 21.0}, 2) == [("b", "egress"), ("s00007", "egress")]


@settings(max_examples=30)
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from([20.0, 23.0, 26.0, 31.0])), max_size=8)
)
def test_shards_emit_batch_by_batch_what_one_shard_in_memory_emits(batches):
    store, job, shard = Store(), plan.Job(check(parse(WARM))), stepping.ShardState()
    for at, values in enumerate(batches):
        packets = []
        for number, one in job.operators.items():
            events = [Event("T", at, source, {"v": v}, at) for source, v in sorted(values.items())]
            rows = pack.pack(
                pack.OperatorEvents(number, one, "T", from_events(one.topics["T"], events)), shards=1
            )
            packets += [_packet(row.to_pylist()[0]) for row in rows]
        shard, output = stepping.process_batch(job, stepping.Location(0, 0), shard, packets)
        shard = stepping.ShardState.from_bytes(shard.to_bytes())
        wanted = sorted(
            (n.scope or "", n.status) for n in notice.from_table(job.published, output.notifications)
        )
        assert store.take(values, at) == wanted


@settings(max_examples=20)
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from("abcd"), st.integers(0, 3)), min_size=1, max_size=3
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["T", "max T over 2 us", "T at -2 us"]),
    st.sampled_from(["A.v > 1", "A.time < now - 2 us"]),
)
def test_ticks_start_in_shards_without_readings_as_in_one_machine(batches, query, enter):
    text = f"topic T (v float) state S A = {query} each source enter {enter} exit true tick 1 us late apply"
    job = plan.Job(check(parse(text)))
    ((number, one),) = job.operators.items()
    shards, emitted, state, expected, latest = (
        [stepping.ShardState()] * 3,
        [],
        one.machine.initial(),
        [],
        BEGINNING,
    )
    for at, arrived in enumerate(batches):
        events = [Event("T", t, source, {"v": float(v)}, at) for t, source, v in arrived]
        latest, batch = max([latest, *(event.time for event in events)]), from_events(one.topics["T"], events)
        state, output = one.machine.step(state, {"T": batch}, latest)
        expected.append(notice.table_of(job.published, one, output))
        watermark = _watermarks(msgspec.msgpack.encode({"T": latest}))
        packets = [[watermark] for _ in shards]
        for row in pack.pack(pack.OperatorEvents(number, one, "T", batch), len(shards)):
            mine = row.to_pylist()[0]
            packets[mine["shard"]].append(_packet(mine))
        for shard, mine in enumerate(packets):
            shards[shard], outputs = stepping.process_batch(
                job, stepping.Location(0, shard), shards[shard], mine
            )
            emitted.append(outputs.notifications)
    in_one = notice.add_ids(pa.concat_tables(expected))
    assert sorted(pa.concat_tables(emitted)["id"].to_pylist()) == sorted(in_one["id"].to_pylist())


# --- what a process still has of a shard is used if it is what the store has -------------------------


@pytest.fixture
def processes(monkeypatch) -> list:
    """Three of Spark's Python workers, each with what it remembers; the first is at work."""
    found = [stores.ShardCache() for _ in range(3)]
    monkeypatch.setattr(stores, "CACHE", found[0])
    return found


def many(value: float, count: int = 200) -> dict[str, float]:
    return {f"s{i:05}": value for i in range(count)}


def test_a_cached_shard_is_not_read_again(processes):
    store = Store()
    store.take(many(26.0), 0)
    store.stored.read.clear()
    assert store.take({"s00007": 21.0}, 1) == [("s00007", "egress")]
    assert store.take({"s00007": 21.0}, 2) == []
    assert store.take({"s00007": 26.0}, 3) == [("s00007", "ingress")]
    assert store.stored.read == ["head"] * 3


@pytest.mark.parametrize(
    "state", ["[v > 25; v < 22] per source", "[v > 25 for 2 us; v < 22] per source forget after 50 us"]
)
def test_a_process_that_received_only_deltas_accepts_a_rewritten_state(processes, monkeypatch, state):
    """A rewritten state, because most of it has gone, needs no earlier bytes."""
    store, alone = (Store(f"topic T (v float)\nstate S on T {state}\n") for _ in range(2))
    batches = [
        (0, many(26.0, 6000), 0),
        (
            0,
            many(27.0, 1000) | ({} if "forget" in state else dict(list(many(20.0, 6000).items())[1000:])),
            10,
        ),
        (0, {"s00000": 27.0}, 20),
        (0, {"s00000": 27.0}, 55),
        (1, {"new": 26.0, "more": 26.0}, 58),
        (0, {"new": 26.0, "last": 26.0}, 59),
        (0, {"s00000": 20.0, "new": 20.0}, 60),
    ]
    for process, values, at in batches:
        monkeypatch.setattr(stores, "CACHE", processes[process])
        emitted = store.take(values, at)
        monkeypatch.setattr(stores, "CACHE", processes[2])
        assert emitted == alone.take(values, at)


def counting() -> CountMachine:
    text = f"{WARM}state C = at least 1 of Warm within room\n".replace("(v float)", "(v float, room text)")
    machines = [one.machine for one in plan.Job(check(parse(text))).operators.values()]
    (machine,) = (one for one in machines if isinstance(one, CountMachine))
    return machine


@pytest.mark.parametrize("rooms", [("A", "B"), ("B", "A")])
def test_a_member_that_moves_is_counted_in_its_new_room(rooms):
    """A process that applies deltas gets the same, whichever of the two rooms is first in them."""
    machine, there = counting(), {"A": ("m", True, None, False), "B": ("m", True, 4, False)}
    groups = [(room, None, None, True, False, [there[room]]) for room in rooms]
    changed = msgspec.msgpack.encode((groups, [], BEGINNING, 0, BEGINNING))
    state = machine.apply_delta(CountState({"A": CountGroup({"m": 1})}, {"m": "A"}, PendingEvents()), changed)
    assert (state.groups, state.where) == ({"B": CountGroup({"m": 4})}, {"m": "B"})


def test_a_member_that_left_a_count_and_returned_is_its_latest():
    machine = counting()
    before = CountState({"A": CountGroup({"a": 1, "b": 2})}, {"a": "A", "b": "A"}, PendingEvents())
    state, other = (machine.load(machine.dump(before)) for _ in range(2))
    state = machine.track_changes(state)
    for at, (who, status) in enumerate(
        [("a", "egress"), ("c", "ingress"), ("a", "ingress"), ("b", "unknown")]
    ):
        list(machine._update_members(state, status, who, 5 + at, "A"))
    other = machine.apply_delta(other, machine.delta(state))
    assert [list(one.groups["A"].on.items()) for one in (state, other)] == [
        [("b", 2), ("c", 6), ("a", 7)]
    ] * 2
    assert other.groups["A"].both == state.groups["A"].both == 1
    assert machine.delta(state) == b""


def test_a_batch_that_changes_nothing_writes_nothing(processes):
    store = Store()
    store.take(many(26.0), 0)
    before = store.stored.stored
    assert store.take(many(27.0), 1) == []
    assert store.stored.stored == before


def test_a_rolled_back_batch_leaves_no_trace(processes):
    store = Store()
    store.take(many(26.0), 0)
    before = store.stored.stored
    assert store.take({"s00007": 21.0}, 1) == [("s00007", "egress")]
    store.stored = lives.StoredState(before)
    assert store.take({"s00007": 21.0, "s00008": 21.0}, 1) == [("s00007", "egress"), ("s00008", "egress")]


def test_a_failed_task_leaves_nothing_behind(processes, monkeypatch):
    store = Store()
    store.take(many(26.0), 0)
    with monkeypatch.context() as broken:
        broken.setattr(stores.ShardStore, "save", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.take({"s00007": 21.0}, 1)
    assert store.take({"s00007": 21.0}, 1) == [("s00007", "egress")]


def test_a_process_reads_the_deltas_that_others_wrote(processes, monkeypatch):
    store = Store()
    store.take(many(26.0), 0)
    monkeypatch.setattr(stores, "CACHE", processes[1])
    assert store.take({"s00007": 21.0}, 1) == [("s00007", "egress")]
    assert store.take({"s00008": 21.0}, 2) == [("s00008", "egress")]
    monkeypatch.setattr(stores, "CACHE", processes[0])
    store.stored.read.clear()
    assert store.take({"s00007": 26.0, "s00009": 21.0}, 3) == [("s00007", "ingress"), ("s00009", "egress")]
    assert store.stored.read == ["head", "change", "change"]


def test_a_process_reads_the_state_that_others_rewrote(processes, monkeypatch):
    store = Store()
    store.take(many(26.0), 0)
    monkeypatch.setattr(stores, "CACHE", processes[1])
    assert len(store.take(many(21.0, 20_000) | {"s00007": 26.0}, 1)) == 199
    assert store.take(many(26.0, 20_000), 2)
    monkeypatch.setattr(stores, "CACHE", processes[0])
    assert store.take({"s00007": 21.0, "s19999": 21.0}, 3) == [("s00007", "egress"), ("s19999", "egress")]


def test_a_changed_definition_does_not_use_the_cached_shard(processes):
    store = Store()
    store.take(many(26.0), 0)
    store.use(WARM.replace("filter Hot on T where v > 30\n", ""))
    store.stored.read.clear()
    assert store.take({"s00007": 21.0}, 1) == [("s00007", "egress")]
    assert "shard" in store.stored.read


def test_a_large_shard_stores_many_deltas_and_few_patches():
    """A reader copies a state for each of these."""
    memory = pytest.importorskip("holdfast.runtimes.spark.streaming.shard_state")

    def next_change(changes: dict, rewritten: dict) -> int:
        known = stores.CachedShard("", b"", b"", stepping.ShardState(), whole_size=64 << 20)
        change = memory.ShardChange(b"", b"", {}, changes, rewritten)
        while known.has_room(change, b"little"):
            known.count_change(change, b"little")
        return known.next_change

    assert next_change({0: memory.StateDelta(b"x", None)}, {}) == (64 << 20) // stores.AT_LEAST
    assert next_change({}, {0: memory.BytesPatch(b"x", None)}) == 64


@pytest.mark.parametrize("lost", range(3))
def test_a_shard_with_a_missing_delta_is_refused(processes, lost):
    """Spark's client ends an iteration, as if that were all, also where it has failed."""
    store = Store()
    store.take(many(26.0), 0)
    for i in range(3):
        store.take({f"s{i:05}": 21.0}, i + 1)
    store.processor.init(store.stored)
    all_of_it = list(store.processor._store.changes.iterator())
    store.processor._store.changes.iterator = lambda: (one for one in all_of_it if one[0] != (lost,))
    stores.CACHE.clear()
    with pytest.raises(UsageError, match="has not returned all"):
        store.processor._store.load(store.job)


def test_the_cache_of_a_process_is_bounded(processes, monkeypatch):
    shards = [Store() for _ in range(3)]
    for store in shards:
        store.take(many(26.0), 0)
        store.take({"s00009": 21.0}, 1)
        store.stored.read.clear()
    monkeypatch.setattr(stores, "ROOM", 2.5 * processes[0].size / 3)
    assert [store.take({"s00007": 21.0}, 2) for store in reversed(shards)] == [[("s00007", "egress")]] * 3
    assert ["shard" in store.stored.read for store in shards] == [True, False, False]


def test_the_size_of_the_cache_counts_what_is_in_memory(processes, monkeypatch):
    """Scopes in which nothing holds cost nothing in the store."""
    store = Store()
    store.take({"a": 26.0}, 0)
    monkeypatch.setattr(stores, "ROOM", 50_000)
    assert store.take(many(21.0, 3_000), 1) == []
    assert sum(map(len, store.stored.stored)) < 5_000
    store.stored.read.clear()
    assert store.take({"a": 21.0}, 2) == [("a", "egress")]
    assert "shard" in store.stored.read


def test_inactive_scopes_are_dropped_when_a_state_is_rewritten(processes):
    store = Store()
    store.take(many(21.0, 3_000) | {"a": 26.0}, 0)
    assert 0 < processes[0].size < 5_000


def test_an_unused_shard_is_dropped_from_the_cache(processes, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(stores, "monotonic", lambda: now[0])
    ended, other = Store(), Store()
    for at in range(2):
        ended.take(many(26.0 - at), at)
    for at in range(2):
        other.take({"a": 26.0}, at)
        now[0] += stores.IDLE + 1
        ended.stored.read.clear()
    assert ended.take({"s00007": 21.0}, 3) == [("s00007", "egress")]
    assert "shard" in ended.stored.read


def test_several_queries_in_a_process_have_separate_cached_shards(processes):
    texts = [f"topic T (v float)\nstate S on T [v > {25 + i}; v < 22] per source\n" for i in range(12)]
    queries = [Store(text) for text in texts]
    packed = [pickle.dumps(query.job) for query in queries]
    for at in range(3):
        for query, raw in zip(queries, packed, strict=True):
            query.stored.read.clear()
            query.job = pickle.loads(raw)
            query.processor = state.ShardProcessor(query.job, 0, 1)
            query.take(many(60.0 if at % 2 else 10.0), at)
    assert [query.stored.read for query in queries] == [["head"]] * 12


# --- what another definition reads ---------------------------------------------------------------------

LIMITS = 'table limits "limits.csv" (source text, high float)\n'


def limits(high: float) -> dict[str, pa.Table]:
    return {"limits": pa.table({"source": ["a", "b"], "high": [high, high]})}


@pytest.mark.parametrize(
    "expected",
    [
        "levels S on T: low [v > limits.high; v < 20], high [v > 100; v < 90] per source",
        "state S on T [v > limits.high; v < 20] per source",
    ],
    ids=["levels", "state"],
)
def test_decisions_by_old_table_rows_are_not_repeated_with_new_ones(processes, monkeypatch, expected):
    text = f"topic T (v float)\n{LIMITS}{expected}\n"
    store = Store(text, limits(25.0))
    assert store.take({"b": 26.0}, 0) == [("b", "ingress")]
    assert store.take({"a": 26.0}, 1) == [("a", "ingress")]
    assert store.stored.list
    monkeypatch.setattr(stores, "CACHE", processes[1])
    store.use(text, limits(30.0))
    assert store.take({"a": 10.0}, 2) == [("a", "egress")]


@pytest.mark.parametrize("late", ["", " late correct 20 us"], ids=["ordered", "correct"])
def test_an_unused_attribute_may_change_its_type(processes, monkeypatch, late):
    text = f"topic T (v float, n float)\nstate S on T [v > 25; v < 22] per source ordered 1 us{late}\n"
    store = Store(text)
    store.take({"b": 26.0}, 0, n=1.0)
    store.take({"a": 26.0}, 1, n=1.0)
    assert store.stored.list
    monkeypatch.setattr(stores, "CACHE", processes[1])
    store.use(text.replace("n float", "n text"))
    emitted = [one for at in range(2, 6) for one in store.take({"a": 10.0}, at, n="x")]
    assert emitted == [("b", "ingress"), ("a", "ingress"), ("a", "egress")]


GUARDED = {
    "for": "state S on T [v > 25 for 4 us; v < 22] per source",
    "silent": "state S on T [v > 25; silent 3 us] per source",
    "unknown": "state S on T [v > 25; v < 22] per source unknown after 3 us",
    "ordered": "state S on T [v > 25 for 4 us; v < 22] per source ordered 1 us",
}


@pytest.mark.parametrize("kind", GUARDED)
@pytest.mark.parametrize(
    ("before", "after"),
    [(1.0, "x"), ("x", 1.0), (1, True), (True, 2)],
    ids=lambda value: type(value).__name__,
)
def test_an_unused_attribute_may_change_its_type_while_a_timer_waits_for_a_reading(
    processes, monkeypatch, kind, before, after
):
    """The earlier value of the attribute is not emitted: it is unknown in the new type."""
    kinds = {float: "float", str: "text", int: "int", bool: "bool"}
    text = f"topic T (v float, n {kinds[type(before)]})\n{GUARDED[kind]}\n"
    store, alone = Store(text), Store(f"topic T (v float)\n{GUARDED[kind]}\n")
    for at, source in enumerate("ab"):
        assert store.take({source: 26.0}, at, n=before) == alone.take({source: 26.0}, at)
    monkeypatch.setattr(stores, "CACHE", processes[1])
    store.use(text.replace(f"n {kinds[type(before)]}", f"n {kinds[type(after)]}"))
    output = []
    for at in range(2, 12):
        values = {"a": 27.0} if at < 5 else {"c": 1.0}
        output += (emitted := store.take(values, at, n=after))
        assert emitted == alone.take(values, at)
    assert output


@pytest.mark.parametrize(
    "expected",
    [
        "state S on T [v > 25; v < 22] per source",
        "state S on T [v > 25; v < 22] per n within source",
        "state S on T [v > limits.high; v < 20] per source",
        "state S on T [v > 25 for 5 us; v < 22] per source",
        "state S on T [v > 25 for 5 us; v < 22] per source unknown after 100 us",
        "state S on T [v > limits.high for 5 us; v < 20] per source ordered 5 us",
        "state S on T [v > 25; silent 100 us] per source",
        "levels S on T: low [v > 25; v < 22], high [v > 30; v < 28] per source",
        "levels S on T: low [v > limits.high for 5 us; v < 20], high [v > 100; v < 90] per source",
    ],
)
def test_a_cached_state_is_neither_decoded_nor_encoded(processes, expected):
    """For every machine the cost of a batch is that of its changes."""
    high = {"limits": pa.table({"source": list(many(25.0, 3_000)), "high": [25.0] * 3_000})}
    store = Store(f"topic T (v float, n text)\n{LIMITS}{expected}\n", high)
    store.take(many(26.0, 3_000), 0, n="x")
    store.take(many(26.0, 3_000), 10, n="x")
    store.take({"s00007": 27.0}, 20, n="x")
    (one,) = store.job.operators.values()
    coded = []
    machine = type(one.machine)
    with pytest.MonkeyPatch.context() as patching:
        for name in ("dump", "load"):
            patching.setattr(machine, name, lambda *_, name=name: coded.append(name))
        for at in range(21, 25):
            store.take({"s00007": 27.0, "s00009": 21.0}, at, n="x")
    assert coded == []
    assert max(store.written[-4:]) < 3_000 < 20_000 < max(store.written[:2])


# --- any process can take a batch -------------------------------------------------------------------

KINDS = {
    "plain": "state S on T [v > 25; v < 22] per source",
    "two": "state S on T [v > 25; v < 22] per source state U on T [v > 22; v < 20] per source",
    "momentary": "state S on T [v > 25; v < 22] per source filter F on T where v > 30",
    "guarded": "state S on T [v > 25 for 2 us; v < 22 for 1 us] per source",
    "silent": "state S on T [v > 25; silent 2 us] per source",
    "unknown": "state S on T [v > 25; v < 22] per source unknown after 2 us",
    "forgotten": "state S on T [v > 25; v < 22 for 2 readings] per source forget after 3 us",
    "ordered": "state S on T [v > 25; v < 22] per source ordered 2 us",
    "guarded ordered": "state S on T [v > 25 for 2 us; v < 22] per source ordered 2 us late apply",
    "levels": "levels S on T: low [v > 22; v < 20], high [v > 25; v < 23] per source",
    "guarded levels": "levels S on T: low [v > 22 for 2 us; v < 20], high [v > 25; v < 23] per source",
    "component": "state S A = avg T over 2 us each source enter A.v > 25 exit A.v < 22",
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abc"), st.sampled_from([19.0, 21.0, 23.0, 26.0, 31.0])),
            st.integers(0, 2),
            st.sampled_from(["done", "done", "rolled back", "rolled back elsewhere", "restarted"]),
        ),
        max_size=9,
    ),
    st.sampled_from([2, 64]),
)
def test_any_distribution_of_batches_over_processes_gives_equal_output(kind, batches, most):
    text = f"topic T (v float)\n{KINDS[kind]}\n"
    caches = [stores.ShardCache() for _ in range(3)]
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(stores, "LITTLE", most * stores.AT_LEAST)
        here, alone = Store(text), Store(text)
        for at, (values, who, how) in enumerate(batches):
            patching.setattr(stores, "CACHE", stores.ShardCache())
            wanted = alone.take(values, at)
            if how == "restarted":
                caches = [stores.ShardCache() for _ in range(3)]
            before = here.stored.stored
            if how.startswith("rolled back"):
                patching.setattr(stores, "CACHE", caches[who - (how != "rolled back")])
                here.take({**values, "a": 31.0, "b": 19.0}, at)
                here.stored = lives.StoredState(before)
            patching.setattr(stores, "CACHE", caches[who])
            assert here.take(values, at) == wanted


# --- only those that have events, or are due, are looked at ------------------------------------------

DOORS = "topic Door (open bool)\nstate Open on Door [open; !open] per source ordered 5 us\n"


class Doors:
    """One shard of ordered conditions on doors."""

    def __init__(self, text: str = DOORS) -> None:
        self.job, self.shard = plan.Job(check(parse(text))), stepping.ShardState()
        ((self.number, self.operator),) = self.job.operators.items()

    def take(self, now: int, *events: Event) -> list[tuple[str, int]]:
        """Process a batch with a watermark; return the output with the times of its events."""
        packets = [_watermarks(msgspec.msgpack.encode({"Door": now}))]
        if events:
            batch = from_events(self.operator.topics["Door"], events)
            rows = pack.pack(pack.OperatorEvents(self.number, self.operator, "Door", batch), shards=1)
            packets += [_packet(row.to_pylist()[0]) for row in rows]
        self.shard, output = stepping.process_batch(self.job, stepping.Location(0, 0), self.shard, packets)
        found = notice.from_table(self.job.published, output.notifications)
        return [(notification.status, notification.event.time) for notification in found]


def door(time: int, open: bool = True) -> Event:
    return Event("Door", time, "d", {"open": open}, time)


@pytest.fixture
def wake_count(monkeypatch) -> list[int]:
    """Grows whenever a state is looked at."""
    found, step = [], Ordered.step

    def counted(self, state, batches, until):
        found.append(until)
        return step(self, state, batches, until)

    monkeypatch.setattr(Ordered, "step", counted)
    return found


def test_a_shard_stores_only_the_waiting_events_of_a_batch():
    doors = Doors()
    doors.take(100, door(99), door(100, False))
    before = len(doors.shard.to_bytes())
    doors.take(200, *(door(200, open=i % 2 == 0) for i in range(500)))
    waiting = len(doors.shard.to_bytes())
    doors.take(300)
    assert waiting > before + 500
    assert len(doors.shard.to_bytes()) < before


def test_an_operator_without_events_sleeps_until_it_is_due(wake_count):
    doors = Doors()
    assert doors.take(100, door(100)) == []
    assert doors.shard.operators[0].due == 105
    before = doors.shard.operators[0]
    assert wake_count == [100]
    assert doors.take(103) == doors.take(105) == []
    assert doors.shard.operators[0] is before
    assert wake_count == [100], "nobody has looked at its state"
    assert doors.take(106) == [("ingress", 100)]
    assert wake_count == [100, 105, 106]
    assert doors.shard.operators[0].due is None
    assert doors.take(1000) == doors.take(NEVER) == []
    assert wake_count == [100, 105, 106], "nothing is left that could be said"


def test_an_event_after_a_sleep_is_late_if_it_would_have_been_without_it(wake_count):
    doors = Doors()
    assert doors.take(50, door(50)) == []
    assert doors.take(52) == []
    assert doors.take(200) == [("ingress", 50)]
    assert doors.take(300) == doors.take(400) == []
    assert doors.take(400, door(399, open=False), door(394, open=False)) == [("late", 394)]
    assert doors.take(NEVER) == [("egress", 399)]


def test_an_operator_without_events_has_no_state_but_a_watermark():
    doors = Doors()
    assert doors.take(100) == doors.take(200) == []
    assert doors.shard.operators == {}
    assert doors.take(200, door(150)) == [("late", 150)]


def test_an_added_operator_starts_at_the_watermark():
    doors = Doors()
    seat = plan.OperatorSlot(0, doors.operator.record, watermark=100)
    doors.job = plan.Job(doors.job.checked, (seat,))
    assert doors.take(BEGINNING, door(94), door(95)) == [("late", 94)]


def test_the_end_of_the_input_fires_all_timers():
    doors = Doors()
    assert doors.take(100, door(100)) == []
    assert doors.take(NEVER) == [("ingress", 100)]
    assert doors.take(NEVER) == []


def test_stored_states_of_another_definition_are_refused():
    doors = Doors()
    doors.take(100, door(100))
    other = Doors(DOORS.replace("5 us", "6 us"))
    other.shard = doors.shard
    with pytest.raises(UsageError) as refused:
        other.take(110, door(110))
    assert str(refused.value) == "the definition has changed (Open): start it with a new checkpoint"


# --- sleeping operators emit the same as operators woken in every batch ------------------------------


def write_live(app, batches):
    """The files that a live query writes: notifications and late events, byte for byte."""
    topics = {topic.name: topic for topic in check(app).topics}
    with lives.site() as here:
        how = {"sink": f"jsonl:{here.folder / 'out'}", "shards": 3}
        stream = lives.Stream(here.live(app, **how), readers=2)
        for number, events in enumerate(batches):
            for name, topic in topics.items():
                mine = [event for event in events if event.topic == name]
                here.put(f"{number:04d}-{name}.parquet", topic, mine)
            stream.run()
        lives.Stream(here.live(app, **how, finish=True)).run()
        places = [here.folder / "out", here.checkpoint / "late.jsonl"]
        return [path.read_bytes() if path.exists() else b"" for path in places]


@st.composite
def arrivals(draw, histories):
    """Numbered events in batches, in any order."""
    events = [replace(event, sequence=i) for i, event in enumerate(draw(histories))]
    arriving = draw(st.permutations(events)) if draw(st.booleans()) else sorted(events, key=lambda e: e.time)
    ends = sorted(draw(st.lists(st.integers(0, len(events)), max_size=5)))
    return [arriving[low:high] for low, high in pairwise([0, *ends, len(events)])]


FILTER = "state High on T [value > 1; value < 1] per source ordered 1 s\n"
orders = st.sampled_from(("", "  ordered 1 s\n", "  ordered 1 s late apply\n"))
definitions = orders.flatmap(sharded.towers).map(lambda text: text + FILTER.replace("High", "Higher"))
correlations = correlated.definitions(deliveries=("", "ordered 1 s", "ordered 1 s late apply"))


@settings(max_examples=25)
@given(
    st.tuples(definitions, arrivals(fused.histories))
    | st.tuples(correlations, arrivals(correlated.histories))
)
def test_a_sleeping_operator_emits_what_an_awake_one_emits(given):
    text, batches = given
    asleep = write_live(parse(text), batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepping.StoredStates, "due", lambda *_: BEGINNING)
        loaded = write_live(parse(text), batches)
    assert asleep == loaded
