"""Sorted index of the values that stored items allow for one attribute.

The thesis uses six sorted collections for each attribute, one for each operator [B24]. Here an item has one
entry, from its lowest cut to its highest. Single values are sorted by position, ranges by both of their ends.
A search scans the shorter of the two slices that can contain a match.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .content import Contents
from .ranges import Cut, Values

Entry = tuple[Cut, int]
"""The cut at one end of an item's values, and the number of the item."""


class EntrySlice(NamedTuple):
    """A slice of a sorted list of entries."""

    entries: list[Entry]
    begin: int
    end: int

    @property
    def size(self) -> int:
        """The number of entries in the slice."""
        return max(0, self.end - self.begin)

    def item_numbers(self) -> Iterator[int]:
        """Yield the numbers of the items in the slice."""
        return (self.entries[i][1] for i in range(self.begin, self.end))


@dataclass(slots=True)
class AttributeIndex:
    """The entries of one attribute for one `Line` of comparable values (number, text or bool)."""

    points: list[Entry] = field(default_factory=list)
    lows: list[Entry] = field(default_factory=list)
    highs: list[Entry] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.points or self.lows)

    def add(self, number: int, values: Values) -> None:
        """Insert the values that an item allows, under the item's number."""
        for entries, cut in self._entries_of(values):
            insort(entries, (cut, number))

    def remove(self, number: int, values: Values) -> None:
        """Delete the entries of an item; ``values`` must be those that were added."""
        for entries, cut in self._entries_of(values):
            del entries[bisect_left(entries, (cut, number))]

    def _entries_of(self, values: Values) -> list[tuple[list[Entry], Cut]]:
        low, high = values[0].low, values[-1].high
        return [(self.points, low)] if _is_single(values) else [(self.lows, low), (self.highs, high)]

    def candidates(self, query: Values, contents: Contents) -> list[EntrySlice]:
        """Return slices that contain every item whose values are related to ``query`` by ``contents``.

        The slices may contain further items; the caller compares each candidate exactly.
        """
        low, high = query[0].low, query[-1].high
        inside = EntrySlice(self.points, _left(self.points, low), _left(self.points, high))
        match contents:
            case "superset":
                return [inside, EntrySlice(self.lows, _left(self.lows, low), _left(self.lows, high))]
            case "intersection":
                return [inside, self._around(_right(self.highs, low), _left(self.lows, high))]
            case "subset":
                around = self._around(_left(self.highs, high), _right(self.lows, low))
                return [inside, around] if _is_single(query) else [around]

    def _around(self, begin: int, end: int) -> EntrySlice:
        """Return the ranges that end at or after ``begin``, or those that start before ``end``, whichever
        slice is shorter.
        """
        late = EntrySlice(self.highs, begin, len(self.highs))
        early = EntrySlice(self.lows, 0, end)
        return early if early.size <= late.size else late


def _left(entries: list[Entry], cut: Cut) -> int:
    return bisect_left(entries, cut, key=_cut)


def _right(entries: list[Entry], cut: Cut) -> int:
    return bisect_right(entries, cut, key=_cut)


def _cut(entry: Entry) -> Cut:
    return entry[0]


def _is_single(values: Values) -> bool:
    return len(values) == 1 and values[0].is_one
