"""A test whether the events of each scope are in order. The order between scopes does not matter."""

from __future__ import annotations

from .jit import kernel

UNORDERED = 2
"""The result of ``extents`` if events are not in order."""


@kernel
def extents(codes, times, ranks, sequences, first, last):  # type: ignore[no-untyped-def]
    """Find the first and the last row of each scope, -1 for a scope without rows.

    Rows with a code below 0 are in no scope. Return 0 if the times of every scope ascend, and 1 if some are
    equal and ordered by rank and then sequence. Return ``UNORDERED`` otherwise.
    """
    found = 0
    for i in range(len(codes)):
        c = codes[i]
        if c < 0:
            continue
        before = last[c]
        if before < 0:
            first[c] = i
        elif times[i] <= times[before]:
            if times[i] < times[before]:
                return 2
            found = 1
            if ranks[i] < ranks[before]:
                return 2
            if ranks[i] == ranks[before] and sequences[i] < sequences[before]:
                return 2
        last[c] = i
    return found
