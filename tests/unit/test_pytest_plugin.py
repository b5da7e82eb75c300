"""Cases of definitions as tests of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import PATIENCE

DOOR = """
topic Door (open bool)
state Open on Door [open; !open] per source
case "right" given Door from "gate" every 30 s: true, false
  expect Open: ingress at 0 s, egress at 30 s
"""
WRONG = """
case "wrong" given Door from "gate" every 30 s: true, false
  expect Open in "gate": ingress at 0 s, egress at 1 min
"""


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "holdfast.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", str(folder), "-v", "--continue-on-collection-errors"],
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    folder = tmp_path_factory.mktemp("cases")
    (folder / "door.hf").write_text(DOOR + WRONG)
    (folder / "plain.hf").write_text("topic Door (open bool)")
    (folder / "broken.hf").write_text("topic Door (open bol)")
    (folder / "test_more.py").write_text("def test_more():\n    pass\n")
    return run(folder)


def test_each_case_is_a_test_beside_those_in_python(ran: subprocess.CompletedProcess[str]) -> None:
    assert "door.hf::right PASSED" in ran.stdout
    assert "door.hf::wrong FAILED" in ran.stdout
    assert "test_more.py::test_more PASSED" in ran.stdout
    assert ran.returncode != 0


def test_a_failing_case_shows_the_expected_and_the_actual_notifications(
    ran: subprocess.CompletedProcess[str],
) -> None:
    assert 'Open in "gate"\n    expected: ingress at 0 s, egress at 1 min\n' in ran.stdout
    assert "got:      ingress at 0 s, egress at 30 s" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert "runtest" not in ran.stdout


def test_an_invalid_definition_is_a_test_error_with_its_place(ran: subprocess.CompletedProcess[str]) -> None:
    assert "broken.hf:1:18" in ran.stdout
    assert "ERROR broken.hf" in ran.stdout
