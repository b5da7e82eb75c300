"""Where the values of one attribute lie, in order.

The thesis keeps six sorted collections for each attribute, one for each operator [B24].  Here an item
has one entry, from its lowest cut to its highest: single values are sorted by where they lie, others
by both of their ends, and the shorter of the two stretches that can hold an answer is looked through.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .content import Contents
from .ranges import Cut, Values

Entry = tuple[Cut, int]
"""Where an end lies, and the number of the item."""


class Stretch(NamedTuple):
    """Part of a sorted list."""

    entries: list[Entry]
    begin: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.begin)

    def numbers(self) -> Iterator[int]:
        """The items whose entries these are."""
        return (self.entries[i][1] for i in range(self.begin, self.end))


@dataclass(slots=True)
class Shelf:
    """The entries of one attribute on one line."""

    points: list[Entry] = field(default_factory=list)
    lows: list[Entry] = field(default_factory=list)
    highs: list[Entry] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.points or self.lows)

    def add(self, number: int, values: Values) -> None:
        for entries, cut in self._places(values):
            insort(entries, (cut, number))

    def remove(self, number: int, values: Values) -> None:
        for entries, cut in self._places(values):
            del entries[bisect_left(entries, (cut, number))]

    def _places(self, values: Values) -> list[tuple[list[Entry], Cut]]:
        low, high = values[0].low, values[-1].high
        return [(self.points, low)] if _is_one(values) else [(self.lows, low), (self.highs, high)]

    def candidates(self, asked: Values, contents: Contents) -> list[Stretch]:
        """The entries that may lie so to some values; every one that does is among them."""
        low, high = asked[0].low, asked[-1].high
        inside = Stretch(self.points, _left(self.points, low), _left(self.points, high))
        match contents:
            case "superset":
                return [inside, Stretch(self.lows, _left(self.lows, low), _left(self.lows, high))]
            case "intersection":
                return [inside, self._around(_right(self.highs, low), _left(self.lows, high))]
            case "subset":
                around = self._around(_left(self.highs, high), _right(self.lows, low))
                return [inside, around] if _is_one(asked) else [around]

    def _around(self, begin: int, end: int) -> Stretch:
        """What ends late enough, or what begins early enough: whichever is less."""
        late = Stretch(self.highs, begin, len(self.highs))
        early = Stretch(self.lows, 0, end)
        return early if early.size <= late.size else late


def _left(entries: list[Entry], cut: Cut) -> int:
    return bisect_left(entries, cut, key=_cut)


def _right(entries: list[Entry], cut: Cut) -> int:
    return bisect_right(entries, cut, key=_cut)


def _cut(entry: Entry) -> Cut:
    return entry[0]


def _is_one(values: Values) -> bool:
    return len(values) == 1 and values[0].is_one
