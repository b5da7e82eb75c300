"""Folds become operations."""

from __future__ import annotations

from typing import Any

from ..nodes import as_tree, coordinate_of, label_of, levels, place, signed, word_of
from ..ops import Fold


def fold(parts: list[Any]) -> Fold:
    """``fold Storm = Heat scope floors within building beyond 3``."""
    name, over, cells, most, fewer = parts
    side, widest, scope = None, None, ()
    if cells.data == "squares":
        side, widest = map(coordinate_of, as_tree(cells).children)
    else:
        scope = levels(as_tree(cells).children[0])
    return Fold(
        label_of(name),
        word_of(over),
        signed([None, most]),
        scope,
        side,
        widest,
        None if fewer is None else signed([None, fewer]),
        place(name),
    )
