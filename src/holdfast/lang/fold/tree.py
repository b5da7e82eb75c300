"""Folds become operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..nodes import as_tree, coordinate_of, label_of, levels, place, signed, word_of
from ..ops import Fold, Levels

if TYPE_CHECKING:
    from lark import Token, Tree


def fold(parts: list[Any]) -> Fold:
    """``fold Storm = Heat scope floors within building beyond 3``."""
    name, over, cells, most, fewer = parts
    side, widest, scope = _cells(as_tree(cells))
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


def _cells(node: Tree[Token]) -> tuple[float | None, float | None, Levels]:
    """The sides of squares, or the levels of regions."""
    if node.data == "regions":
        return None, None, levels(node.children[0])
    side, widest = map(coordinate_of, node.children)
    return side, widest, ()
