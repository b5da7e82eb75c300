"""Alerting rules of Prometheus, in the forms that public rule files have."""

from __future__ import annotations

import pytest

from holdfast import check, parse
from holdfast.errors import UsageError
from holdfast.importers.prometheus import translate

RULES = """
groups:
  - name: node
    rules:
      - record: job:up:sum
        expr: sum by (job) (up)
      - alert: InstanceDown
        expr: up == 0
        for: 5m
        labels: {severity: page}
      - alert: HighLoad
        expr: node_load_percent{mode="user", instance="web-1"} > 80
        for: 10m
        keep_firing_for: 5m
      - alert: DiskFilling
        # the root file systems
        expr: |
          disk_free{fstype=~"ext4|xfs"} < 10 and disk_free{fstype=~"ext4|xfs"} >= 0
        for: 1h30m
      - alert: Hot
        expr: avg_over_time(temperature_celsius[15m]) > 30
"""


def test_for_and_keep_firing_for_are_imported_as_minimum_durations_of_entrance_and_exit():
    found = translate(RULES)
    text = found.text()
    assert "state InstanceDown on up [value == 0 for 5 min; !(value == 0)] per source" in text
    assert 'source == "web-1"' in text
    assert "value > 80) for 10 min; " in text
    assert ") for 5 min] per source" in text
    assert 'fstype == "ext4" || fstype == "xfs"' in text
    assert "for 90 min" in text
    assert "A = avg temperature_celsius over 15 min each source" in text
    assert check(parse(text)).topics
    assert found.translated == 4


def test_parts_without_equivalent_are_reported_with_their_line():
    notes = {(note.line, note.rule) for note in translate(RULES).notes}
    assert notes == {(5, "job:up:sum"), (10, "InstanceDown")}


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("rate(errors_total[5m]) > 1", "rate of a counter"),
        ('absent(up{job="db"})', "roster"),
        ("sum by (job) (up) < 2", "count the states instead"),
        ("up == 0 unless on(job) maintenance == 1", "no like"),
        ("a > 1 offset 5m", "no like"),
        ("a > bool 1", "bool"),
        ('a{x=~"web-.*"} > 1', "pattern"),
        ("histogram_quantile(0.9, a) > 1", "quantile"),
        ("(a > 1", "not closed"),
        ("1 > 2", "no series"),
    ],
)
def test_an_expression_that_cannot_be_a_state_is_omitted_with_a_note(expression, why):
    rules = f"groups: [{{name: g, rules: [{{alert: A, expr: '{expression}'}}]}}]"
    found = translate(rules)
    assert found.translated == 0
    (note,) = found.notes
    assert note.message.startswith("not translated")
    assert why in note.message


def test_invalid_yaml_is_a_usage_error():
    with pytest.raises(UsageError, match="line 1: this is not YAML"):
        translate("groups: [")
