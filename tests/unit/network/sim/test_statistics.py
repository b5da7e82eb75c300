"""Statistics over several runs."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.sim.statistics import estimate

TABLE = {2: 12.706, 3: 4.303, 5: 2.776, 10: 2.262, 30: 2.045}
"""Student's t for 95 %, by the number of runs, as printed in every handbook."""


@pytest.mark.parametrize("runs", TABLE)
def test_the_confidence_interval_uses_students_distribution(runs):
    values = [1.0 if i % 2 else 3.0 for i in range(runs)]
    found = estimate(values)
    mean = sum(values) / runs
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (runs - 1))
    assert found.mean == pytest.approx(mean)
    assert found.half == pytest.approx(TABLE[runs] * deviation / math.sqrt(runs), rel=1e-3)
    assert (found.low, found.high) == (found.mean - found.half, found.mean + found.half)


def test_the_confidence_interval_contains_the_true_mean_in_nineteen_of_twenty_studies():
    random = Random(5)
    studies = [estimate(random.gauss(10, 2) for _ in range(5)) for _ in range(2000)]
    assert 0.935 < sum(s.low <= 10 <= s.high for s in studies) / 2000 < 0.965


def test_a_single_run_has_no_confidence_interval():
    found = estimate([4.0])
    assert (found.mean, found.half, found.low, found.runs) == (4.0, None, None, 1)


@given(st.lists(st.one_of(st.none(), st.just(math.nan), st.floats(-1e6, 1e6))))
def test_runs_without_a_value_are_ignored(values):
    known = [v for v in values if v is not None and not math.isnan(v)]
    found = estimate(values)
    assert (found is None) == (not known)
    if found is not None:
        assert found.runs == len(known)
        assert min(known) - 1e-6 <= found.mean <= max(known) + 1e-6
