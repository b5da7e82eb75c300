"""Search for the events that operators need, by value and time, for many operators at once.

Event ``p`` has the value ``values[p]`` and belongs to filter ``columns[p]``; events are in the order of
``times``. Operator ``r`` accepts values of filter ``c`` from ``lows[c, r]`` to ``highs[c, r]``. ``found[p,
r]`` is set if operator ``r`` needs event ``p``; it must be false before.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def complete(times, columns, values, lows, highs, within, found):  # type: ignore[no-untyped-def]
    """Find events that satisfy their filter and share a window with events that satisfy each other filter.

    The window is shorter than ``within``.
    """
    width, satisfied = len(lows), np.empty(len(times), np.int64)
    for r in range(lows.shape[1]):
        count = 0
        for p in range(len(times)):
            if lows[columns[p], r] <= values[p] <= highs[columns[p], r]:
                satisfied[count] = p
                count += 1
        there, kinds, end, marked = np.zeros(width, np.int64), 0, 0, 0
        for begin in range(count):
            while end < count and times[satisfied[end]] - times[satisfied[begin]] < within:
                column = columns[satisfied[end]]
                kinds += there[column] == 0
                there[column] += 1
                end += 1
            if kinds == width:
                for at in range(max(begin, marked), end):
                    found[satisfied[at], r] = True
                marked = end
            column = columns[satisfied[begin]]
            there[column] -= 1
            kinds -= there[column] == 0


@kernel
def ring(times, columns, values, lows, highs, within, found):  # type: ignore[no-untyped-def]
    """Find events that satisfy their filter and are near in time to an event that satisfies the next filter.

    Near means less than ``within`` away. The filter after the last filter is the first.
    """
    width = len(lows)
    last = np.empty(width, np.int64)
    for r in range(lows.shape[1]):
        for direction in (1, -1):
            last[:] = -1
            for q in range(len(times)):
                p = q if direction == 1 else len(times) - 1 - q
                column = columns[p]
                if lows[column, r] <= values[p] <= highs[column, r]:
                    other = last[(column + 1) % width]
                    if other >= 0 and abs(times[p] - times[other]) < within:
                        found[p, r] = True
                    last[column] = p
