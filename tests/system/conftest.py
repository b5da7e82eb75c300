"""The command line, run in this process as ``holdfast.cli.main`` runs it: output, messages, exit status."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.cli import main


@dataclass
class Ran:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The notifications, without their ids."""
        assert self.status == 0, self.err
        return [
            {name: value for name, value in json.loads(line).items() if name != "id"}
            for line in self.out.splitlines()
        ]


Command = Callable[..., Ran]


def run(*arguments: str | Path) -> Ran:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    status = 0
    argv = ["holdfast", *map(str, arguments)]
    with patch.object(sys, "argv", argv), patch.object(sys, "stdout", out), patch.object(sys, "stderr", err):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    found = []
    for stream in (out, err):
        stream.flush()
        found.append(stream.buffer.getvalue().decode("utf-8"))
    return Ran(status, *found)


@pytest.fixture(scope="session")
def holdfast() -> Command:
    return run
