"""The positions of rendezvous nodes in chapters 6 and 7.

The figure with the positions is lost, and they affect the results strongly.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.network.sim.chance import stream
from holdfast.network.sim.frame import NodeId

from . import setups

BETWEEN, HASHED, DRAWN = "between", "hashed", "drawn"
RENDEZVOUS: Mapping[str, tuple[NodeId, ...]] = {BETWEEN: setups.RENDEZVOUS, HASHED: (0, 2, 1)}
"""The rendezvous nodes of squares, triangles and circles. *Hashed* is equation 6.1 as printed, which can only
give the nodes 0, 1 and 2; circles have the one in the middle, as the text says. *Between* is on the path
from publishers to subscribers, as a reader of the text may picture it."""


def rendezvous(where: str, seed: int) -> tuple[NodeId, ...]:
    """Return the nodes of a placement; *drawn* takes three others with every seed, of those without another
    role."""
    if where != DRAWN:
        return RENDEZVOUS[where]
    busy = {node for nodes in setups.PUBLISHERS.values() for node in nodes}
    busy |= {setups.BASE_STATION, setups.LEFT_ACTUATOR, setups.RIGHT_ACTUATOR}
    free = [node for node in range(setups.SIDE**2) if node not in busy]
    return tuple(stream(seed, "rendezvous").sample(free, len(setups.PUBLISHERS)))


def describe() -> dict[str, str]:
    """Return the positions of all roles in words."""
    known = setups.PUBLISHERS.items()
    publishers = "; ".join(f"{topic} {', '.join(map(str, nodes))}" for topic, nodes in known)
    return {
        "set-up": "Table 10: 7 × 7 nodes on 100 × 100 m, numbered row by row; five publishers, three "
        "subscribers, three topics, no IFS: all publishers send at the same moment",
        "publishers": publishers,
        "subscribers": f"actuators {setups.LEFT_ACTUATOR} (squares) and {setups.RIGHT_ACTUATOR} "
        f"(triangles), base station {setups.BASE_STATION} in the middle (all three)",
        "rendezvous nodes": "; ".join(
            f"{name}: {', '.join(map(str, nodes))}" for name, nodes in RENDEZVOUS.items()
        )
        + " (squares, triangles, circles). The figure with the positions is lost: 'between' stands on the "
        "way, 'hashed' is equation 6.1 as printed, 'drawn' three others with every seed",
    }
