"""Brute force over boxes, three ways, each as good as a loop in numba gets.

All take the ranges of boxes, every row full, prepare them as they like, and give the matches of points as one
array of box numbers, point after point.  Blocks of boxes stay in the cache while all points of a batch pass
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from holdfast.network.protocols.cbps.boxes import BoxRanges

Matcher = Callable[[NDArray[np.float64]], NDArray[np.int64]]
BLOCK = 2048


def by_rows(ranges: BoxRanges, width: int) -> Matcher:
    """Box after box, until one of its ranges does not hold."""
    del width
    attributes, bounds = ranges.attributes, ranges.bounds
    return lambda points: _memory_growth(lambda room: _rows(attributes, bounds, points, room))


def by_columns(ranges: BoxRanges, width: int) -> Matcher:
    """Attribute after attribute, all boxes of a block at once; what a box does not mention is unbounded."""
    count = len(ranges.sizes)
    lows, highs = np.full((width, count), -np.inf), np.full((width, count), np.inf)
    lows[ranges.attributes.T, np.arange(count)] = ranges.bounds[..., 0].T
    highs[ranges.attributes.T, np.arange(count)] = ranges.bounds[..., 1].T
    return lambda points: _memory_growth(lambda room: _columns(lows, highs, points, room))


def by_ranks(ranges: BoxRanges, width: int) -> Matcher:
    """The first range of all boxes of a block, then the second of those that are left, and so on."""
    del width
    attributes = np.ascontiguousarray(ranges.attributes.T)
    lows, highs = (np.ascontiguousarray(ranges.bounds[..., i].T) for i in (0, 1))
    return lambda points: _memory_growth(lambda room: _ranks(attributes, lows, highs, points, room))


WAYS: Mapping[str, Callable[[BoxRanges, int], Matcher]] = {
    "rows": by_rows,
    "columns": by_columns,
    "ranks": by_ranks,
}


def _memory_growth(run: Callable[[Any], int]) -> NDArray[np.int64]:
    room = np.empty((2, 1 << 16), np.int64)
    while (total := run(room)) > room.shape[1]:
        room = np.empty((2, total), np.int64)
    order = np.argsort(room[0, :total], kind="stable")
    return room[1, :total][order]


@njit(cache=True, nogil=True)
def _rows(attributes, bounds, points, room):  # type: ignore[no-untyped-def]
    total = 0
    for begin in range(0, len(attributes), BLOCK):
        for p in range(len(points)):
            for i in range(begin, min(begin + BLOCK, len(attributes))):
                inside = True
                for j in range(attributes.shape[1]):
                    value = points[p, attributes[i, j]]
                    if not (bounds[i, j, 0] <= value <= bounds[i, j, 1]):
                        inside = False
                        break
                if inside:
                    if total < room.shape[1]:
                        room[0, total], room[1, total] = p, i
                    total += 1
    return total


@njit(cache=True, nogil=True)
def _columns(lows, highs, points, room):  # type: ignore[no-untyped-def]
    width, count = lows.shape
    inside = np.empty(BLOCK, np.uint8)
    total = 0
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for p in range(len(points)):
            inside[:] = 1
            for a in range(width):
                value = points[p, a]
                low, high = lows[a, begin : begin + size], highs[a, begin : begin + size]
                for i in range(size):
                    inside[i] &= (low[i] <= value) & (value <= high[i])
            for i in range(size):
                if inside[i]:
                    if total < room.shape[1]:
                        room[0, total], room[1, total] = p, begin + i
                    total += 1
    return total


@njit(cache=True, nogil=True)
def _ranks(attributes, lows, highs, points, room):  # type: ignore[no-untyped-def]
    most, count = attributes.shape
    left = np.empty(BLOCK, np.int32)
    total = 0
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for p in range(len(points)):
            many = 0
            for i in range(size):
                value = points[p, attributes[0, begin + i]]
                left[many] = i
                many += (lows[0, begin + i] <= value) & (value <= highs[0, begin + i])
            for j in range(1, most):
                fewer = 0
                for k in range(many):
                    i = left[k]
                    value = points[p, attributes[j, begin + i]]
                    left[fewer] = i
                    fewer += (lows[j, begin + i] <= value) & (value <= highs[j, begin + i])
                many = fewer
            for k in range(many):
                if total < room.shape[1]:
                    room[0, total], room[1, total] = p, begin + left[k]
                total += 1
    return total
