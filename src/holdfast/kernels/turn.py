"""Conditions that start and end in turn, from one satisfied predicate to the next."""

from __future__ import annotations

from .jit import kernel


@kernel
def turns(enter, leave, ends, holds, lasting, found, held):  # type: ignore[no-untyped-def]
    """The instants of each key at which something is told, and whether the condition held until then.

    The instants of key ``k`` are those from ``ends[k]`` to before ``ends[k + 1]``; ``holds[k]`` is whether
    its condition holds, and becomes whether it does afterwards.  What is not ``lasting`` is told of every
    entrance.
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
    """The moments that all keys share at which something is told of a key, but for those at instants of its
    own; how many they are, or -1 if ``found`` has no room for them.

    The instants of key ``k`` are ``own[ends[k]:ends[k + 1]]``; the first is the first moment, and what is so
    of the key by itself is so until the next.  One that is not ``real`` tells nothing, and the first moment
    does not either unless it ``counts``.  ``nexts[enter[i]]`` and ``nexts[leave[i]]`` have for each moment
    the next, from itself on, that satisfies a rule together with what is so of the key since instant ``i``.
    ``holds[k]`` is whether its condition holds; what is not ``lasting`` is told of every entrance.
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
def contradicted(names, times, statuses, others, moments, words, until):  # type: ignore[no-untyped-def]
    """Let each event end, at the latest, where the first of the others of its name comes after it that has
    another status.  The others are in order of name and time."""
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
