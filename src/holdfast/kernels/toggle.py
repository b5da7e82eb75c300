"""State filters, many scopes and many filters at once.

A *word* has one status bit for each filter, so up to 64 filters change in one operation. An event acts on the
bits of its scope by two masks: ``enter`` and ``leave`` have the bits of the filters whose enter and exit
predicates are true. A filter uses ``leave`` while its bit is set and ``enter`` while it is not [F4]; a match
passes the event and flips the bit, except that a momentary filter passes without flipping it [S3]. ``codes``
are dense scope numbers; -1 is no scope.
"""

from __future__ import annotations

from .jit import kernel


@kernel
def toggle(codes, enter, leave, words, moving, hits):  # type: ignore[no-untyped-def]
    """Compute which filters each event passes, and update ``words``.

    An event without a scope changes no bit; it passes every filter of which it satisfies a predicate.
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
    """Compute what each event would pass if its scope started with all bits 0 (``low``) or 1 (``high``).

    Afterwards (low, high) of a scope is the action of the whole part on a bit: (0, 1) keeps it, (1, 1) sets,
    (0, 0) resets, (1, 0) toggles. An event that passes in neither run can be dropped whatever the state
    before [law 2].
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
    """For events that pass one filter in turn: find the start of the condition that each of them ends.

    ``since`` has the start of the active condition of each scope, or ``nowhen``; ``began`` is ``nowhen`` for
    an event that starts one.
    """
    for i in range(len(codes)):
        c = codes[i]
        began[i] = since[c]
        since[c] = times[i] if since[c] == nowhen else nowhen
