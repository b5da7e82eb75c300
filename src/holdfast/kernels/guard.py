"""States with minimum durations and no-data rules: the effects of readings and of time on many scopes at
once.

Each state has a cell for each scope. While a cell's status (``ON``) is off, its enter predicate is tested;
while it is on, its exit predicate. ``cand`` is the time since which the tested predicate has been true
without interruption. After the duration in ``waits``, or after a number of readings, the status changes.
``level`` is the number of the state's no-data durations that have passed since the ``last`` reading. Bit l of
``enter`` and ``leave`` is set if the predicates are true after l of them.

A timer fires once the watermark has passed its time, so a reading of the same time comes first. Timers of one
time fire in this order: no data, minimum durations, ``unknown`` and ``forget``.
"""

from __future__ import annotations

from .jit import kernel

ON, UNKNOWN, UNDECIDED, SEEN, QUIET, EXPECTED = 1, 2, 4, 8, 16, 32
"""Flags of a cell.

In order: active; unknown; never decided; has had a reading; its start is not emitted; never forgotten.
"""

NONE, NEVER = -(2**63), 2**63 - 1

BEGUN, LAST, NOBODY = -1, -2, -3
"""The reading to which an output refers if it is no reading of the batch.

In order: the reading that started the condition, the last reading, or no reading.
"""

INGRESS, EGRESS, UNKNOWN_NOW, KNOWN_AGAIN = 0, 1, 4, 5
"""The numbers of the statuses that are emitted."""

CODE, STATE, ROW, TIME, STATUS, SINCE = range(6)
"""The columns of the output: scope, state, reading, time, status and since."""

MOST_TRANSITIONS = 24
"""The maximal number of transitions that one reading, with the time before it, causes in one cell."""

UNKNOWN_AFTER, FORGET_AFTER, BEGINNING, QUIETLY, DEPTH, SILENCES = range(2, 8)
"""The columns of a state's rule.

Columns 0 and 1 are the readings in a row that a start and an end need. Then follow the durations of
``unknown`` and ``forget`` or -1, the initial status of scopes, and whether it is not emitted. The last
columns are the number of no-data durations, and these durations.
"""


@kernel
def apply_readings(  # type: ignore[no-untyped-def]
    codes, times, reads, words, scopes, due, rules, waits, each, lengths, until, begin, room, out
):
    """Apply readings to their scopes; without ``reads``, only advance the scopes to ``times``.

    The enter words of state f are in line f of ``words``; the exit words follow the lines of all enter words.
    ``waits`` has the two minimum durations of each state. With ``each``, it has those of each cell, and
    ``lengths`` has the durations that readings carry, in lines like the words. ``due`` is set to the next
    timer of each scope. ``until`` is the watermark of all scopes: a no-data duration that has passed by then
    stays passed, even if a late reading arrives.

    Return the next row and the number of outputs. The kernel stops early if ``out`` may overflow.
    """
    size, width = len(codes), len(rules)
    emitted = 0
    for i in range(begin, size):
        if emitted + MOST_TRANSITIONS * width > room:
            return i, emitted
        c = codes[i]
        if c < 0:
            continue
        limit = times[i]
        idle = reads and limit <= due[c]
        soonest = NEVER
        for f in range(width):
            s, r = scopes[c * width + f], rules[f]
            w = 2 * (c * width * each + f)
            waiting = reads
            while True:
                on = s.flags & ON
                at, what = NEVER, 0
                if s.last != NONE and not (idle and waiting):
                    if s.level < r[DEPTH]:
                        at, what = s.last + r[SILENCES + s.level], 1
                    if s.cand != NONE and r[on] == 0 and s.cand + waits[w + on] < at:
                        at, what = s.cand + waits[w + on], 2
                    if r[UNKNOWN_AFTER] >= 0 and not s.flags & UNKNOWN and s.last + r[UNKNOWN_AFTER] < at:
                        at, what = s.last + r[UNKNOWN_AFTER], 3
                    if r[FORGET_AFTER] >= 0 and not s.flags & EXPECTED and s.last + r[FORGET_AFTER] < at:
                        at, what = s.last + r[FORGET_AFTER], 4
                turns = False
                row, when, held = NOBODY, at, NONE
                if at < limit:
                    if what == 1:
                        s.level += 1
                        if not ((s.leave if on else s.enter) >> s.level) & 1:
                            s.cand, s.count = NONE, 0
                            s.flags &= ~QUIET
                        elif s.cand == NONE:
                            s.cand, s.count, s.cand_row = at, 0, s.last_row
                            if r[on] == 0 and waits[w + on] == 0:
                                turns, row = True, s.last_row
                    elif what == 2:
                        turns, row, held = True, s.cand_row, s.cand
                    elif what == 3 or (on and not s.flags & UNKNOWN):
                        if s.cand != NONE and s.cand <= s.last:
                            s.cand, s.count = NONE, 0
                        s.flags = (s.flags | UNKNOWN) & ~QUIET
                        out[emitted, CODE], out[emitted, STATE], out[emitted, ROW] = c, f, s.last_row
                        out[emitted, TIME], out[emitted, STATUS] = at, UNKNOWN_NOW
                        out[emitted, SINCE] = s.since
                        emitted += 1
                    if what == 4:
                        s.last, s.since, s.cand, s.count = NONE, NONE, NONE, 0
                        s.flags, s.level, s.last_row = r[BEGINNING], 0, NOBODY
                elif waiting:
                    waiting = False
                    first = not s.flags & SEEN
                    if first or limit >= s.last:
                        s.last_row = i
                    if limit > s.last:
                        s.last = limit
                    level = 0
                    while level < s.level and s.last + r[SILENCES + level] < until:
                        level += 1
                    enter, leave = words[f * size + i], words[(width + f) * size + i]
                    if each:
                        waits[w], waits[w + 1] = lengths[f * size + i], lengths[(width + f) * size + i]
                    s.level, s.enter, s.leave = level, enter, leave
                    if first:
                        s.flags |= SEEN
                    if on and s.since == NONE:
                        s.since = limit
                    if ((leave if on else enter) >> level) & 1:
                        if s.cand == NONE:
                            s.cand, s.count, s.cand_row = s.last, 0, i
                            if first and r[QUIETLY]:
                                s.flags |= QUIET
                        s.count += 1
                        if r[on]:
                            turns, row, when, held = s.count >= r[on], i, limit, s.cand
                        elif not waits[w + on]:
                            turns, row, when = True, i, limit
                        elif s.cand + waits[w + on] <= s.last:
                            turns, row, held = True, s.cand_row, s.cand
                            when = max(s.cand + waits[w + on], limit)  # a row may say less than the last
                    elif s.cand != NONE:
                        s.cand, s.count = NONE, 0
                        s.flags &= ~QUIET
                    if s.flags & UNKNOWN:
                        if s.flags & UNDECIDED:
                            known = ((enter if on else leave) >> level) & 1
                        else:
                            known = r[UNKNOWN_AFTER] < 0 or s.last + r[UNKNOWN_AFTER] >= until
                        if known:
                            s.flags &= ~(UNKNOWN | UNDECIDED)
                            if not turns and not (first and r[QUIETLY]):
                                out[emitted, CODE], out[emitted, STATE], out[emitted, ROW] = c, f, i
                                out[emitted, TIME], out[emitted, STATUS] = limit, KNOWN_AGAIN
                                out[emitted, SINCE] = s.since
                                emitted += 1
                else:
                    if at < soonest:
                        soonest = at
                    break
                if turns:
                    if not s.flags & QUIET:
                        out[emitted, CODE], out[emitted, STATE], out[emitted, ROW] = c, f, row
                        out[emitted, TIME], out[emitted, STATUS] = when, EGRESS if on else INGRESS
                        out[emitted, SINCE] = s.since if on else held
                        emitted += 1
                    if s.flags & UNDECIDED:
                        s.flags &= ~UNDECIDED
                        if r[UNKNOWN_AFTER] < 0 or s.last + r[UNKNOWN_AFTER] >= when:
                            s.flags &= ~UNKNOWN
                    s.flags = (s.flags ^ ON) & ~QUIET
                    s.since, s.cand, s.count = (NONE if on else when), NONE, 0
        due[c] = soonest
    return size, emitted


@kernel
def mark_relevant(codes, times, enters, leaves, scopes, gap, readings, stays):  # type: ignore[no-untyped-def]
    """Mark the readings of a closed part that can change the output.

    A run has readings of a scope with the same predicates and short distances in time. Of each run, the first
    ``readings`` and the last one are marked. Readings whose removal would let a no-data duration pass are
    also marked. ``scopes`` has for each scope the previous row, the last marked row, and the length of the
    run.
    """
    for i in range(len(codes)):
        c = codes[i]
        if c < 0:
            continue
        j, marked = scopes[c, 0], scopes[c, 1]
        same = j >= 0 and enters[i] == enters[j] and leaves[i] == leaves[j]
        if not same or times[i] < times[j] or times[i] - times[j] > gap:
            if j >= 0:
                stays[j] = True
            stays[i] = True
            scopes[c, 2] = 0
        elif not stays[j] and times[i] - times[marked] > gap:
            stays[j] = True
            scopes[c, 1] = j
        scopes[c, 2] += 1
        if scopes[c, 2] <= readings or enters[i] & leaves[i] & 1:
            stays[i] = True
        scopes[c, 0] = i
        if stays[i]:
            scopes[c, 1] = i
    for c in range(len(scopes)):
        if scopes[c, 0] >= 0:
            stays[scopes[c, 0]] = True
