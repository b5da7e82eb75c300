"""Checking of states with guards, silence, or a beginning of their own."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ..errors import DefinitionError, did_you_mean
from ..model.folder import Folder
from ..model.guard import PLAIN
from ..model.space import Gazetteer
from ..model.table import Table
from .condition import Condition, Guarded
from .ops import Subscribe, place_of
from .rewrite import silences
from .tables import Row, expected

MOST_SILENCES = 7
"""How many silences one state may tell apart."""


def guarded(
    statement: Subscribe, checked: Condition, known: Gazetteer, folder: Folder, tables: Mapping[str, Table]
) -> Condition | Guarded:
    """The condition as it is, or with what it says beside its predicates."""
    lengths = {*silences(checked.enter), *silences(checked.exit)}
    if statement.care == PLAIN and not lengths:
        return checked
    _require_sense(statement, checked)
    if len(lengths) > MOST_SILENCES:
        message = f"'{statement.name}' tells {len(lengths)} silences apart; {MOST_SILENCES} are possible"
        raise DefinitionError(message, statement.at)
    return Guarded(
        checked.name,
        checked.topic,
        checked.enter,
        checked.exit,
        checked.keys,
        checked.forest,
        checked.delivery,
        statement.care,
        _roster(statement, checked, known, folder, tables),
        checked.tables,
    )


def _require_sense(statement: Subscribe, checked: Condition) -> None:
    """Refuse what cannot be meant."""
    care = statement.care
    if checked.momentary:
        raise DefinitionError(
            f"'{statement.name}' is over as it starts: guards and silence are of states that last",
            statement.exit.at or statement.at,
            hint="Give it an exit, as in [value > 25 for 5 min; value < 22]",
        )
    if len(checked.keys) + (checked.forest.depth if checked.forest else 0) > 1:
        raise DefinitionError(
            f"'{statement.name}' has scopes within scopes: guards and silence are of one level",
            statement.at,
            hint=_instead(statement.name, checked),
        )
    if care.forget is not None and care.unknown is not None and care.forget < care.unknown:
        raise DefinitionError(
            f"'{statement.name}' would forget a scope before it is unknown",
            statement.at,
            hint="Let 'forget after' be the longer one.",
        )


def _instead(name: str, checked: Condition) -> str:
    """What to write for scopes within scopes.  What time starts in one of them has no place among the
    readings of the others: whoever is above must wait for a moment to be over, and that a count does."""
    inner, above = "its innermost scopes", "scope …"
    if len(checked.keys) > 1:
        inner = f"'per {', '.join((*checked.keys[0], *checked.keys[1]))}'"
        above = f"within {', '.join(checked.keys[1])}"
    return (
        f"Define '{name}Inner' with them for {inner}, and count it: "
        f"'state {name} = at least 1 of {name}Inner {above}', which ends with the last of them."
    )


# --- rosters -----------------------------------------------------------------------------------------


def _roster(
    statement: Subscribe, checked: Condition, known: Gazetteer, folder: Folder, tables: Mapping[str, Table]
) -> tuple[Row, ...]:
    """The values of the keys of the scopes that are expected."""
    roster = statement.care.roster
    if roster is None:
        return ()
    if not checked.keys and checked.forest is None:
        raise DefinitionError(
            f"'{statement.name}' has one scope for everything, so there is nobody to expect",
            statement.at,
            hint="Add 'per source' to have one for each source.",
        )
    columns = checked.keys[0] if checked.keys else ("place",)
    if roster.table is not None:
        rows = tuple(expected(roster.table, columns, tables, place_of(roster.table, statement.at)))
    elif roster.path is None:
        rows = _of_gazetteer(statement, checked, columns, known)
    else:
        rows = _of_file(statement, columns, folder / roster.path)
    if checked.forest is not None:
        names = [region.name for region in checked.forest.regions]
        for (name,) in rows:
            if name not in names:
                message = f"the roster of '{statement.name}' names '{name}', which is no scope of it"
                raise DefinitionError(message, statement.at, hint=did_you_mean(name, names))
    return rows


def _of_gazetteer(
    statement: Subscribe, checked: Condition, columns: Row, known: Gazetteer
) -> tuple[Row, ...]:
    if checked.forest is not None:
        return tuple((region.name,) for region in checked.forest.regions)
    listed: dict[Row, dict[str, None]] = {
        ("source",): dict.fromkeys(source for region in known.regions for source in region.sources),
        ("place",): dict.fromkeys(known.by_name),
    }
    found = listed.get(columns)
    if not found:
        said = "lists no sources" if columns == ("source",) else f"knows nothing of {', '.join(columns)}"
        message = f"the gazetteer {said}, so '{statement.name}' has no roster there"
        raise DefinitionError(message, statement.at, hint='Give it a file: roster "sensors.csv"')
    return tuple((name,) for name in found)


def _of_file(statement: Subscribe, columns: Row, path: Path) -> tuple[Row, ...]:
    """The rows of a CSV file: of the columns that have the names of the keys, or of its only one."""

    def wrong(message: str, hint: str | None = None) -> DefinitionError:
        return DefinitionError(f'roster "{path.name}": {message}', statement.at, hint=hint)

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise wrong(f"cannot be read: {reason}") from None
    header = [name.strip() for name in header]
    if missing := [name for name in columns if name not in header]:
        has = ", ".join(header) or "nothing"
        raise wrong(f"has no column '{missing[0]}'; it has {has}", did_you_mean(missing[0], header))
    at = [header.index(name) for name in columns]
    found: list[Row] = []
    for number, row in enumerate(rows, 2):
        cells = tuple(row[i].strip() if i < len(row) else "" for i in at)
        if not all(cells):
            raise wrong(f"row {number} has no {columns[cells.index('')]}")
        found.append(cells)
    if twice := [row for row, times in Counter(found).items() if times > 1]:
        raise wrong(f"'{', '.join(twice[0])}' stands there twice")
    return tuple(found)
