"""Reliability levels: a threshold above which samples must arrive, or delivery of transitions.

Best effort and full reliability are the two ends of partial reliability: a threshold that no reading exceeds,
and a threshold that every sample exceeds. So of several thresholds, the lowest is the strongest [D8, D26,
D30]. With the level ``transition``, not the reading decides but its effect: a sample that starts or ends a
condition of its topic must arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final, Literal

from ....errors import UsageError
from ....model.event import Value

Threshold = float
Level = Threshold | Literal["transition"]

BEST_EFFORT: Final[Threshold] = inf
"""BEQoS, best effort: a sample is sent once. [D16]"""
FULL: Final[Threshold] = -inf
"""FRQoS, full reliability: a sample is sent until it is acknowledged. [D17, D22]"""
TRANSITION: Final = "transition"
"""The level at which only samples that start or end a condition are sent until they are acknowledged."""


def partial(threshold: float) -> Threshold:
    """Return the threshold of PRQoS: samples whose reading exceeds it are sent until acknowledged.  [D26]"""
    if threshold != threshold:
        raise UsageError("a threshold must be a number")
    return float(threshold)


def is_reliable(level: Level, reading: Value, turns: bool) -> bool:
    """Whether a sample must arrive: its reading exceeds the threshold strictly [D26], or it is a
    transition and the level asks for these.

    >>> is_reliable(30.0, 30.0, True), is_reliable(30.0, 30.1, False), is_reliable(FULL, None, False)
    (False, True, True)
    >>> is_reliable(TRANSITION, 30.0, True), is_reliable(TRANSITION, 30.0, False)
    (True, False)
    """
    if level == TRANSITION:
        return turns
    return level == FULL or (isinstance(reading, float | int) and reading > level)


def strongest(levels: Iterable[Level]) -> tuple[Threshold, bool]:
    """Return a threshold that satisfies all levels, and whether transitions must arrive as well.

    >>> strongest([30.0, TRANSITION, 40.0]), strongest([])
    ((30.0, True), (inf, False))
    """
    known = set(levels)
    thresholds = (level for level in known if level != TRANSITION)
    return min(thresholds, default=BEST_EFFORT), TRANSITION in known


def level_text(level: Level) -> str:
    """Return a level in words.

    >>> level_text(FULL), level_text(partial(30)), level_text(BEST_EFFORT), level_text(TRANSITION)
    ('full', 'partial above 30', 'best effort', 'by transition')
    """
    if level == TRANSITION:
        return "by transition"
    return {FULL: "full", BEST_EFFORT: "best effort"}.get(level, f"partial above {level:g}")
