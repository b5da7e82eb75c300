"""Aggregate functions of the values in windows ``[low, high)`` of an array. Both ends of the windows only
move forward.

Missing values are NaN. A sum is exact and rounded once, so the order of the numbers and values that have left
a window do not change it. A sum is a number of about 2,100 bits in limbs of 32 bits. Each limb is an int64
that adds and subtracts numbers without carrying. Only the limbs that the values reach are processed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .jit import kernel

Floats = NDArray[np.float64]
"""An array of values; NaN is missing."""
Rows = NDArray[np.int64]
"""An array of row numbers."""

_PAIRS = 1 << 20
"""The number of differences from the mean that are squared at a time."""


@kernel
def _sums(bits, low, high, base, limbs, digits, out):  # type: ignore[no-untyped-def]
    """Compute the exact sum of each window of float64 values, which are given as their bits.

    The sum is NaN if a window has no value, has both infinities, or exceeds a float. ``limbs[0]`` is worth
    2**(32 * base - 1074).
    """
    mask = 0xFFFFFFFF
    size = len(limbs)
    first = last = known = up = down = 0
    for i in range(len(low)):
        if low[i] >= last:
            first = last = low[i]
            known = up = down = 0
            limbs[:] = 0
        while first < low[i] or last < high[i]:
            entering = last < high[i]
            row = last if entering else first
            change = 1 if entering else -1
            if entering:
                last += 1
            else:
                first += 1
            word = bits[row]
            exponent = (word >> 52) & 0x7FF
            part = word & 0xFFFFFFFFFFFFF
            if exponent == 0x7FF:
                if part == 0:
                    known += change
                    if word < 0:
                        down += change
                    else:
                        up += change
                continue
            known += change
            if exponent == 0:
                exponent = 1
            else:
                part |= 0x10000000000000
            if word < 0:
                change = -change
            place = exponent - 1
            shift = place & 31
            limb = (place >> 5) - base
            if part != 0:
                lower = (part & mask) << shift
                upper = (part >> 32) << shift
                limbs[limb] += change * (lower & mask)
                limbs[limb + 1] += change * ((lower >> 32) + (upper & mask))
                limbs[limb + 2] += change * (upper >> 32)
        if known == 0 or (up > 0 and down > 0):
            out[i] = math.nan
            continue
        if up > 0 or down > 0:
            out[i] = math.inf if up > 0 else -math.inf
            continue
        sign = 1
        carry = 0
        for k in range(size):
            carry = (carry + limbs[k]) >> 32
        if carry < 0:
            sign = -1
        carry = 0
        for k in range(size):
            carry += sign * limbs[k]
            digits[k + 2] = carry & mask
            carry >>= 32
        top = size + 1
        while top > 2 and digits[top] == 0:
            top -= 1
        leading = digits[top]
        if leading == 0:
            out[i] = 0.0
            continue
        drop = math.frexp(float(leading))[1] + 9
        middle = digits[top - 1]
        least = digits[top - 2]
        if drop <= 32:
            number = (leading << (64 - drop)) + (middle << (32 - drop)) + (least >> drop)
            rest = least & ((1 << drop) - 1)
        else:
            number = (leading << (64 - drop)) + (middle >> (drop - 32))
            rest = least | (middle & ((1 << (drop - 32)) - 1))
        for k in range(2, top - 2):
            rest |= digits[k]
        quarters = number & 3
        number >>= 2
        if quarters == 3 or (quarters == 2 and (rest != 0 or number & 1 == 1)):
            number += 1
        exponent = 32 * (top - 4 + base) + drop + 2 - 1074
        if exponent > 971 or (exponent == 971 and number == 1 << 53):
            out[i] = math.nan
        else:
            out[i] = sign * math.ldexp(float(number), exponent)


@kernel
def _extremes(values, low, high, sign, queue, out):  # type: ignore[no-untyped-def]
    """Compute the largest value times ``sign`` of each window. ``queue`` is scratch space for the
    candidates."""
    head = tail = at = 0
    for i in range(len(low)):
        at = max(at, low[i])
        while at < high[i]:
            value = values[at] * sign
            if value == value:
                while tail > head and values[queue[tail - 1]] * sign <= value:
                    tail -= 1
                queue[tail] = at
                tail += 1
            at += 1
        while head < tail and queue[head] < low[i]:
            head += 1
        out[i] = values[queue[head]] if head < tail else math.nan


def counts(values: Floats, low: Rows, high: Rows) -> Rows:
    """Return the number of values of each window that are not missing."""
    there = values == values
    if there.all():
        return high - low
    known = np.zeros(len(values) + 1, np.int64)
    np.cumsum(there, out=known[1:])
    found: Rows = known[high] - known[low]
    return found


def sums(values: Floats, low: Rows, high: Rows) -> Floats:
    """Return the exact sum of each window, rounded once; NaN for a window without values."""
    values = np.ascontiguousarray(values)
    bits = values.view(np.int64)
    exponents = np.maximum((bits >> 52) & 0x7FF, 1)[np.isfinite(values) & (values != 0)]
    base = int(exponents.min() - 1) >> 5 if len(exponents) else 0
    top = int(exponents.max() - 1) >> 5 if len(exponents) else 0
    limbs = np.zeros(top - base + 5, np.int64)
    out = np.empty(len(low))
    _sums(bits, low, high, base, limbs, np.zeros(len(limbs) + 2, np.int64), out)
    return out


def means(values: Floats, low: Rows, high: Rows) -> Floats:
    """Return the mean of each window, computed from its exact sum."""
    with np.errstate(all="ignore"):
        found: Floats = sums(values, low, high) / counts(values, low, high)
    return found


def largest(values: Floats, low: Rows, high: Rows, sign: float = 1.0) -> Floats:
    """Return the largest value of each window; with ``sign`` -1, the smallest."""
    out = np.empty(len(low))
    _extremes(values, low, high, sign, np.empty(len(values) + 1, np.int64), out)
    return out


def deviations(values: Floats, low: Rows, high: Rows) -> Floats:
    """Return the sample standard deviation of each window.

    It is missing for fewer than two values, and if a square exceeds a float.
    """
    middles = means(values, low, high)
    known = counts(values, low, high)
    out = np.empty(len(low))
    widths = high - low
    first = 0
    while first < len(low):
        reach = np.searchsorted(np.cumsum(widths[first:]), _PAIRS, "right")
        some = slice(first, first + max(int(reach), 1))
        out[some] = _squares(values, low[some], widths[some], middles[some])
        first = some.stop
    return roots(out, known)


def roots(squares: Floats, known: Rows) -> Floats:
    """Return standard deviations, given sums of squared differences and the numbers of values."""
    with np.errstate(all="ignore"):
        found: Floats = np.sqrt(squares / (known - 1))
    return np.where((known > 1) & np.isfinite(found), found, np.nan)


def _squares(values: Floats, low: Rows, widths: Rows, middles: Floats) -> Floats:
    """Return the sum of the squared differences from the mean of each window."""
    ends = np.cumsum(widths)
    begins = ends - widths
    rows = np.repeat(low - begins, widths) + np.arange(int(ends[-1]))
    with np.errstate(all="ignore"):
        apart = values[rows] - np.repeat(middles, widths)
        squares = apart * apart
    return sums(squares, begins, ends)
