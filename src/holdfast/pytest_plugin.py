"""A pytest plugin that runs each case of a definition as a test: ``pytest doors.hf``, or a folder of
definitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .definition.check import check
from .definition.parse import load
from .errors import HoldfastError
from .lang.condition import Checked
from .lang.ops import Case
from .runtimes.local.cases import outcomes


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect definitions wherever pytest collects tests."""
    return DefinitionFile.from_parent(parent, path=file_path) if file_path.suffix == ".hf" else None


class DefinitionFile(pytest.File):
    """A file with a definition."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the cases of the definition."""
        checked = check(load(self.path))
        for case in checked.cases:
            yield CaseItem.from_parent(self, name=case.name, checked=checked, case=case)

    def repr_failure(self, excinfo: Any, *rest: Any) -> Any:
        """Format an error in the definition without a traceback."""
        if isinstance(excinfo.value, HoldfastError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest)


class FailedCase(AssertionError):
    """A case whose expectations are not met."""


class CaseItem(pytest.Item):
    """A case as a pytest item."""

    def __init__(self, *, checked: Checked, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self._checked, self._case = checked, case

    def runtest(self) -> None:
        """Run the case and check every expectation."""
        wrong = [str(outcome) for outcome in outcomes(self._checked, self._case) if not outcome.holds]
        if wrong:
            raise FailedCase("\n".join(wrong))

    def repr_failure(self, excinfo: Any, *rest: Any) -> Any:
        """Format what was expected, and what was emitted."""
        if isinstance(excinfo.value, FailedCase):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The place of the case."""
        at = self._case.at
        return self.path, at.line - 1 if at else None, f'case "{self.name}"'
