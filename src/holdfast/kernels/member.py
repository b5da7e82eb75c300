"""Which of many events are wanted for which of many operators, by value and time.

Event ``p`` has the value ``values[p]`` and belongs to filter ``columns[p]``; events are in the order of
``times``.  Operator ``r`` allows values of filter ``c`` from ``lows[c, r]`` to ``highs[c, r]``.
``found[p, r]`` becomes whether operator ``r`` wants event ``p``; it is false before.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def complete(times, columns, values, lows, highs, within, found):  # type: ignore[no-untyped-def]
    """An event is wanted that satisfies its filter and lies, with others that satisfy each of the other
    filters, in a stretch of time shorter than ``within``."""
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
    """An event is wanted that satisfies its filter if one that satisfies the next filter is less than
    ``within`` away in time; the next of the last of two or more filters is the first."""
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
