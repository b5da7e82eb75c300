"""Correlations in shards: slices of history tell together what the whole tells."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast.compilers import gathering
from holdfast.machines.machine import transitions
from support.correlated import batches, checked, definitions, expected, heard, histories


@pytest.fixture
def short_slices(monkeypatch):
    monkeypatch.setattr(gathering, "HOUR", 0)
    monkeypatch.setattr(gathering, "WINDOWS", 1)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(definitions(), histories)
def test_slices_of_time_tell_what_the_whole_history_tells(short_slices, text, events):
    told = []
    for one in gathering.gatherings(checked(text).values()):
        slices = {}
        for topic, batch in batches(one.topics, events).items():
            for number, mine in one.sliced(batch):
                slices.setdefault(number, {})[topic] = mine
        for number, mine in slices.items():
            simple, complex_events = one.told_of(number, mine)
            told += complex_events
            for topic, passed in simple.items():
                told += one.addressed(transitions(one.topics[topic], passed))
    assert heard(text, events, told) == expected(text, events)


def test_each_correlation_has_its_own_place_though_another_means_the_same():
    text = """topic A (v float)
    topic B (v float)
    correlate X within 1 s A > 1 B > 1
    correlate Y within 1 s A > 1 B > 1
    correlate Z within 1 s A > 1 B > 1 ordered 5 s
    """
    first, second = gathering.gatherings(checked(text).values())
    assert (first.names, second.names) == (("X", "Y"), ("Z",))
    assert first.key != second.key
    assert (first.strictest, second.strictest) == (None, 5_000_000)
    assert first.listening() == {"X": ["A", "B"], "Y": ["A", "B"]}
