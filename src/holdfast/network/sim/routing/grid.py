"""ID-based routing on a grid: the next hop follows from two numbers, without tables or control packets.

Nodes are numbered row by row from 0, and all eight neighbours are in range [D52]. The eight rules are those
of the thesis, in its order. A route first goes diagonally, then straight, in max(Δrow, Δcolumn) hops [D53].
"""

from __future__ import annotations

from functools import lru_cache

from ..frame import NodeId

_ANY = None
RULES: tuple[tuple[str, int | None, int | None, bool, tuple[int, int]], ...] = (
    # column, row: position of the destination (0 the same, 1 after, -1 before); whether its id is larger
    ("a", 0, _ANY, True, (1, 0)),
    ("b", 0, _ANY, False, (-1, 0)),
    ("c", _ANY, 0, True, (0, 1)),
    ("d", _ANY, 0, False, (0, -1)),
    ("e", 1, _ANY, True, (1, 1)),
    ("f", 1, _ANY, False, (-1, 1)),
    ("g", -1, _ANY, True, (1, -1)),
    ("h", -1, _ANY, False, (-1, -1)),
)
"""The eight rules. Each has a letter, a test on column, row and id, and a step in rows and columns."""


@lru_cache(1 << 16)
def next_hop(here: NodeId, destination: NodeId, columns: int) -> NodeId:
    """Return the next node by the first rule that applies.

    >>> next_hop(5, 15, columns=4), next_hop(12, 3, columns=4), next_hop(14, 15, columns=4)
    (10, 9, 15)
    """
    row, column = divmod(here, columns)
    to_row, to_column = divmod(destination, columns)
    beside, below, larger = _sign(to_column - column), _sign(to_row - row), destination > here
    for _, want_beside, want_below, want_larger, (down, right) in RULES:
        if want_beside in (_ANY, beside) and want_below in (_ANY, below) and want_larger == larger:
            return here + down * columns + right
    raise AssertionError(f"no rule leads from {here} to {destination}")


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def candidates(here: NodeId, destination: NodeId, rows: int, columns: int) -> list[NodeId]:
    """Return all neighbours: first the choice of the rules, then by the number of remaining hops. [D54]"""
    chosen = next_hop(here, destination, columns)
    row, column = divmod(here, columns)
    around = [
        r * columns + c
        for r in range(max(row - 1, 0), min(row + 2, rows))
        for c in range(max(column - 1, 0), min(column + 2, columns))
        if (r, c) != (row, column)
    ]
    return sorted(around, key=lambda node: (node != chosen, hops(node, destination, columns), node))


def hops(a: NodeId, b: NodeId, columns: int) -> int:
    """Return the number of hops between two nodes. A diagonal counts as one hop."""
    (row, column), (to_row, to_column) = divmod(a, columns), divmod(b, columns)
    return max(abs(to_row - row), abs(to_column - column))
