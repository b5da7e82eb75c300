"""Neighbour discovery by beacons: which neighbours exist, and what share of frames arrives in each direction.

Beacons are numbered, so that gaps reveal losses, and report what share of others' beacons arrives at their
sender; so each end knows both directions of a link (as in De Couto et al., MobiCom 2003).
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
"""The share of beacons received from some neighbours."""
BEST, OTHERS = 8, 4
"""How many neighbours a beacon reports: the best ones, and some of the others in turn."""

MISSED = 5
"""The most earlier beacons of a new neighbour that count as missed; a single beacon received must not
count as full quality.
"""


def report_bytes(report: Report) -> int:
    """The size of a report in a beacon."""
    return len(report) * (ADDRESS + 1)


@dataclass(frozen=True, slots=True)
class Beacons:
    """The intervals of beacons: short at first, then doubled each time up to ``slow`` (Trickle)."""

    fast: Duration = 1 * SECOND
    slow: Duration = 32 * SECOND

    @property
    def silence(self) -> Duration:
        """After how long without a beacon a neighbour is removed, in µs."""
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
        """Whether a new neighbour would have to wait long for the next beacon."""
        return self.interval > 4 * beacons.fast

    def next(self, beacons: Beacons, now: Instant, random: Random) -> SetTimer:
        """Count a beacon that is sent now, and return the timer for the next, after a longer interval."""
        self.number += 1
        self.interval = min(2 * self.interval, beacons.slow)
        return SetTimer(BEACON, now + random.randint(self.interval // 2, self.interval))


@dataclass(slots=True)
class Neighbour:
    """What a node knows of a neighbour."""

    number: int
    last_beacon: Instant
    received: float = 1.0
    sent: float = 1.0
    back: float | None = None
    """The share of our beacons that arrives there, once it has reported it."""

    @property
    def quality(self) -> float:
        """The share of its beacons that arrives; with few beacons it tends to a middle value.

        >>> Neighbour(number=0, last_beacon=0).quality, Neighbour(0, 0, received=8.0, sent=8.0).quality
        (0.6666666666666666, 0.9)
        """
        return (self.received + 1) / (self.sent + 2)

    @property
    def both_ways(self) -> float:
        """The probability that a frame arrives there and its acknowledgement here; 0 before its first
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
        """The share of beacons received, for the best neighbours and some others."""
        names = sorted(self.known, key=lambda node: -self.known[node].quality)
        best, others = names[:BEST], sorted(names[BEST:])
        chosen = [others[(self.turn + i) % len(others)] for i in range(min(OTHERS, len(others)))]
        self.turn += OTHERS
        return tuple((node, self.known[node].quality) for node in best + chosen)

    def near(self, now: Instant, silence: Duration) -> dict[NodeId, Neighbour]:
        """The neighbours with a recent beacon; the others are removed."""
        for node in [n for n, neighbour in self.known.items() if now - neighbour.last_beacon > silence]:
            del self.known[node]
        return self.known
