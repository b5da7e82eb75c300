"""Windows over rows that are sorted by key, then by time.

``starts`` has the first row of each key and, at its end, the number of rows. A window at an instant is a
range of rows. The instants of a key ascend, so both ends of its windows only move forward.
"""

from __future__ import annotations

from .jit import kernel


@kernel
def by_key(codes, starts, order):  # type: ignore[no-untyped-def]
    """Sort the rows by key; the rows of each key stay in their order. ``starts`` must be zeros and is
    filled."""
    for i in range(len(codes)):
        starts[codes[i] + 1] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    for i in range(len(codes)):
        code = codes[i]
        order[starts[code]] = i
        starts[code] += 1
    for k in range(len(starts) - 1, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@kernel
def instants(times, streams, shifts, first, end, found, ends):  # type: ignore[no-untyped-def]
    """Find the distinct instants of each key from ``first`` up to, but not including, ``end``, in order.
    Return their number.

    Stream ``s`` of key ``k`` is ``times[streams[s, k]:streams[s, k + 1]] + shifts[s]``, ascending. The
    instants of key ``k`` end at ``ends[k + 1]`` in ``found``.
    """
    count = len(shifts)
    size = 0
    at = streams[:, 0].copy()
    for k in range(streams.shape[1] - 1):
        for s in range(count):
            at[s] = streams[s, k]
        while True:
            now = end
            for s in range(count):
                if at[s] < streams[s, k + 1]:
                    next = times[at[s]] + shifts[s]
                    if next < now:
                        now = next
            if now >= end:
                break
            for s in range(count):
                while at[s] < streams[s, k + 1] and times[at[s]] + shifts[s] == now:
                    at[s] += 1
            if now >= first:
                found[size] = now
                size += 1
        ends[k + 1] = size
    return size


@kernel
def positions(times, starts, found, ends, shift, after, rows):  # type: ignore[no-untyped-def]
    """Find for each instant plus ``shift`` the first row of its key at or after it; with ``after`` = 1,
    strictly after it."""
    for k in range(len(starts) - 1):
        row = starts[k]
        for i in range(ends[k], ends[k + 1]):
            at = found[i] + shift + after
            while row < starts[k + 1] and times[row] < at:
                row += 1
            rows[i] = row


@kernel
def nearest(found, ends, times, starts, runs, shift, rows):  # type: ignore[no-untyped-def]
    """Find for each instant plus ``shift`` the row of its key that is nearest in time and not after the
    instant itself.

    Of two equally near rows the earlier is chosen; -1 means none. ``runs`` maps each row to the first row of
    its key and time.
    """
    for k in range(len(starts) - 1):
        row = starts[k]
        for i in range(ends[k], ends[k + 1]):
            target = found[i] + shift
            while row < starts[k + 1] and times[row] <= target:
                row += 1
            best = runs[row - 1] if row > starts[k] else -1
            follows = row < starts[k + 1] and times[row] <= found[i]
            if follows and (best < 0 or times[row] - target < target - times[best]):
                best = row
            rows[i] = best


@kernel
def tally(moments, ends, owners, found, found_ends, change, total):  # type: ignore[no-untyped-def]
    """Add each change of a part to the first instant of its owner at or after the change.

    A change after the last instant is ignored. The changes of part ``p`` are at ``moments[ends[p]:ends[p +
    1]]``. The instants of owner ``k`` are ``found[found_ends[k]:found_ends[k + 1]]``.
    """
    for p in range(len(owners)):
        k = owners[p]
        at, end = found_ends[k], found_ends[k + 1]
        for j in range(ends[p], ends[p + 1]):
            low, high = at, end
            while low < high:
                middle = (low + high) // 2
                if found[middle] < moments[j]:
                    low = middle + 1
                else:
                    high = middle
            at = low
            if at == end:
                break
            total[at] += change[j]


@kernel
def foremost(moments, ends, order, owners, there, found, found_ends, free, chosen):  # type: ignore[no-untyped-def]
    """Find for each instant the latest change, at or before it, of the first present part of its owner.

    Parts are in their ``order``. Changes and instants are as in ``tally``, and a part is constant between its
    changes. ``chosen`` must be -1 everywhere. ``free`` must count from 0 up to the number of instants; the
    kernel uses it to skip finished instants.
    """
    for i in range(len(order)):
        p = order[i]
        at, end = found_ends[owners[p]], found_ends[owners[p] + 1]
        for j in range(ends[p], ends[p + 1]):
            if not there[j]:
                continue
            low, high = at, end
            while low < high:
                middle = (low + high) // 2
                if found[middle] < moments[j]:
                    low = middle + 1
                else:
                    high = middle
            at = low
            while True:
                root = at
                while free[root] != root:
                    root = free[root]
                while free[at] != root:
                    free[at], at = root, free[at]
                at = root
                if at >= end or (j + 1 < ends[p + 1] and found[at] >= moments[j + 1]):
                    break
                chosen[at] = j
                free[at] = at + 1
