"""Many variants of one state over a history, all at once.

Variants are a grid of entrances, guards and exits.  Entrances are in such an order that a reading which
satisfies the last of some satisfies all before it; so are exits: a reading is two small numbers, how many of
each it satisfies.  A row of the grid is an entrance with a guard; its exits are the bits of a word.

Readings come scope after scope, each in order.  To a row of the grid of which a reading says what the one
before it said it changes nothing, and what time alone does can be done at the next that differs; so most
readings concern few rows, or none.
"""

from __future__ import annotations

from .jit import kernel

MOST_EXITS = 62
"""The bits of a word that stays positive."""

STARTS, OPEN, HOLDING, FLAPS, RIGHT, REACHED, DELAY, SHARED = range(8)
"""What is counted of a variant: starts; those that hold at the end; how long it held; starts shortly after an
end; intervals that meet one of the reference; intervals of the reference that are met; by how much later they
are than these, less the lengths of these; how long it held together with the reference."""

NEVER = 2**63 - 1


@kernel
def satisfied(values, bounds, closed, ranks):  # type: ignore[no-untyped-def]
    """How many of the rising ``bounds`` each value is above, or where ``closed`` at; NaN is above none."""
    for i in range(len(values)):
        value, count = values[i], 0
        while count < len(bounds) and (bounds[count] < value or (closed and bounds[count] == value)):
            count += 1
        ranks[i] = count


@kernel
def by_scope(codes, ends, order):  # type: ignore[no-untyped-def]
    """The rows of each scope one after the other, each in its order; ``ends`` has room for one scope more
    than there are, and is left as where each ends, after a 0."""
    for i in range(len(codes)):
        ends[codes[i] + 1] += 1
    total = 0
    for c in range(len(ends)):
        total += ends[c]
        ends[c] = total
    at = ends.copy()
    for i in range(len(codes)):
        order[at[codes[i]]] = i
        at[codes[i]] += 1


@kernel
def vary(  # type: ignore[no-untyped-def]
    times,
    enters,
    leaves,
    ends,
    waits,
    hold,
    exits,
    flap,
    until,
    known,
    known_from,
    known_to,
    words,
    moments,
    counts,
    told,
):
    """Count what every variant does.

    Rows ``ends[s]`` to ``ends[s + 1]`` are those of scope s, and so in ``known`` are its intervals of the
    reference.  ``waits`` is the guard of each row of the grid, with the number of its entrance; ``hold`` is
    how long an exit must hold.  ``until`` is when the history ends.  ``words`` and ``moments`` are room to
    work in, of rows and of variants: those off that wait do so since ``begun``, those ``alone`` since their
    ``candidate``.  ``told`` takes scope, start and end of every interval, where there is room for any.
    """
    every = (1 << exits) - 1
    rows = len(waits)
    guards = rows // (waits[rows - 1, 1] + 1)
    on, pending, ended = words[0], words[1], words[2]
    alone, begun, due = words[3], words[4], words[5]
    candidate, since, last_end, at_known, found = moments[0], moments[1], moments[2], moments[3], moments[4]
    said = 0
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
                        begun[k], due[k] = now, min(due[k], now + waits[k, 0])
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
                        turns, when = False, (candidate[v] if alone[k] & bit else begun[k]) + wait
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
                        if said < len(told):
                            told[said, 0], told[said, 1], told[said, 2] = s, since[v], when
                            said += 1
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
                        due[k] = min(due[k], (candidate[v] if alone[k] & bit else begun[k]) + wait)
            lowest = max(lowest, leave) if enter == 0 else 0
            entering, leaving, latest = enter, leave, now
    return said
