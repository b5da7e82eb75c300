"""The network: a tree of routers, some with a station whose five sensors are a node each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .setting import FsfSetting
from .stream import ATTRIBUTES, Recording, sensor

Link = tuple[str, str]


@dataclass(frozen=True)
class FsfLayout:
    """Routers and links, and the node of each sensor."""

    routers: tuple[str, ...]
    links: tuple[Link, ...]
    sensors: dict[str, str]

    @property
    def between_routers(self) -> list[Link]:
        """The links, in both directions, that end at no sensor's node."""
        ends = set(self.sensors.values())
        links = [link for link in self.links if ends.isdisjoint(link)]
        return [*links, *((b, a) for a, b in links)]


def layout(setting: FsfSetting, recording: Recording, random: np.random.Generator) -> FsfLayout:
    """Draw a network: each router is connected to an earlier one, and stations are at different routers.

    In a tree five nodes cannot all be neighbours of each other. In a star all nodes of a station are
    connected to its router. Otherwise the first one is, and each further one to a random earlier node of the
    station.
    """
    routers = [f"r{i}" for i in range(setting.nodes - setting.groups * len(ATTRIBUTES))]
    links = [(routers[earlier], routers[i]) for i, earlier in enumerate(_earlier(len(routers), random), 1)]
    sensors: dict[str, str] = {}
    for at, station in zip(
        random.choice(len(routers), setting.groups, replace=False),
        recording.stations[: setting.groups],
        strict=True,
    ):
        names = [sensor(station, ATTRIBUTES[i]) for i in random.permutation(len(ATTRIBUTES))]
        nodes = [f"n{name}" for name in names]
        above = [nodes[earlier] for earlier in _earlier(len(nodes), random)]
        links.append((routers[at], nodes[0]))
        links += zip([routers[at]] * len(above) if setting.star else above, nodes[1:], strict=True)
        sensors |= dict(zip(names, nodes, strict=True))
    return FsfLayout(tuple(routers), tuple(links), sensors)


def _earlier(count: int, random: np.random.Generator) -> list[int]:
    """Return for each node but the first a random earlier one."""
    return [int(random.integers(i)) for i in range(1, count)]
