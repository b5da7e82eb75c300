"""Naive twins of the window kernels, with lists and fractions."""

from __future__ import annotations

import math
from fractions import Fraction


def total(values):
    """The exact sum of what is known, rounded once; NaN where there is none."""
    known = [value for value in values if not math.isnan(value)]
    infinite = {value for value in known if math.isinf(value)}
    if not known or len(infinite) == 2:
        return math.nan
    if infinite:
        return infinite.pop()
    try:
        return float(sum(map(Fraction, known), Fraction(0)))
    except OverflowError:
        return math.nan


def known(values):
    return [value for value in values if not math.isnan(value)]


def mean(values):
    return total(values) / len(known(values)) if known(values) else math.nan


def deviation(values):
    middle, some = mean(values), known(values)
    squares = [(value - middle) * (value - middle) for value in some]
    if len(some) < 2 or not all(map(math.isfinite, squares)):
        return math.nan
    return math.sqrt(total(squares) / (len(some) - 1))


FUNCTIONS = {
    "sum": total,
    "avg": mean,
    "stddev": deviation,
    "count": lambda values: float(len(known(values))),
    "max": lambda values: max(known(values), default=math.nan),
    "min": lambda values: min(known(values), default=math.nan),
}


def instants(streams, first, end):
    """For each key the instants of its streams, each once and in order; a stream is lists of times by
    key, and a shift."""
    count = len(streams[0][0])
    return [
        sorted({t + shift for times, shift in streams for t in times[k] if first <= t + shift < end})
        for k in range(count)
    ]


def tally(parts, owners, found):
    """For each instant of each owner, the sum of the changes of its parts that it is the first at or
    after; ``parts`` are lists of (time, change)."""
    out = [[0] * len(instants) for instants in found]
    for changes, owner in zip(parts, owners, strict=True):
        for instant, change in changes:
            later = [i for i, at in enumerate(found[owner]) if at >= instant]
            if later:
                out[owner][later[0]] += change
    return out


def foremost(parts, owners, order, found):
    """For each instant of each owner the time of the first of its parts that has data then; ``parts`` are
    lists of (time, whether there is data)."""
    base = [sum(map(len, parts[:p])) for p in range(len(parts))]

    def of(owner, at):
        for p in order:
            past = [j for j, (instant, _) in enumerate(parts[p]) if instant <= at]
            if owners[p] == owner and past and parts[p][past[-1]][1]:
                return base[p] + past[-1]
        return -1

    return [[of(owner, at) for at in instants] for owner, instants in enumerate(found)]
