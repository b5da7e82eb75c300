"""The benchmark of the service measures something, in small."""

from __future__ import annotations

import os

import pytest

from holdfast_lab.benchmarks import serve
from holdfast_lab.benchmarks.peers import mosquitto


@pytest.mark.skipif(
    mosquitto.program() is None and os.environ.get("CI") != "true", reason="Mosquitto is not installed"
)
def test_the_serve_benchmark_measures_both_rates(monkeypatch):
    for name, value in {"MESSAGES": 300, "PAGES": 5, "SECONDS": 2.0, "SUBSCRIPTIONS": 3}.items():
        monkeypatch.setattr(serve, name, value)
    rows = {row.what: row for row in serve.run(lambda _: None)}
    assert rows["holdfast serve to the consumer"].value > 0
    latency = rows["publish to notification, median, at half of it"]
    assert latency.value > 0
    assert latency.detail["notifications"] >= 2
    assert rows["pages open on events"].met, "every page heard something"
