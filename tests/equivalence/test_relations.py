"""Relationships on every runtime: what the slow twin says, instant by instant."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings

from holdfast import parse
from support.overlays import told
from support.related import checked, definitions, expected, heard, histories
from support.runtimes import RUNTIMES

few = settings(max_examples=max(3, int(os.environ.get("HOLDFAST_EXAMPLES") or 60) // 10))


@pytest.mark.parametrize("name", [name for name in RUNTIMES if name != "spark"])
@few
@given(text=definitions(deliveries=("",)), events=histories)
def test_in_the_process(name, text, events):
    assert heard(text, events, RUNTIMES[name](parse(text), events)) == expected(text, events)


@few
@given(text=definitions(deliveries=("",)), events=histories)
def test_at_a_broker_that_all_readings_pass(text, events):
    """Up to the last reading of those who take part: its instant is not over yet."""
    ends = {one.name: _end(one, events) for one in checked(text)}
    whole = [row for row in expected(text, events) if row[2] < ends[row[0]]]
    assert heard(text, events, told(parse(text), events)) == whole


def _end(one, events):
    named = {(m.topic, m.source) for tie in one.relation.ties or () for m in tie.members}
    topics = {topic.name for topic in one.listens}
    mine = [e for e in events if e.topic in topics and (not named or (e.topic, e.source) in named)]
    return max((event.time for event in mine), default=0)


@few
@given(text=definitions(deliveries=("ordered 9 s",)), events=histories)
def test_files_as_they_arrive(text, events):
    live = pytest.importorskip("support.live")
    assert heard(text, events, live.live(parse(text), events)) == expected(text, events)


@settings(max_examples=2)
@given(text=definitions(deliveries=("",)), events=histories)
def test_on_spark(text, events):
    assert heard(text, events, RUNTIMES["spark"](parse(text), events)) == expected(text, events)
