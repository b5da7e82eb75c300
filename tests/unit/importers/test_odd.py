"""Unusual or broken rules are reported; none is translated to a different meaning."""

from __future__ import annotations

import pytest

from holdfast.importers import kapacitor, prometheus, zabbix


@pytest.mark.parametrize(
    "text",
    [
        "groups: 3\n",
        "- 1\n",
        "",
        "groups:\n- rules: {}\n",
        "groups:\n- 5\n- rules:\n  - 5\n  - [a]\n",
        "groups:\n- rules:\n  - alert: 7\n    expr: 3\n",
    ],
)
def test_a_prometheus_file_without_a_list_of_rules_is_reported(text):
    found = prometheus.translate(text)
    assert not found.topics


@pytest.mark.parametrize(
    "text", ["stream\n |from(", 'stream\n |from().where(lambda: "a > 1)', "var x = (", ""]
)
def test_an_incomplete_script_is_reported(text):
    found = kapacitor.translate(text)
    assert not found.topics
    assert found.notes


def test_a_deadman_that_counts_readings_is_not_imported_as_silence():
    script = "stream|from().measurement('z')|deadman({}, 10s)"
    assert kapacitor.translate(script.format("0.0")).translated == 1
    found = kapacitor.translate(script.format("100.0"))
    assert not found.topics
    assert "deadman counts readings" in str(found.notes)


def test_unusual_dependencies_of_a_trigger_are_omitted():
    text = """zabbix_export:
  templates:
  - template: T
    items:
    - key: k
      triggers:
      - {expression: 'last(/T/k)>9', name: High, dependencies: [3]}
"""
    assert zabbix.translate(text).topics
