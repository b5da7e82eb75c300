"""Data types of EATDDS: terms, the energy of a cluster, a hand-over in progress, the election. [D46, D49]"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple

from ....model.instant import Instant
from ....model.protocol import Peer
from ....model.space import Point
from .message import DdsSubscribe, DdsUnsubscribe
from .registry import SubscriptionTable
from .topic import TopicId

Wish = DdsSubscribe | DdsUnsubscribe


class RoleHolder(NamedTuple):
    """The holder of a role in a term. Of two values, the one with the later term is larger."""

    term: int
    node: Peer


@dataclass(slots=True)
class TableTransfer:
    """A hand-over from this node, with the remaining entries and the piece in transit."""

    topic: TopicId
    to: Peer
    term: int
    queue: deque[Wish]
    role: bool = True
    """Whether the role moves with the table. Otherwise the receiver has the role already."""
    number: int = -1
    piece: tuple[Wish, ...] = ()
    tries: int = 0


@dataclass(slots=True)
class EnergyCluster:
    """A topic whose role this node has: the energy of its nodes, and the hand-over at the end of a round."""

    energies: dict[Peer, tuple[float, Instant]] = field(default_factory=dict)
    """For each node, its remaining energy in joules and the time of the report."""
    attempted: int = 0
    """The last term that this node offered to another node."""
    failed: set[Peer] = field(default_factory=set)
    """The nodes that did not take the role in this round."""


@dataclass(slots=True)
class IncomingTransfer:
    """A hand-over to this node, with the entries that have arrived."""

    term: int
    registry: SubscriptionTable
    expected: int = 0


def elect(
    energies: Mapping[Peer, float],
    slack: float = 0.0,
    positions: Mapping[Peer, Point] | None = None,
    members: Collection[Peer] = (),
) -> Peer:
    """Return the node to elect: by default the one with the most energy. [D49, D51]

    Of the nodes within ``slack`` of the most energy, choose the one with the least Σ distance² to the
    members. If several are equally far (to the square millimetre, because a grid's positions are rounded),
    choose the one with the most energy.

    >>> elect({"4": 0.5, "7": 0.9, "2": 0.8})
    '7'
    >>> places = {"4": (0.0, 0.0), "7": (9.0, 9.0), "2": (1.0, 0.0)}
    >>> elect({"4": 0.5, "7": 0.9, "2": 0.85}, 0.1, places, ["4", "7", "2"])
    '2'
    """
    most_joules = max(energies.values())
    candidates = [node for node, joules in energies.items() if joules >= most_joules * (1 - slack)]
    places = positions or {}

    def distance_sum(node: Peer) -> float:
        if node not in places:
            return 0.0
        pairs = (zip(places[node], places[other], strict=True) for other in members if other in places)
        return round(fsum((a - b) ** 2 for pair in pairs for a, b in pair), 6)

    return min(candidates, key=lambda node: (distance_sum(node), -energies[node], node))
