"""Laws of the graph: order, waiting for upstreams, stages, and two ways to process the same events."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from holdfast import check, parse
from holdfast.engine.graph import Graph, LocalStates, Watermarks, notifications
from holdfast.model.batch import concatenate, from_events, times
from holdfast.model.instant import BEGINNING
from holdfast.plan.compile import on_history, operators
from support.runtimes import in_batches_of, in_order, output
from support.whole import cut, definitions, histories, visible


def graph_of(text, sharded=False):
    """The graph of a definition over a history, and its topics by name."""
    checked = on_history(check(parse(text)))
    linked = operators(checked, sharded=sharded)
    return Graph(dict(enumerate(linked))), {topic.name: topic for topic in checked.topics}


def emissions_of(steps):
    """The notifications of steps, in the order of an output."""
    return visible(output(list(notifications(steps))))


def in_each_scope(steps):
    """The starts and ends of each scope in the order in which they were emitted, also at one time."""
    found = {}
    for one in notifications(steps):
        if one.status == "atomic":
            continue
        found.setdefault((one.subscription, one.scope), []).append(visible([one]))
    return found


def chunks(topics, events):
    """Batches of neighbouring events of one topic, three at most."""
    for name, some in groupby(events, key=lambda event: event.topic):
        for part in in_batches_of(some, 3):
            yield name, from_events(topics[name], part)


def run(text, events):
    """The steps of a history that is run in chunks, until event time ends."""
    graph, topics = graph_of(text)
    states, watermarks, steps = LocalStates(graph), Watermarks(), []
    for topic, batch in chunks(topics, events):
        watermarks.advance(topic, int(times(batch).max()))
        steps += graph.run(states, {topic: batch}, watermarks).steps
    return [*steps, *graph.run(states, {}, watermarks, final=True).steps]


def push(text, events):
    """The steps of a history that is pushed event by event, until event time ends."""
    graph, _ = graph_of(text)
    states, watermarks, steps = LocalStates(graph), Watermarks(), []
    for event in events:
        watermarks.advance(event.topic, event.time)
        steps += graph.push(states, event, watermarks)
    return [*steps, *graph.run(states, {}, watermarks, final=True).steps]


@given(text=definitions(), sharded=st.booleans())
def test_upstreams_come_before_the_operators_that_consume_them(text, sharded):
    graph, _ = graph_of(text, sharded)
    emitted = set()
    for operator in graph.operators.values():
        assert operator.upstream_topics <= emitted
        emitted |= {topic.name for topic in operator.links.derived_topics.values()}


@given(text=definitions(), events=histories())
def test_pushing_events_equals_running_them_as_chunks(text, events):
    pushed, chunked = (process(text, in_order(events)) for process in (push, run))
    assert emissions_of(pushed) == emissions_of(chunked)
    assert in_each_scope(pushed) == in_each_scope(chunked)


@given(text=definitions(), events=histories())
def test_the_watermark_of_an_operator_never_passes_what_an_upstream_may_still_emit(text, events):
    graph, _ = graph_of(text)
    states, watermarks = LocalStates(graph), Watermarks()
    for event in in_order(events):
        watermarks.advance(event.topic, event.time)
        for step in graph.push(states, event, watermarks):
            for below, operator in graph.operators.items():
                if operator.upstream_topics and step.operator.is_upstream_of(operator):
                    assert graph.watermark(below, states, watermarks) <= event.time
        for below, operator in graph.operators.items():
            watermark = graph.watermark(below, states, watermarks)
            for above, upstream in graph.operators.items():
                pending = upstream.pending(states.due(above))
                if upstream.is_upstream_of(operator) and pending is not None and not operator.extra_wait:
                    assert watermark in (BEGINNING, min(watermark, pending))


@given(text=definitions(), events=histories(least=1), data=st.data())
def test_stored_and_loaded_states_continue_between_chunks(text, events, data):
    graph, topics = graph_of(text)
    parts = data.draw(cut(in_order(events)))
    states, watermarks, steps = LocalStates(graph), Watermarks(), []
    for part in parts:
        again = LocalStates(graph)
        again.load(states.dump())
        states = again
        for event in part:
            watermarks.advance(event.topic, event.time)
            steps += graph.push(states, event, watermarks)
    steps += graph.run(states, {}, watermarks, final=True).steps
    assert topics
    expected = push(text, in_order(events))
    assert emissions_of(steps) == emissions_of(expected)
    assert in_each_scope(steps) == in_each_scope(expected)


@given(text=definitions(), events=histories())
def test_running_stage_by_stage_equals_running_all_stages_at_once(text, events):
    """Derived events of a stage are collected over the whole history before the next stage runs on them."""
    graph, topics = graph_of(text)
    stages = sorted({operator.links.stage for operator in graph.operators.values()})
    states, watermarks = LocalStates(graph), Watermarks()
    emitted, derived = [], {}
    for stage in stages:
        among = {i for i, operator in graph.operators.items() if operator.links.stage == stage}
        found = {}
        steps = []
        if stage == stages[0]:
            for topic, batch in chunks(topics, in_order(events)):
                watermarks.advance(topic, int(times(batch).max()))
                result = graph.run(states, {topic: batch}, watermarks, among=among)
                steps += result.steps
                for name, rows in result.derived.items():
                    found.setdefault(name, []).append(rows)
        elif derived:
            result = graph.run(states, derived, watermarks, among=among)
            steps += result.steps
            for topic, rows in result.derived.items():
                found.setdefault(topic, []).append(rows)
        final = graph.run(states, {}, watermarks, among=among, final=True)
        steps += final.steps
        for topic, rows in final.derived.items():
            found.setdefault(topic, []).append(rows)
        derived = {**derived, **{topic: concatenate(rows) for topic, rows in found.items()}}
        emitted += steps
    expected = push(text, in_order(events))
    assert emissions_of(emitted) == emissions_of(expected)
    assert in_each_scope(emitted) == in_each_scope(expected)
