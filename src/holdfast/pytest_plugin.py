"""A pytest plugin that runs each case of a definition as a test.

Use it with ``pytest doors.hf``, or with a folder of definitions.
"""

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
    """Return a collector for a definition (``.hf``), or ``None`` for any other file.

    pytest calls this function for each file.
    """
    return DefinitionFile.from_parent(parent, path=file_path) if file_path.suffix == ".hf" else None


class DefinitionFile(pytest.File):
    """A definition file, whose cases pytest collects as tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test item for each case of the definition."""
        checked = check(load(self.path))
        for case in checked.cases:
            yield CaseItem.from_parent(self, name=case.name, checked=checked, case=case)

    def repr_failure(self, excinfo: Any, *rest: Any) -> Any:
        """Format an error in the definition without a traceback."""
        if isinstance(excinfo.value, HoldfastError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest)


class FailedCase(AssertionError):
    """Raised when the notifications of a case differ from its expectations.

    The message lists the differences.
    """


class CaseItem(pytest.Item):
    """A pytest item that runs one case of a definition."""

    def __init__(self, *, checked: Checked, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self._checked, self._case = checked, case

    def runtest(self) -> None:
        """Run the case. Raises ``FailedCase`` if an expectation is not met."""
        wrong = [str(outcome) for outcome in outcomes(self._checked, self._case) if not outcome.holds]
        if wrong:
            raise FailedCase("\n".join(wrong))

    def repr_failure(self, excinfo: Any, *rest: Any) -> Any:
        """Format a failed case as expected and actual notifications, without a traceback."""
        if isinstance(excinfo.value, FailedCase):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where pytest reports the case: its file, the line from 0, and the title."""
        at = self._case.at
        return self.path, at.line - 1 if at else None, f'case "{self.name}"'
