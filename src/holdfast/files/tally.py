"""Counters of what was read, and the rejected rows with their reasons."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from ..errors import InputError
from .find import InputFile
from .whole import WholeFile

_NAMES_KEPT = 100
_TEXT_KEPT = 10_000


@dataclass(slots=True)
class Tally:
    """Counters of what was read.

    ``rows`` counts every row, also rejected ones. ``twice`` counts local times that occur twice where clocks
    are set back, and ``never`` those that do not exist where clocks are set forward.
    """

    rows: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    other_topics: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    twice: int = 0
    never: int = 0

    @property
    def used(self) -> int:
        """The number of rows that became events."""
        return self.rows - self.rejected.total() - self.other_topics.total()

    def other(self, topic: str, rows: int) -> None:
        """Count rows of a topic that is not declared. Only the first hundred names are counted separately."""
        known = topic in self.other_topics or len(self.other_topics) < _NAMES_KEPT
        self.other_topics[topic if known else "…"] += rows

    def add(self, other: Tally) -> None:
        """Add the counts of another tally to this one."""
        self.rows += other.rows
        self.bytes += other.bytes
        self.twice += other.twice
        self.never += other.never
        self.rejected.update(other.rejected)
        for topic, rows in other.other_topics.items():
            self.other(topic, rows)


class Rejects:
    """Writes rejected rows as JSON lines ``{"file", "row", "reason", "data"}``.

    ``row`` counts data rows from 1; in JSON lines it is the line. Without a path, rows are only counted. With
    ``strict`` the first rejected row is an error. Like every output, the file appears when the run is
    complete. It is empty if nothing was rejected.
    """

    def __init__(self, path: str | None = None, *, strict: bool = False) -> None:
        self.strict = strict
        self.first: str | None = None
        """Where the first one stands, why it cannot be used, and what it says."""
        self._whole = WholeFile(path) if path is not None else None

    @property
    def keeps(self) -> bool:
        """Whether rows are written, and not only counted."""
        return self._whole is not None

    def write(self, file: InputFile, row: int, reason: str, data: Any) -> None:
        """Reject one row: count it, and write it if there is a path. Raises an error if ``strict`` is set."""
        if self.first is None:
            self.first = f"{file.path}, row {row}: {reason}\n    {_line(data)[:300]}"
        if self.strict:
            remedy = "Correct the row, or run without --strict to put such rows aside."
            raise InputError(f"{self.first}\n  {remedy}")
        if self._whole is not None:
            entry = {"file": file.path, "row": row, "reason": reason, "data": shorten(data)}
            self._whole.file.write(_line(entry).encode("utf-8", "replace") + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._whole is not None:
            self._whole.__exit__(kind, error, trace)


def shorten(data: Any) -> Any:
    """Return the content of a row, cut to the length that is written."""
    return data[:_TEXT_KEPT] if isinstance(data, str) else data


def _line(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
