"""Splitting: which part of an operator goes over which link.  [J6]

An operator asks for the events behind a node, seen from where it came from, that take part in a
complex event of its filters.  It goes nowhere while one of its filters has no source there.
"""

from __future__ import annotations

from ...model.protocol import Peer
from .operator import Operator, part
from .sources import HERE, Sources

Parts = list[tuple[Peer, Operator]]
"""Links, and what is asked for there."""


def projected(operator: Operator, origin: Peer, sources: Sources) -> Parts:
    """The filters that have sources behind a link, together.

    A filter with sources behind several links (the paper has one) cannot be demanded of the events
    behind one of them: a partner may come from elsewhere.  Those with all their sources behind the link
    go together, and each of the others goes beside them on its own, wanted for itself only.
    """
    ways = sources.ways(operator, origin)
    parts: Parts = []
    for link in _links(ways):
        alone = [i for i, way in enumerate(ways) if way == {link}]
        shared = [i for i, way in enumerate(ways) if link in way and way != {link}]
        if len(alone) == len(ways):
            return [(link, operator)]
        if alone:
            parts.append((link, part(operator, alone)))
        parts += [(link, part(operator, sorted((*alone, i)), (i,))) for i in shared]
    return parts


def filter_by_filter(operator: Operator, origin: Peer, sources: Sources) -> Parts:
    """The operator as long as all sources are behind one link; each filter on its own from the first node
    on where they are not: there a multi-join becomes its ring of binary joins.
    """
    ways = sources.ways(operator, origin)
    links = _links(ways)
    if together(ways):
        return [(link, operator) for link in links]
    return [(link, part(operator, (i,))) for link in links for i, way in enumerate(ways) if link in way]


def together(ways: list[set[Peer]]) -> bool:
    """Whether all sources are behind one link, and so were compared further up."""
    return len(set().union(*ways)) == 1 and HERE not in ways[0]


def _links(ways: list[set[Peer]]) -> list[Peer]:
    """The neighbours that are asked: none unless every filter has a source."""
    return sorted(set().union(*ways) - {HERE}) if all(ways) else []
