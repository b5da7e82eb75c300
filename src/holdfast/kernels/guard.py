"""Guarded states, many scopes at once: what readings and the passing of time do to them.

A scope has a status (``ON``): while it is off its entrance is watched, while it is on its exit.  ``cand`` is
since when the watched predicate has held without interruption; after ``waits`` of time, or ``counts`` of
readings, the status turns.  ``level`` says how many of the ``silences`` have passed since the ``last``
reading; bit l of ``enter`` and ``leave`` tells whether the predicates hold there when l of them have.

What happens by time at an instant happens once time has come beyond it; a reading of that very instant comes
first, and of several such things silence comes before a guard, and that before ``unknown`` and ``forget``.
"""

from __future__ import annotations

from .jit import kernel

ON, UNKNOWN, UNDECIDED, SEEN, QUIET, EXPECTED = 1, 2, 4, 8, 16, 32
"""What is so of a scope: it holds; that is not known; it never was; it has had a reading; its start will not
be told; it is never forgotten."""

NONE, NEVER = -(2**63), 2**63 - 1

BEGUN, LAST, NOBODY = -1, -2, -3
"""Which reading is told, if none of the batch: that with which the holding began, the last one, none."""

INGRESS, EGRESS, UNKNOWN_NOW, KNOWN_AGAIN = 0, 1, 4, 5
"""The statuses that are told, by their numbers."""

CODE, ROW, TIME, STATUS, SINCE = range(5)
"""What is told: of which scope, by which reading, when, what, since when."""

TELLS = 24
"""One reading, with the time before it, never makes a scope tell more."""


@kernel
def taken(  # type: ignore[no-untyped-def]
    codes,
    times,
    reads,
    enters,
    leaves,
    scopes,
    due,
    each,
    waits,
    counts,
    silences,
    terms,
    until,
    begin,
    room,
    out,
):
    """Take readings, or where there are none let time come as far as ``times``, scope by scope.

    ``due`` is left as the next instant of each scope.  ``until`` is how far time has come for everybody: what
    has been silent by then stays so, whatever comes late.  ``terms`` are the lengths of unknown and forget
    (or -1), with what scopes begin, and whether quietly; ``waits`` are of each scope, or the first of all.

    Ends early when there may be no room for what is told: the next row, and how much was told.
    """
    unknown, forget, beginning, quietly = terms[0], terms[1], terms[2], terms[3]
    told = 0
    for i in range(begin, len(codes)):
        if told + TELLS > room:
            return i, told
        c = codes[i]
        if c < 0:
            continue
        s = scopes[c]
        w = c * each
        limit = times[i]
        waiting = reads
        while True:
            on = s.flags & ON
            at, what = NEVER, 0
            if s.last != NONE:
                if s.level < len(silences):
                    at, what = s.last + silences[s.level], 1
                if s.cand != NONE and counts[on] == 0 and s.cand + waits[w, on] < at:
                    at, what = s.cand + waits[w, on], 2
                if unknown >= 0 and not s.flags & UNKNOWN and s.last + unknown < at:
                    at, what = s.last + unknown, 3
                if forget >= 0 and not s.flags & EXPECTED and s.last + forget < at:
                    at, what = s.last + forget, 4
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
                        if counts[on] == 0 and waits[w, on] == 0:
                            turns, row = True, s.last_row
                elif what == 2:
                    turns, row, held = True, s.cand_row, s.cand
                elif what == 3 or (on and not s.flags & UNKNOWN):
                    if s.cand != NONE and s.cand <= s.last:
                        s.cand, s.count = NONE, 0
                    s.flags = (s.flags | UNKNOWN) & ~QUIET
                    out[told, CODE], out[told, ROW], out[told, TIME] = c, s.last_row, at
                    out[told, STATUS], out[told, SINCE] = UNKNOWN_NOW, s.since
                    told += 1
                if what == 4:
                    s.last, s.since, s.cand, s.count = NONE, NONE, NONE, 0
                    s.flags, s.level, s.last_row = beginning, 0, NOBODY
            elif waiting:
                waiting = False
                first = not s.flags & SEEN
                if first or limit >= s.last:
                    s.last_row = i
                if s.last == NONE or limit > s.last:
                    s.last = limit
                level = 0
                while level < s.level and s.last + silences[level] < until:
                    level += 1
                s.level, s.enter, s.leave = level, enters[i], leaves[i]
                s.flags |= SEEN
                if on and s.since == NONE:
                    s.since = limit
                if ((s.leave if on else s.enter) >> level) & 1:
                    if s.cand == NONE:
                        s.cand, s.count, s.cand_row = s.last, 0, i
                        if first and quietly:
                            s.flags |= QUIET
                    s.count += 1
                    if counts[on]:
                        turns, row, when, held = s.count >= counts[on], i, limit, s.cand
                    elif not waits[w, on]:
                        turns, row, when = True, i, limit
                    elif s.cand + waits[w, on] <= s.last:
                        turns, row, when, held = True, s.cand_row, s.cand + waits[w, on], s.cand
                else:
                    s.cand, s.count = NONE, 0
                    s.flags &= ~QUIET
                if s.flags & UNKNOWN:
                    if s.flags & UNDECIDED:
                        known = ((s.enter if on else s.leave) >> level) & 1
                    else:
                        known = unknown < 0 or s.last + unknown >= until
                    if known:
                        s.flags &= ~(UNKNOWN | UNDECIDED)
                        if not turns and not (first and quietly):
                            out[told, CODE], out[told, ROW], out[told, TIME] = c, i, limit
                            out[told, STATUS], out[told, SINCE] = KNOWN_AGAIN, s.since
                            told += 1
            else:
                due[c] = at
                break
            if turns:
                if not s.flags & QUIET:
                    out[told, CODE], out[told, ROW], out[told, TIME] = c, row, when
                    out[told, STATUS], out[told, SINCE] = (EGRESS, s.since) if on else (INGRESS, held)
                    told += 1
                if s.flags & UNDECIDED:
                    s.flags &= ~UNDECIDED
                    if unknown < 0 or s.last + unknown >= when:
                        s.flags &= ~UNKNOWN
                s.flags = (s.flags ^ ON) & ~QUIET
                s.since, s.cand, s.count = (NONE if on else when), NONE, 0
    return len(codes), told


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
