"""Definitions that need a stage more each, and readings for them."""

from __future__ import annotations

from holdfast import Event

SECOND = 1_000_000
WARM = """
topic T (v float, floor text)
state Warm
  A = avg T over 2 s each source, floor
  enter A.v > 25
  exit A.v < 22
state Hot on T [v > 35; v < 5] per source
"""
FLOOR = """
state Floor
  W = Warm each floor
  enter W.valid && W.status == ingress
  exit W.valid && W.status == egress
"""
HOUSE = """
state House
  F = Floor
  enter F.valid && F.status == ingress
  exit F.valid && F.status == egress
"""
STAGES = [WARM, WARM + FLOOR, WARM + FLOOR + HOUSE]
"""Each needs a stage more than the one before it."""


def reading(at, source, value):
    return Event("T", at * SECOND, source, {"v": float(value), "floor": source[0]}, at)


def part(number):
    """Readings of some seconds with all starts and ends except of ``c1`` and of what is hot: a component
    that is added at another stage does not receive the end of an interval whose start it missed."""
    values = [20, 35, 35, 10, 15, 40, 28, 12]
    return [
        reading(20 * number + i, source, 40 if j == 3 else values[(i + 3 * j + number) % 8] if i < 8 else 10)
        for i in range(13)
        for j, source in enumerate(("a1", "a2", "b1", "c1"))
    ]
