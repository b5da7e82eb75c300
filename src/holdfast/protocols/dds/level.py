"""How reliably samples travel: the reading above which one must arrive.  [D8, D26, D30]

Best effort and full reliability are the two ends of partial reliability: a threshold that no reading
exceeds, and one that every sample does.  So of several wishes the lowest is the strongest.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from ...errors import UsageError
from ...model.event import Value

Level = float

BEST_EFFORT: Level = inf
"""BEQoS: sent once.  [D16]"""
FULL: Level = -inf
"""FRQoS: sent until acknowledged.  [D17, D22]"""


def partial(threshold: float) -> Level:
    """PRQoS: a sample whose reading exceeds the threshold is sent until acknowledged.  [D26]"""
    if threshold != threshold:
        raise UsageError("a threshold must be a number")
    return float(threshold)


def is_reliable(level: Level, reading: Value) -> bool:
    """Whether a sample must arrive: its reading exceeds the threshold, strictly.  [D26, AT4]

    >>> is_reliable(30.0, 30.0), is_reliable(30.0, 30.1), is_reliable(FULL, None)
    (False, True, True)
    """
    return level == FULL or (isinstance(reading, float | int) and reading > level)


def strongest(levels: Iterable[Level]) -> Level:
    """What satisfies all."""
    return min(levels, default=BEST_EFFORT)


def spoken(level: Level) -> str:
    """The level in words.

    >>> spoken(FULL), spoken(partial(30)), spoken(BEST_EFFORT)
    ('full', 'partial above 30', 'best effort')
    """
    return {FULL: "full", BEST_EFFORT: "best effort"}.get(level, f"partial above {level:g}")
