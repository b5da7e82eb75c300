"""A columnar set of boxes that finds, for each of many points, the boxes that contain it.

It is designed for thousands of boxes and more over a few dozen numbered attributes. ``kernels/match.py``
describes the algorithm. Boxes can be inserted and deleted at any time: a new box takes a free slot. When the
set has grown to more than twice its size at the last arrangement, or shrunk to less than a quarter, all boxes
are arranged again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....errors import UsageError
from ....kernels.match import contain, gather, lie_within, locate, place, span

BUCKETS = 31
"""The number of buckets for the values of an attribute. One further bucket is for missing values."""

WORDS = 64
"""Words per bitmap in a block: 4,096 boxes, whose bitmaps fit into the cache of one core."""

TILE = 1024
"""The number of points that are compared with a block while it is in the cache."""

SMALLEST = 64
"""The smallest number of boxes for which an arrangement is faster than a linear search."""

SAMPLE = 100_000
"""The greatest number of boxes from which the buckets are computed."""

SORTED_BY = 4
"""The number of attributes by which the boxes are sorted; the most selective attributes are used."""

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Floats = NDArray[np.float64]
Spans = NDArray[np.uint8]


class BoxRanges(NamedTuple):
    """The ranges of several boxes: box ``i`` has the first ``sizes[i]`` ranges of row ``i``. Both ends belong
    to a range.
    """

    sizes: NDArray[np.int16]
    attributes: NDArray[np.int16]
    bounds: Floats

    @classmethod
    def of(cls, attributes: Any, lows: Any, highs: Any, sizes: Any = None) -> BoxRanges:
        """Build ranges from array-likes with a row for each box; without ``sizes`` every row is full."""
        names = np.asarray(attributes, np.int16)
        below, above = np.asarray(lows, np.float64), np.asarray(highs, np.float64)
        if names.ndim != 2 or not names.shape == below.shape == above.shape:
            raise UsageError("attributes, lows and highs need the same shape, with a row for each box")
        full = np.full(len(names), names.shape[1], np.int16)
        return cls(full if sizes is None else np.asarray(sizes, np.int16), names, np.stack((below, above), 2))

    def take(self, rows: Any) -> BoxRanges:
        """Return the ranges of the boxes that ``rows`` selects."""
        return BoxRanges(*(column[rows] for column in self))


class Matches(NamedTuple):
    """The boxes that contain each point: those of point ``p`` are ``numbers[ends[p - 1]:ends[p]]``."""

    ends: Ints
    numbers: Numbers

    def of(self, point: int) -> Numbers:
        """Return the numbers of the boxes that contain one point."""
        return self.numbers[self.ends[point - 1] if point else 0 : self.ends[point]]


@dataclass(slots=True)
class NumberPool:
    """Allocates small numbers and reuses freed ones."""

    next: int = 0
    free: list[int] = field(default_factory=list)

    def take(self, count: int) -> Numbers:
        """Allocate ``count`` numbers, freed ones first."""
        reused = self.free[max(0, len(self.free) - count) :]
        del self.free[max(0, len(self.free) - count) :]
        begin, self.next = self.next, self.next + count - len(reused)
        return np.concatenate((reused, np.arange(begin, self.next))).astype(np.int32)


class Boxes:
    """A set of boxes over ``width`` attributes. Each box has a number, which is reused after deletion."""

    def __init__(self, width: int, ranges: BoxRanges | None = None) -> None:
        nothing = np.empty((0, 1))
        self.width = width
        self._numbering = NumberPool()
        self._arrange(np.empty(0, np.int32), BoxRanges.of(nothing, nothing, nothing))
        if ranges is not None:
            self.insert(ranges)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The number of bytes in use in all arrays."""
        slots, blocks = self._slotting.next, self._blocks
        columns = (*self._rows, self._numbers, self._slots)
        bitmaps = self._maps[:blocks], self._live[:blocks], self._tops
        return sum(column[:slots].nbytes for column in columns) + sum(words.nbytes for words in bitmaps)

    def insert(self, ranges: BoxRanges) -> Numbers:
        """Add boxes and return their numbers."""
        self._check(ranges)
        count = len(ranges.sizes)
        numbers = self._numbering.take(count)
        wider = ranges.attributes.shape[1] > self._rows.attributes.shape[1]
        if wider or self._count + count > max(2 * self._arranged, SMALLEST):
            numbers_before, rows = self._all()
            self._arrange(np.concatenate((numbers_before, numbers)), _stack(rows, ranges))
        else:
            spans = _spans(ranges, self._cuts)
            self._put(self._slotting.take(count), numbers, ranges, *spans)
        return numbers

    def delete(self, numbers: Any) -> None:
        """Remove boxes by their numbers; raise an error for a number without a box."""
        requested = np.unique(np.asarray(numbers, np.int32))
        valid = requested[(requested >= 0) & (requested < len(self._slots))]
        slots = self._slots[valid]
        if len(valid) < len(requested) or (slots < 0).any():
            raise UsageError("there is no box of that number; a number is good for one deletion")
        keep_mask = ~(np.uint64(1) << (slots % 64).astype(np.uint64))
        np.bitwise_and.at(self._live.reshape(-1), slots // 64, keep_mask)
        self._numbers[slots], self._slots[valid] = -1, -1
        self._count -= len(valid)
        self._numbering.free += valid.tolist()
        self._slotting.free += slots.tolist()
        if 4 * self._count < self._arranged:
            self._arrange(*self._all())

    def match(self, points: Any) -> Matches:
        """Find the boxes that contain each point, a row of ``width`` values; NaN stands for a missing
        value.
        """
        rows = np.ascontiguousarray(points, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise UsageError(f"a point is a row of {self.width} values, NaN where one is missing")
        room = np.empty((2, 64 * WORDS), np.int32)
        ends, found, total = [np.empty(0, np.int64)], [np.empty(0, np.int32)], 0
        for begin in range(0, len(rows), TILE):
            tile, room = self._match(rows[begin : begin + TILE], room)
            ends.append(tile.ends + total)
            found.append(tile.numbers)
            total += len(tile.numbers)
        return Matches(np.concatenate(ends), np.concatenate(found))

    def _match(self, points: Floats, room: Numbers) -> tuple[Matches, Numbers]:
        """Match one tile of points; return the matches and the scratch arrays, which grow when needed."""
        buckets = np.empty(points.shape, np.uint8)
        blocks = np.empty((len(points), self._tops.shape[2]), np.uint64)
        locate.compiled(points, self._cuts, self._tops, buckets, blocks)
        maps = self._maps[: self._blocks]
        at = (0, 0, 0)
        while True:
            at = contain.compiled(
                *self._rows, points, maps, self._live, buckets, blocks, *at, room[0], room[1]
            )
            if at[0] == len(maps):
                break
            room = np.concatenate((room, room), axis=1)
        slots, owners = room[:, : at[2]]
        ends, found = np.zeros(len(points), np.int64), np.empty(len(slots), np.int32)
        gather.compiled(owners, slots, self._numbers, ends, found)
        return Matches(ends, found), room

    def within(self, lows: Floats, highs: Floats) -> Numbers:
        """Return the boxes that lie inside one box and constrain every attribute that it constrains. NaN in
        ``lows`` and ``highs`` means no constraint.

        Every box is compared. A box must have at most one range for an attribute.
        """
        used = self._slotting.next
        slots = np.empty(used + 1, np.int32)
        total = lie_within.compiled(*self._rows.take(slice(used)), lows, highs, slots)
        numbers = self._numbers[slots[:total]]
        return numbers[numbers >= 0]

    @property
    def _blocks(self) -> int:
        """The number of blocks in use."""
        return -(-self._slotting.next // (64 * WORDS))

    def _all(self) -> tuple[Numbers, BoxRanges]:
        slots = np.flatnonzero(self._numbers >= 0)
        return self._numbers[slots], self._rows.take(slots)

    def _check(self, ranges: BoxRanges) -> None:
        """Raise an error if a range refers to an attribute outside ``0 … width - 1``."""
        mentioned = np.arange(ranges.attributes.shape[1]) < ranges.sizes[:, None]
        names = ranges.attributes[mentioned]
        if len(names) and not (names.min() >= 0 and names.max() < self.width):
            last = self.width - 1
            raise UsageError(f"attributes are numbered from 0 to {last}; a box mentions another one")

    def _arrange(self, numbers: Numbers, ranges: BoxRanges) -> None:
        """Choose buckets, sort the boxes so that a block contains similar ones, and reserve equally many free
        slots.
        """
        count, most = ranges.attributes.shape
        self._cuts = _cuts(ranges, self.width)
        first, last = _spans(ranges, self._cuts)
        order = _order(first, last)
        blocks = -(-max(2 * count, SMALLEST) // (64 * WORDS))
        slots = blocks * 64 * WORDS
        attributes, bounds = np.zeros((slots, most), np.int16), np.empty((slots, most, 2))
        self._rows = BoxRanges(np.zeros(slots, np.int16), attributes, bounds)
        self._maps = np.zeros((blocks, self.width, BUCKETS + 1, WORDS), np.uint64)
        self._tops = np.zeros((self.width, BUCKETS + 1, -(-blocks // 64)), np.uint64)
        self._live = np.zeros((blocks, WORDS), np.uint64)
        self._numbers = np.full(slots, -1, np.int32)
        self._slots = np.full(max(slots, self._numbering.next), -1, np.int32)
        self._slotting = NumberPool()
        self._count, self._arranged = 0, count
        self._put(self._slotting.take(count), numbers[order], ranges.take(order), first[order], last[order])

    def _put(self, slots: Numbers, numbers: Numbers, ranges: BoxRanges, first: Spans, last: Spans) -> None:
        """Write boxes into slots and update the bitmaps."""
        most = ranges.attributes.shape[1]
        self._rows.sizes[slots] = ranges.sizes
        self._rows.attributes[slots, :most] = ranges.attributes
        self._rows.bounds[slots, :most] = ranges.bounds
        place.compiled(slots, first, last, self._maps, self._tops, self._live)
        self._numbers[slots], self._slots[numbers] = numbers, slots
        self._count += len(slots)


def _cuts(ranges: BoxRanges, width: int) -> Floats:
    """Return the bounds of the buckets: quantiles of the ends of each attribute's ranges."""
    step = -(-len(ranges.sizes) // SAMPLE) or 1
    some = ranges.take(slice(None, None, step))
    mentioned = np.arange(some.attributes.shape[1]) < some.sizes[:, None]
    cuts = np.zeros((width, BUCKETS - 1))
    for a in range(width):
        chosen = mentioned & (some.attributes == a)
        ends = some.bounds[chosen].reshape(-1)
        ends = ends[np.isfinite(ends)]
        if len(ends):
            cuts[a] = np.quantile(ends, np.arange(1, BUCKETS) / BUCKETS)
    return cuts


def _spans(ranges: BoxRanges, cuts: Floats) -> tuple[Spans, Spans]:
    """Return the first and last bucket that each box covers, for each attribute."""
    shape = len(ranges.sizes), len(cuts)
    first, last = np.empty(shape, np.uint8), np.empty(shape, np.uint8)
    span.compiled(*ranges, cuts, first, last)
    return first, last


def _order(first: Spans, last: Spans) -> Ints:
    """Return an order in which boxes with similar first buckets, in the most selective attributes, are
    adjacent."""
    met = (last.astype(np.int64) - first).sum(axis=0)
    key = np.zeros(len(first), np.uint64)
    for a in np.argsort(met, kind="stable")[:SORTED_BY]:
        key = key << np.uint64(8) | first[:, a]
    return np.argsort(key, kind="stable")


def _stack(above: BoxRanges, below: BoxRanges) -> BoxRanges:
    """Concatenate the ranges of two sets of boxes; short rows are padded."""
    most = max(above.attributes.shape[1], below.attributes.shape[1])
    count = len(above.sizes) + len(below.sizes)
    both = BoxRanges(np.empty(count, np.int16), np.zeros((count, most), np.int16), np.zeros((count, most, 2)))
    for part, rows in ((above, slice(0, len(above.sizes))), (below, slice(len(above.sizes), count))):
        width = part.attributes.shape[1]
        both.sizes[rows] = part.sizes
        both.attributes[rows, :width] = part.attributes
        both.bounds[rows, :width] = part.bounds
    return both
