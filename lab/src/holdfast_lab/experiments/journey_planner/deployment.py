"""The placement of the thesis: which component runs on which node, with which subscriptions.

[SPS §5.9.3.1; F71, F73, F74] ``IL_High`` and ``CarSpeed_Slow`` have a part at the sensors of each road.
``TrafficCongestion`` is divided along both queries into 16 segments of roads, which gives 256 parts. Only the
16 parts with the same segment twice can detect congestion. Every user has a ``TrafficCongestionNear``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.kinds.component.detector.smc import Smc

from .definition import CONGESTION, HIGH, LOOP, NEAR, SLOW, SPEED, USER
from .roads import JourneyMap

SEGMENTS = 16


class RoadSubscription(NamedTuple):
    """A topic with the roads (or the user) that a host subscribes to; ``None`` means all."""

    topic: str
    among: frozenset[str] | None = None


@dataclass(frozen=True)
class Host:
    """A component, or a part of one, on a node, with its subscriptions."""

    node: str
    smc: Smc
    subscriptions: tuple[RoadSubscription, ...]


def place_components(
    smcs: Mapping[str, Smc], roads: Sequence[str], segments: Sequence[Sequence[str]], users: Iterable[str]
) -> list[Host]:
    """Divide and place the components as the thesis does."""
    pieces = [frozenset(segment) for segment in segments]
    return [
        *(_beside(smcs[HIGH], LOOP, "loop", road) for road in roads),
        *(_beside(smcs[SLOW], SPEED, "camera", road) for road in roads),
        *(
            Host(
                f"segments-{i}-{j}",
                smcs[CONGESTION],
                (RoadSubscription(HIGH, a), RoadSubscription(SLOW, b)),
            )
            for i, a in enumerate(pieces)
            for j, b in enumerate(pieces)
        ),
        *(
            Host(
                user,
                smcs[NEAR],
                (RoadSubscription(CONGESTION), RoadSubscription(USER, frozenset([user]))),
            )
            for user in users
        ),
    ]


def _beside(smc: Smc, topic: str, sensor: str, road: str) -> Host:
    return Host(f"{sensor}-{road}", smc, (RoadSubscription(topic, frozenset([road])),))


def in_one_piece(smc: Smc) -> Host:
    """Return an undivided component, for comparison."""
    return Host(f"all of {smc.topic}", smc, tuple(map(RoadSubscription, smc.topics)))


def segments(map: JourneyMap, roads: Sequence[int], count: int = SEGMENTS) -> list[list[str]]:
    """Divide roads into pieces of equal size that lie together, by halving along longitude and latitude in
    turn.
    """
    pieces = [list(roads)]
    axis = 0
    while len(pieces) < count:
        pieces = [half for piece in pieces for half in _halves(map, piece, axis)]
        axis = 1 - axis
    return [[map.roads[i].name for i in piece] for piece in pieces]


def _halves(map: JourneyMap, roads: Sequence[int], axis: int) -> tuple[list[int], list[int]]:
    ordered = sorted(roads, key=lambda i: (map.degrees[map.roads[i].start][axis], i))
    return ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
