"""The items of a large table as boxes of floats, to find the items that may contain a box or lie within it.

Numbers become the nearest float, and texts the number that their first bytes form. Both conversions preserve
the order, and therefore containment, so the search returns a superset. The caller compares each result
exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from math import inf

import numpy as np

from .boxes import Boxes, BoxRanges, Floats, Numbers
from .content import Box
from .ranges import Cut, Line, ValueRange, line

MOST_ATTRIBUTES = 64
"""The greatest number of attributes in the index. Items that have only other attributes are always
returned.
"""

LEADING = 6
"""The number of leading bytes of a text that a float represents exactly as a number."""

LARGEST = sys.float_info.max

Place = tuple[str, Line]


class BoxColumns:
    """Items by number; each item is a box without empty fields."""

    def __init__(self, items: Mapping[int, Box]) -> None:
        places = dict.fromkeys(place for box in items.values() for place in _places_of(box))
        self._attributes = {place: i for i, place in enumerate(islice(places, MOST_ATTRIBUTES))}
        self._boxes = Boxes(len(self._attributes))
        self._items: dict[int, int] = {}
        self._stored: dict[int, int] = {}
        self.add(items)

    def fits(self, box: Box) -> bool:
        """Return whether all attributes of a box are indexed, or the index cannot take further attributes."""
        full = len(self._attributes) == MOST_ATTRIBUTES
        return full or all(place in self._attributes for place in _places_of(box))

    def add(self, items: Mapping[int, Box]) -> None:
        """Insert items, each under its number."""
        rows = [self._ends(box) for box in items.values()]
        width = max(map(len, rows), default=0) or 1
        ends = np.zeros((len(rows), width, 3))
        for i, row in enumerate(rows):
            ends[i, : len(row)] = row or ends[i, :0]
        sizes = [len(row) for row in rows]
        numbers = self._boxes.insert(BoxRanges.of(ends[..., 0], ends[..., 1], ends[..., 2], sizes)).tolist()
        self._items |= zip(numbers, items, strict=True)
        self._stored |= zip(items, numbers, strict=True)

    def remove(self, item: int) -> None:
        """Delete the item with a number."""
        number = self._stored.pop(item)
        del self._items[number]
        self._boxes.delete([number])

    def containing(self, box: Box) -> Iterator[int]:
        """Yield a superset of the items that contain a box."""
        corners = self._corners(box)
        if np.array_equal(corners[0], corners[1], equal_nan=True):
            return self._found(self._boxes.match(corners[:1]).numbers)
        matches = self._boxes.match(corners)
        return self._found(np.intersect1d(matches.of(0), matches.of(1)))

    def within(self, box: Box) -> Iterator[int]:
        """Yield a superset of the items that lie within a box."""
        return self._found(self._boxes.within(*self._corners(box)))

    def _found(self, numbers: Numbers) -> Iterator[int]:
        return (self._items[number] for number in numbers.tolist())

    def _corners(self, box: Box) -> Floats:
        """Return the lowest and the highest point of a box; NaN where it has no constraint."""
        corners = np.full((2, len(self._attributes)), np.nan)
        for attribute, low, high in self._ends(box):
            corners[:, attribute] = low, high
        return corners

    def _ends(self, box: Box) -> list[tuple[int, float, float]]:
        """Return attribute number, lowest and highest value of each indexed attribute of a box."""
        return [
            (self._attributes[place], _number(values[0], values[0].low), _number(values[-1], values[-1].high))
            for place, values in zip(_places_of(box), box.values(), strict=True)
            if place in self._attributes
        ]


def _places_of(box: Box) -> Iterator[Place]:
    return ((name, line(values)) for name, values in box.items())


def _number(piece: ValueRange, cut: Cut) -> float:
    if piece.type == "text":
        end, text = cut
        return inf if end else float(int.from_bytes(_leading(text)))
    value = cut[0]
    if abs(value) <= LARGEST:
        return float(value)
    return inf if value > 0 else -inf


def _leading(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")[:LEADING].ljust(LEADING, b"\0")
