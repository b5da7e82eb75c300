"""History in slices of time: all slices together emit what the whole history emits."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast.engine import slices
from holdfast.model.instant import NEVER
from support.correlated import as_counts, batches, definitions, histories, oracle, running


@pytest.fixture
def short_slices(monkeypatch):
    monkeypatch.setattr(slices, "HOUR", 0)
    monkeypatch.setattr(slices, "MARGINS", 1)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(definitions(), histories)
def test_slices_of_time_emit_the_same_as_the_whole_history(short_slices, text, events):
    emitted = []
    for operator in running(text):
        it, parts = operator.machine, {}
        for topic, batch in batches(it.topics, events).items():
            for number, mine in slices.slices_of(it.traits.lookaround, batch):
                parts.setdefault(number, {})[topic] = mine
        for number, mine in parts.items():
            _, emission = it.step(it.initial(), mine, NEVER)
            emitted += operator.notifications(slices.own_part(emission, number, it.traits.lookaround))
    assert as_counts(text, events, emitted) == oracle(text, events)
