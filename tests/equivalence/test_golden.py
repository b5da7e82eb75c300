"""Notifications recorded before a change of the code equal those after it, on every runtime of this
process."""

from __future__ import annotations

import pytest

from holdfast import parse
from support.golden import read
from support.runtimes import RUNTIMES
from support.whole import visible

CASES = read()
FEW = 12
"""Of so many cases one runs where a run is slow; the long tests run all."""


def differing(name, cases):
    """The definitions whose notifications are not those that were recorded."""
    run = pytest.importorskip("support.sharded").run_in_shards if name == "shards" else RUNTIMES[name]
    return [case.text for case in cases if visible(run(parse(case.text), case.events)) != case.notifications]


@pytest.mark.parametrize(
    ("name", "step"), [("engine", 2), ("engine in batches", 3), ("replay", FEW), ("shards", FEW)]
)
def test_a_sample_of_notifications_equals_the_recorded_ones(name, step):
    assert differing(name, CASES[::step]) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", ["engine", "engine in batches", "replay", "shards"])
def test_all_notifications_equal_the_recorded_ones(name):
    assert differing(name, CASES) == []
