"""Folds become operations."""

from __future__ import annotations

from typing import Any

from ..nodes import as_tree, coordinate_of, label_of, levels, place, signed, word_of
from ..ops import Fold, Levels


def fold(parts: list[Any]) -> Fold:
    """``fold Storm = Heat scope floors within building beyond 3``."""
    name, over, cells, most, fewer = parts
    sides: list[float | None] = [None, None]
    scope: Levels = ()
    if cells.data == "squares":
        sides = [coordinate_of(side) for side in as_tree(cells).children]
    else:
        scope = levels(as_tree(cells).children[0])
    return Fold(
        label_of(name),
        word_of(over),
        signed([None, most]),
        scope,
        *sides,
        None if fewer is None else signed([None, fewer]),
        place(name),
    )
