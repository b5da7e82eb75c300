"""Conditions that start and end in turn: the instants of their starts and ends."""

from __future__ import annotations

from .jit import kernel


@kernel
def turns(enter, leave, ends, holds, lasting, found, held):  # type: ignore[no-untyped-def]
    """Find the instants of each key with a start or an end. ``held`` is true if the condition was active
    before.

    Return the number of these instants. The instants of key ``k`` are those from ``ends[k]`` up to, but not
    including, ``ends[k + 1]``. ``holds[k]`` is true if its condition is active, and is updated. A condition
    that is not ``lasting`` emits at every match of its enter predicate.
    """
    size = 0
    for k in range(len(ends) - 1):
        now = holds[k]
        for i in range(ends[k], ends[k + 1]):
            if leave[i] if now else enter[i]:
                found[size] = i
                held[size] = now
                size += 1
                now = lasting and not now
        holds[k] = now
    return size


@kernel
def shared(own, ends, real, moments, counts, enter, leave, nexts, holds, lasting, found, found_ends):  # type: ignore[no-untyped-def]
    """Find the common instants at which a key starts or ends between its own instants.

    Return their number, or -1 if ``found`` has no room. The instants of key ``k`` are ``own[ends[k]:ends[k +
    1]]``; the first of them is the first common instant. Between them, the key's own part of a predicate is
    constant. An instant that is not ``real`` emits nothing. The first instant emits only if it ``counts``.
    ``nexts[enter[i]]`` and ``nexts[leave[i]]`` have for each common instant the next one, including itself,
    that satisfies a rule together with the key's part since instant ``i``. ``holds`` and ``lasting`` are as
    in ``turns``.
    """
    size = 0
    count = len(moments)
    for k in range(len(ends) - 1):
        now = holds[k]
        at = 0
        for i in range(ends[k], ends[k + 1]):
            while at + 1 < count and moments[at + 1] <= own[i]:
                at += 1
            next = at + 1
            if real[i]:
                if nexts[leave[i] if now else enter[i], at] == at:
                    now = lasting and not now
            elif counts:
                next = at
            while True:
                next = nexts[leave[i] if now else enter[i], next]
                if next == count or (i + 1 < ends[k + 1] and moments[next] >= own[i + 1]):
                    break
                if size == len(found):
                    return -1
                found[size] = moments[next]
                size += 1
                now = lasting and not now
                next += 1
        found_ends[k + 1] = size
    return size


@kernel
def end_at_contradiction(names, times, statuses, others, moments, words, until):  # type: ignore[no-untyped-def]
    """End each event where the next event with the same name and another status follows.

    An event that has already ended earlier is not changed. The other events are in order of name and time.
    """
    for i in range(len(names)):
        low, high = 0, len(others)
        while low < high:
            middle = (low + high) // 2
            if others[middle] < names[i] or (others[middle] == names[i] and moments[middle] <= times[i]):
                low = middle + 1
            else:
                high = middle
        while low < len(others) and others[low] == names[i]:
            if words[low] != statuses[i]:
                until[i] = min(until[i], moments[low])
                break
            low += 1
