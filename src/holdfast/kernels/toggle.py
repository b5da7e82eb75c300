"""State filters, many scopes and many filters at once.

A *word* holds one status bit for each filter, so up to 64 filters move in one operation.  An event
acts on the bit of its scope by two masks: ``enter`` (which filters' entrance predicate holds) and
``leave`` (which filters' exit predicate holds).  A filter looks at ``leave`` while its bit is set
and at ``enter`` while it is not [F4]; a hit passes the event and flips the bit, except that a
momentary filter passes without moving it [S3].  ``codes`` are dense scope numbers; -1 is no scope.
"""

from __future__ import annotations

from .jit import kernel


@kernel
def toggle(codes, enter, leave, words, moving, hits):  # type: ignore[no-untyped-def]
    """Which filters each event passes; ``words`` is left as the events leave it.

    An event without a scope at this level meets no filter here, and goes on with what it may do.
    """
    for i in range(len(codes)):
        c = codes[i]
        if c < 0:
            hits[i] = enter[i] | leave[i]
        else:
            word = words[c]
            hit = (leave[i] & word) | (enter[i] & ~word)
            words[c] = word ^ (hit & moving)
            hits[i] = hit


@kernel
def both_ways(codes, enter, leave, low, high, moving, hits_low, hits_high):  # type: ignore[no-untyped-def]
    """What each event would pass had its scope begun with bits 0 (``low``) or with bits 1 (``high``).

    Afterwards (low, high) of a scope is the action of the whole stretch on a bit: (0, 1) keeps it,
    (1, 1) sets, (0, 0) resets, (1, 0) toggles.  An event that passes in neither run can be dropped
    whatever came before [law 2].
    """
    for i in range(len(codes)):
        c = codes[i]
        if c < 0:
            hits_low[i] = enter[i] | leave[i]
            hits_high[i] = enter[i] | leave[i]
        else:
            word = low[c]
            hit = (leave[i] & word) | (enter[i] & ~word)
            low[c] = word ^ (hit & moving)
            hits_low[i] = hit
            word = high[c]
            hit = (leave[i] & word) | (enter[i] & ~word)
            high[c] = word ^ (hit & moving)
            hits_high[i] = hit


@kernel
def pair(codes, times, since, began, nowhen):  # type: ignore[no-untyped-def]
    """For events that pass one filter in turn: when the condition that each of them ends began.

    ``since`` holds for each scope when its condition began, or ``nowhen``; ``began`` is ``nowhen``
    for an event that starts one.
    """
    for i in range(len(codes)):
        c = codes[i]
        began[i] = since[c]
        since[c] = times[i] if since[c] == nowhen else nowhen
