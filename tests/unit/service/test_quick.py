"""The fast reader returns what the general reader returns, or nothing."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.definition.parse import parse
from holdfast.errors import InputError
from holdfast.service.feeds.mapping import Pattern, Route, finder, read
from holdfast.service.feeds.quick import QuickReader

NOW = 1_780_000_000_000_000
TOPICS = {
    t.name: t for t in parse("topic Climate (celsius float, floor int, open bool, label text)").check().topics
}
ROUTES = [
    Route(Pattern("a/{source}"), "Climate"),
    Route(Pattern("b/{topic}/{floor}/{place}"), fields={"celsius": "data.t", "source": "who", "time": "at"}),
    Route(Pattern("c/{label}/#"), "Climate", fields={"x": "where.0"}, time_unit="ms"),
    Route(Pattern("d/{source}/{x}"), "Climate"),
    Route(Pattern("e/{source}"), "Climate", items="all"),
]
FIND = finder(ROUTES)

values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 30), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**63, 10**400]),
    st.sampled_from(["", " ", "21.5", "true", "lab", "Süd", "2026-06-21T12:00:00Z", "1e3"]),
)  # fmt: skip
names = st.sampled_from(
    [
        "celsius",
        "floor",
        "open",
        "label",
        "source",
        "place",
        "time",
        "sequence",
        "x",
        "who",
        "at",
        "data",
        "all",
    ]
)
rows = st.dictionaries(
    names, values | st.dictionaries(st.sampled_from(["t", "x"]), values, max_size=2), max_size=6
)
channels = st.sampled_from(
    ["a/s1", "a/ ", "b/Climate/3/lab", "b/Climate/x/lab", "b/Climate/3/", "b/Other/3/lab", "c/red/x", "c/red",
     "d/s1/3", "e/s1", "nowhere"]
)  # fmt: skip


def careful(channel, payload):
    found = FIND(channel)
    return outcome_of(lambda: read(found[0], TOPICS, payload, NOW)) if found else None


def outcome_of(reading):
    try:
        return reading()
    except InputError as error:
        return str(error)


@given(channels, rows.map(json.dumps) | st.lists(rows, max_size=2).map(json.dumps) | st.text(max_size=5))
@example("a/s1", '{"celsius": 21.5, "floor": 3, "open": true, "label": "x", "sequence": 4}')
def test_the_fast_and_the_general_reader_return_the_same(channel, text):
    payload = text.encode("utf-8", "replace")
    expected = careful(channel, payload)
    quick = outcome_of(lambda: QuickReader(FIND).read(channel, TOPICS, payload, NOW))
    if quick is not None:
        assert (quick if isinstance(quick, str) else [quick]) == expected
    if isinstance(quick, tuple):
        assert list(quick[0].attributes) == ["celsius", "floor", "open", "label"]


def test_expected_readings_use_the_fast_reader_also_after_a_new_definition():
    quick = QuickReader(FIND)
    for _ in range(2):
        ((event, wrong),) = [quick.read("b/Climate/3/lab", TOPICS, b'{"who": "s1", "data": {"t": 21}}', NOW)]
        assert (event.source, event.place, event.time, wrong) == ("s1", "lab", NOW, False)
        assert dict(event.attributes) == {"celsius": 21.0, "floor": 3, "open": None, "label": None}
    other = {t.name: t for t in parse("topic Climate (floor int)").check().topics}
    event, _ = quick.read("b/Climate/3/lab", other, b'{"who": "s1", "data": {"t": 21}}', NOW)
    assert dict(event.attributes) == {"floor": 3}
