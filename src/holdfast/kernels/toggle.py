"""State filters: the effect of events on the bits of many scopes and many filters at once.

A *word* has one status bit for each filter, so up to 64 filters change in one operation. An event acts on the
bits of its scope by two masks. ``enter`` and ``leave`` have the bits of the filters whose enter and exit
predicates are true. A filter uses ``leave`` while its bit is set and ``enter`` while it is not [F4]. A match
passes the event and flips the bit. A momentary filter passes the event without flipping a bit [S3]. ``codes``
are dense scope numbers; -1 is no scope.
"""

from __future__ import annotations

from .jit import kernel


@kernel
def toggle(codes, enter, leave, words, moving, hits):  # type: ignore[no-untyped-def]
    """Compute the filters that each event passes, and update ``words``. ``moving`` has the bits of filters
    that are not momentary.

    An event without a scope changes no bit. It passes every filter of which it satisfies a predicate.
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
    """Compute what each event would pass if its scope started with all bits 0 (``low``) or with all bits 1
    (``high``).

    Afterwards (low, high) of a scope is the effect of the whole part on a bit. (0, 1) leaves the bit as it
    is, (1, 1) sets it, (0, 0) resets it, and (1, 0) toggles it. An event that passes in neither case can be
    dropped in any state [law 2].
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
    """Find the start of the condition that each event ends. The events of a scope start and end the condition
    in turn.

    ``since`` has the start of the active condition of each scope, or ``nowhen``. ``began`` is ``nowhen`` for
    an event that starts a condition.
    """
    for i in range(len(codes)):
        c = codes[i]
        began[i] = since[c]
        since[c] = times[i] if since[c] == nowhen else nowhen
