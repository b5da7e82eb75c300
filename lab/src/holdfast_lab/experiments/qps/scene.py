"""A layout: positions of nodes, subscribers, and published events."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from holdfast.model.space import Point, Rectangle
from holdfast.network.protocols.qps.area import contains_point, of
from holdfast.network.sim.field import Field
from holdfast.network.sim.frame import NodeId
from holdfast.network.sim.topology import uniform

REACH = 28.0
"""The radio range. With it a node among 1,000 has 34 neighbours, and the thesis says 33. A node among 150 has
5 (it says 3), and one layout in fifty is connected."""
EVENTS = 50
LEVELS = 4


class QpsSetting(NamedTuple):
    """The parameters from which a layout is drawn."""

    side: float
    nodes: int
    subscribers: int
    low: Point
    high: Point

    @property
    def region(self) -> Rectangle:
        return Rectangle(self.low, self.high)


@dataclass(frozen=True)
class QpsScene:
    """One layout, drawn by a seed."""

    setting: QpsSetting
    seed: int

    @cached_property
    def field(self) -> Field:
        """A connected field with a node in the region; others are drawn again."""
        side, nodes = self.setting.side, self.setting.nodes
        tries = (uniform(nodes, side, side, REACH, 1000 * self.seed + again) for again in range(1000))
        return next(found for each in tries if self._inside(found := Field(each.positions, REACH)))

    def _inside(self, field: Field) -> list[NodeId]:
        area = of(self.setting.region)
        return [node for node, place in enumerate(field.places) if contains_point(area, place)]

    @cached_property
    def publishers(self) -> list[NodeId]:
        """The publishers in the region: only their events are requested."""
        return self._inside(self.field)

    @cached_property
    def subscribers(self) -> list[NodeId]:
        """The subscribers in the order in which they subscribe."""
        return random.Random(self.seed).sample(range(self.setting.nodes), self.setting.subscribers)

    @cached_property
    def events(self) -> list[NodeId]:
        """The publishers of the events."""
        return random.Random(self.seed + 1).choices(self.publishers, k=EVENTS)

    @property
    def topic(self) -> str:
        """The topic, another one for each layout: it decides the positions of brokers, which should
        differ."""
        return f"topic-{self.seed}"
