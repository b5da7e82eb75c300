"""The help texts of the commands."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from holdfast.cli import COMMANDS, app

NAMES = [[], *([command.__name__] for command in COMMANDS), ["dds"], ["dds", "write"], ["dds", "read"]]


@pytest.mark.parametrize("name", NAMES, ids=" ".join)
def test_the_help_of_a_flag_shows_no_type(name: list[str]) -> None:
    emitted = CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "200"})
    assert emitted.exit_code == 0
    assert "--help" in emitted.output
    assert "<bool>" not in emitted.output
    assert "BOOLEAN" not in emitted.output
