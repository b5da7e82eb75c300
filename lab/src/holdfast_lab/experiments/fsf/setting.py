"""The four experiments of the document, and the choices that it leaves open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..series import MINUTE

WITHIN = 2 * MINUTE
"""δt: the reporting period of stations. So the readings of one report match, and those of the next rarely
do."""
HOURS = 6
"""How long readings are replayed. In one hour so few fall into a gap that nothing is ever lost."""
STATIONS = 20
"""The number of stations that decides the period: it is the same for all experiments, that in which this many
stations are most complete."""
SEEDS = range(100, 105)
"""The seeds; the set-up was chosen with other ones, 0 to 4."""

CENTRALIZED, NAIVE, PLACEMENT = "centralized", "naive", "operator-placement"
MULTI_JOIN, FSF, EXACT = "multi-join", "fsf", "fsf-exact"
NAMED, AGAIN = "multi-join-named", "multi-join-again"
JOINS = (MULTI_JOIN, NAMED, AGAIN)
"""The document can be read in three ways as to events between the node where sources separate and the
user."""
DISTRIBUTED = (NAIVE, PLACEMENT, *JOINS, FSF, EXACT)


@dataclass(frozen=True)
class FsfSetting:
    """One experiment: its network, its subscriptions, and the approaches that it compares."""

    name: str
    nodes: int
    groups: int
    attributes: tuple[int, int]
    """The number of attributes of a subscription: least, most."""
    counts: tuple[int, ...]
    """Numbers of subscriptions; each is measured with a new network."""
    approaches: tuple[str, ...] = DISTRIBUTED
    star: bool = True
    """Whether the five nodes of a station are connected to its router, not to each other."""
    width: str = "even"
    """How ranges are drawn: a centre and a width with this distribution, or both ends separately."""
    at_routers: bool = True
    """Whether users are at routers only, or at any node."""
    within: int = WITHIN
    points: int | None = None
    """The largest number of points that set filtering draws; ``None``: its default."""


def variants(setting: FsfSetting, count: int) -> tuple[FsfSetting, ...]:
    """Return settings that change one open choice each, at one number of subscriptions."""
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
