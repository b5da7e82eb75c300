"""The meaning of correlations, by trying every combination."""

from __future__ import annotations

import math
from itertools import product


def agree(members, within, near=math.inf):
    """Whether simple events ``(time, point)`` lie close enough together: strictly, in time and space."""
    latest = max(time for time, _ in members)
    apart = max(distance(p, q) for _, p in members for _, q in members) if near < math.inf else -math.inf
    return all(latest - time < within for time, _ in members) and apart < near


def distance(p, q):
    """How far apart two points are; a coordinate that one lacks is 0."""
    p, q = ((*point, 0.0, 0.0, 0.0)[:3] for point in (p, q))
    return math.sqrt(sum((a - b) * (a - b) for a, b in zip(p, q, strict=True)))


def complex_events(candidates, within, near=math.inf):
    """Every choice of one of each filter's candidates ``(time, point, …)`` that agrees."""
    for members in product(*candidates):
        if agree([(time, point) for time, point, *_ in members], within, near):
            yield members


def participants(candidates, within, near=math.inf):
    """The candidates that are members of some complex event."""
    return {member for members in complex_events(candidates, within, near) for member in members}
