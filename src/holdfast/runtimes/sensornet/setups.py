"""The set-ups of the thesis, as far as its text gives them; what it leaves out is chosen with a reason.

Every function takes what its experiment varies and returns a ``Scenario``; ``dataclasses.replace`` changes
the rest.  Nodes are numbered row by row from 0.
"""

from __future__ import annotations

from typing import Any

from ...errors import UsageError
from ...model.instant import MILLISECOND, SECOND, Duration
from ...protocols.dds.deployment import ModeName, Reliable
from ...protocols.dds.interest import Interest
from ...protocols.dds.level import BEST_EFFORT, FULL, Level, partial
from ...protocols.dds.topic import Topic
from ...sim.chance import stream
from ...sim.energy import Rest
from ...sim.frame import NodeId
from ...sim.mac import Csma
from ...sim.routing.grid import hops
from .scenario import Scenario, Subscription

TOPIC = "reading"

# Chapter 3: what the middleware costs.  [D67]


def middleware_cost(middleware: bool, ipi: Duration = 6 * SECOND, seed: int = 1, **more: Any) -> Scenario:
    """4 × 4 nodes on 100 m × 100 m, publishers 1 and 4, base station 15, best effort over DYMO.

    The rendezvous node is 0: the hash taken literally.  DYMO needs to know which links work, so links
    acknowledge.  The rest state is the one of chapter 5's validation: radio and processor always on.
    """
    given: dict[str, Any] = {
        "rows": 4,
        "columns": 4,
        "spacing": 100 / 3,
        "topics": (Topic(0, TOPIC),),
        "publishers": {TOPIC: (1, 4)},
        "subscriptions": (Subscription(15, Interest(topic=TOPIC)),),
        "table": (0,),
        "mode": "DefTDDS" if middleware else None,
        "ipi": ipi,
        "routing": "on-demand",
        "mac": Csma(),
        "rest": Rest("listen", "idle"),
        "duration": 1000 * SECOND,
        "sampling": 2 * MILLISECOND,
        "seed": seed,
    }
    return Scenario(**given | more)


# Chapter 4: RTDDS.  [D68]

ROWS, COLUMNS, SPACING = 5, 10, 100 / 6
"""50 nodes make no square (spec §7, 10); 5 × 10, as far apart as the 7 × 7 nodes of chapter 6."""
MIDDLE = (2, 4)
"""Where the rendezvous node is: within three hops of 34 others, within five of all."""
STATION_HOPS = 3


def _at(row: int, column: int) -> NodeId:
    return row * COLUMNS + column


def _rtdds(
    publishers: tuple[NodeId, ...], station: NodeId, level: Level, ipi: Duration, rto: Duration, more: Any
) -> Scenario:
    given: dict[str, Any] = {
        "rows": ROWS,
        "columns": COLUMNS,
        "spacing": SPACING,
        "topics": (Topic(0, TOPIC, level=level),),
        "publishers": {TOPIC: publishers},
        "subscriptions": (Subscription(station, Interest(topic=TOPIC)),),
        "table": (_at(*MIDDLE),),
        "reliable": Reliable(rto=rto),
        "ipi": ipi,
        "ifs": True,
        "duration": 500 * SECOND,
    }
    return Scenario(**given | more)


def rtdds_rto(rto: Duration, to_rendezvous: int, seed: int = 1, **more: Any) -> Scenario:
    """FRQoS-RTO: two publishers and the base station, each 1 to 5 hops from the RN, one message a second.

    In text the hops are end to end, twice as many [AT8].
    """
    if not 1 <= to_rendezvous <= 5:
        raise UsageError(f"{to_rendezvous} hops to the rendezvous node; from 1 to 5 on this grid")
    row, column = MIDDLE
    aside, there = min(to_rendezvous, 2), column + to_rendezvous
    publishers = (_at(row - aside, there), _at(row, there))
    return _rtdds(publishers, _at(row + aside, there), FULL, SECOND, rto, {"seed": seed} | more)


def rtdds_load(
    publishers: int,
    ipi: Duration,
    level: Level = FULL,
    seed: int = 1,
    rto: Duration = 400 * MILLISECOND,
    **more: Any,
) -> Scenario:
    """FRQoS-IPI and Table 6: so many publishers within three hops of the RN, drawn by the seed."""
    station = _at(MIDDLE[0], MIDDLE[1] + STATION_HOPS)
    middle = _at(*MIDDLE)
    near = [
        node
        for node in range(ROWS * COLUMNS)
        if node not in (middle, station) and hops(node, middle, COLUMNS) <= STATION_HOPS
    ]
    if not 1 <= publishers <= len(near):
        raise UsageError(f"{publishers} publishers; from 1 to {len(near)} are within three hops of the RN")
    chosen = tuple(sorted(stream(seed, "publishers").sample(near, publishers)))
    return _rtdds(chosen, station, level, ipi, rto, {"seed": seed} | more)


def rtdds_partial(share: float, ipi: Duration, seed: int = 1, **more: Any) -> Scenario:
    """PRQoS: five publishers, readings from 0 to 1, of which a share exceeds the threshold.  [D30]"""
    if not 0 <= share <= 1:
        raise UsageError(f"a share of {share}; it is from 0 to 1")
    level = {0.0: BEST_EFFORT, 1.0: FULL}.get(float(share), partial(1 - share))
    return rtdds_load(5, ipi, level, seed, **more)


# Chapters 6 and 7: with and without a broker.  [D69]

SQUARE, TRIANGLE, CIRCLE = "square", "triangle", "circle"
SIDE = 7
BASE_STATION, LEFT_ACTUATOR, RIGHT_ACTUATOR = 24, 21, 27
RENDEZVOUS = (22, 26, 10)
"""By hash.  The figure is lost.  The text has a base station in the middle, RNs with hot nodes between them
and it, and a third RN ("circle") that stays healthy: so two lie left and right of it, the third above."""
PUBLISHERS = {SQUARE: (7, 35), TRIANGLE: (13, 41), CIRCLE: (3,)}


def modes(
    mode: ModeName, ipi: Duration = 2 * SECOND, level: Level = FULL, seed: int = 1, **more: Any
) -> Scenario:
    """Table 10: 7 × 7 nodes, five publishers, two actuators with a topic each, a base station with all three.

    No interference-free scheduling (L1189).
    """
    topics = tuple(Topic(id, name, level=level) for id, name in enumerate(PUBLISHERS))
    watchers = [(LEFT_ACTUATOR, SQUARE), (RIGHT_ACTUATOR, TRIANGLE)]
    watchers += [(BASE_STATION, name) for name in PUBLISHERS]
    given: dict[str, Any] = {
        "rows": SIDE,
        "columns": SIDE,
        "spacing": 100 / 6,
        "topics": topics,
        "publishers": PUBLISHERS,
        "subscriptions": tuple(
            Subscription(node, Interest(topic=name), name=name) for node, name in watchers
        ),
        "table": RENDEZVOUS,
        "mode": mode,
        "ipi": ipi,
        "duration": 1000 * SECOND,
        "seed": seed,
    }
    return Scenario(**given | more)


def lifetime(
    mode: ModeName, ipi: Duration = 2 * SECOND, level: Level = FULL, seed: int = 1, **more: Any
) -> Scenario:
    """Chapter 7: as ``modes``, with 1 J for each node, until the first has used it.  [D50]

    At rest nodes sleep: with radio or processor on, 1 J does not last for one round of 350 s (spec §7, 7).
    """
    given = {"battery_j": 1.0, "until_first_death": True, "duration": 100_000 * SECOND, "drain": 0}
    return modes(mode, ipi, level, seed, **given | more)
