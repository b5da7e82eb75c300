"""What EATDDS is about: terms, the energy of a cluster, a hand-over under way, the election.  [D46, D49]"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from ...model.instant import Instant
from ...model.protocol import Effect, Peer, Send, SetTimer
from ...model.space import Point
from .message import ENTRIES, Handover, Subscribe, Unsubscribe, cause_of
from .registry import Registry
from .topic import TopicId

Wish = Subscribe | Unsubscribe


class Known(NamedTuple):
    """Who has a role, in which term; the larger is the later."""

    term: int
    node: Peer


@dataclass(slots=True)
class Transfer:
    """A hand-over from here: what is still to be sent, and the piece that is under way."""

    topic: TopicId
    to: Peer
    term: int
    queue: deque[Wish]
    role: bool = True
    """Whether the role goes with the table; otherwise the other has it already."""
    number: int = -1
    piece: tuple[Wish, ...] = ()
    tries: int = 0

    def go_on(self, timeout: Instant) -> list[Effect]:
        """The next piece."""
        self.piece = tuple(self.queue.popleft() for _ in range(min(ENTRIES, len(self.queue))))
        self.number += 1
        self.tries = 0
        return self.say(timeout)

    def say(self, timeout: Instant) -> list[Effect]:
        """The piece that is under way, once more after the timeout."""
        last = self.role and not self.queue
        message = Handover(self.topic, self.term, self.number, self.piece, last)
        return [Send(self.to, message, cause_of(message)), SetTimer(f"handover/{self.topic}", timeout)]


@dataclass(slots=True)
class Cluster:
    """A topic whose role this node has: the energy of its nodes, and the hand-over at the end of a round."""

    energies: dict[Peer, tuple[float, Instant]] = field(default_factory=dict)
    """Joules, and when they were reported."""
    attempted: int = 0
    """The last term that was offered to somebody."""
    failed: set[Peer] = field(default_factory=set)
    """Who did not take the role in this round."""


@dataclass(slots=True)
class Incoming:
    """A hand-over to here."""

    term: int
    registry: Registry
    expected: int = 0


def elected(
    energies: Mapping[Peer, float],
    slack: float = 0.0,
    positions: Mapping[Peer, Point] | None = None,
    members: Collection[Peer] = (),
) -> Peer:
    """The node with most energy; of those within ``slack`` that with the least Σ distance², of equally far
    ones (to the square millimetre: a grid's places are rounded) that with most energy.  [D49, D51]

    >>> elected({"4": 0.5, "7": 0.9, "2": 0.8})
    '7'
    >>> places = {"4": (0.0, 0.0), "7": (9.0, 9.0), "2": (1.0, 0.0)}
    >>> elected({"4": 0.5, "7": 0.9, "2": 0.85}, 0.1, places, ["4", "7", "2"])
    '2'
    """
    most = max(energies.values())
    good = [node for node, joules in energies.items() if joules >= most * (1 - slack)]
    places = positions or {}

    def far(node: Peer) -> float:
        if node not in places:
            return 0.0
        pairs = (zip(places[node], places[other], strict=True) for other in members if other in places)
        return round(fsum((a - b) ** 2 for pair in pairs for a, b in pair), 6)

    return min(good, key=lambda node: (far(node), -energies[node], node))
