"""The laws of DESIGN §1 and of the language, for correlations."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.definition.app import App
from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.kinds.correlation.syntax import DefineCorrelation, MatchRange
from holdfast.lang.ops import Name
from holdfast.model.batch import to_events
from holdfast.model.instant import NEVER
from support.correlated import SECOND, as_counts, batches, definitions, histories, oracle, running
from support.definitions import deliveries, numbers, shapes

few = settings(max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 20))
ORDERED = ("ordered 2 s", "ordered 2 s late apply")

# --- text --------------------------------------------------------------------------------------

names = st.sampled_from(("Storm", "a b", "état", "tell", "s", "in_"))
bounds = numbers | st.sampled_from(("limit", "état")).map(Name)
attributes = st.sampled_from(
    ("wind_speed", "T", "état", "Wind.speed", "state", "m", "V", "filter", "correlate")
)


@st.composite
def matches(draw):
    low, high = draw(st.tuples(st.none() | bounds, st.none() | bounds).filter(any))
    strict = tuple(side is not None and draw(st.booleans()) for side in (low, high))
    return MatchRange(draw(attributes), low, high, strict, draw(st.none() | st.text(max_size=4)))


correlates = st.builds(
    DefineCorrelation,
    names,
    st.lists(matches(), min_size=1, max_size=4).map(tuple),
    st.integers(1, 10**12) | st.sampled_from((SECOND, 120 * SECOND)),
    st.none() | st.floats(1e-3, 1e6) | st.integers(1, 5000).map(float),
    st.none() | names | shapes,
    st.sampled_from(("events", "all", "latest", "first")),
    deliveries,
)


@few
@given(st.lists(correlates, min_size=1, max_size=3))
def test_printed_correlations_parse_to_themselves(statements):
    app = App(statements)
    assert parse(show(app)) == app
    matches_of = [repr(statement.matches) for statement in parse(show(app)).statements]
    assert matches_of == [repr(statement.matches) for statement in statements]  # 1 is not 1.0 here


# --- the machine -------------------------------------------------------------------------------


def step_all(operator, events, until, state=None):
    it = operator.machine
    state, out = it.step(it.initial() if state is None else state, batches(it.topics, events), until)
    return state, operator.notifications(out)


def push_all(operator, events, state=None):
    """Push one event at a time, like an engine."""
    it, out = operator.machine, []
    state = it.initial() if state is None else state
    for event in events:
        state, late = it.react(state, event)
        state, some = it.advance(state, state.latest)
        out += operator.address(late + some)
    return state, out


def rows(notifications):
    return sorted((n.subscription, n.status, n.event.topic, n.event.order) for n in notifications)


@given(definitions(), histories)
def test_correlations_equal_a_search_over_every_combination(text, events):
    emitted = [n for operator in running(text) for n in step_all(operator, events, NEVER)[1]]
    assert as_counts(text, events, emitted) == oracle(text, events)
    assert {(n.status, n.scope, n.since) for n in emitted} <= {("atomic", None, None)}


@few
@given(definitions(emits=("events", "all")), histories, st.data())
def test_disorder_shorter_than_a_window_changes_no_correlation(text, events, data):
    """Live and timely: what comes late still finds its partners."""
    jitter = [data.draw(st.integers(0, 3)) * SECOND // 2 for _ in events]
    arrival = [
        e
        for _, _, e in sorted((e.time + d, i, e) for i, (e, d) in enumerate(zip(events, jitter, strict=True)))
    ]
    for operator in running(text):
        assert rows(push_all(operator, arrival)[1]) == rows(step_all(operator, events, NEVER)[1])


@few
@given(definitions(), histories)
def test_rows_of_a_batch_are_relevant_exactly_if_they_match_alone(text, events):
    for operator in running(text):
        it = operator.machine
        for topic, batch in batches(it.topics, events).items():
            singly = [bool(it.match_one(event)) for event in to_events(it.topics[topic], batch)]
            assert it.relevance(topic, batch).satisfies.tolist() == singly


# --- ordered delivery --------------------------------------------------------------------------


@few
@given(definitions(deliveries=ORDERED), histories, histories, st.integers(3, 11))
def test_events_later_than_the_wait_are_reported_late_or_applied(text, events, more, at):
    for operator in running(text):
        it = operator.machine
        state, _ = step_all(operator, [e for e in events if e.time < at * SECOND], at * SECOND)
        late = [e for e in more if e.time < (at - 2) * SECOND]
        _, out = step_all(operator, late, at * SECOND, state)
        matching = {(e.topic, e.order) for e in late if e.topic in it.topics and it.match_one(e)}
        reported = {(n.event.topic, n.event.order) for n in out if n.status == "late"}
        assert reported == (matching if it.late == "drop" else set())


@few
@given(definitions(), histories)
def test_the_state_of_a_correlation_is_bounded_by_its_window(text, events):
    for operator in running(text):
        it = operator.machine
        state, _ = step_all(operator, events, 10 * SECOND)
        stored = [
            int(t)
            for one in state.stored.values()
            for t in one.events.column("time").cast("int64").to_pylist()
        ]
        assert all(time > 10 * SECOND - 2 * it.within for time in stored)
        assert it.active(state) == []
