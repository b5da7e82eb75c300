"""A sweep gives equal results locally, one run after the other, and as Spark tasks."""

from __future__ import annotations

import pytest

from holdfast.errors import InputError, UsageError
from holdfast.network.motes.results import collect
from holdfast.network.motes.study import read_text
from support.protocols import scenario_text
from support.runtimes import session
from support.scenarios import GRID

SWEPT = (
    GRID.replace("every: 1 s", "every: 1 s, arrivals: poisson").replace(
        "{kind: disk, range: 15 m}", "{kind: log-distance, exponent: 4.0, shadowing: 3 dB}"
    )
    + "seeds: 2\nsweep:\n  mac.kind: [csma, low-power-listening]\n  routing.kind: [id-grid, tree]\n"
    + "mac: {kind: csma}\n"
)


def test_a_sweep_on_spark_equals_a_local_one():
    session()
    from holdfast.runtimes.spark.sweep import sweep

    study = read_text(SWEPT)
    here, there = collect(study, map), collect(study, sweep)
    assert len(here.runs) == 8
    assert there.runs == here.runs


def test_protocols_on_spark_give_local_results():
    session()
    from holdfast.runtimes.spark.sweep import sweep

    study = read_text(scenario_text(more="sweep: {protocol.kind: [direct, dds, cbps]}\n"))
    here, there = collect(study, map), collect(study, sweep)
    assert [run.subscriptions[0]["delivered"] > 5 for run in here.runs] == [True] * 3
    assert there.runs == here.runs


def test_results_have_the_order_of_the_points():
    session()
    from holdfast.runtimes.spark.sweep import sweep

    assert sweep(str, list(range(20))) == [str(i) for i in range(20)]
    assert sweep(str, []) == []


def test_errors_of_users_in_a_task_are_raised_locally():
    session()
    from holdfast.runtimes.spark.sweep import sweep

    def refuses(point: int) -> int:
        if point == 1:
            raise UsageError("one is too few")
        if point == 2:
            raise InputError("two is too many")
        return point

    with pytest.raises(UsageError, match="one is too few"):
        sweep(refuses, [0, 1, 2])
    with pytest.raises(InputError, match="two is too many"):
        sweep(refuses, [0, 2, 1])
