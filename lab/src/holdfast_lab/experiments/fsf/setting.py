"""The document's four experiments, and what it leaves open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..series import MINUTE

WITHIN = 2 * MINUTE
"""δt: how often stations report; so the readings of one report agree, and those of the next rarely do."""
HOURS = 1
"""How long readings are replayed: so that a full run takes about ten minutes on two cores."""
STATIONS = 20
"""The stretch of time is one for all experiments: that in which so many stations are most complete."""
SEEDS = 5

CENTRALIZED, NAIVE, PLACEMENT = "centralized", "naive", "operator-placement"
MULTI_JOIN, FSF, EXACT = "multi-join", "fsf", "fsf-exact"
DISTRIBUTED = (NAIVE, PLACEMENT, MULTI_JOIN, FSF, EXACT)


@dataclass(frozen=True)
class Setting:
    """One experiment: its network, its subscriptions, what is compared."""

    name: str
    nodes: int
    groups: int
    attributes: tuple[int, int]
    """How many attributes a subscription has: least, most."""
    counts: tuple[int, ...]
    """Numbers of subscriptions; each is measured with a new network."""
    approaches: tuple[str, ...] = DISTRIBUTED
    star: bool = False
    """Whether the five nodes of a station are connected to its router, not to one another."""
    scale: float = 1.0
    """The least distance of a range's end from the median, in distances of the quartile."""
    within: int = WITHIN
    points: int | None = None
    """How many points set filtering draws at most; unless given, as many as it does by default."""


def variants(setting: Setting, count: int) -> tuple[Setting, ...]:
    """What the document leaves open, one thing at a time, at one number of subscriptions."""
    base = replace(setting, counts=(count,), approaches=(PLACEMENT, MULTI_JOIN, FSF))
    return (
        replace(base, name="a station is a star", star=True),
        replace(base, name="ranges half as wide", scale=0.5),
        replace(base, name="within 10 min", within=10 * MINUTE),
        replace(base, name="set filtering by 10 points", points=10),
        replace(base, name="set filtering by 3 points", points=3),
    )
