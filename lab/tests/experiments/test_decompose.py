"""A divided component emits what it emits undivided; and the output of the joins of the thesis."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.errors import UsageError
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.knowledge import of_event
from holdfast.kinds.component.detector.query import contains
from holdfast.kinds.component.group import Component, link_components
from holdfast.model.instant import NEVER
from holdfast.model.query import WHOLE, Ball, Index, MemberSet, QueryRange
from holdfast.model.topic import Attribute, Topic
from holdfast_lab.experiments.sps.decompose import cut, decompose
from support.fused import SECOND, histories, marks, reading

TOPICS = "topic T (value float, road text)\ntopic U (value float, road text)\n"


def whole(text):
    checked = check(parse(text))
    return smc(checked.of(ComponentCondition)[0]), {topic.name: topic for topic in checked.topics}


TALLIES = {"matched": "int", "present": "int"}


def topic_of(smc, topics):
    """The topic of a component's events, with attributes as readings have them; a part has a text more."""
    known = {attribute.name: attribute for topic in topics.values() for attribute in topic.attributes}
    return Topic(
        smc.topic,
        tuple(known.get(name) or Attribute(name, TALLIES.get(name, "text")) for name in smc.attributes),
    )


def as_rows(smcs, topics, events, name="S"):
    """The output of the components of one topic, in order."""
    it = link_components([Component(smc, topic_of(smc, topics)) for smc in smcs], topics)
    state = it.initial()
    for event in events:
        if event.topic in it.topics:
            state, _ = it.react(state, event)
    _, out = it.advance(state, NEVER)
    return [
        (t.scope, t.status, t.since, t.event.time, t.event.source, t.event.location, t.event.attributes)
        for t in out
        if it.smcs[t.condition].topic == name
    ]


# --- equal to the singular form ----------------------------------------------------------------

hows = st.sampled_from(("one", "all", "any"))
windows = st.sampled_from(("T", "avg T over 2 s", "max T over 3 s", "count T over 1 s"))
tests = st.sampled_from(("A.value > 1", "A.value < 2", "A.value >= B.value", "A.value > 0 || B.value > 3"))
exits = st.sampled_from(("A.value < 1", "A.value <= 0.5", "B.value > 1", "true", "false"))
cuts = st.lists(st.sampled_from((-1.0, 0.0, 0.5, 1.0, 1.5)), min_size=1, max_size=2, unique=True)
keys = st.sampled_from(("", " each road"))


@given(hows, windows, tests, exits, st.sampled_from(("", " for 1 s")), keys, cuts, histories)
def test_parts_and_a_counting_join_equal_the_undivided_component(
    how, window, enter, leave, guard, key, at, events
):
    text = f"""{TOPICS}
        state S
          A = {window} {how} location within [-1, 2]{key}
          B = U{key}
          enter {enter}{guard} set level = A.value, beside = B.value
          exit {leave}
    """
    singular, topics = whole(text)
    parts = decompose(singular, "A", "location", cut(singular.inputs["A"].query.location.group, *at))
    assert as_rows(parts, topics, events) == as_rows([singular], topics, events)


@given(windows, tests, exits, st.sampled_from(("", " within [-1, 2]", " within [0, 1]")), cuts, histories)
def test_separate_values_need_no_join(window, enter, leave, within, at, events):
    singular, topics = whole(f"""{TOPICS}
        state S A = {window} each location within [-1, 2] B = U each location{within}
          enter {enter} exit {leave} set location = last.location
    """)
    parts = decompose(singular, "A", "location", cut(singular.inputs["A"].query.location.group, *at))
    assert [part.part for part in parts] == [str(i + 1) for i in range(len(at) + 1)]
    assert as_rows(parts, topics, events) == as_rows([singular], topics, events)


whens = st.sampled_from(
    (
        "A.value > last.value",
        "A.value > 1 && A.time > now - 1 s",
        "A.valid && A.value > 0",
        "A.value > B.value || B.valid",
        "A.value > 1 && A.value > last.value",
    )
)
leaves = st.sampled_from(("A.value < last.value", "A.value < 1", "B.value > last.level", "true", "!A.valid"))
others = st.sampled_from(("U", "U one location", "U all location", "avg U over 2 s any location"))


@given(st.tuples(hows, windows, others), whens, leaves, keys, cuts, histories)
def test_a_join_decides_from_selections_where_parts_cannot(chosen, enter, leave, key, at, events):
    how, window, other = chosen
    text = f"""{TOPICS}
        state S
          A = {window} {how} location within [-1, 2]{key}
          B = {other}{key}
          enter {enter} set level = A.value
          exit {leave}
    """
    singular, topics = whole(text)
    parts = decompose(singular, "A", "location", cut(singular.inputs["A"].query.location.group, *at))
    assert as_rows(parts, topics, events) == as_rows([singular], topics, events)


CONGESTION = """
    topic InductiveLoop (value float)
    topic CarSpeed (value float)
    state TrafficCongestion
      A = avg InductiveLoop over 30 s one location within [0, 20]
      B = avg CarSpeed over 60 s one location within [0, 20]
      enter A.value > 2.5 && B.value < 7 && A.location == B.location
        set location = A.location, level = B.value
      exit B.value > 15 && B.location == last.location set location = last.location, level = B.value
"""


def test_the_congestion_of_table_5_4_with_the_quantifier_one_can_be_divided():
    """Only if exactly one road is congested; both queries count, and the exit looks at last."""
    singular, topics = whole(CONGESTION)
    loops = [reading(t, "InductiveLoop", road, v) for t, road, v in ((0, 7, 3.0), (1, 9, 4.0), (2, 11, 1.0))]
    cars = [reading(t, "CarSpeed", road, v) for t, road, v in ((3, 7, 5.0), (4, 9, 30.0), (70, 7, 40.0))]
    events = loops + cars
    for query in ("A", "B"):
        parts = decompose(singular, query, "location", cut(singular.inputs[query].query.location.group, 8.0))
        emitted = as_rows(parts, topics, events, "TrafficCongestion")
        assert emitted == as_rows([singular], topics, events, "TrafficCongestion")
        assert [row[1] for row in emitted] == ["ingress", "egress"]


def test_a_part_in_the_plane_has_all_sides_of_the_whole():
    """The counter-example: cut at 2.5, a reading at (1, 9) is outside of both parts."""
    singular, topics = whole(
        TOPICS + "state S A = T any location within [(0, 0), (5, 5)] enter A.value > 1 exit true"
    )
    pieces = cut(singular.inputs["A"].query.location.group, 2.5)
    outside = replace(reading(0, "T", 1, 5.0), location=(1.0, 9.0))
    inside = replace(reading(1, "T", 1, 5.0), location=(1.0, 4.0))
    parts = decompose(singular, "A", "location", pieces)
    assert as_rows(parts, topics, [outside]) == as_rows([singular], topics, [outside]) == []
    assert len(as_rows(parts, topics, [inside])) == 1
    quarters = [quarter for piece in pieces for quarter in cut(piece, 2.5, axis=1)]
    for x, y in ((0.0, 0.0), (2.5, 2.5), (2.6, 2.5), (5.0, 5.0)):
        known = of_event(replace(inside, location=(x, y)))
        assert sum(contains(quarter, "location", known, None) for quarter in quarters) == 1


def test_named_places_are_in_a_part_of_all_places():
    singular, topics = whole(TOPICS + "state S A = T all location enter A.value > 1 exit A.value < 1")
    parts = decompose(singular, "A", "location", cut(WHOLE, 0.5))
    at_home = replace(reading(0, "T", 1, 5.0), location=None, place="kitchen")
    nowhere = replace(reading(1, "T", 1, 0.0), location=None, place=None)
    events = [at_home, nowhere, reading(2, "T", 0, 5.0)]
    assert as_rows(parts, topics, events[:1])
    assert as_rows(parts, topics, events) == as_rows([singular], topics, events)


def test_listed_members_are_divided_by_listing_them():
    text = TOPICS + "state S A = T all locations of (0, 1, 2) enter A.value > 1 exit true"
    singular, topics = whole(text)
    group = singular.inputs["A"].query.location.group
    parts = decompose(singular, "A", "location", [MemberSet(group.values[:1]), MemberSet(group.values[1:])])
    events = [reading(t, "T", where, 5.0) for t, where in enumerate((0, 1, 2, 7))]
    assert [row[3] for row in as_rows(parts, topics, events)] == [2 * SECOND]
    assert as_rows(parts, topics, events) == as_rows([singular], topics, events)


# --- the thesis' joins, taken literally --------------------------------------------------------

ONE = TOPICS + "state S A = T one location within [0, 9] enter A.value > 50 exit true"
XOR = (
    TOPICS
    + """
    state S_1 A = T one location within [0, 4] enter A.value > 50 exit true
    state S_2 A = T one location within [5, 9] enter A.value > 50 exit true
    state S
      A = S_1 B = S_2
      enter (A.valid && !B.valid) || (!A.valid && B.valid)
      exit true
"""
)


def test_xor_mistakes_two_matches_of_one_part_and_one_of_the_other_for_one_match():
    """Hazard 16: satisfied counts (2, 1); the first part is silent, the second fires."""
    before = [
        reading(0, "T", 1, 60.0),
        reading(1, "T", 1, 0.0),
        reading(2, "T", 6, 60.0),
        reading(3, "T", 6, 0.0),
    ]
    both = [reading(10, "T", where, 60.0) for where in (1, 2, 6)]
    assert ("atomic", 10) not in marks(ONE, before + both, "S")
    assert ("atomic", 10) in marks(XOR, before + both, "S")
    singular, topics = whole(ONE)
    parts = decompose(singular, "A", "location", cut(singular.inputs["A"].query.location.group, 4.5))
    assert [row[3] // SECOND for row in as_rows(parts, topics, before + both)] == [0, 2]


ALL = TOPICS + "state Fire A = T all location within [-10, 10] enter A.value > 50 exit A.value < 30"
AND = (
    TOPICS
    + """
    state Ent1 A = T all location within [-10, 0] enter A.value > 50 exit true
    state Ent2 A = T all location within [1, 10] enter A.value > 50 exit true
    state Ext1 A = T all location within [-10, 0] enter A.value < 30 exit true
    state Ext2 A = T all location within [1, 10] enter A.value < 30 exit true
    state Fire
      A = Ent1 any location B = Ent2 any location C = Ext1 any location D = Ext2 any location
      enter A.valid && B.valid
      exit C.valid && D.valid
"""
)
FIRE = [reading(t, "T", where, v) for t, v in ((0, 20.0), (5, 60.0), (9, 20.0)) for where in (-5, 5)]


def test_and_agrees_where_every_part_has_data_at_the_same_moment():
    assert marks(ALL, FIRE, "Fire") == marks(AND, FIRE, "Fire") == [("ingress", 5), ("egress", 9)]


def test_and_never_fires_where_a_part_has_no_data():
    """Hazard 17: nothing lies in the second range, and the original would fire."""
    alone = [event for event in FIRE if event.location == (-5.0,)]
    assert marks(ALL, alone, "Fire") == [("ingress", 5), ("egress", 9)]
    assert marks(AND, alone, "Fire") == []
    singular, topics = whole(ALL)
    parts = decompose(singular, "A", "location", cut(singular.inputs["A"].query.location.group, 0.0))
    assert as_rows(parts, topics, alone, "Fire") == as_rows([singular], topics, alone, "Fire")


# --- what cannot be decomposed -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "enter", "reason"),
    [
        ("T each source", "A.value > 1", "no multiple values of location"),
    ],
)
def test_a_query_without_several_values_is_refused(query, enter, reason):
    singular, _ = whole(TOPICS + f"state S A = {query} enter {enter} exit true")
    with pytest.raises(UsageError, match=reason):
        decompose(singular, "A", "location", [WHOLE])


def test_a_carried_component_is_not_divided():
    singular, _ = whole(TOPICS + "state S A = T any location enter A.value > 1 exit true")
    with pytest.raises(UsageError, match="every source of U carries it whole"):
        decompose(replace(singular, here="U"), "A", "location", [WHOLE])


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=4), st.floats(-10, 10))
def test_parts_are_disjoint_and_complete(at, where):
    known = of_event(reading(0, "T", where, 1.0))
    pieces = cut(QueryRange(Index((-10.0,)), Index((10.0,))), *at)
    assert sum(contains(piece, "location", known, None) for piece in pieces) == 1


def test_a_ball_cannot_be_cut():
    with pytest.raises(UsageError, match="ball"):
        cut(Ball(Index((0.0,)), 1.0), 0.5)
    with pytest.raises(UsageError, match="no coordinate 2"):
        cut(WHOLE, 0.5, axis=1)
    with pytest.raises(UsageError, match="2 members"):
        cut(MemberSet((Index((0.0,)), Index((1.0,)))), 0.5)
