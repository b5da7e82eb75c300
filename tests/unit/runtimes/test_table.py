"""Notifications as a table: by columns what they are one by one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from holdfast import App, Event, check, parse
from holdfast.lang import ops
from holdfast.model.batch import from_events
from holdfast.model.instant import BEGINNING, NEVER
from holdfast.plan.compile import operators
from support.histories import REGIONS, TOPIC, histories, subscriptions
from support.runtimes import in_order

notice = pytest.importorskip("holdfast.runtimes.table")


def agree(checked, batches):
    for operator in operators(checked):
        (topic,), machine = operator.topics, operator.machine
        state = machine.initial()
        for until, batch in batches[topic]:
            state, emitted = machine.step(state, {topic: batch}, until)
            one_by_one = operator.notifications(emitted)
            table = notice.add_ids(notice.table_of(checked.topics, operator, emitted))
            table.validate(full=True)
            assert table.equals(notice.add_ids(notice.to_table(checked.topics, one_by_one)))
            assert table.column("id").to_pylist() == [n.id for n in one_by_one]
            assert repr(list(notice.from_table(checked.topics, table))) == repr(one_by_one)
            yield from one_by_one


@given(subs=subscriptions(most=3), events=histories())
def test_tables_built_by_columns_equal_those_built_row_by_row(subs, events):
    checked = check(App((ops.DeclareTopic(TOPIC), *REGIONS, *subs)))
    history = in_order(events)
    halves = [history[: len(history) // 2], history[len(history) // 2 :]]
    batches = [(h[-1].time if h else BEGINNING, from_events(TOPIC, h)) for h in halves]
    list(agree(checked, {TOPIC.name: batches}))


APP = """
topic Reading (value float, n int, open bool, id text)
topic Door (value text, open bool)
state  Warm  on Reading [value > 25; value < 22] per source ordered 5 s
state  Warm2 on Reading [value > 25; value < 22] per source ordered 5 s
filter Many  on Reading where n > 3 ordered 5 s
state  Open  on Door [open; !open] per source
"""


def test_late_events_shared_filters_and_attributes_of_two_types_fit_one_table():
    readings = [
        [(100, 26.0), (101, math.nan), (102, 20.5)],
        [(1, 30.0), (2, None), (103, -0.0)],
    ]
    checked = check(parse(APP))
    reading, door = checked.topics
    places = [(1.0, 2.0), (1.0,), None]
    batches = {
        "Reading": [
            (
                max(t for t, _ in half) * 1_000_000,
                from_events(
                    reading,
                    [
                        Event(
                            "Reading",
                            time * 1_000_000,
                            f"s{i % 2}",
                            {"value": value, "n": 3 + i, "open": i == 1, "id": "é" if i else None},
                            i,
                            places[i],
                            "room" if i else None,
                        )
                        for i, (time, value) in enumerate(half)
                    ],
                ),
            )
            for half in readings
        ]
        + [(NEVER, from_events(reading, []))],
        "Door": [
            (
                NEVER,
                from_events(
                    door,
                    [Event("Door", i, "d", {"value": str(i), "open": i % 2 == 0}, i) for i in range(4)],
                ),
            )
        ],
    }
    out = list(agree(checked, batches))
    assert {(n.subscription, n.status) for n in out} >= {
        ("Warm", "late"),
        ("Warm2", "late"),
        ("Many", "late"),
        ("Many", "atomic"),
        ("Warm2", "ingress"),
        ("Open", "egress"),
    }
