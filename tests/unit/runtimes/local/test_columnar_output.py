"""The output of components is the same singly and in columns."""

from collections import Counter

import pyarrow as pa
import pytest

from holdfast import Engine, Event, replay
from holdfast.engine.operator import Operator

SECOND = 1_000_000


def as_rows(notifications):
    return [
        (n.status, n.event.time, n.event.source, n.scope, dict(n.event.attributes)) for n in notifications
    ]


def table(events, attributes):
    columns = {name: [event.attributes[name] for event in events] for name in attributes}
    return pa.table(
        {
            "time": pa.array([event.time for event in events], pa.timestamp("us", "UTC")),
            "source": [event.source for event in events],
            **({"x": [event.location[0] for event in events]} if events[0].location else {}),
            **columns,
        }
    )


NEVER_ENDS = """topic T (value float, road text)
state First
  A = T each source
  enter A.value > 0
  exit A.value < 0 set why = A.road
"""
NEAREST = """topic T (value float)
state First
  A = avg T over 4 s closest to 1
  enter A.value < 1
  exit A.value >= 1
"""
WHOLE = """topic T (value float, n int)
state First
  A = T each n
  enter A.value > 0
  exit A.value < 0
"""
FAR = [Event("T", 3 * SECOND + 10_000 * i, "far", {"value": -2.0}, i, (0.0,)) for i in range(100)]
NEAR = [Event("T", at, "near", {"value": value}, 0, (1.0,)) for at, value in ((0, 0.5), (1, 9.0))]


@pytest.mark.parametrize(
    ("app", "attributes", "events"),
    [
        (
            NEVER_ENDS,
            ("value", "road"),
            [Event("T", i * SECOND, "s", {"value": 1.0, "road": "r"}, i) for i in range(100)],
        ),
        (NEAREST, ("value",), [*NEAR, *FAR, Event("T", 6 * SECOND, "far", {"value": -2.0}, 0, (0.0,))]),
        (
            WHOLE,
            ("value", "n"),
            [Event("T", i * SECOND, "s", {"value": 1.0, "n": 2**53 + 1}, i) for i in range(100)],
        ),
    ],
    ids=["one rule says nothing", "windows that go back", "a whole number that no float is"],
)
def test_columnar_output_equals_single_transitions(app, attributes, events):
    engine = Engine(app)
    singly = as_rows([*(n for event in events for n in engine.push(event)), *engine.finish()])
    assert singly
    assert as_rows(replay(app, table(events, attributes))) == singly


SEVERAL = """topic T (value float, road text)
state Each A = T each source enter A.value > 0 set level = 2 * A.value exit true
state Mean A = avg Each over 4 s each source enter A.level > 3 exit A.level < 2
state Wet on T [value > 1; value < 0] per road
"""


def test_a_table_has_the_single_notifications_in_their_order(monkeypatch):
    events = [
        Event("T", i // 3 * SECOND, f"s{i % 3}", {"value": float(i * 7 % 5 - 1), "road": "ab"[i % 2]}, i)
        for i in range(300)
    ]
    expected = list(replay(SEVERAL, table(events, ("value", "road"))))
    assert {n.subscription for n in expected} == {"Each", "Mean", "Wet"}
    monkeypatch.setattr(Operator, "address", None)  # no single transitions
    it = replay(SEVERAL, table(events, ("value", "road")))
    rows = it.to_arrow().to_pylist()
    assert [row["id"] for row in rows] == [n.id for n in expected]
    assert [(row["subscription"], row["status"], row["scope"]) for row in rows] == [
        (n.subscription, n.status, n.scope) for n in expected
    ]
    assert it.passed == Counter(n.subscription for n in expected)


def test_a_relation_handles_integers_beyond_the_precision_of_floats():
    app = 'topic T (n int)\nrelate Q (a T, b T) pairs ("s", "t") when distance(a, b) <= 10 m accuracy n\n'
    events = [Event("T", i * SECOND, "st"[i % 2], {"n": 2**53 + 1}, i, (0.0,)) for i in range(100)]
    assert as_rows(replay(app, table(events, ("n",)))) == []


def test_an_attribute_that_all_colliding_readings_lack_is_missing():
    """As where one reading lacks it: a count of nothing would be an invented number."""
    app = """topic T (w float, v float, name text, ok bool)
collide count
state Busy
  A = latest T
  enter A.w > 0 set w = A.w, v = A.v, name = A.name, ok = A.ok
  exit  A.w < 0
"""
    values = {"w": 5.0, "v": None, "name": None, "ok": None}
    events = [Event("T", SECOND, source, values, i, location=(0.0,)) for i, source in enumerate("ab")]
    types = {"w": pa.float64(), "v": pa.float64(), "name": pa.string(), "ok": pa.bool_()}
    rows = table(events, values)
    for name, type in types.items():
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].cast(type))
    (one,) = as_rows(Engine(app).run(events))
    assert one[-1] == {"w": 2.0, "v": None, "name": None, "ok": None}
    assert as_rows(replay(app, rows)) == [one]
