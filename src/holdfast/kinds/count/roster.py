"""Expected members of a count. A CSV file beside the definition lists them with their groups."""

from __future__ import annotations

from ...errors import DefinitionError
from ...model.folder import Folder
from ...model.scope import join_values
from ...model.space import Forest
from ..checks import roster_rows
from .syntax import DefineCount

Member = tuple[str, tuple[str, ...] | str | None]
"""A member, and the values or the region of its group."""


def roster(
    statement: DefineCount,
    keys: tuple[str, ...],
    within: tuple[str, ...],
    forest: Forest | None,
    folder: Folder,
) -> tuple[Member, ...] | None:
    """Return each expected member as the label of its scope, with its group; `None` without a roster.

    `keys` are the keys of the counted condition, `within` the keys of groups.
    """
    if statement.roster is None:
        return None

    def wrong(message: str, hint: str | None = None) -> DefinitionError:
        return DefinitionError(f'roster "{statement.roster}": {message}', statement.at, hint=hint)

    keys = keys or ("source",)
    found: dict[str, tuple[str, ...] | str | None] = {}
    columns = (*keys, *within, *(("place",) if forest is not None else ()))
    for number, cells in roster_rows(folder / statement.roster, columns, wrong):
        member, group = join_values(cells[: len(keys)]), cells[len(keys) :]
        if member in found:
            raise wrong(f"'{member}' stands there twice, again in row {number}")
        found[member] = group or None
        if forest is not None:
            region = forest.by_place.get(cells[-1], -1)
            found[member] = None if region < 0 else forest.regions[region].name
    return tuple(found.items())
