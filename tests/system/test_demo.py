"""``holdfast demo`` where parts are missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.patience import PATIENCE

WITHOUT = """
import sys
sys.modules["pyspark"] = None  # as after a plain install
from holdfast.cli import main
sys.argv = ["holdfast", "demo", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("arguments", [(), ("--engine", "spark")])
def test_after_a_plain_install_the_demo_names_missing_parts_and_runs_locally(arguments):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert "The live query needs pyspark; install holdfast[spark]" in done.stderr
    assert "the same day in this process" in done.stderr
    here = subprocess.run(
        [sys.executable, "-m", "holdfast", "demo", "--engine", "local"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout == here.stdout
