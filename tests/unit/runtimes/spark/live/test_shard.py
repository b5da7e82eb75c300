"""A shard of a live query, without Spark: it goes on from batch to batch, and a batch costs what changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Event, UsageError, check, parse
from holdfast.machines.ordered import Ordered
from holdfast.model.batch import from_events
from holdfast.model.instant import BEGINNING, NEVER
from support import correlated, fused

stepping = pytest.importorskip("holdfast.runtimes.spark.live.shard")
notice = pytest.importorskip("holdfast.runtimes.spark.table")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
plan = pytest.importorskip("holdfast.runtimes.spark.plan")
lives = pytest.importorskip("support.live")
sharded = pytest.importorskip("support.sharded")

EMPTY = stepping.Shard().to_bytes()


@settings(max_examples=20)
@given(correlated.definitions(), correlated.histories, st.integers(1, 5))
def test_a_shard_goes_on_from_batch_to_batch(text, events, size):
    work = plan.Work(check(parse(text)))
    shards, told = {}, []
    for at in range(0, len(events), size):
        arrived = events[at : at + size]
        packets = {}
        for number, one in work.operators.items():
            for topic, batch in correlated.batches(one.topics, arrived).items():
                for packed in pack.packed(pack.Mine(number, one, topic, batch), shards=2):
                    row = packed.to_pylist()[0]
                    packets.setdefault(row["shard"], []).append(stepping.Packet(number, 0, row["events"]))
        reached = msgspec.msgpack.encode({e.topic: e.time for e in arrived if e.topic in work.clocks})
        for shard in (0, 1):
            mine = [*packets.get(shard, ()), stepping.Packet(pack.PROGRESS, 0, reached)]
            kept = stepping.Shard.from_bytes(shards.get(shard, EMPTY))
            kept, said = stepping.stepped(work, stepping.Post(0, shard), kept, mine)
            shards[shard] = kept.to_bytes()
            told += notice.from_table(work.published, said.told)
    assert correlated.heard(text, events, told) == correlated.expected(text, events)


# --- only those that have events, or are due, are looked at ------------------------------------------

DOORS = "topic Door (open bool)\nstate Open on Door [open; !open] per source ordered 5 us\n"


class Doors:
    """One shard of ordered conditions on doors."""

    def __init__(self, text: str = DOORS) -> None:
        self.work, self.shard = plan.Work(check(parse(text))), stepping.Shard()
        ((self.number, self.operator),) = self.work.operators.items()

    def take(self, now: int, *events: Event) -> list[tuple[str, int]]:
        """A batch with which time has come so far: what is said, of events of which time."""
        packets = [stepping.Packet(pack.PROGRESS, 0, msgspec.msgpack.encode({"Door": now}))]
        if events:
            batch = from_events(self.operator.topics["Door"], events)
            rows = pack.packed(pack.Mine(self.number, self.operator, "Door", batch), shards=1)
            packets += [stepping.Packet(self.number, 0, row.column("events")[0].as_py()) for row in rows]
        self.shard, said = stepping.stepped(self.work, stepping.Post(0, 0), self.shard, packets)
        found = notice.from_table(self.work.published, said.told)
        return [(notification.status, notification.event.time) for notification in found]


def door(time: int, open: bool = True) -> Event:
    return Event("Door", time, "d", {"open": open}, time)


@pytest.fixture
def woken(monkeypatch) -> list[int]:
    """Grows whenever a state is decoded."""
    found, decode = [], Ordered.from_bytes

    def counted(self, raw, was=None):
        found.append(len(raw))
        return decode(self, raw, was)

    monkeypatch.setattr(Ordered, "from_bytes", counted)
    return found


def test_an_operator_without_events_sleeps_until_it_is_due(woken):
    doors = Doors()
    assert doors.take(100, door(100)) == []
    assert doors.shard.operators[0].due == 105
    before = doors.shard.operators[0]
    assert doors.take(103) == doors.take(105) == []
    assert doors.shard.operators[0] is before
    assert woken == [], "nobody has looked at its state"
    assert doors.take(106) == [("ingress", 100)]
    assert len(woken) == 1
    assert doors.shard.operators[0].due is None
    assert doors.take(1000) == doors.take(NEVER) == []
    assert len(woken) == 1, "nothing is left that could be said"


def test_what_comes_after_a_sleep_is_late_if_it_would_have_been(woken):
    doors = Doors()
    assert doors.take(50, door(50)) == []
    assert doors.take(52) == []
    assert doors.take(200) == [("ingress", 50)]
    assert doors.take(300) == doors.take(400) == []
    assert doors.take(400, door(399, open=False), door(394, open=False)) == [("late", 394)]
    assert doors.take(NEVER) == [("egress", 399)]


def test_an_operator_that_has_heard_nothing_has_no_state_but_knows_the_time():
    doors = Doors()
    assert doors.take(100) == doors.take(200) == []
    assert doors.shard.operators == {}
    assert doors.take(200, door(150)) == [("late", 150)]


def test_an_operator_that_is_added_starts_where_time_had_come():
    doors = Doors()
    seat = plan.Seat(0, doors.operator.kept, reached=100)
    doors.work = plan.Work(doors.work.checked, (seat,))
    assert doors.take(BEGINNING, door(94), door(95)) == [("late", 94)]


def test_at_the_end_everything_is_due():
    doors = Doors()
    assert doors.take(100, door(100)) == []
    assert doors.take(NEVER) == [("ingress", 100)]
    assert doors.take(NEVER) == []


def test_another_definition_on_old_states_is_refused():
    doors = Doors()
    doors.take(100, door(100))
    other = Doors(DOORS.replace("5 us", "6 us"))
    other.shard = doors.shard
    with pytest.raises(UsageError) as refused:
        other.take(110, door(110))
    assert str(refused.value) == "the definition has changed (Open): start it with a new checkpoint"


def test_what_an_earlier_version_has_kept_is_refused_with_what_to_do():
    raw = msgspec.msgpack.encode({"machines": {0: {"prints": ["1a"], "state": b""}}, "reached": {}})
    with pytest.raises(UsageError) as refused:
        stepping.Shard.from_bytes(raw)
    assert str(refused.value) == (
        "this checkpoint was made by an earlier version of Holdfast: end that query with the version that "
        "made it, then start a new checkpoint"
    )


# --- whoever sleeps says the same as whoever is woken in every batch ---------------------------------


def written(app, batches):
    """What a live query writes: notifications and late events, byte for byte."""
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
def test_whoever_sleeps_says_what_it_would_have_said_awake(given):
    text, batches = given
    asleep = written(parse(text), batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepping, "_is_due", lambda *_: True)
        awake = written(parse(text), batches)
    assert asleep == awake
