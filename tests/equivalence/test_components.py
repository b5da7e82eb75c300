"""Components emit the same in the process, in shards, on Spark and live, fused and in stages."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import pairwise, zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Event, check, parse
from holdfast.kinds.component import machine
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.plan import operators
from holdfast.model.batch import from_events, times
from holdfast.model.instant import BEGINNING, NEVER, show_instant
from support import columnar
from support.fused import SECOND, definitions, histories
from support.runtimes import engine, in_order, output, replay

pytest.importorskip("pyspark")
from support.live import CRASHES, Crash, Stream, site
from support.sharded import run_in_shards, towers

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 15)
few = settings(max_examples=EXAMPLES)
fewer = settings(max_examples=max(1, EXAMPLES // 5))

numbered_histories = histories.map(lambda events: [replace(e, sequence=i) for i, e in enumerate(events)])


def visible(notifications):
    return [(n.id, n.subscription, n.scope, n.status, n.since, n.event) for n in notifications]


# --- history -----------------------------------------------------------------------------------------


@few
@given(towers() | columnar.levels().filter(columnar.is_planned) | columnar.carried_components(), st.data())
def test_shards_in_columns_emit_the_same_as_one_machine_event_by_event(text, data):
    """Columnar output of a stage is columnar input of the next one."""
    kind = columnar.journeys if "topic V" in text else columnar.histories if "wet" in text else histories
    drawn = map(columnar.signless, data.draw(kind))
    events = [replace(event, sequence=i) for i, event in enumerate(drawn)]
    app = parse(text)
    expected = visible(replay(app, events))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "FEW", 0)
        assert visible(run_in_shards(app, events)) == expected
        assert visible(replay(app, events)) == expected


# --- live --------------------------------------------------------------------------------------------


def live(app, batches, crashes=(), **settings):
    """The notifications and late events of a live query over batches with a file for each topic. The query
    may die in a batch and is restarted; the input ends at last."""
    received = []
    topics = {topic.name: topic for topic in check(app).topics}
    with site() as here:
        settings = {"sink": received.append, "shards": 3, **settings}
        stream = Stream(here.live(app, **settings), readers=2)
        for number, (events, crash) in enumerate(zip_longest(batches, crashes)):
            for name, topic in topics.items():
                mine = [event for event in events or () if event.topic == name]
                here.put(f"{number:04d}-{name}.parquet", topic, mine)
            if crash is not None:
                with pytest.raises(Crash):
                    stream.run(crash)
                stream = Stream(here.live(app, **settings), readers=1)
            stream.run()
        Stream(here.live(app, **settings, finish=True)).run()
        late = here.checkpoint / "late.jsonl"
        emitted = [json.loads(line) for line in late.read_text().splitlines()] if late.exists() else []
    # a callback may receive the notifications of the last batch again
    return output({n.id: n for n in received}.values()), sorted(
        (line["subscription"], line["topic"], line["time"], line["source"]) for line in emitted
    )


@st.composite
def in_batches(draw, events, disorder=0):
    """The events, cut into batches; none is later than so many seconds after one that comes after it."""
    delays = st.integers(0, 2 * disorder)
    arriving = sorted(events, key=lambda event: event.time + draw(delays) * SECOND // 2)
    ends = sorted(draw(st.lists(st.integers(0, len(events)), max_size=3)))
    return [arriving[low:high] for low, high in pairwise([0, *ends, len(events)])]


def at_moments(batches):
    """The batches, with what has the time of the last event of one moved there."""
    out, last = [], None
    for events in batches:
        first = [event for event in events if event.time == last]
        if out:
            out[-1] += first
        out.append([event for event in events if event.time != last])
        last = max((event.time for event in events), default=last)
    return out


def one_machine(app, batches):
    """The notifications and late events of one machine for the same batches."""
    checked = check(app)
    (it,) = operators(checked.of(ComponentCondition), checked.topics)
    state, emitted, watermark = it.machine.initial(), [], BEGINNING
    for events in batches:
        mine = {
            name: from_events(topic, [event for event in events if event.topic == name])
            for name, topic in it.machine.topics.items()
        }
        watermark = max([watermark, *(int(times(batch).max()) for batch in mine.values() if len(batch))])
        if any(map(len, mine.values())):
            state, notifications = it.machine.step(state, mine, watermark)
            emitted += it.notifications(notifications)
    emitted += it.address(it.machine.advance(state, NEVER)[1])
    late = [(n.subscription, n.event.topic, show_instant(n.event.time), n.event.source) for n in emitted
            if n.status == "late"]  # fmt: skip
    return output([n for n in emitted if n.status != "late"]), sorted(late)


@fewer
@given(towers() | definitions(), numbered_histories, st.data())
def test_live_with_ordered_input_emits_the_same_as_the_engine(text, events, data):
    app = parse(text)
    batches = at_moments(data.draw(in_batches(in_order(events))))
    crashes = data.draw(st.lists(st.sampled_from((None, None, *CRASHES)), max_size=2))
    received, late = live(app, batches, crashes[: len(batches)])
    assert visible(received) == visible(engine(app, events))
    assert late == []


@fewer
@given(towers("  ordered 2 s\n"), numbered_histories, st.data())
def test_live_components_wait_for_events_that_overtook_each_other(text, events, data):
    app = parse(text.replace("per source", "per source ordered 2 s"))
    batches = data.draw(in_batches(events, disorder=2))
    assert live(app, batches) == (engine(app, events), [])


@fewer
@given(
    st.sampled_from(("", "  ordered 1 s\n", "  ordered 1 s late apply\n")).flatmap(towers),
    numbered_histories,
    st.data(),
)
def test_live_with_disorder_emits_the_same_as_one_machine(text, events, data):
    app = parse(text.replace("state High on T [value > 1; value < 1] per source\n", ""))
    batches = data.draw(in_batches(events, disorder=10))
    assert live(app, batches) == one_machine(app, batches)


TOPIC = "topic T (value float, road text)\n"
MEAN = "state Mean A = avg T over 2 s each road enter A.value > 2 exit A.value < 2\n"
PEAK = "state Peak A = max T over 2 s each road enter A.value > 3 exit A.value < 3\n"
LATEST = "state Latest A = T each road enter A.value > 1 exit A.value < 1\n"


def test_remaining_components_continue_when_some_are_added_and_removed():
    values = [1.0, 4.0, 4.0, 1.0, 1.0, 1.0, 4.0, 4.0, 0.0, 0.0, 0.0, 4.0]
    events = [
        Event("T", at * SECOND, "s", {"value": value, "road": "r1"}, at) for at, value in enumerate(values)
    ]
    received = []
    with site() as here:
        for text, some in ((MEAN + PEAK, events[:5]), (MEAN + LATEST, events[5:])):
            app = parse(TOPIC + text)
            here.put(f"{len(some)}.parquet", check(app).topics[0], some)
            Stream(here.live(app, sink=received.append, shards=2)).run()
    emitted = {
        name: [(n.status, n.event.time // SECOND) for n in received if n.subscription == name]
        for name in ("Mean", "Peak", "Latest")
    }
    whole = engine(parse(TOPIC + MEAN), events)
    assert emitted["Mean"] == [
        (n.status, n.event.time // SECOND) for n in whole if n.event.time < 11 * SECOND
    ]
    assert emitted["Peak"] == [("ingress", 1)]
    assert emitted["Latest"] == [("ingress", 6), ("egress", 8)]


def test_late_events_are_emitted_once_for_each_component_even_without_a_scope():
    app = parse(TOPIC + (MEAN + "  ordered 1 s\n") + (PEAK + "  ordered 5 s\n") + LATEST)
    rows = [(0, "r1"), (10, "r2")], [(2, "r1"), (3, None), (7, "r3"), (12, "r1")]
    batches = [
        [Event("T", at * SECOND, "s", {"value": 4.0, "road": road}, at) for at, road in some] for some in rows
    ]
    received, late = live(app, batches)
    assert (received, late) == one_machine(app, batches)
    assert [(name, time[17:19]) for name, _, time, _ in late] == [
        ("Mean", "02"),
        ("Mean", "03"),
        ("Mean", "07"),
        ("Peak", "02"),
        ("Peak", "03"),
    ]


def test_time_ends_for_every_shard_with_the_last_reading_of_any_shard():
    """A reading leaves the window of one road exactly when the last reading of another arrives."""
    app = parse(TOPIC + MEAN)
    rows = [(8 * SECOND - 1, "r1", 4.0), (9 * SECOND, "r1", 1.0), (10 * SECOND, "r2", 1.0)]
    events = [Event("T", at, "s", {"value": value, "road": road}, at) for at, road, value in rows]
    expected = engine(app, events)
    assert [(n.status, n.event.time) for n in expected] == [
        ("ingress", 8 * SECOND - 1),
        ("egress", 10 * SECOND),
    ]
    assert visible(run_in_shards(app, events)) == visible(expected)
    assert (
        visible(live(app, [events])[0])
        == visible(live(app, [events[:2], events[2:]])[0])
        == visible(expected)
    )
