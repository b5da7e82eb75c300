"""The items of a large table as boxes of floats, to find those that may contain a box, or lie in it.

Numbers become the nearest float, texts the number that their first bytes make: both keep the order, so
what contains something still contains it afterwards.  What is found is to be compared exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from math import inf

import numpy as np

from .boxes import Boxes, Floats, Numbers, Ranges
from .content import Box
from .ranges import Cut, Line, Range, line

MOST_ATTRIBUTES = 64
"""Further attributes are not looked at; items that have only these are always found."""

LEADING = 6
"""So many bytes of a text make a number that a float holds exactly."""

LARGEST = sys.float_info.max

Place = tuple[str, Line]


class Columns:
    """Items by number, each a box without empty fields."""

    def __init__(self, items: Mapping[int, Box]) -> None:
        places = dict.fromkeys(place for box in items.values() for place in _places(box))
        self._attributes = {place: i for i, place in enumerate(islice(places, MOST_ATTRIBUTES))}
        self._boxes = Boxes(len(self._attributes))
        self._items: dict[int, int] = {}
        self._stored: dict[int, int] = {}
        self.add(items)

    def fits(self, box: Box) -> bool:
        """Whether it brings no attribute that should be looked at and is not."""
        full = len(self._attributes) == MOST_ATTRIBUTES
        return full or all(place in self._attributes for place in _places(box))

    def add(self, items: Mapping[int, Box]) -> None:
        """Store items."""
        rows = [self._ends(box) for box in items.values()]
        most = max(map(len, rows), default=0) or 1
        ends = np.zeros((len(rows), most, 3))
        for i, row in enumerate(rows):
            ends[i, : len(row)] = row or ends[i, :0]
        sizes = [len(row) for row in rows]
        numbers = self._boxes.insert(Ranges.of(ends[..., 0], ends[..., 1], ends[..., 2], sizes)).tolist()
        self._items |= zip(numbers, items, strict=True)
        self._stored |= zip(items, numbers, strict=True)

    def remove(self, item: int) -> None:
        """Forget an item."""
        number = self._stored.pop(item)
        del self._items[number]
        self._boxes.delete([number])

    def containing(self, asked: Box) -> Iterator[int]:
        """The items that may contain a box: every one that does is among them."""
        corners = self._corners(asked)
        if np.array_equal(corners[0], corners[1], equal_nan=True):
            return self._found(self._boxes.match(corners[:1]).numbers)
        matches = self._boxes.match(corners)
        return self._found(np.intersect1d(matches.of(0), matches.of(1)))

    def within(self, asked: Box) -> Iterator[int]:
        """The items that may lie in a box: every one that does is among them."""
        return self._found(self._boxes.within(*self._corners(asked)))

    def _found(self, numbers: Numbers) -> Iterator[int]:
        return (self._items[number] for number in numbers.tolist())

    def _corners(self, box: Box) -> Floats:
        """The lowest and the highest point of a box."""
        corners = np.full((2, len(self._attributes)), np.nan)
        for attribute, low, high in self._ends(box):
            corners[:, attribute] = low, high
        return corners

    def _ends(self, box: Box) -> list[tuple[int, float, float]]:
        """Attribute, lowest and highest value, for those that are looked at."""
        return [
            (self._attributes[place], _number(values[0], values[0].low), _number(values[-1], values[-1].high))
            for place, values in zip(_places(box), box.values(), strict=True)
            if place in self._attributes
        ]


def _places(box: Box) -> Iterator[Place]:
    return ((name, line(values)) for name, values in box.items())


def _number(piece: Range, cut: Cut) -> float:
    if piece.type == "text":
        end, text = cut
        return inf if end else float(int.from_bytes(_leading(text)))
    value = cut[0]
    if abs(value) <= LARGEST:
        return float(value)
    return inf if value > 0 else -inf


def _leading(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")[:LEADING].ljust(LEADING, b"\0")
