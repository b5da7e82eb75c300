"""The kind of condition that CONTRIBUTING.md adds works in every part of the system.

The page is read as a contributor would: its files go into a copy of the package, its rule into the copy's
grammar, and its line into the copy's registry. `tests/support/worked_example.py` then drives the kind in
processes that import the copy, as Spark's workers do, too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE
from support.runtimes import session

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DRIVER = ROOT / "tests" / "support" / "worked_example.py"

FILE = re.compile(r"(?ms)^```python written title=(\S+)\n(.*?)^```$")
RULE = re.compile(r"(?ms)^```lark\n(.*?)^```$")
EXPECTED = [
    ["Moved", "a", "atomic", 2, "72ab882aea4cfd6d353b"],
    ["Moved", "b", "atomic", 4, "34621f9e11099ff2d79a"],
]
"""The two doors that are opened or closed in the events of the driver."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a copy of the package to which the kind has been added."""
    home = tmp_path_factory.mktemp("with-changes")
    copy = home / "holdfast"
    shutil.copytree(ROOT / "src" / "holdfast", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for title, text in FILE.findall(PAGE):
        (copy / title).parent.mkdir(exist_ok=True)
        (copy / title).write_text(text, encoding="utf-8")
    with (copy / "lang" / "holdfast.lark").open("a", encoding="utf-8") as grammar:
        grammar.write("\n" + "\n".join(RULE.findall(PAGE)))
    registry = copy / "kinds" / "registry.py"
    text = registry.read_text(encoding="utf-8")
    for before, after in (("from . import ", "changes, "), ("for package in (", "changes, ")):
        assert text.count(before) == 1
        text = text.replace(before, before + after)
    registry.write_text(text, encoding="utf-8")
    return home


def drive(package: Path, folder: Path, *parts: str) -> dict[str, Any]:
    """Run parts of the driver with the copy of the package; their results."""
    done = subprocess.run(
        [sys.executable, str(DRIVER), *parts],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(ROOT / "tests")))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def results(package: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of the parts that need no Spark."""
    parts = ("language", "commands", "engine", "replay", "revision", "overlay", "mote")
    return drive(package, tmp_path_factory.mktemp("parts"), *parts)


def test_the_page_has_all_files_of_the_package() -> None:
    files = {title.removeprefix("kinds/changes/") for title, _ in FILE.findall(PAGE)}
    modules = {"__init__", "syntax", "condition", "check", "machine", "plan", "revise"}
    assert files == {f"{module}.py" for module in modules}
    assert len(RULE.findall(PAGE)) == 1


def test_a_new_kind_is_parsed_printed_and_checked(results: dict[str, Any]) -> None:
    language = results["language"]
    assert language["equal"]
    assert language["shown"].endswith("changes Moved on Door of open\n")
    assert "topic 'Door' has no 'opn'" in language["error"]
    assert "Did you mean 'open'?" in language["error"]


def test_the_commands_test_explain_and_check_accept_a_new_kind(results: dict[str, Any]) -> None:
    assert results["commands"] == [0, 0, 0]


@pytest.mark.parametrize("part", ["engine", "replay", "overlay"])
def test_a_new_kind_gives_the_same_notifications_everywhere(results: dict[str, Any], part: str) -> None:
    assert results[part] == EXPECTED


def test_a_mote_runs_a_new_kind(results: dict[str, Any]) -> None:
    assert len(results["mote"]["engine"]) > 3
    assert results["mote"]["told"] == results["mote"]["engine"]


def test_a_revision_restarts_a_new_kind_or_rebuilds_it_from_the_history(results: dict[str, Any]) -> None:
    restarted, rebuilt = results["revision"]
    assert restarted == []
    assert [row[:4] for row in rebuilt] == [["Moved", "a", "atomic", 3]]


def test_a_new_kind_satisfies_the_laws_of_machines(package: Path, tmp_path: Path) -> None:
    assert len(drive(package, tmp_path, "laws")["laws"]) > 10


def test_a_new_kind_runs_on_spark(package: Path, tmp_path: Path) -> None:
    """Batch, streaming, and streaming after a revision."""
    session()  # skips the test where there is no Java
    results = drive(package, tmp_path, "spark_batch", "spark_streaming")
    assert results["spark_batch"] == EXPECTED
    before, after = results["spark_streaming"]
    assert before == EXPECTED
    assert [row[:4] for row in after] == [["Moved", "a", "atomic", 63]]
