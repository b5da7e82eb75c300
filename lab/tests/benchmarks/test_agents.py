"""The benchmark of agents with small numbers measures what it claims."""

from __future__ import annotations

from holdfast_lab.benchmarks import BENCHMARKS, agents


def test_all_agents_start_and_emit():
    assert "agents" in BENCHMARKS
    found = agents.measure_agents(40, 200)
    assert found["readings"] == 200
    assert found["messages"] > 0
    assert found["started"] > 0
    assert found["ended"] > 0
    assert found["through"] >= found["rate"] > 0
