"""Random queries and components, as anything that can be written."""

from __future__ import annotations

from hypothesis import strategies as st

from holdfast.kernels.functions import AGGREGATES
from holdfast.kinds.component.syntax import Collide, DefineComponent
from holdfast.lang.literal import is_name
from holdfast.lang.ops import MemberAttribute, Name, Trigger
from holdfast.model.instant import EARLIEST, LATEST
from holdfast.model.query import (
    HERE,
    NOW,
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Index,
    MemberSet,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
)
from support.definitions import _compound, deliveries, numbers, texts, truths

WORDS = ("T", "Rain", "InductiveLoop", "état", "U", "N", "Q", "state", "topic", "value", "time_", "s", "m")
topic_names = st.sampled_from((*WORDS, "Temperature_0.5Hz", "a b", "max", "latest", "one"))
own_names = st.sampled_from(("A", "B", "C1", "loop", "U", "N", "s"))
attribute_names = st.sampled_from(
    ("value", "level", "état", "x", "road", "time", "location", "status", "valid")
)

seconds = st.integers(-(10**6), 10**6).map(lambda s: s * 1_000_000) | st.integers(-(10**9), 10**9)
moments = (
    st.just(NOW)
    | st.builds(Index, seconds, st.just(True))
    | st.builds(Index, st.integers(EARLIEST, LATEST) | seconds)
)
coordinates = st.floats(-1e6, 1e6).map(lambda c: c + 0.0) | st.integers(-50, 50).map(float)
points = st.lists(coordinates, min_size=1, max_size=3).map(tuple)
offsets = points.filter(lambda point: any(point))
spots = st.one_of(
    st.just(HERE),
    st.builds(Index, offsets, st.just(True)),
    st.builds(Index, points),
    st.builds(Index, st.text(max_size=5) | st.sampled_from(("A5", "junction 7"))),
)
statuses = st.sampled_from(("atomic", "ingress", "egress")).map(Index)
functions = st.sampled_from(tuple(AGGREGATES)) | st.lists(
    st.tuples(attribute_names.filter(is_name), st.sampled_from(tuple(AGGREGATES))), min_size=1, max_size=2
).map(tuple)
hows = st.sampled_from(("one", "all", "any", "separate"))


def several(indices):
    return st.lists(indices, min_size=1, max_size=3).map(tuple).map(MemberSet)


def groups(indices):
    return st.one_of(st.just(WHOLE), st.builds(QueryRange, indices, indices), several(indices))


def parameters(indices, of):
    return st.one_of(
        st.builds(Closest, indices), st.builds(Aggregate, functions, of), st.builds(Multiple, hows, of)
    )


regions = st.one_of(groups(spots), st.builds(Ball, spots, st.floats(0, 1e6)))
topics = topic_names.map(Index)
some_topics = st.one_of(
    st.builds(Closest, topics),
    st.builds(Aggregate, functions, several(topics)),
    st.builds(Multiple, hows, several(topics)),
)
queries = st.builds(
    Query,
    some_topics,
    parameters(moments, groups(moments)),
    st.one_of(parameters(spots, regions), st.builds(PooledDimension, regions)),
    st.one_of(
        parameters(statuses, st.just(WHOLE) | several(statuses)),
        st.builds(PooledDimension, st.just(WHOLE) | several(statuses)),
    ),
    st.lists(st.sampled_from(("road", "source", "état", "lane")), max_size=2, unique=True).map(tuple),
)

terms = st.recursive(
    st.one_of(
        st.builds(MemberAttribute, own_names | st.just("last"), attribute_names),
        st.builds(
            lambda owner, name, otherwise: MemberAttribute(owner, name, otherwise=otherwise),
            own_names | st.just("last"),
            attribute_names,
            numbers | texts | truths | st.builds(Name, st.just("usual")),
        ),
        st.builds(Name, st.sampled_from(("now", "here", "value", "ingress"))),
        numbers,
        texts,
        truths,
    ),
    _compound,
    max_leaves=8,
)
durations = st.integers(1, 10**12) | st.sampled_from((1_000_000, 30_000_000, 3_600_000_000))
assignments = st.lists(st.tuples(attribute_names, terms), max_size=2, unique_by=lambda pair: pair[0]).map(
    tuple
)
turns = st.builds(Trigger, terms, st.just(0) | durations, assignments)
component_names = topic_names | st.sampled_from(("Temperature_0.5Hz", "Temperature_10%Change", 'a "b"'))
traits = {
    "here": st.none() | topic_names | points,
    "tick": st.none() | durations,
    "delivery": deliveries,
}
named_inputs = st.lists(
    st.tuples(own_names, queries), min_size=1, max_size=3, unique_by=lambda pair: pair[0]
).map(tuple)
detects = st.builds(DefineComponent, component_names, named_inputs, turns, turns, **traits)
short_detects = st.builds(
    DefineComponent, component_names, queries.map(lambda query: (("", query),)), turns, turns, **traits
)
collisions = st.builds(Collide, st.sampled_from(tuple(AGGREGATES)))
