"""Labels: the true intervals of a condition, recorded by people, as a reference for advice."""

from __future__ import annotations

import csv
from datetime import UTC, tzinfo
from pathlib import Path

from ..errors import InputError, UsageError
from ..model.instant import Instant, parse_instant

COLUMNS = ("scope", "start", "end")


def read_labels(path: Path, zone: tzinfo = UTC) -> dict[str | None, list[tuple[Instant, Instant]]]:
    """Read the intervals of each scope from a CSV file.

    Without a column ``scope`` they apply to all scopes.
    """
    found: dict[str | None, list[tuple[Instant, Instant]]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if missing := {"start", "end"} - set(rows.fieldnames or ()):
                raise InputError(
                    f"{path}: no column {' and '.join(sorted(missing))}; labels have {', '.join(COLUMNS)}"
                )
            for row in rows:
                try:
                    start, end = (parse_instant(row[name] or "", zone) for name in ("start", "end"))
                except ValueError as error:
                    raise InputError(
                        f"{path}, line {rows.line_num}: {error}; write 2026-01-31T06:00"
                    ) from None
                if end < start:
                    raise InputError(f"{path}, line {rows.line_num}: it ends before it starts")
                found.setdefault(row.get("scope") or None, []).append((start, end))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text") from error
    if not found:
        raise InputError(f"{path} has no labels; a line is a scope, a start and an end")
    return found
