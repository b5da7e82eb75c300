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
"""The radio range. With it a node among 1,000 has 34 neighbours (33 in the thesis). One among 150 has 5 (3 in
the thesis), and one layout in fifty is connected.
"""
EVENTS = 50
LEVELS = 4


class QpsSetting(NamedTuple):
    """The parameters of a layout."""

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
    """One layout, determined by a seed."""

    setting: QpsSetting
    seed: int

    @cached_property
    def field(self) -> Field:
        """A connected field with a node in the region; other fields are drawn again."""
        side, nodes = self.setting.side, self.setting.nodes
        tries = (uniform(nodes, side, side, REACH, 1000 * self.seed + again) for again in range(1000))
        return next(found for each in tries if self._inside(found := Field(each.positions, REACH)))

    def _inside(self, field: Field) -> list[NodeId]:
        area = of(self.setting.region)
        return [node for node, place in enumerate(field.places) if contains_point(area, place)]

    @cached_property
    def publishers(self) -> list[NodeId]:
        """The nodes in the region; other events are not wanted."""
        return self._inside(self.field)

    @cached_property
    def subscribers(self) -> list[NodeId]:
        """The subscribing nodes, in the order of their subscriptions."""
        return random.Random(self.seed).sample(range(self.setting.nodes), self.setting.subscribers)

    @cached_property
    def events(self) -> list[NodeId]:
        """The publishing node of each event."""
        return random.Random(self.seed + 1).choices(self.publishers, k=EVENTS)

    @property
    def topic(self) -> str:
        """The topic. It differs between layouts, because its hash determines the positions of brokers."""
        return f"topic-{self.seed}"
