"""Many variants of one state over a history, in one pass.

Variants form a grid of enter thresholds, minimum durations and exit thresholds. Thresholds are sorted such
that a reading that satisfies one threshold satisfies all before it. A reading is therefore reduced to two
small numbers: how many enter and how many exit thresholds it satisfies. A row of the grid is an enter
threshold with a minimum duration; its exits are the bits of a word.

Readings are ordered by scope, then by time. A reading that is equal to the previous one for a row changes
nothing in that row. Timers can be processed at the next reading that differs. Most readings therefore concern
few rows, or none.
"""

from __future__ import annotations

from .jit import kernel
from .window import by_key

MOST_EXITS = 62
"""The maximal number of exit thresholds: the bits of a word that stays positive."""

STARTS, OPEN, HOLDING, FLAPS, RIGHT, REACHED, DELAY, SHARED = range(8)
"""The columns of the counts of a variant.

In order: starts; conditions active at the end; time active; starts shortly after an end; intervals that meet
an interval of the reference. Then follow the intervals of the reference that are met, their total delay, and
the time active together with the reference. Times are in microseconds.
"""

NEVER = 2**63 - 1


@kernel
def count_satisfied(values, bounds, closed, ranks):  # type: ignore[no-untyped-def]
    """Count for each value how many of the ascending ``bounds`` it exceeds. NaN exceeds none.

    If ``closed``, a value also counts the bound that it equals.
    """
    for i in range(len(values)):
        value, count = values[i], 0
        while count < len(bounds) and (bounds[count] < value or (closed and bounds[count] == value)):
            count += 1
        ranks[i] = count


by_scope = by_key
"""Sorts rows by scope, as `vary` requires them."""


@kernel
def vary(  # type: ignore[no-untyped-def]
    times, enters, leaves, ends, waits, hold, exits, flap, until, known, known_from, known_to,
    words, moments, counts, intervals,
):  # fmt: skip
    """Count the results of every variant, and return the number of intervals written.

    The rows of scope s are those from ``ends[s]`` up to, but not including, ``ends[s + 1]``; ``known``
    indexes its reference intervals in the same way. ``waits`` is the minimum duration of each row of the
    grid, with the number of its enter threshold. ``hold`` is the minimum duration of an exit. ``until`` is
    the end of the history. ``words`` and ``moments`` are scratch space for rows and variants. ``intervals``
    receives scope, start and end of every interval, if it has room for any.
    """
    every = (1 << exits) - 1
    rows = len(waits)
    guards = rows // (waits[rows - 1, 1] + 1)
    on, pending, ended = words[0], words[1], words[2]
    alone, pending_since, due = words[3], words[4], words[5]
    candidate, since, last_end, at_known, found = moments[0], moments[1], moments[2], moments[3], moments[4]
    written = 0
    for s in range(len(ends) - 1):
        begin, end = ends[s], ends[s + 1]
        if begin == end:
            continue
        first_known, no_more = known[s], known[s + 1]
        for k in range(rows):
            on[k], pending[k], ended[k], alone[k], due[k] = 0, 0, 0, 0, NEVER
        if first_known < no_more:
            for v in range(rows * exits):
                at_known[v], found[v] = first_known, first_known
        entering, leaving, lowest, latest = 0, 0, 0, times[begin]
        for i in range(begin, end + 1):
            over = i == end
            now, enter, leave = until + 1, 0, 0
            low, high = 0, rows
            if not over:
                now, enter, leave = times[i], int(enters[i]), int(leaves[i])
                if leave == 0:
                    few = leaving == 0 or (hold == 0 and entering == 0)
                else:
                    few = (
                        enter == 0 and entering == 0 and (leave <= lowest if hold == 0 else leave == leaving)
                    )
                if few:  # those whose entrance began to hold, or ceased to
                    low, high = min(enter, entering) * guards, max(enter, entering) * guards
            going = every if over else (1 << leave) - 1
            for k in range(low, high):
                coming = every if waits[k, 1] < enter else 0
                watched = (on[k] & going) | (coming & ~on[k])
                if over or due[k] <= now:
                    visit = pending[k] | watched
                    due[k] = NEVER
                else:
                    pending[k] &= watched
                    visit = watched & ~pending[k]
                    off = visit & ~on[k]
                    if off and waits[k, 0] and not pending[k] & ~on[k]:  # all wait together, from now on
                        if pending[k] == 0:
                            due[k] = NEVER
                        pending_since[k], due[k] = now, min(due[k], now + waits[k, 0])
                        pending[k] |= off
                        alone[k] &= ~off
                        visit &= ~off
                if visit == 0:
                    continue
                for x in range(exits):
                    bit = 1 << x
                    if not visit & bit:
                        continue
                    v = k * exits + x
                    for step in range(2):
                        wait = hold if on[k] & bit else waits[k, 0]
                        turns, when = False, (candidate[v] if alone[k] & bit else pending_since[k]) + wait
                        if step == 0:  # what time has done before the reading
                            turns = pending[k] & bit != 0 and (when < now or when <= latest)
                        elif over:
                            turns, when = on[k] & bit != 0, until
                        elif not (going if on[k] & bit else coming) & bit:
                            pending[k] &= ~bit
                        elif not pending[k] & bit:
                            candidate[v], when = now, now
                            turns = wait == 0
                            if not turns:
                                pending[k] |= bit
                                alone[k] |= bit
                        else:
                            turns = when <= now
                        if not turns:
                            continue
                        pending[k] &= ~bit
                        on[k] ^= bit
                        if on[k] & bit:
                            counts[v, STARTS] += 1
                            if ended[k] & bit and when - last_end[v] < flap:
                                counts[v, FLAPS] += 1
                            since[v] = when
                            continue
                        ended[k] |= bit
                        last_end[v] = when
                        counts[v, OPEN] += over and step == 1
                        counts[v, HOLDING] += when - since[v]
                        if written < len(intervals):
                            intervals[written, 0] = s
                            intervals[written, 1], intervals[written, 2] = since[v], when
                            written += 1
                        if first_known == no_more:
                            continue
                        j = at_known[v]
                        while j < no_more and known_to[j] < since[v]:
                            j += 1
                        at_known[v] = j
                        counts[v, RIGHT] += j < no_more and known_from[j] <= when
                        while j < no_more and known_from[j] <= when:
                            counts[v, SHARED] += min(when, known_to[j]) - max(since[v], known_from[j])
                            if j >= found[v]:
                                found[v] = j + 1
                                counts[v, REACHED] += 1
                                counts[v, DELAY] += max(since[v] - known_from[j], 0)
                                counts[v, DELAY] -= known_to[j] - known_from[j]
                            j += 1
                    if pending[k] & bit:
                        wait = hold if on[k] & bit else waits[k, 0]
                        due[k] = min(due[k], (candidate[v] if alone[k] & bit else pending_since[k]) + wait)
            lowest = max(lowest, leave) if enter == 0 else 0
            entering, leaving, latest = enter, leave, now
    return written
