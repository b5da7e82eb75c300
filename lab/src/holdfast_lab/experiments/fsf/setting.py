"""The document's four experiments, and what it leaves open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..series import MINUTE

WITHIN = 2 * MINUTE
"""δt: how often stations report; so the readings of one report agree, and those of the next rarely do."""
HOURS = 6
"""How long readings are replayed: in one hour so few fall into a gap that nothing is ever lost."""
STATIONS = 20
"""The stretch of time is one for all experiments: that in which so many stations are most complete."""
SEEDS = range(100, 105)
"""Not those of 0 to 4, by which the set-up was chosen."""

CENTRALIZED, NAIVE, PLACEMENT = "centralized", "naive", "operator-placement"
MULTI_JOIN, FSF, EXACT = "multi-join", "fsf", "fsf-exact"
NAMED, AGAIN = "multi-join-named", "multi-join-again"
JOINS = (MULTI_JOIN, NAMED, AGAIN)
"""What the document says of events between the node where sources part and the user has three readings."""
DISTRIBUTED = (NAIVE, PLACEMENT, *JOINS, FSF, EXACT)


@dataclass(frozen=True)
class FsfSetting:
    """One experiment: its network, its subscriptions, what is compared."""

    name: str
    nodes: int
    groups: int
    attributes: tuple[int, int]
    """How many attributes a subscription has: least, most."""
    counts: tuple[int, ...]
    """Numbers of subscriptions; each is measured with a new network."""
    approaches: tuple[str, ...] = DISTRIBUTED
    star: bool = True
    """Whether the five nodes of a station are connected to its router, not to one another."""
    width: str = "even"
    """How ranges are drawn: a centre, and a width by this distribution, or each end apart."""
    at_routers: bool = True
    """Whether users are at routers only, or at any node."""
    within: int = WITHIN
    points: int | None = None
    """How many points set filtering draws at most; unless given, as many as it does by default."""


def variants(setting: FsfSetting, count: int) -> tuple[FsfSetting, ...]:
    """What the document leaves open, one thing at a time, at one number of subscriptions."""
    base = replace(setting, counts=(count,), approaches=(NAIVE, PLACEMENT, *JOINS, FSF))
    return (
        replace(base, name="widths by Pareto too", width="pareto"),
        replace(base, name="each end drawn apart", width="apart"),
        replace(base, name="users at any node", at_routers=False),
        replace(base, name="a station's nodes one behind the other", star=False),
        replace(base, name="all three, as it was before", width="apart", at_routers=False, star=False),
        replace(base, name="ranges half as wide", width="half"),
        replace(base, name="within 10 min", within=10 * MINUTE),
        replace(base, name="set filtering by 10 points", points=10),
        replace(base, name="set filtering by 3 points", points=3),
    )
