"""Splitting: functions that decide which part of an operator a node sends over which link. [J6]

An operator from a link requests the events behind all other links that are part of a complex event. A node
does not forward an operator while one of its filters has no source.
"""

from __future__ import annotations

from ....model.protocol import Peer
from .operator import FsfOperator, sub_operator
from .sources import HERE, SensorSources

Parts = list[tuple[Peer, FsfOperator]]
"""Links, each with an operator to request from it."""


def split_by_link(operator: FsfOperator, origin: Peer, sources: SensorSources) -> Parts:
    """Return, for each link, the part of the operator with the sources behind that link.

    Filters with all their sources behind the link form one part. A filter with sources behind several links
    cannot be required of the events behind one of them, because its partner may come from elsewhere. Each
    such filter therefore gets a part of its own, together with the filters of the first part. Only its own
    events are wanted in that part.
    """
    ways = sources.ways(operator, origin)
    parts: Parts = []
    for link in _links(ways):
        alone = [i for i, way in enumerate(ways) if way == {link}]
        shared = [i for i, way in enumerate(ways) if link in way and way != {link}]
        if len(alone) == len(ways):
            return [(link, operator)]
        if alone:
            parts.append((link, sub_operator(operator, alone)))
        parts += [(link, sub_operator(operator, sorted((*alone, i)), (i,))) for i in shared]
    return parts


def split_by_filter(operator: FsfOperator, origin: Peer, sources: SensorSources) -> Parts:
    """Return the whole operator while all sources are behind one link; otherwise each filter on its own.

    A multi-join becomes its ring of binary joins at the node where the sources separate.
    """
    ways = sources.ways(operator, origin)
    links = _links(ways)
    if is_behind_one_link(ways):
        return [(link, operator) for link in links]
    filters = [(link, i) for link in links for i, way in enumerate(ways) if link in way]
    return [(link, sub_operator(operator, (i,))) for link, i in filters]


def is_behind_one_link(ways: list[set[Peer]]) -> bool:
    """Return whether all sources are behind one link, so that another node has joined their events."""
    return len(set().union(*ways)) == 1 and HERE not in ways[0]


def _links(ways: list[set[Peer]]) -> list[Peer]:
    """Return the links to ask; none unless every filter has a source."""
    return sorted(set().union(*ways) - {HERE}) if all(ways) else []
