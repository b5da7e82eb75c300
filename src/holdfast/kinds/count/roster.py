"""Expected members of a count, read from a file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from ...errors import DefinitionError, did_you_mean
from ...model.folder import Folder
from ...model.scope import join_values
from ...model.space import Forest
from .syntax import DefineCount

Member = tuple[str, tuple[str, ...] | str | None]
"""A member, and the values or the region of the group that it belongs to."""


def roster(
    statement: DefineCount,
    keys: tuple[str, ...],
    within: tuple[str, ...],
    forest: Forest | None,
    folder: Folder,
) -> tuple[Member, ...] | None:
    """Each expected member by its scope's label, with the group that it belongs to."""
    if statement.roster is None:
        return None

    def wrong(message: str, hint: str | None = None) -> DefinitionError:
        return DefinitionError(f'roster "{statement.roster}": {message}', statement.at, hint=hint)

    wanted = (*(keys or ("source",)), *within, *(("place",) if forest is not None else ()))
    header, rows = _rows(folder / statement.roster, wrong)
    if missing := [name for name in wanted if name not in header]:
        has = ", ".join(header) or "nothing"
        raise wrong(f"has no column '{missing[0]}'; it has {has}", did_you_mean(missing[0], header))
    found: dict[str, tuple[str, ...] | str | None] = {}
    for number, row in enumerate(rows, 2):
        cells = dict(zip(header, (cell.strip() for cell in row), strict=False))
        if empty := [name for name in wanted if not cells.get(name)]:
            raise wrong(f"row {number} has no {empty[0]}")
        member = join_values([cells[name] for name in keys or ("source",)])
        if member in found:
            raise wrong(f"'{member}' stands there twice, again in row {number}")
        found[member] = _scope(cells, within, forest)
    return tuple(found.items())


def _scope(
    cells: dict[str, str], within: tuple[str, ...], forest: Forest | None
) -> tuple[str, ...] | str | None:
    if forest is not None:
        at = forest.by_place.get(cells["place"], -1)
        return None if at < 0 else forest.regions[at].name
    return tuple(cells[name] for name in within) if within else None


def _rows(path: Path, wrong: Callable[[str], DefinitionError]) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise wrong(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    header, *rest = rows or [[]]
    return [name.strip() for name in header], rest
