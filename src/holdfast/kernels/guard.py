"""Guarded states, many scopes at once: what readings and the passing of time do to them.

Several states watch the same scopes; of each scope every state has a cell.  A cell has a status (``ON``):
while it is off its entrance is watched, while it is on its exit.  ``cand`` is since when the watched
predicate has held without interruption; after ``waits`` of time, or some count of readings, the status
turns.  ``level`` says how many of the state's silences have passed since the ``last`` reading; bit l of
``enter`` and ``leave`` tells whether the predicates hold there when l of them have.

What happens by time at an instant happens once time has come beyond it; a reading of that very instant comes
first, and of several such things silence comes before a guard, and that before ``unknown`` and ``forget``.
"""

from __future__ import annotations

from .jit import kernel

ON, UNKNOWN, UNDECIDED, SEEN, QUIET, EXPECTED = 1, 2, 4, 8, 16, 32
"""What is so of a cell: it holds; that is not known; it never was; it has had a reading; its start will not
be told; it is never forgotten."""

NONE, NEVER = -(2**63), 2**63 - 1

BEGUN, LAST, NOBODY = -1, -2, -3
"""Which reading is told, if none of the batch: that with which the holding began, the last one, none."""

INGRESS, EGRESS, UNKNOWN_NOW, KNOWN_AGAIN = 0, 1, 4, 5
"""The statuses that are told, by their numbers."""

CODE, STATE, ROW, TIME, STATUS, SINCE = range(6)
"""What is told: of which scope and state, by which reading, when, what, since when."""

TELLS = 24
"""One reading, with the time before it, never makes a cell tell more."""

UNKNOWN_AFTER, FORGET_AFTER, BEGINNING, QUIETLY, DEPTH, SILENCES = range(2, 8)
"""The rule of a state: how many readings in a row it wants to start and to end; the lengths of unknown and
forget (or -1); with what scopes begin, and whether quietly; how many silences there are, and these."""


@kernel
def taken(codes, times, reads, words, scopes, due, rules, waits, each, lengths, until, begin, room, out):  # type: ignore[no-untyped-def]
    """Take readings, or where there are none let time come as far as ``times``, scope by scope.

    Of state f, the entrance words of all readings stand in line f of ``words``, those of the exit after the
    lines of all entrances.  ``waits`` are how long the two must hold, of each state, or ``each`` cell; then
    ``lengths``, in lines like the words, are what readings say of that.  ``due`` is left as the next instant
    of each scope.  ``until`` is how far time has come for everybody: what has been silent by then stays so,
    whatever comes late.

    Ends early when there may be no room for what is told: the next row, and how much was told.
    """
    size, width = len(codes), len(rules)
    told = 0
    for i in range(begin, size):
        if told + TELLS * width > room:
            return i, told
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
                        out[told, CODE], out[told, STATE], out[told, ROW] = c, f, s.last_row
                        out[told, TIME], out[told, STATUS], out[told, SINCE] = at, UNKNOWN_NOW, s.since
                        told += 1
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
                                out[told, CODE], out[told, STATE], out[told, ROW] = c, f, i
                                out[told, TIME], out[told, STATUS], out[told, SINCE] = (
                                    limit,
                                    KNOWN_AGAIN,
                                    s.since,
                                )
                                told += 1
                else:
                    if at < soonest:
                        soonest = at
                    break
                if turns:
                    if not s.flags & QUIET:
                        out[told, CODE], out[told, STATE], out[told, ROW] = c, f, row
                        out[told, TIME] = when
                        out[told, STATUS], out[told, SINCE] = (EGRESS, s.since) if on else (INGRESS, held)
                        told += 1
                    if s.flags & UNDECIDED:
                        s.flags &= ~UNDECIDED
                        if r[UNKNOWN_AFTER] < 0 or s.last + r[UNKNOWN_AFTER] >= when:
                            s.flags &= ~UNKNOWN
                    s.flags = (s.flags ^ ON) & ~QUIET
                    s.since, s.cand, s.count = (NONE if on else when), NONE, 0
        due[c] = soonest
    return size, told


@kernel
def mattering(codes, times, enters, leaves, scopes, gap, readings, stays):  # type: ignore[no-untyped-def]
    """Which readings of a closed part can change what is told.

    Of a run of readings of a scope that say the same, none long after the other, the first ``readings`` and
    the last can; and one before which, without it, there would be a silence.  ``scopes`` has for each scope
    the row before, the row that was kept last, and how many are in the run.
    """
    for i in range(len(codes)):
        c = codes[i]
        if c < 0:
            continue
        j, kept = scopes[c, 0], scopes[c, 1]
        if (
            j < 0
            or enters[i] != enters[j]
            or leaves[i] != leaves[j]
            or times[i] < times[j]
            or times[i] - times[j] > gap
        ):
            if j >= 0:
                stays[j] = True
            stays[i] = True
            scopes[c, 2] = 0
        elif not stays[j] and times[i] - times[kept] > gap:
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
