"""Many comparisons of one value with constants, as one search.

Sorted constants cut the line into cells: cell 2j lies below constant j, cell 2j + 1 is the constant itself,
and the last but one lies above them all. The very last is for missing values.
"""

from __future__ import annotations

from .jit import kernel


@kernel
def mark(values, bounds, table, words):  # type: ignore[no-untyped-def]
    """Add to each word the table entry of the cell that contains its value."""
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
