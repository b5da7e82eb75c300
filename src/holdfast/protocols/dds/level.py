"""How reliably samples travel: the reading above which one must arrive, or whether it turns a condition.

Best effort and full reliability are the two ends of partial reliability: a threshold that no reading
exceeds, and one that every sample does.  So of several thresholds the lowest is the strongest
[D8, D26, D30].  By transition, what decides is not the reading but what it means: a sample that starts or
ends a condition of its topic must arrive, one inside a state need not.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final, Literal

from ...errors import UsageError
from ...model.event import Value

Threshold = float
Level = Threshold | Literal["transition"]

BEST_EFFORT: Final[Threshold] = inf
"""BEQoS: sent once.  [D16]"""
FULL: Final[Threshold] = -inf
"""FRQoS: sent until acknowledged.  [D17, D22]"""
TRANSITION: Final = "transition"
"""What starts or ends a condition is sent until acknowledged, the rest once."""


def partial(threshold: float) -> Threshold:
    """PRQoS: a sample whose reading exceeds the threshold is sent until acknowledged.  [D26]"""
    if threshold != threshold:
        raise UsageError("a threshold must be a number")
    return float(threshold)


def is_reliable(level: Level, reading: Value, turns: bool) -> bool:
    """Whether a sample must arrive: its reading exceeds the threshold, strictly [D26, AT4], or it turns
    something and that is asked for.

    >>> is_reliable(30.0, 30.0, True), is_reliable(30.0, 30.1, False), is_reliable(FULL, None, False)
    (False, True, True)
    >>> is_reliable(TRANSITION, 30.0, True), is_reliable(TRANSITION, 30.0, False)
    (True, False)
    """
    if level == TRANSITION:
        return turns
    return level == FULL or (isinstance(reading, float | int) and reading > level)


def strongest(levels: Iterable[Level]) -> tuple[Threshold, bool]:
    """What satisfies all: a threshold, and whether what turns a condition must arrive as well.

    >>> strongest([30.0, TRANSITION, 40.0]), strongest([])
    ((30.0, True), (inf, False))
    """
    some = list(levels)
    return min((each for each in some if each != TRANSITION), default=BEST_EFFORT), TRANSITION in some


def spoken(level: Level) -> str:
    """The level in words.

    >>> spoken(FULL), spoken(partial(30)), spoken(BEST_EFFORT), spoken(TRANSITION)
    ('full', 'partial above 30', 'best effort', 'by transition')
    """
    if level == TRANSITION:
        return "by transition"
    return {FULL: "full", BEST_EFFORT: "best effort"}.get(level, f"partial above {level:g}")
