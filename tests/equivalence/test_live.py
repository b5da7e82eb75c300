"""A live query gives the notifications of the engine, however its files are cut, read, shared and
repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import App, Engine, Event, Notification, UsageError, check, parse
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from holdfast.model.batch import from_events
from holdfast.model.qos import TIMELY
from support.histories import REGIONS, TOPIC, histories, ordered, subscriptions
from support.live import CRASHES, Crash, Site, Stream, in_parts, site
from support.runtimes import in_order

ledger = pytest.importorskip("holdfast.runtimes.spark.streaming.ledger")

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 75)
few = settings(max_examples=max(1, EXAMPLES // 10))
fewer = settings(max_examples=max(1, EXAMPLES // 25))


def app_of(subs: Iterable[DefineState]) -> App:
    return App((ops.DeclareTopic(TOPIC), *REGIONS, *subs))


@st.composite
def lively(draw, delivery=TIMELY) -> list[DefineState]:
    """Subscriptions to conditions that start and end often."""
    pairs = [
        ("flag", "!flag"),
        ("a > 0", "a <= 0"),
        ("flag", "true"),
        ("n >= 0", "n < 2"),
        ("!flag", "false"),
    ]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=3))
    per = draw(st.sampled_from([(), (("source",),), (("k",),), (("k",), ("source",))]))
    return [
        DefineState(f"c{i}", TOPIC.name, expression(enter), expression(leave), per, (), delivery)
        for i, (enter, leave) in enumerate(chosen)
    ]


def expression(text: str) -> ops.Expression:
    (subscribe,) = parse(f"filter It on {TOPIC.name} where {text}").statements
    return subscribe.enter


timely = subscriptions() | lively() | lively()
late_or_not = ordered.flatmap(lambda d: subscriptions(delivery=d) | lively(delivery=d))


def visible(notifications: Iterable[Notification]) -> list[tuple]:
    return [(n.id, n.subscription, n.scope, n.status, n.since, n.event.order) for n in notifications]


def by_scope(notifications: Iterable[Notification]) -> dict[tuple, list[tuple]]:
    """The notifications of each scope of each subscription, in the order of emission."""
    received: dict[tuple, list[tuple]] = {}
    for n in notifications:
        received.setdefault((n.subscription, n.scope), []).append((n.id, n.status, n.since, n.event.order))
    return received


def same(received: Sequence[Notification], expected: Sequence[Notification]) -> None:
    assert sorted(visible(received), key=repr) == sorted(visible(expected), key=repr)
    assert by_scope(received) == by_scope(expected)


# --- how events arrive -------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A file that arrives."""

    name: str
    events: tuple[Event, ...]
    how: dict


Arrivals = list[list[File]]
"""Files that arrive together are taken by name; whatever comes later is later, whatever its name."""


@st.composite
def cut(draw, events: Sequence[Event]) -> Arrivals:
    """The events in files, some of which arrive together; names and times promise nothing."""
    ends = sorted(draw(st.lists(st.integers(0, len(events)), min_size=2, max_size=5)))
    parts = [tuple(events[a:b]) for a, b in zip([0, *ends], [*ends, len(events)], strict=True)]
    numbers = draw(st.permutations(range(len(parts))))
    form = st.fixed_dictionaries({"row_group_size": st.integers(1, 4), "write_statistics": st.booleans()})
    files = [File(f"{n}.parquet", part, draw(form)) for n, part in zip(numbers, parts, strict=True)]
    groups: Arrivals = [[]]
    for file in files:
        if draw(st.sampled_from([True, True, False])):
            groups.append([])
        groups[-1].append(file)
    return [group for group in groups if group]


def files_of(groups: Arrivals) -> list[File]:
    return [file for group in groups for file in sorted(group, key=lambda file: file.name)]


def history(groups: Arrivals) -> list[Event]:
    """The events in the order of arrival."""
    return [event for file in files_of(groups) for event in file.events]


@dataclass(frozen=True)
class Way:
    """How a query is run; its output must not depend on it."""

    shards: int
    batch_bytes: int
    seed: int


ways = st.builds(Way, st.integers(1, 5), st.sampled_from([1, 6_000, 1 << 20]), st.integers(0, 99))


class LiveQuery:
    """A live query that a test feeds, stops, and starts again."""

    def __init__(self, here: Site, way: Way, app: App, **settings) -> None:
        self.here, self.way, self.app, self.chance = here, way, app, Random(way.seed)
        self.deliveries: list[Notification] = []
        self.batches: list[list[str]] = []
        self.settings = {"sink": self.deliveries.append, **settings}
        self.start(app)

    def start(self, app: App, **more) -> None:
        """Start, or start again with nothing but what is on disk."""
        self.app = app
        how = {**self.settings, **more, "shards": self.way.shards, "batch_bytes": self.way.batch_bytes}
        self.stream = Stream(self.here.live(app, **how), self.chance.randint(1, 4), self.chance)
        self.stream.read = self.batches

    def take(self, files: Iterable[File], crash: str | None = None) -> None:
        for file in files:
            self.here.put(file.name, TOPIC, file.events, **file.how)
        self.stream.run(crash)

    def finish(self) -> None:
        self.start(self.app, finish=True)
        self.stream.run()


def late_lines(query: LiveQuery, name: str = "late.jsonl") -> list[dict]:
    path = query.here.checkpoint / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- timely: the order of arrival --------------------------------------------------------------------


@few
@given(subs=timely, groups=histories(most=16).flatmap(cut), way=ways)
def test_timely_conditions_process_events_in_order_of_arrival(subs, groups, way):
    twin = Engine(app_of(subs))
    expected = [n for event in history(groups) for n in twin.push(event)]
    with site() as here:
        query = LiveQuery(here, way, app_of(subs))
        for group in groups:
            query.take(group)
        same(query.deliveries, expected)
        names = [file.name for file in files_of(groups)]
        assert [name for batch in query.batches for name in batch] == names, "each file once, as it arrived"
        assert held(query) == sorted((tuple(one[:3]) for one in twin.holding()), key=repr)
        record = query.stream.record
        assert (record.files, record.rows) == (len(names), len(history(groups)))
        for name, counts in record.subscriptions.items():
            assert counts.read == len(history(groups))
            assert counts.transitions == sum(n.subscription == name for n in expected)
            assert counts.transitions <= counts.passed <= counts.read


def held(query: LiveQuery) -> list[tuple]:
    """The active scopes that the ledger lists."""
    found = ledger.read_ledger(query.here.checkpoint / "ledger.sqlite")
    assert found.record.holding == len(found.holding) or found.batch is None
    return sorted(map(tuple, found.holding), key=repr)


@st.composite
def moments(draw) -> list[Event]:
    """Draw readings of rooms with many ties in time, whose sources and numbers are not in order of
    arrival."""
    row = st.tuples(st.integers(0, 2), *map(st.sampled_from, ("TTU", "rs", "abc", (-1.0, 2.0))))
    rows = draw(st.lists(row, min_size=4, max_size=16))
    found = []
    for number, (minute, topic, room, source, v) in zip(
        draw(st.permutations(range(len(rows)))), sorted(rows, key=lambda row: row[0]), strict=True
    ):
        found.append(Event(topic, minute * 60_000_000, source, {"v": v, "room": room}, number))
    return found


HEARING = """topic T (v float, room text)
topic U (v float, room text)
state A on T [v > 1; v < 0] per room {care}
state B on U [v > 1; v < 0] per room
state Some = at least 1 of A within room until fewer than 1
correlate Both = A, B overlapping per room
"""


@few
@given(events=moments(), care=st.sampled_from(("", "unknown after 1 h")), data=st.data())
def test_timely_downstream_conditions_are_active_while_their_upstream_is(events, care, data):
    app, twin = parse(HEARING.format(care=care)), Engine(HEARING.format(care=care))
    expected = [n for event in events for n in twin.push(event)] + twin.finish()
    size = data.draw(st.integers(1, len(events)))
    parts = [events[i : i + size] for i in range(0, len(events), size)]
    received = in_parts(app, parts, lambda here, app, **how: Stream(here.live(app, shards=3, **how)).run())
    assert sorted(visible(received), key=repr) == sorted(visible(expected), key=repr)


# --- ordered: the order of time ----------------------------------------------------------------------


@few
@given(subs=late_or_not, groups=histories(most=16).flatmap(cut), way=ways)
def test_ordered_disorder_within_the_wait_equals_replay_in_order(subs, groups, way):
    groups = within(groups, subs[0].delivery.wait)
    with site() as here:
        query = LiveQuery(here, way, app_of(subs))
        for group in groups:
            query.take(group)
        query.finish()
        same(query.deliveries, in_time(subs, history(groups)))
        assert late_lines(query) == []


def in_time(subs: Iterable[DefineState], events: Sequence[Event]) -> list[Notification]:
    """The notifications for events in order of time."""
    return list(Engine(app_of([replace(sub, delivery=TIMELY) for sub in subs])).run(in_order(events)))


def within(groups: Arrivals, wait: int) -> Arrivals:
    """The arrivals without the events that come more than ``wait`` behind the latest."""
    latest, timely = 0, set()
    for event in history(groups):
        latest = max(latest, event.time)
        if event.time >= latest - wait:
            timely.add(event.sequence)
    return [
        [replace(file, events=tuple(e for e in file.events if e.sequence in timely)) for file in group]
        for group in groups
    ]


@few
@given(subs=late_or_not, groups=histories(most=16).flatmap(cut), way=ways)
def test_ordered_events_are_late_in_spark_where_they_are_late_in_the_engine(subs, groups, way):
    events = {file.name: file.events for file in files_of(groups)}
    with site() as here:
        query = LiveQuery(here, way, app_of(subs))
        for group in groups:
            query.take(group)
        batches = [[e for name in batch for e in events[name]] for batch in query.batches]
        query.finish()
        twin = Engine(app_of(subs))
        expected = [n for batch in batches for n in twin.push_batch(TOPIC.name, from_events(TOPIC, batch))]
        same(query.deliveries, expected + twin.finish())
        assert sorted(line["id"] for line in late_lines(query)) == sorted(n.id for n in twin.late)
        counts = query.stream.record.subscriptions
        assert {name: c.late for name, c in counts.items() if c.late} == twin.late_counts
        assert held(query) == sorted((tuple(one[:3]) for one in twin.holding()), key=repr)
        if subs[0].delivery.late == "drop":
            missed = {n.event.sequence for n in twin.late}
            same(query.deliveries, in_time(subs, [e for e in history(groups) if e.sequence not in missed]))


def test_each_topic_has_its_own_watermark():
    app = parse("""
        topic Door (open bool)
        topic Lamp (lit bool)
        state Open on Door [open; !open] per source ordered 5 us
        state Lit on Lamp [lit; !lit] per source ordered 5 us
    """)
    door, lamp = check(app).topics
    with site() as here:
        stream = Stream(here.live(app, sink="jsonl:" + str(here.folder / "out"), shards=2), readers=2)
        here.put("1.parquet", door, [Event("Door", 100, "d", {"open": True}, 1)])
        here.put("2.parquet", lamp, [Event("Lamp", 10, "l", {"lit": True}, 2)])
        stream.run()
        here.put("3.parquet", lamp, [Event("Lamp", 7, "l", {"lit": False}, 3)])
        stream.run()
        assert not (here.folder / "out").exists(), "the doors' time does not make a lamp late"
        assert {name: c.late for name, c in stream.record.subscriptions.items()} == {"Open": 0, "Lit": 0}


# --- restarts ----------------------------------------------------------------------------------------

deaths = st.lists(st.sampled_from([None, *CRASHES]), min_size=6, max_size=6)


@few
@given(
    subs=timely | late_or_not,
    groups=histories(most=16).flatmap(cut),
    way=ways,
    deaths=deaths,
    sink=st.sampled_from(["jsonl", "parquet"]),
)
def test_a_query_that_dies_continues_without_any_difference(subs, groups, way, deaths, sink):
    app = app_of(subs)
    with site() as here, site() as there:
        calm = LiveQuery(there, way, app, sink=f"{sink}:{there.folder / 'out'}")
        for group in groups:
            calm.take(group)
        calm.finish()
        query = LiveQuery(here, way, app, sink=f"{sink}:{here.folder / 'out'}")
        for group, death in zip(groups, deaths, strict=False):
            try:
                query.take(group, death)
            except Crash:
                query.start(app)
                query.stream.run()
            else:
                query.start(app)
        query.finish()
        assert files_written(here) == files_written(there)
        assert held(query) == held(calm)
        assert sums(query) == sums(calm)


def files_written(here: Site) -> dict[str, list[str]]:
    """Everything that a query has written: its sink, in order, and the late events."""
    out, late = here.folder / "out", here.checkpoint / "late.jsonl"
    output = [repr(row) for path in sorted(out.glob("*/*")) for row in pq.read_table(path).to_pylist()]
    return {
        "folders": sorted(path.name for path in here.folder.iterdir()),
        "said": lines(out) if out.is_file() else output,
        "late": sorted(lines(late)),
    }


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def sums(query: LiveQuery) -> dict:
    """The counters of the ledger. How many events reached the machines depends on the number of readers."""
    record = query.stream.record
    counts = {name: (c.read, c.transitions, c.late) for name, c in record.subscriptions.items()}
    return {
        "subscriptions": counts,
        "rest": (record.files, record.bytes, record.rows, record.events, record.outside, record.holding),
        "lengths": {Path(path).name: length for path, length in record.lengths.items()},
    }


@pytest.mark.parametrize("sink", ["jsonl", "parquet"])
@fewer
@given(subs=timely | late_or_not, groups=histories(most=16).flatmap(cut), way=ways)
def test_a_repeated_batch_leaves_the_same_output(sink, subs, groups, way):
    app = app_of(subs)
    with site() as here:
        query = LiveQuery(here, way, app, sink=f"{sink}:{here.folder / 'out'}")
        for group in groups:
            for file in group:
                here.put(file.name, TOPIC, file.events, **file.how)
            while dies(query, "recorded"):
                once = files_written(here), held(query), sums(query)
                for death in ("recorded", "sunk"):
                    query.start(app)
                    assert dies(query, death)
                    assert (files_written(here), held(query), sums(query)) == once
                query.start(app)
                query.stream.step()
                assert (files_written(here), held(query), sums(query)) == once


def dies(query: LiveQuery, crash: str) -> bool:
    """Whether there was a batch to die in."""
    try:
        query.stream.run(crash)
    except Crash:
        return True
    return False


# --- a definition that changes -----------------------------------------------------------------------


@st.composite
def stages(draw) -> list[list[DefineState]]:
    """Definitions that follow one another: of some subscriptions, now these run and now those."""
    waiting = [replace(sub, name=f"o{i}") for i, sub in enumerate(draw(late_or_not))]
    pool = [*draw(timely), *waiting]
    first = draw(st.sampled_from([pool, waiting, pool[: -len(waiting)]]))
    some = partial(st.lists, min_size=1, unique_by=lambda sub: sub.name)
    later = st.lists(some(st.sampled_from(pool)), min_size=1, max_size=4)
    return [draw(some(st.sampled_from(first))), *draw(later)]


@few
@given(stages=stages(), groups=histories(most=20).flatmap(cut), way=ways)
def test_other_subscriptions_continue_when_some_are_added_and_removed(stages, groups, way):
    events = {file.name: file.events for file in files_of(groups)}
    with site() as here:
        query = LiveQuery(here, way, app_of(stages[0]))
        twin, expected = Engine(app_of(stages[0])), []
        for i, group in enumerate(groups):
            app = app_of(stages[min(i, len(stages) - 1)])
            query.start(app)
            twin = Engine.restore(app, twin.snapshot())
            before = len(query.batches)
            query.take(group)
            for batch in query.batches[before:]:
                rows = [e for name in batch for e in events[name]]
                expected += twin.push_batch(TOPIC.name, from_events(TOPIC, rows))
        query.finish()
        same(query.deliveries, expected + twin.finish())
        assert sorted(line["id"] for line in late_lines(query)) == sorted(n.id for n in twin.late)
        assert held(query) == sorted((tuple(one[:3]) for one in twin.holding()), key=repr)


def test_an_ordered_condition_that_is_added_later_starts_at_the_current_watermark():
    """An event that is late for all conditions is late for the new one, although no condition waited when
    the watermark passed that event."""
    before = parse("topic Door (open bool)\nstate Open on Door [open; !open] per source")
    after = parse("topic Door (open bool)\nstate Ajar on Door [open; !open] per source ordered 5 us")
    (door,) = check(before).topics
    with site() as here:
        here.put("1.parquet", door, [Event("Door", 100, "d", {"open": False}, 1)])
        Stream(here.live(before, sink=print)).run()
        here.put("2.parquet", door, [Event("Door", 50, "d", {"open": None}, 2)])
        stream = Stream(here.live(after, sink=print))
        stream.run()
        assert stream.record.subscriptions["Ajar"].late == 1


WARM = """
topic Reading (value float, other float, room text)
topic Other (value float, other float, room text)
region hall = rectangle (0, 0) (5, 5)
region shed = rectangle (6, 6) (9, 9)
state Warm on Reading [value > 25; value < 22] per source ordered 5 s
state Shut on Reading [other > 25; other < 22] scope hall
"""


@pytest.mark.parametrize(
    ("old", "new", "name", "what"),
    [
        ("value > 25", "value > 26", "Warm", "start"),
        ("value < 22", "value < 21", "Warm", "end"),
        ("value < 22", "false", "Warm", "end"),
        ("per source", "per room", "Warm", "key"),
        ("per source", "per source within room", "Warm", "key"),
        ("ordered 5 s", "ordered 6 s", "Warm", "delivery"),
        ("ordered 5 s", "", "Warm", "delivery"),
        ("ordered 5 s", "ordered 5 s late apply", "Warm", "delivery"),
        ("Warm on Reading", "Warm on Other", "Warm", "topic"),
        ("Reading (value float", "Reading (value int", "Warm", "list of attributes"),
        ("Reading (value float", "Reading (value float °C", "Warm", "list of attributes"),
        ("scope hall", "scope shed", "Shut", "scope"),
        ("hall = rectangle (0, 0) (5, 5)", "hall = rectangle (0, 0) (5, 4)", "Shut", "scope"),
    ],
)
def test_a_changed_condition_under_its_old_name_is_refused_by_name(old, new, name, what):
    with site() as here:
        Stream(here.live(parse(WARM), sink=print))
        stored = (here.checkpoint / "query.json").read_bytes()
        with pytest.raises(UsageError) as refused:
            Stream(here.live(parse(WARM.replace(old, new)), sink=print))
        assert f"'{name}' has changed: its {what} was" in str(refused.value)
        assert "give the new condition a name of its own" in str(refused.value)
        assert (here.checkpoint / "query.json").read_bytes() == stored


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("state Shut", "state Closed"),
        ("room text", "room text, more int"),
        ("room text", "room int"),
        (", room text", ""),
        ("region shed = rectangle (6, 6) (9, 9)", ""),
        ("value < 22", "(value < 22)"),
        ("topic Other", "topic Another"),
    ],
)
def test_a_revision_that_keeps_the_meaning_continues_the_state(old, new):
    before, after = parse(WARM), parse(WARM.replace(old, new))
    received: list[Notification] = []
    with site() as here:
        here.put("1.parquet", check(before).topics[0], [Event("Reading", 0, "s", {"value": 26.0}, 1)])
        Stream(here.live(before, sink=received.append)).run()
        here.put("2.parquet", check(after).topics[0], [Event("Reading", 9, "s", {"value": 21.0}, 2)])
        Stream(here.live(after, sink=received.append, finish=True)).run()
        assert [(n.subscription, n.status) for n in received] == [("Warm", "ingress"), ("Warm", "egress")]
