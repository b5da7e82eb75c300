"""Splitting: which part of an operator is sent over which link.  [J6]

An operator requests the events behind a node, seen from where it came, that take part in a complex event of
its filters. It is not forwarded while one of its filters has no source.
"""

from __future__ import annotations

from ....model.protocol import Peer
from .operator import FsfOperator, sub_operator
from .sources import HERE, SensorSources

Parts = list[tuple[Peer, FsfOperator]]
"""Links, and the operator requested of each."""


def split_by_link(operator: FsfOperator, origin: Peer, sources: SensorSources) -> Parts:
    """Return, for each link, the filters with sources behind it.

    A filter with sources behind several links (the paper has one) cannot be required of the events behind one
    of them, because its partner may come from elsewhere. Filters with all their sources behind the link form
    one part. Each of the others is added to them in a part of its own, in which only its own events are
    wanted.
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
    """Return the whole operator while all sources are behind one link, else each filter on its own.

    At that node a multi-join becomes its ring of binary joins.
    """
    ways = sources.ways(operator, origin)
    links = _links(ways)
    if is_behind_one_link(ways):
        return [(link, operator) for link in links]
    filters = [(link, i) for link in links for i, way in enumerate(ways) if link in way]
    return [(link, sub_operator(operator, (i,))) for link, i in filters]


def is_behind_one_link(ways: list[set[Peer]]) -> bool:
    """Whether all sources are behind one link, so that a node further up has compared their events."""
    return len(set().union(*ways)) == 1 and HERE not in ways[0]


def _links(ways: list[set[Peer]]) -> list[Peer]:
    """Return the neighbours to ask: none unless every filter has a source."""
    return sorted(set().union(*ways) - {HERE}) if all(ways) else []
