"""An example out of the package is whole, right, and does not overwrite what is yours."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import holdfast as hf
from holdfast.cli import app
from holdfast.errors import UsageError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_example_is_copied_into_a_folder_and_its_cases_and_readings_agree() -> None:
    emitted = CliRunner().invoke(app, ["example", "traffic"])
    assert emitted.exit_code == 0, emitted.output
    assert "holdfast replay traffic/traffic.hf --input traffic/readings.csv --as timeline" in emitted.output
    definition = hf.load("traffic/traffic.hf")
    assert all(outcome.holds for outcome in hf.cases(definition))
    held = hf.replay(definition, "traffic/readings.csv").intervals()
    assert [one.scope for one in held if one.subscription == "Congestion"] == ["north", "bridge"]
    (jam,) = (one for one in held if one.subscription == "Jammed")
    assert jam.duration == 360.000001  # six minutes, and just after a mean has changed


def test_existing_files_of_the_user_are_not_overwritten() -> None:
    Path("traffic").mkdir()
    Path("traffic/traffic.hf").write_text("mine")
    emitted = CliRunner().invoke(app, ["example", "traffic"])
    assert isinstance(emitted.exception, UsageError)
    assert Path("traffic/traffic.hf").read_text() == "mine"
    assert not Path("traffic/readings.csv").exists()
    assert CliRunner().invoke(app, ["example", "traffic", "--into", "other"]).exit_code == 0
    assert CliRunner().invoke(app, ["example", "traffic", "--into", "other"]).exit_code == 0


def test_the_command_lists_examples_and_suggests_the_nearest_for_an_unknown_name() -> None:
    assert "holdfast example traffic" in CliRunner().invoke(app, ["example"]).output
    emitted = CliRunner().invoke(app, ["example", "trafic"])
    assert "Did you mean 'traffic'?" in str(emitted.exception)
