"""Studies: where their cells run, and that they go on where they stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from holdfast_lab.experiments.study import StoredRuns, conduct, on_engine

CELLS = {f"round {i}": {10 * i + j: 10 * i + j for j in range(3)} for i in range(2)}


def quiet(_: str) -> None:
    pass


def test_a_killed_study_continues_with_its_last_cell(tmp_path: Path) -> None:
    """The killed run was in the middle of its second round, and ended by SIGKILL."""
    stored = tmp_path / "runs.json"
    code = f"import test_study; test_study.run_study({str(stored)!r}, dies=11)"
    there = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    found = subprocess.run([sys.executable, "-c", code], env=os.environ | there, capture_output=True)
    assert found.returncode == -signal.SIGKILL, found.stderr
    ran, result = run_study(str(stored))
    assert ran == [11, 12]
    assert result == {cell: cell * cell for cell in (0, 1, 2, 10, 11, 12)}


def run_study(path: str, dies: int | None = None) -> tuple[list[int], dict[int, int]]:
    """Which cells were run, and what all of them gave."""
    ran: list[int] = []

    def square(cell: int) -> int:
        if cell == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        ran.append(cell)
        return cell * cell

    return ran, conduct(square, CELLS, quiet, StoredRuns(Path(path), int))


def test_the_engine_is_the_requested_one_or_the_studys_own() -> None:
    used: list[str] = []

    def own(function, cells):
        used.append("own")
        return [function(cell) for cell in cells]

    conduct(abs, CELLS, quiet, spread=own)
    with on_engine("local"):
        assert conduct(abs, CELLS, quiet, spread=own)[12] == 12
        with on_engine(None):
            conduct(abs, CELLS, quiet, spread=own)
    assert used == ["own"] * 4
