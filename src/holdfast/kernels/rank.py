"""Comparisons of one value with many constants, as one search.

Sorted constants divide the number line into cells. Cell 2j is below constant j, and cell 2j + 1 is the
constant itself. The last cell but one is above all constants, and the last cell is for missing values.
"""

from __future__ import annotations

from .jit import kernel


@kernel
def mark(values, bounds, table, words):  # type: ignore[no-untyped-def]
    """Add the table entry of the cell that contains a value to the word of the value."""
    count = len(bounds)
    for i in range(len(values)):
        value = values[i]
        low, high = 0, count
        if value != value:
            cell = 2 * count + 1
        else:
            while low < high:
                middle = (low + high) // 2
                if bounds[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            cell = 2 * low
            if low < count and bounds[low] == value:
                cell += 1
        words[i] |= table[cell]
