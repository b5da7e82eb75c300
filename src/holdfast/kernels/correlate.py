"""Search for events that take part in a correlation, in order of time and without a product of candidates.

An *entry* is an event that matches filters of one slot (an attribute, or an attribute of one sensor).
``words[i]`` has a bit for each correlation whose filter entry ``i`` matches. Entries are in order of time.
``needs[slot]`` has the bits of the correlations with a filter in that slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .jit import kernel


@kernel
def participate(times, slots, words, needs, within, found):  # type: ignore[no-untyped-def]
    """Compute the bits of ``words[i]`` whose correlations are complete in some window that contains entry
    ``i``.

    A window is shorter than ``within``. It is complete if each needed slot has a match in it, and then all
    matches in the window take part. Time is cut into blocks as long as the window, so that a window covers
    the end of a block and the beginning of the next. For each block, it suffices to compute unions from its
    start up to a point, and from a point to its end.
    """
    count, width = len(times), len(needs)
    nothing = np.uint64(0)
    after = np.zeros(count, np.uint64)  # what follows an entry in its slot and block
    complete = np.zeros(count, np.uint64)
    up_to = np.zeros(count, np.uint64)  # the windows of a block that end no later, together
    current, before = np.zeros(width, np.uint64), np.zeros(width, np.uint64)
    begins = times[count - 1] + 1  # the start of the current block
    for i in range(count - 1, -1, -1):
        if times[i] < begins:
            begins = times[i] - (times[i] - times[0]) % within
            current[:] = nothing
        after[i] = current[slots[i]]
        current[slots[i]] |= words[i]
    current[:] = nothing
    ends = times[0] + within
    start, oldest, ended = 0, 0, nothing
    i = 0
    while i < count:
        if times[i] >= ends:
            adjacent = times[i] < ends + within
            for slot in range(width):
                before[slot] = current[slot] if adjacent else nothing
                current[slot] = nothing
            oldest = start if adjacent else i
            start, ended = i, nothing
            ends = times[i] - (times[i] - times[0]) % within + within
        last = i
        while last < count and times[last] == times[i]:
            current[slots[last]] |= words[last]
            last += 1
        while oldest < start and times[oldest] <= times[i] - within:
            before[slots[oldest]] = after[oldest]
            oldest += 1
        done = ~nothing
        for slot in range(width):
            done &= current[slot] | before[slot] | ~needs[slot]
        ended |= done
        for j in range(i, last):
            complete[j] = done
            up_to[j] = ended
        i = last
    begins, rest, newest = times[count - 1] + 1, nothing, count - 1
    for i in range(count - 1, -1, -1):
        if times[i] < begins:
            begins, rest = times[i] - (times[i] - times[0]) % within, nothing
        rest |= complete[i]
        while times[newest] >= times[i] + within:
            newest -= 1
        found[i] = words[i] & (rest | (up_to[newest] if times[newest] >= begins + within else nothing))


@kernel
def agree(times, slots, cells, points, width, around, runs, order, within, near, found):  # type: ignore[no-untyped-def]
    """Set ``found[i]`` if entry ``i`` agrees with one entry of every other slot.

    Entries agree if they are pairwise less than ``within`` apart in time and less than ``near`` apart in
    space. Entries that are already found are skipped. ``order`` has the entries by (slot, cell, time); those
    of slot s and cell c start at ``runs[s, c]``. ``around[c]`` has the cells in which a point near a point of
    cell c can be, and -1 for none.
    """
    chosen = np.empty(width, np.int64)
    first, last = np.empty(width + 1, np.int64), np.empty(width + 1, np.int64)
    neighbour, cursor = np.empty(width + 1, np.int64), np.empty(width + 1, np.int64)
    for i in range(len(times)):
        if found[i]:
            continue
        chosen[0] = i
        first[1], last[1] = times[i], times[i]
        neighbour[1], cursor[1] = 0, -1
        depth = 1
        while 0 < depth < width:
            slot = (slots[i] + depth) % width
            partner = np.int64(-1)
            while partner < 0 and neighbour[depth] < around.shape[1]:
                cell = around[cells[i], neighbour[depth]]
                if cell >= 0:
                    end = runs[slot, cell + 1]
                    if cursor[depth] < 0:  # the first of the run that is late enough
                        low, high = runs[slot, cell], end
                        while low < high:
                            middle = (low + high) // 2
                            if times[order[middle]] <= last[depth] - within:
                                low = middle + 1
                            else:
                                high = middle
                        cursor[depth] = low
                    while partner < 0 and cursor[depth] < end:
                        other = order[cursor[depth]]
                        if times[other] >= first[depth] + within:
                            break
                        cursor[depth] += 1
                        close = True
                        for k in range(depth):
                            square = 0.0
                            for axis in range(points.shape[1]):
                                way = points[other, axis] - points[chosen[k], axis]
                                square += way * way
                            close &= np.sqrt(square) < near
                        if close:
                            partner = other
                if partner < 0:
                    neighbour[depth] += 1
                    cursor[depth] = -1
            if partner < 0:
                depth -= 1
                continue
            chosen[depth] = partner
            first[depth + 1] = min(first[depth], times[partner])
            last[depth + 1] = max(last[depth], times[partner])
            neighbour[depth + 1], cursor[depth + 1] = 0, -1
            depth += 1
        if depth == width:
            for k in range(width):
                found[chosen[k]] = True


class CorrelationGrid(NamedTuple):
    """Points in cells: the cell of each point, and for each cell its neighbours. An empty neighbour is -1."""

    cells: NDArray[np.int64]
    around: NDArray[np.int64]


def grid(points: NDArray[np.float64], near: float) -> CorrelationGrid:
    """Return points in cells slightly wider than ``near``. Points nearer than that are in the same cell or in
    neighbouring cells."""
    sides = [np.unique(np.floor(axis / (near * 1.001)), return_inverse=True) for axis in points[:, :2].T]
    (columns, of_column), (rows, of_row) = sides
    distinct, cells = np.unique(of_column * len(rows) + of_row, return_inverse=True)
    of_cells = (divmod(code, len(rows)) for code in distinct.tolist())
    places = [(float(columns[column]), float(rows[row])) for column, row in of_cells]
    index = {place: i for i, place in enumerate(places)}
    steps = [(dx, dy) for dx in (0, -1, 1) for dy in (0, -1, 1)]
    around = [[index.get((x + dx, y + dy), -1) for dx, dy in steps] for x, y in places]
    return CorrelationGrid(cells, np.array(around, np.int64).reshape(len(places), len(steps)))


def close_by(
    times: NDArray[np.int64],
    slots: NDArray[Any],
    points: NDArray[np.float64],
    within: CorrelationGrid,
    width: int,
    window: int,
    near: float,
    found: NDArray[np.bool_],
) -> None:
    """Run ``agree`` over points in a grid.

    Entries are in order of time; slots are numbered from 0 to ``width - 1``. ``window`` is the duration that
    ``agree`` calls ``within``. The result is in ``found``.
    """
    size = len(within.around)
    code = slots.astype(np.int64) * size + within.cells
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(width * size + 1))
    runs = starts[np.arange(width)[:, None] * size + np.arange(size + 1)]
    agree(times, slots, within.cells, points, width, within.around, runs, order, window, near, found)
