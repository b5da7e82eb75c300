"""For pytest: each case of a definition is a test.  ``pytest doors.hf``, or a folder that holds some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .errors import HoldfastError
from .lang.check import check
from .lang.condition import Checked
from .lang.ops import Case
from .lang.parse import load
from .runtimes.local.cases import outcomes


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Definitions are collected wherever pytest looks for tests."""
    return Definition.from_parent(parent, path=file_path) if file_path.suffix == ".hf" else None


class Definition(pytest.File):
    """A file of definitions."""

    def collect(self) -> Iterator[pytest.Item]:
        """Its cases; one without cases has no tests."""
        checked = check(load(self.path))
        for case in checked.cases:
            yield CaseItem.from_parent(self, name=case.name, checked=checked, case=case)

    def repr_failure(self, excinfo: Any, *rest: Any) -> Any:
        """What is wrong with the definition, without a traceback of ours."""
        if isinstance(excinfo.value, HoldfastError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest)


class Failed(AssertionError):
    """A case that does not hold."""


class CaseItem(pytest.Item):
    """A case."""

    def __init__(self, *, checked: Checked, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self._checked, self._case = checked, case

    def runtest(self) -> None:
        """Every expectation holds."""
        wrong = [str(outcome) for outcome in outcomes(self._checked, self._case) if not outcome.holds]
        if wrong:
            raise Failed("\n".join(wrong))

    def repr_failure(self, excinfo: Any, *rest: Any) -> Any:
        """What was expected, and what came."""
        if isinstance(excinfo.value, Failed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the case stands."""
        at = self._case.at
        return self.path, at.line - 1 if at else None, f'case "{self.name}"'
