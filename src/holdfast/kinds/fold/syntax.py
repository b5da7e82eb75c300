"""The statement of folds: its class, parser and printer. A new clause needs a line in each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...errors import Place
from ...lang.nodes import as_tree, coordinate_of, label_of, levels, number_of, place, word_of
from ...lang.ops import DerivedStatement, Levels, Number
from ...lang.show import label, show_coordinate, show_expression, show_levels

if TYPE_CHECKING:
    from lark import Token, Tree


@dataclass(frozen=True, slots=True)
class DefineFold(DerivedStatement):
    """The statement ``fold Storm = Heat scope floors within building beyond 3``.

    It reports the surrounding cell in place of more than 3 active siblings. Cells are regions, or squares
    such as ``cells 10 m within 160 m``.
    """

    name: str
    over: str
    most: Number
    scope: Levels = ()
    side: float | None = None
    widest: float | None = None
    fewer: Number | None = None
    at: Place | None = field(default=None, compare=False, repr=False)

    @property
    def upstreams(self) -> tuple[str, ...]:
        return (self.over,)

    def map_scopes(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> DefineFold:
        return replace(self, scope=tuple(map(change, self.scope)))


def show_fold(fold: DefineFold) -> str:
    """Return ``fold Storm = Heat scope floors within building beyond 3`` as text."""
    cells = f"scope {show_levels(fold.scope)}"
    if fold.side is not None and fold.widest is not None:
        cells = f"cells {show_coordinate(fold.side)} m within {show_coordinate(fold.widest)} m"
    fewer = "" if fold.fewer is None else f" until fewer than {show_expression(fold.fewer)}"
    head = f"fold {label(fold.name)} = {label(fold.over)} {cells}"
    return f"{head} beyond {show_expression(fold.most)}{fewer}"


def read_fold(parts: list[Any]) -> DefineFold:
    """Parse ``fold Storm = Heat scope floors within building beyond 3``."""
    name, over, cells, most, fewer = parts
    side, widest, scope = _cells(as_tree(cells))
    return DefineFold(
        label_of(name),
        word_of(over),
        number_of([None, most]),
        scope,
        side,
        widest,
        None if fewer is None else number_of([None, fewer]),
        place(name),
    )


def _cells(node: Tree[Token]) -> tuple[float | None, float | None, Levels]:
    """Return the sides of squares in metres, or the levels of regions."""
    if node.data == "regions":
        return None, None, levels(node.children[0])
    side, widest = map(coordinate_of, node.children)
    return side, widest, ()
