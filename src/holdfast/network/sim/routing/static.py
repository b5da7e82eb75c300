"""ID-based routing without retries: every datagram is forwarded once, by the rules a–h. [D52, D53]

The thesis calls it static routing (§4.2.1): no tables, no control packets, no second try. The layer above
handles losses, and may send again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ....model.protocol import Asked
from ..frame import NodeId
from .datagram import (
    HEADER,
    Datagram,
    Destination,
    Effects,
    FrameReceived,
    Input,
    Transmit,
    on_arrival,
    refuses_points,
)
from .grid import next_hop


@dataclass(frozen=True, slots=True)
class Static:
    """Routing by the rules a–h on a grid of ``rows`` and ``columns``, without retries."""

    rows: int
    columns: int
    limit: int = 64
    """The number of hops after which a datagram is dropped."""

    overhears: ClassVar[bool] = False

    def initial(self, node: NodeId) -> NodeId:
        return node

    def held(self, _state: NodeId) -> Iterable[Datagram]:
        return ()

    def refuses(self, destination: Destination) -> str | None:
        if isinstance(destination, int) and not 0 <= destination < self.rows * self.columns:
            return f"the grid has {self.rows} × {self.columns} nodes, from 0"
        return refuses_points(destination)

    def handle(self, state: NodeId, event: Input) -> tuple[NodeId, Effects]:
        match event:
            case Asked(_, datagram):
                to = next_hop(state, datagram.destination, self.columns)
                return state, [Transmit(to, datagram, HEADER + datagram.size)]
            case FrameReceived(_, _, Datagram() as what, True):
                return state, [on_arrival(what.after_hop(), state, self.limit)]
        return state, []
