"""Aggregates over the current values of all parts of a key.

The value of a part stays the same from one of its changes to the next. Changes are numbered by key and then
by time; those of key ``k`` start at ``starts[k]``. ``parts`` has the part of each change; key ``k`` has the
parts from ``owned[k]`` up to, but not including, ``owned[k + 1]``. The instants of key ``k`` are those from
``ends[k]`` up to, but not including, ``ends[k + 1]``. Instant ``i`` includes the changes before ``reach[i]``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .aggregate import roots, sums
from .jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TOGETHER = 1 << 20
"""The number of values that are processed at a time."""


@kernel
def earlier(parts, newest, before):  # type: ignore[no-untyped-def]
    """Find for each change the previous change of the same part, or -1. ``newest`` must be -1 everywhere."""
    for e in range(len(parts)):
        before[e] = newest[parts[e]]
        newest[parts[e]] = e


@kernel
def _extremes(reach, ends, starts, parts, values, owned, sign, tree, out):  # type: ignore[no-untyped-def]
    """Compute the largest value times ``sign`` of the parts at each instant, with a tournament tree."""
    for k in range(len(ends) - 1):
        size = owned[k + 1] - owned[k]
        tree[: 2 * size] = -math.inf
        e = starts[k]
        for i in range(ends[k], ends[k + 1]):
            while e < reach[i]:
                value = values[e] * sign
                at = size + parts[e] - owned[k]
                tree[at] = value if value == value else -math.inf
                at >>= 1
                while at > 0:
                    best = max(tree[2 * at], tree[2 * at + 1])
                    if tree[at] == best:
                        break
                    tree[at] = best
                    at >>= 1
                e += 1
            out[i] = tree[1] * sign if size > 0 else math.nan


@kernel
def _squares(whose, some, change, reach, parts, values, owned, middles, current, out):  # type: ignore[no-untyped-def]
    """Compute the squared differences from the mean of all parts at the instants ``some``. Return the next
    change."""
    size = 0
    for i in some:
        while change < reach[i]:
            current[parts[change]] = values[change]
            change += 1
        for p in range(owned[whose[i]], owned[whose[i] + 1]):
            away = current[p] - middles[i]
            out[size] = away * away
            size += 1
    return change


@kernel
def _scatter(whose, reach, parts, values, owned, middles, current, out, unsure):  # type: ignore[no-untyped-def]
    """Compute the sum of the squared differences at each instant, rounded once. Set ``unsure`` where the
    rounding is uncertain.

    The rounding errors of a sum of ``n`` squares are summed separately. The error of that correction is less
    than ``n**2 * 2**-104`` of the sum. If an error of this size does not change the result, the result is
    exact.
    """
    change = 0
    for i in range(len(whose)):
        while change < reach[i]:
            current[parts[change]] = values[change]
            change += 1
        total = rest = 0.0
        known = 0
        first, last = owned[whose[i]], owned[whose[i] + 1]
        for p in range(first, last):
            away = current[p] - middles[i]
            square = away * away
            if square == square:
                known += 1
                higher = total + square
                shown = higher - total
                rest += (total - (higher - shown)) + (square - shown)
                total = higher
        doubt = total * known * known * 2.0**-104
        out[i] = total + (rest - doubt)
        sure = 1e-250 < total < 1e300 and out[i] == total + (rest + doubt)
        unsure[i] = not sure and (total != 0 or known == 0)


class FoldParts:
    """Aggregates over the parts of keys at instants. Each method returns a value for each instant.

    The arguments of the methods have the value of each change; NaN is missing.
    """

    def __init__(self, reach: Ints, ends: Ints, starts: Ints, parts: Ints, owned: Ints) -> None:
        self._reach, self._ends, self._starts, self._parts, self._owned = reach, ends, starts, parts, owned
        self._first = np.repeat(starts[:-1], np.diff(ends))
        self._before = np.empty(len(parts), np.int64)
        earlier(parts, np.full(int(owned[-1]), -1), self._before)

    def total(self, numbers: Ints) -> Ints:
        """Return the sum of the integers `numbers`, which has one integer for each change."""
        change = numbers - np.append(numbers, 0)[self._before]
        running = np.append(0, np.cumsum(change))
        found: Ints = running[self._reach] - running[self._first]
        return found

    def counts(self, values: Floats) -> Ints:
        """Return the number of values that are not missing."""
        return self.total((values == values).astype(np.int64))

    def sums(self, values: Floats) -> Floats:
        """Return the exact sum, rounded once. A change adds its value and subtracts the previous value of the
        part."""
        finite = np.where(np.isfinite(values), values, 0.0)
        changes = np.stack((finite, -np.append(finite, 0.0)[self._before]), axis=1).ravel()
        found = sums(changes, 2 * self._first, 2 * self._reach)
        up, down = (self.total((values == infinite).astype(np.int64)) > 0 for infinite in (np.inf, -np.inf))
        found = np.where(up, np.where(down, np.nan, np.inf), np.where(down, -np.inf, found))
        return np.where(self.counts(values) > 0, found, np.nan)

    def means(self, values: Floats) -> Floats:
        """Return the mean, computed from the exact sum."""
        with np.errstate(all="ignore"):
            found: Floats = self.sums(values) / self.counts(values)
        return found

    def largest(self, values: Floats, sign: float = 1.0) -> Floats:
        """Return the largest value; with ``sign`` -1, the smallest."""
        tree = np.empty(2 * int(np.diff(self._owned).max(initial=1)))
        out = np.empty(len(self._reach))
        _extremes(self._reach, self._ends, self._starts, self._parts, values, self._owned, sign, tree, out)
        return np.where(self.counts(values) > 0, out, np.nan)

    def deviations(self, values: Floats) -> Floats:
        """Return the sample standard deviation.

        It is missing for fewer than two values, and if a square exceeds a float.
        """
        middles, known = self.means(values), self.counts(values)
        whose = np.repeat(np.arange(len(self._ends) - 1), np.diff(self._ends))
        out, unsure = np.empty(len(whose)), np.empty(len(whose), np.bool_)
        shown = (self._reach, self._parts, values, self._owned, middles)
        with np.errstate(all="ignore"):
            _scatter(whose, *shown, np.full(int(self._owned[-1]), np.nan), out, unsure)
        self._exactly(np.flatnonzero(unsure), whose, shown, out)
        return roots(out, known)

    def _exactly(self, some: Ints, whose: Ints, shown: tuple[Any, ...], out: Floats) -> None:
        """Compute the sums of squares at the instants ``some`` again, exactly."""
        ends = np.append(0, np.cumsum(np.diff(self._owned)[whose[some]]))
        current = np.full(int(self._owned[-1]), np.nan)
        first = change = 0
        while first < len(some):
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + _TOGETHER, "right")) - 1)
            squares, bounds = np.empty(int(ends[last] - ends[first])), ends[first : last + 1] - ends[first]
            with np.errstate(all="ignore"):
                change = _squares(whose, some[first:last], change, *shown, current, squares)
            out[some[first:last]] = sums(squares, bounds[:-1], bounds[1:])
            first = last
