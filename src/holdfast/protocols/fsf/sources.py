"""The sensors that a node knows of, by the link that their advertisements came over.  [J3]"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...model.correlation import Filter
from ...model.protocol import Peer
from ...model.space import Region
from .message import Advertise
from .operator import Key, Operator, inside

HERE: Peer = ""
"""The link to a node's own sensors and users."""


@dataclass(slots=True)
class Sources:
    """``DSA^m`` for every link m; a sensor is behind one link."""

    _links: dict[str, Peer] = field(default_factory=dict)
    _known: dict[str, Advertise] = field(default_factory=dict)
    _sensors: dict[Key, dict[str, None]] = field(default_factory=dict)

    def add(self, sensor: Advertise, link: Peer) -> None:
        """A sensor is behind a link; one that was known is forgotten before."""
        self.remove(sensor.sensor)
        self._links[sensor.sensor], self._known[sensor.sensor] = link, sensor
        for key in _keys(sensor):
            self._sensors.setdefault(key, {})[sensor.sensor] = None

    def remove(self, name: str) -> Advertise | None:
        """A sensor is gone; what it was."""
        sensor = self._known.pop(name, None)
        if sensor is not None:
            del self._links[name]
            for key in _keys(sensor):
                del self._sensors[key][name]
        return sensor

    def get(self, name: str) -> Advertise | None:
        """The sensor of that name."""
        return self._known.get(name)

    def link(self, name: str) -> Peer | None:
        """Behind which link the sensor of that name is."""
        return self._links.get(name)

    def behind(self, link: Peer) -> list[Advertise]:
        """The sensors behind a link."""
        return [sensor for name, sensor in self._known.items() if self._links[name] == link]

    def __iter__(self) -> Iterator[Advertise]:
        return iter(self._known.values())

    def links(self, one: Filter, region: Region | None) -> set[Peer]:
        """Over which links a filter has sources."""
        names = self._sensors.get((one.attribute, one.sensor), ())
        if region is None:
            return {self._links[name] for name in names}
        return {self._links[name] for name in names if inside(region, name, self._known[name].at)}

    def ways(self, operator: Operator, origin: Peer) -> list[set[Peer]]:
        """For each filter, over which links it has sources, seen from where the operator came from."""
        back = set() if origin == HERE else {origin}
        return [self.links(one, operator.region) - back for one in operator.filters]


def _keys(sensor: Advertise) -> tuple[Key, Key]:
    return (sensor.attribute, None), (sensor.attribute, sensor.sensor)
