"""Starts and ends of relations, reading by reading, and a search for sources that come near one another.

Rows are readings in order of (time, member, sequence). Rows of one time are processed together; then every
tie with one of their members is evaluated once. Ties and their terms are in flat arrays: tie ``t`` has the
entries from ``starts[t]`` up to, but not including, ``starts[t + 1]``. ``touch_starts`` indexes the ties of
each member in the same way.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

DISTANCE, SPREAD, TOTAL, BEST, RADIUS = range(5)
NOT = -(2**63)
"""The value that stands for no instant or no choice."""


@kernel
def relate(  # type: ignore[no-untyped-def]
    times, members, sequences, values, kind, bounds, holds, by, quorum,
    starts, entries, scales, reciprocal, choices, touch_starts, touches,
    latest, points, numbers, stamps, clock,
    bits, began, began_by, began_number, since, since_by, since_number, since_value, measured, looked,
    out_tie, out_status, out_time, out_by, out_number, out_since, out_value,
):  # fmt: skip
    """Process the rows, and return the number of transitions written.

    The status of a transition is 0 for a start and 1 for an end. For ``best`` the second column of
    ``out_tie`` is the choice. ``latest[m]`` is the time of the latest reading of a member, ``points[m]`` its
    value. ``bits[t]`` is 1 for an active tie, or the number of the best alternative. ``began[t]`` is the time
    since which a test with a minimum duration has been true. ``measured[t]`` is the last measured value.
    Entries with a scale other than 0 are the centres of a radius.
    """
    found = 0
    i = 0
    while i < len(times):
        now = times[i]
        clock[0] += 1
        stamp = clock[0]
        last = i
        while last < len(times) and times[last] == now:
            m = members[last]
            if latest[m] <= now:
                latest[m] = now
                for axis in range(4):
                    points[m, axis] = values[last, axis]
                numbers[m] = sequences[last]
                stamps[m] = stamp
            last += 1
        for k in range(i, last):
            if stamps[members[k]] != stamp:
                continue
            for u in range(touch_starts[members[k]], touch_starts[members[k] + 1]):
                t = touches[u]
                if looked[t] == stamp:
                    continue
                looked[t] = stamp
                first, end = starts[t], starts[t + 1]
                complete = True
                who = entries[first]
                for e in range(first, end):
                    complete &= latest[entries[e]] != NOT
                    if stamps[entries[e]] == stamp:
                        who = entries[e]
                if began[t] != NOT and began[t] + holds[bits[t]] < now:  # it held long enough before this
                    out_tie[found, 0], out_tie[found, 1] = t, 0
                    out_status[found], out_time[found] = bits[t], began[t] + holds[bits[t]]
                    out_by[found], out_number[found] = began_by[t], began_number[t]
                    out_since[found], out_value[found] = since[t], measured[t]
                    bits[t] = 1 - bits[t]
                    since[t] = out_time[found] if bits[t] else NOT
                    since_by[t], since_number[t] = out_by[found], out_number[found]
                    since_value[t] = out_value[found]
                    began[t] = NOT
                    found += 1
                value, error = np.nan, 0.0
                best, chosen_value = np.int64(NOT), np.nan
                if complete and kind == DISTANCE:
                    a, b = entries[first], entries[first + 1]
                    x = points[a, 0] - points[b, 0]
                    y = points[a, 1] - points[b, 1]
                    z = points[a, 2] - points[b, 2]
                    value = np.sqrt(x * x + y * y + z * z)
                    error = points[a, 3] + points[b, 3]
                elif complete and kind == SPREAD:
                    cx, cy, cz, worst, mean = 0.0, 0.0, 0.0, 0.0, 0.0
                    for e in range(first, end):
                        p = points[entries[e]]
                        cx += p[0]
                        cy += p[1]
                        cz += p[2]
                        worst = max(worst, p[3])
                        mean += p[3]
                    size = end - first
                    cx, cy, cz = cx / size, cy / size, cz / size
                    value, error = 0.0, worst + mean / size
                    for e in range(first, end):
                        p = points[entries[e]]
                        x, y, z = p[0] - cx, p[1] - cy, p[2] - cz
                        value = max(value, np.sqrt(x * x + y * y + z * z))
                elif complete and kind == RADIUS:
                    far = np.empty(end - first)
                    value, worst, second = np.inf, 0.0, 0.0
                    for e in range(first, end):
                        p = points[entries[e]]
                        if p[3] > worst:
                            worst, second = p[3], worst
                        else:
                            second = max(second, p[3])
                        if scales[e] == 0.0:
                            continue
                        for f in range(first, end):
                            q = points[entries[f]]
                            x, y, z = p[0] - q[0], p[1] - q[1], p[2] - q[2]
                            far[f - first] = np.sqrt(x * x + y * y + z * z)
                        far.sort()
                        value = min(value, far[quorum - 1])
                    error = worst + second
                elif complete:
                    sum, known = 0.0, True
                    for e in range(first, end):
                        reading = points[entries[e], 0]
                        if not reciprocal[e]:
                            sum += scales[e] * reading
                        elif reading != 0.0:
                            sum += scales[e] / reading
                        else:
                            sum = np.nan
                        if e + 1 == end or choices[e + 1] != choices[e]:  # the sum of an alternative
                            known &= sum == sum
                            if choices[e] == bits[t]:
                                chosen_value = sum
                            if best == NOT or sum < value:
                                best, value = choices[e], sum
                            sum = 0.0
                    if not known:
                        value = np.nan
                if kind == BEST:
                    if value != value:
                        continue
                    measured[t] = value
                    if bits[t] >= 0 and not value <= chosen_value - by:
                        continue
                    if bits[t] == best:
                        continue
                    if bits[t] >= 0:
                        out_tie[found, 0], out_tie[found, 1] = t, bits[t]
                        out_status[found], out_time[found] = 1, now
                        out_by[found], out_number[found] = who, numbers[who]
                        out_since[found], out_value[found] = since[t], chosen_value
                        found += 1
                    out_tie[found, 0], out_tie[found, 1] = t, best
                    out_status[found], out_time[found] = 0, now
                    out_by[found], out_number[found] = who, numbers[who]
                    out_since[found], out_value[found] = NOT, value
                    found += 1
                    bits[t], since[t] = best, now
                    since_by[t], since_number[t], since_value[t] = who, numbers[who], value
                    continue
                measured[t] = value
                side = 2 * bits[t]
                if not (bounds[side] <= value - error and value + error <= bounds[side + 1]):
                    began[t] = NOT
                    continue
                if holds[bits[t]] == 0:
                    began[t], began_by[t], began_number[t] = now, who, numbers[who]
                elif began[t] == NOT:
                    began[t], began_by[t], began_number[t] = now, who, numbers[who]
                    continue
                elif began[t] + holds[bits[t]] > now:
                    continue
                out_tie[found, 0], out_tie[found, 1] = t, 0
                out_status[found], out_time[found] = bits[t], began[t] + holds[bits[t]]
                out_by[found], out_number[found] = began_by[t], began_number[t]
                out_since[found], out_value[found] = since[t], value
                bits[t] = 1 - bits[t]
                since[t] = out_time[found] if bits[t] else NOT
                since_by[t], since_number[t] = out_by[found], out_number[found]
                since_value[t] = value
                began[t] = NOT
                found += 1
        i = last
    return found


@kernel
def approach(  # type: ignore[no-untyped-def]
    times, members, values, sides, reach, width,
    heads, following, preceding, buckets, latest, points, near,
):  # fmt: skip
    """Find pairs of members that come as near as ``reach`` while rows are processed, and write them to
    ``near``.

    Return the number of pairs, and the row at which to continue if ``near`` is full. Members are in linked
    lists, one for each hash bucket of cells with the side ``width``. ``heads`` has the first member of each
    list; ``following`` and ``preceding`` are the links. Cells that share a bucket do no harm, because
    distances are compared. ``sides`` separates members that only meet members of another side; -1 is no side.
    """
    mask = len(heads) - 1
    found = 0
    i = 0
    while i < len(times):
        now = times[i]
        last = i
        while last < len(times) and times[last] == now:
            m = members[last]
            if latest[m] <= now:
                latest[m] = now
                for axis in range(3):
                    points[m, axis] = values[last, axis]
                column = np.int64(min(max(np.floor(points[m, 0] / width), -1e10), 1e10))
                row = np.int64(min(max(np.floor(points[m, 1] / width), -1e10), 1e10))
                bucket = (column * 73856093 ^ row * 19349663) & mask
                if bucket != buckets[m]:
                    if buckets[m] >= 0:
                        if preceding[m] >= 0:
                            following[preceding[m]] = following[m]
                        else:
                            heads[buckets[m]] = following[m]
                        if following[m] >= 0:
                            preceding[following[m]] = preceding[m]
                    buckets[m] = bucket
                    preceding[m], following[m] = -1, heads[bucket]
                    if heads[bucket] >= 0:
                        preceding[heads[bucket]] = m
                    heads[bucket] = m
            last += 1
        before = found
        for k in range(i, last):
            m = members[k]
            column = np.int64(min(max(np.floor(points[m, 0] / width), -1e10), 1e10))
            row = np.int64(min(max(np.floor(points[m, 1] / width), -1e10), 1e10))
            for step in range(9):
                dx, dy = step // 3 - 1, step % 3 - 1
                other = heads[((column + dx) * 73856093 ^ (row + dy) * 19349663) & mask]
                while other >= 0:
                    if other != m and (sides[m] < 0 or sides[m] != sides[other]):
                        x = points[m, 0] - points[other, 0]
                        y = points[m, 1] - points[other, 1]
                        z = points[m, 2] - points[other, 2]
                        if np.sqrt(x * x + y * y + z * z) <= reach:
                            if found == len(near):
                                return before, i
                            near[found, 0], near[found, 1] = min(m, other), max(m, other)
                            found += 1
                    other = following[other]
        i = last
    return found, i


@kernel
def together(first, second, above):  # type: ignore[no-untyped-def]
    """Set ``above[i]`` to the smallest node that ties connect with node ``i``. Initially ``above[i]`` must be
    ``i``."""
    for i in range(len(first)):
        a, b = first[i], second[i]
        while above[a] != a:
            above[a] = above[above[a]]
            a = above[a]
        while above[b] != b:
            above[b] = above[above[b]]
            b = above[b]
        above[max(a, b)] = min(a, b)
    for i in range(len(above)):
        above[i] = above[above[i]]  # those below it are done
