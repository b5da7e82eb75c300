"""Search for a gap that boxes leave in another box. The search is exact: it subtracts one box after the
other."""

from __future__ import annotations

import numpy as np

from .jit import kernel

GAP, NONE, UNKNOWN = 1, 0, -1


@kernel
def find_gap(boxes, box, most):  # type: ignore[no-untyped-def]
    """Return ``GAP`` if a point of ``box`` is in none of the ``boxes``, and ``NONE`` if there is no such
    point.

    Return ``UNKNOWN`` if ``most`` comparisons of boxes do not decide it. Boxes are rows of closed ranges of
    doubles, ``boxes[i, j]`` from low to high. The search divides ``box`` into pieces. Of the boxes that meet
    a piece, it subtracts the box that leaves the fewest pieces. Pieces inside a box are finished.
    """
    count, width = boxes.shape[0], boxes.shape[1]
    pieces = np.empty((64 + 2 * width, width, 2))
    begins, ends = np.zeros(len(pieces), np.int64), np.zeros(len(pieces), np.int64)
    near = np.empty(4 * count + 4, np.int64)  # the boxes that may meet a piece, one range for each level
    near[:count] = np.arange(count)
    pieces[0], ends[0] = box, count
    height, compared = 1, 0
    piece = np.empty((width, 2))
    while height:
        height -= 1
        piece[:] = pieces[height]
        begin, end = begins[height], ends[height]
        compared += end - begin
        if compared > most:
            return UNKNOWN
        if 2 * end - begin > len(near):
            near = np.concatenate((near, np.empty_like(near)))
        met, best, fewest = end, -1, 2 * width + 1
        for at in range(begin, end):
            i, sides = near[at], 0
            for j in range(width):
                low, high = boxes[i, j, 0], boxes[i, j, 1]
                if low > piece[j, 1] or high < piece[j, 0]:
                    sides = -1
                    break
                sides += (low > piece[j, 0]) + (high < piece[j, 1])
            if sides < 0:
                continue
            near[met] = i
            met += 1
            if sides < fewest:
                best, fewest = i, sides
                if sides == 0:
                    break
        if best < 0:
            return GAP
        if height + fewest > len(pieces):
            pieces = np.concatenate((pieces, np.empty_like(pieces)))
            begins = np.concatenate((begins, np.empty_like(begins)))
            ends = np.concatenate((ends, np.empty_like(ends)))
        if fewest == 0:
            continue
        for j in range(width):
            low, high = boxes[best, j, 0], boxes[best, j, 1]
            if low > piece[j, 0]:
                pieces[height] = piece
                pieces[height, j, 1] = np.nextafter(low, -np.inf)
                begins[height], ends[height] = end, met
                height += 1
                piece[j, 0] = low
            if high < piece[j, 1]:
                pieces[height] = piece
                pieces[height, j, 0] = np.nextafter(high, np.inf)
                begins[height], ends[height] = end, met
                height += 1
                piece[j, 1] = high
    return NONE
