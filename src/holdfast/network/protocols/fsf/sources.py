"""The sensors that a node knows, by the link from which their advertisements came. [J3]"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ....model.correlation import RangeFilter
from ....model.protocol import Peer
from ....model.space import Region
from .message import FsfAdvertise
from .operator import FsfOperator, Key, is_in_region

HERE: Peer = ""
"""The link that stands for a node's own sensors and users."""


@dataclass(slots=True)
class SensorSources:
    """The sensors behind each link m, ``DSA^m``. Each sensor is behind exactly one link."""

    _links: dict[str, Peer] = field(default_factory=dict)
    _known: dict[str, FsfAdvertise] = field(default_factory=dict)
    _sensors: dict[Key, dict[str, None]] = field(default_factory=dict)

    def add(self, sensor: FsfAdvertise, link: Peer) -> None:
        """Add a sensor behind a link. It replaces a known sensor with the same name."""
        self.remove(sensor.sensor)
        self._links[sensor.sensor], self._known[sensor.sensor] = link, sensor
        for key in _keys(sensor):
            self._sensors.setdefault(key, {})[sensor.sensor] = None

    def remove(self, name: str) -> FsfAdvertise | None:
        """Remove a sensor and return it; ``None`` if it is unknown."""
        sensor = self._known.pop(name, None)
        if sensor is not None:
            del self._links[name]
            for key in _keys(sensor):
                del self._sensors[key][name]
        return sensor

    def get(self, name: str) -> FsfAdvertise | None:
        """Return the sensor with a name; ``None`` if it is unknown."""
        return self._known.get(name)

    def link(self, name: str) -> Peer | None:
        """Return the link to a sensor; ``None`` if it is unknown."""
        return self._links.get(name)

    def behind(self, link: Peer) -> list[FsfAdvertise]:
        """Return the sensors behind a link."""
        return [sensor for name, sensor in self._known.items() if self._links[name] == link]

    def __iter__(self) -> Iterator[FsfAdvertise]:
        return iter(self._known.values())

    def links(self, one: RangeFilter, region: Region | None) -> set[Peer]:
        """Return the links to the sources of a filter in a region; ``None`` stands for everywhere."""
        names = self._sensors.get((one.attribute, one.sensor), ())
        if region is None:
            return {self._links[name] for name in names}
        return {self._links[name] for name in names if is_in_region(region, name, self._known[name].at)}

    def ways(self, operator: FsfOperator, origin: Peer) -> list[set[Peer]]:
        """Return, for each filter, the links to its sources, except the link from which the operator came."""
        back = set() if origin == HERE else {origin}
        return [self.links(one, operator.region) - back for one in operator.filters]


def _keys(sensor: FsfAdvertise) -> tuple[Key, Key]:
    return (sensor.attribute, None), (sensor.attribute, sensor.sensor)
