"""Naive twins of the kernels, with dicts, sets and lists; they share no code with the kernels."""

from __future__ import annotations


def filters(mask):
    """The numbers of the filters whose bit is set."""
    return {f for f in range(64) if int(mask) & (1 << f)}


def mask(numbers):
    return sum(1 << f for f in numbers)


def toggle(codes, enter, leave, words, moving):
    """Which filters each event passes, and the words afterwards."""
    holding = {c: filters(word) for c, word in enumerate(words)}
    moves = filters(moving)
    hits = []
    for c, starts, ends in zip(codes, map(filters, enter), map(filters, leave), strict=True):
        if c < 0:
            hits.append(mask(starts | ends))
            continue
        passed = set()
        for f in range(64):
            if f in (ends if f in holding[c] else starts):
                passed.add(f)
        for f in passed & moves:
            if f in holding[c]:
                holding[c].remove(f)
            else:
                holding[c].add(f)
        hits.append(mask(passed))
    return hits, [mask(holding[c]) for c in range(len(words))]


def pair(codes, times, since):
    """For each event when what it ends began, ``None`` if it starts something; and what is open."""
    open_since = dict(since)
    began = []
    for c, time in zip(codes, times, strict=True):
        began.append(open_since.pop(c, None))
        if began[-1] is None:
            open_since[c] = time
    return began, open_since


def number(keys, known):
    """The code of each key; an unknown key gets the next one."""
    codes = dict(known)
    return [codes.setdefault(key, len(codes)) for key in keys], codes


def extents(rows: list[tuple[int, int, int, int]], scopes: int) -> tuple[int, list[int], list[int]] | None:
    """For rows (scope, time, rank, sequence): whether times are equal somewhere, and the first and last
    row of each scope; ``None`` if a scope is not in order."""
    mine = [[i for i, row in enumerate(rows) if row[0] == scope] for scope in range(scopes)]
    keys = [[rows[i][1:] for i in some] for some in mine]
    if any(some != sorted(some) for some in keys):
        return None
    tied = any(len({key[0] for key in some}) < len(some) for some in keys)
    return int(tied), [min(some, default=-1) for some in mine], [max(some, default=-1) for some in mine]
