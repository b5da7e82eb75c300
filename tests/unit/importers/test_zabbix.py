"""Triggers of Zabbix templates, in the forms that public templates have."""

from __future__ import annotations

import pytest

from holdfast import cases, check, parse
from holdfast.importers.zabbix import translate

TEMPLATE = """
zabbix_export:
  version: '6.0'
  templates:
    - template: Linux
      macros:
        - macro: '{$LOAD.MAX}'
          value: '5'
      items:
        - key: system.cpu.load
          triggers:
            - expression: 'last(/Linux/system.cpu.load)>{$LOAD.MAX}'
              recovery_mode: RECOVERY_EXPRESSION
              recovery_expression: 'last(/Linux/system.cpu.load)<3'
              name: 'Load is high'
              priority: AVERAGE
              dependencies:
                - name: 'No data'
                  expression: 'nodata(/Linux/agent.ping,10m)=1'
            - expression: 'nodata(/Linux/agent.ping,10m)=1'
              name: 'No data'
            - expression: 'min(/Linux/vm.memory.size[available],5m)<20M'
              name: 'Lack of memory'
"""


def test_problem_and_recovery_are_imported_as_entrance_and_exit():
    text = translate(TEMPLATE).text()
    assert "state Load_is_high on system_cpu_load [value > 5; value < 3 && !(value > 5)] per source" in text
    assert "A = min vm_memory_size_available over 5 min each source" in text
    assert "A.value < 20971520" in text
    assert "mute Load_is_high while No_data" in text
    assert any(condition.mutes for condition in check(parse(text)).conditions)
    (emitted,) = cases(
        text.replace("mute Load_is_high while No_data", "")
        + 'case "band" given system_cpu_load from "a" every 1 min: 6, 4, 2\n'
        "  expect Load_is_high: ingress at 0 s, egress at 2 min"
    )
    assert emitted.holds


def test_the_older_notation_of_triggers_is_imported():
    text = translate("""
zabbix_export:
  triggers:
    - expression: '{Linux:system.cpu.load[all,avg1].last()}>5 and {Linux:system.uptime.last()}>600'
      name: Load
""").text()
    assert "A = system_cpu_load_all_avg1 each source" in text
    assert "enter A.value > 5 && B.value > 600" in text


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("change(/h/system.uname)<>0", "no like"),
        ("last(/a/x)>last(/b/x)", "several hosts"),
        ("last(/h/x)>{$NOBODY}", "nothing says what"),
        ("min(/h/x,#3)>5", "for 3 readings"),
        ("last(/h/fs[{#FSNAME}])>5", "prototype"),
        ("({TRIGGER.VALUE}=0 and last(/h/x)>75)", "hysteresis by hand"),
    ],
)
def test_parts_without_equivalent_are_reported_with_their_line(expression, why):
    found = translate(f"triggers:\n  - name: T\n    expression: '{expression}'\n")
    assert found.translated == 0
    assert [note.line for note in found.notes] == [3]
    assert why in found.notes[0].message
