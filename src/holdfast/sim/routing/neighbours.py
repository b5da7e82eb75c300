"""Neighbours by their beacons: who is there, and how much of what they say arrives, both ways.

A beacon has a number, so that a gap tells what was lost, and says how much of others' beacons arrives at
its sender; thus each end knows both directions of a link (as in De Couto et al., MobiCom 2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from ...model.instant import SECOND, Duration, Instant
from ...model.protocol import SetTimer
from ..frame import NodeId
from .datagram import ADDRESS

BEACON = "beacon"
"""The timer of the next beacon."""

_FADES = 0.9
"""How much an earlier beacon counts beside the one behind it."""

Report = tuple[tuple[NodeId, float], ...]
"""How much of some neighbours' beacons arrives."""
BEST, OTHERS = 8, 4
"""How many neighbours a beacon reports on: the best ones, and of the others some in turn."""

MISSED = 5
"""How many beacons of a neighbour that is new here we missed, if it has sent so many: luck is no quality."""


def report_bytes(report: Report) -> int:
    """In a beacon."""
    return len(report) * (ADDRESS + 1)


@dataclass(frozen=True, slots=True)
class Beacons:
    """How often a node says that it is there: often at first, then half as often each time (Trickle)."""

    fast: Duration = 1 * SECOND
    slow: Duration = 32 * SECOND

    @property
    def silence(self) -> Duration:
        """After how long a neighbour that says nothing is none any more."""
        return 9 * self.slow // 2


BEACONS = Beacons()


@dataclass(slots=True)
class Pace:
    """When a node's next beacon is due, and its number."""

    interval: Duration = 0
    number: int = 0

    def first(self, beacons: Beacons, now: Instant, random: Random) -> SetTimer:
        """Begin, or begin again because something has changed."""
        self.interval = beacons.fast
        return SetTimer(BEACON, now + random.randint(0, self.interval))

    def is_slow(self, beacons: Beacons) -> bool:
        """Whether somebody new would have to wait long for the next beacon."""
        return self.interval > 4 * beacons.fast

    def next(self, beacons: Beacons, now: Instant, random: Random) -> SetTimer:
        """A beacon goes out now; the next one after a longer while."""
        self.number += 1
        self.interval = min(2 * self.interval, beacons.slow)
        return SetTimer(BEACON, now + random.randint(self.interval // 2, self.interval))


@dataclass(slots=True)
class Neighbour:
    """What is known of a neighbour."""

    number: int
    heard: Instant
    received: float = 1.0
    sent: float = 1.0
    back: float | None = None
    """The share of our beacons that arrives there, once it has said so."""

    @property
    def quality(self) -> float:
        """The share of its beacons that arrives; of what is known little, something in the middle.

        >>> Neighbour(number=0, heard=0).quality, Neighbour(0, 0, received=8.0, sent=8.0).quality
        (0.6666666666666666, 0.9)
        """
        return (self.received + 1) / (self.sent + 2)

    @property
    def both_ways(self) -> float:
        """The chance that something arrives there and is acknowledged; 0 before it said that it hears us."""
        return self.quality * (self.back or 0.0)


@dataclass(slots=True)
class Neighbours:
    """All neighbours of a node."""

    node: NodeId
    known: dict[NodeId, Neighbour] = field(default_factory=dict)
    turn: int = 0

    def hear(self, sender: NodeId, number: int, report: Report, now: Instant) -> bool:
        """A beacon has come; whether from somebody new, or somebody who has begun again."""
        found = self.known.get(sender)
        begins = found is None or number < found.number
        if found is None or begins:
            missed = 0 if found is not None else min(number - 1, MISSED)
            found = self.known[sender] = Neighbour(number, now, sent=1.0 + missed)
        else:
            found.sent = found.sent * _FADES + (number - found.number)
            found.received = found.received * _FADES + 1
            found.number, found.heard = number, now
        found.back = dict(report).get(self.node, found.back)
        return begins

    def report(self) -> Report:
        """How much of some neighbours' beacons arrives."""
        names = sorted(self.known, key=lambda node: -self.known[node].quality)
        best, others = names[:BEST], sorted(names[BEST:])
        chosen = [others[(self.turn + i) % len(others)] for i in range(min(OTHERS, len(others)))]
        self.turn += OTHERS
        return tuple((node, self.known[node].quality) for node in best + chosen)

    def near(self, now: Instant, silence: Duration) -> dict[NodeId, Neighbour]:
        """Those that were heard lately; the others are forgotten."""
        for node in [n for n, neighbour in self.known.items() if now - neighbour.heard > silence]:
            del self.known[node]
        return self.known
