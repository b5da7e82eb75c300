"""Neighbour discovery by beacons: which neighbours exist, and what share of frames arrives in each direction.

Beacons are numbered, so that gaps reveal losses. A beacon also reports what share of other nodes' beacons
arrives at its sender. So each end knows both directions of a link (as in De Couto et al., MobiCom 2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from ....model.instant import SECOND, Duration, Instant
from ....model.protocol import SetTimer
from ..frame import NodeId
from .datagram import ADDRESS

BEACON = "beacon"
"""The name of the timer for the next beacon."""

_DECAY = 0.9
"""The weight of a beacon relative to the next one."""

Report = tuple[tuple[NodeId, float], ...]
"""The share of beacons that the sender receives from each reported neighbour."""
BEST, OTHERS = 8, 4
"""The number of neighbours that a beacon reports: the best ones, and others in turn."""

MISSED = 5
"""The greatest number of earlier beacons of a new neighbour that count as missed. A single received beacon
must not count as full quality.
"""


def report_bytes(report: Report) -> int:
    """Return the size of a report in a beacon, in bytes."""
    return len(report) * (ADDRESS + 1)


@dataclass(frozen=True, slots=True)
class Beacons:
    """The intervals of beacons in µs: first ``fast``, then doubled each time up to ``slow`` (Trickle)."""

    fast: Duration = 1 * SECOND
    slow: Duration = 32 * SECOND

    @property
    def silence(self) -> Duration:
        """The time in µs without a beacon after which a neighbour is removed."""
        return 9 * self.slow // 2


BEACONS = Beacons()


@dataclass(slots=True)
class Pace:
    """The beacon schedule of a node: the present interval, and the number of the last beacon."""

    interval: Duration = 0
    number: int = 0

    def first(self, beacons: Beacons, now: Instant, random: Random) -> SetTimer:
        """Start with the shortest interval, at boot or after a change; return the timer to set."""
        self.interval = beacons.fast
        return SetTimer(BEACON, now + random.randint(0, self.interval))

    def is_slow(self, beacons: Beacons) -> bool:
        """Return whether a new neighbour would have to wait long for the next beacon."""
        return self.interval > 4 * beacons.fast

    def next(self, beacons: Beacons, now: Instant, random: Random) -> SetTimer:
        """Count a beacon that is sent now; return the timer for the next beacon, after a longer interval."""
        self.number += 1
        self.interval = min(2 * self.interval, beacons.slow)
        return SetTimer(BEACON, now + random.randint(self.interval // 2, self.interval))


@dataclass(slots=True)
class Neighbour:
    """The knowledge of a node about a neighbour."""

    number: int
    last_beacon: Instant
    received: float = 1.0
    sent: float = 1.0
    back: float | None = None
    """The share of this node's beacons that arrives at the neighbour; ``None`` until the neighbour reports
    it.
    """

    @property
    def quality(self) -> float:
        """The share of the neighbour's beacons that arrives. With few beacons it tends to a middle value.

        >>> Neighbour(number=0, last_beacon=0).quality, Neighbour(0, 0, received=8.0, sent=8.0).quality
        (0.6666666666666666, 0.9)
        """
        return (self.received + 1) / (self.sent + 2)

    @property
    def both_ways(self) -> float:
        """The probability that a frame and its acknowledgement arrive; 0 before the neighbour's first
        report.
        """
        return self.quality * (self.back or 0.0)


@dataclass(slots=True)
class NeighbourTable:
    """All known neighbours of a node."""

    node: NodeId
    known: dict[NodeId, Neighbour] = field(default_factory=dict)
    turn: int = 0

    def on_beacon(self, sender: NodeId, number: int, report: Report, now: Instant) -> bool:
        """Process a beacon; return whether its sender is new or has restarted."""
        found = self.known.get(sender)
        is_new = found is None or number < found.number
        if found is None or is_new:
            missed = 0 if found is not None else min(number - 1, MISSED)
            found = self.known[sender] = Neighbour(number, now, sent=1.0 + missed)
        else:
            found.sent = found.sent * _DECAY + (number - found.number)
            found.received = found.received * _DECAY + 1
            found.number, found.last_beacon = number, now
        found.back = dict(report).get(self.node, found.back)
        return is_new

    def report(self) -> Report:
        """Return the share of beacons received, for the best neighbours and for others in turn."""
        names = sorted(self.known, key=lambda node: -self.known[node].quality)
        best, others = names[:BEST], sorted(names[BEST:])
        chosen = [others[(self.turn + i) % len(others)] for i in range(min(OTHERS, len(others)))]
        self.turn += OTHERS
        return tuple((node, self.known[node].quality) for node in best + chosen)

    def near(self, now: Instant, silence: Duration) -> dict[NodeId, Neighbour]:
        """Remove neighbours without a recent beacon; return the remaining ones."""
        for node in [n for n, neighbour in self.known.items() if now - neighbour.last_beacon > silence]:
            del self.known[node]
        return self.known
