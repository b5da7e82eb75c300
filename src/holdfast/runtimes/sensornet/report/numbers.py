"""Numbers as people read them."""

from __future__ import annotations

from ....sim.statistics import Estimate


def shown(estimate: Estimate | None) -> str:
    """
    >>> shown(Estimate(0.98123, 0.0104, 5)), shown(Estimate(12000.0, None, 1)), shown(None)
    ('0.9812 ± 0.01', '12,000', '–')
    """
    if estimate is None:
        return "–"
    half = "" if estimate.half is None else f" ± {rounded(estimate.half, 2)}"
    return rounded(estimate.mean, 4) + half


def rounded(number: float, digits: int) -> str:
    """So many digits, but never fewer than stand before the point.

    >>> rounded(0.123456, 4), rounded(1234.5, 4), rounded(210.4, 2)
    ('0.1235', '1,234', '210')
    """
    return f"{number:,.0f}" if abs(number) >= min(1_000, 10**digits) else f"{number:.{digits}g}"
