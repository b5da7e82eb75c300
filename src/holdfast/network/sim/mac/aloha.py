"""Pure ALOHA: a MAC that sends at once without sensing the channel. Its throughput has a closed formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .station import Station, at_least

if TYPE_CHECKING:
    from ..node import Node


@dataclass(frozen=True, slots=True)
class Aloha:
    """Parameters of ALOHA. Every packet is sent once, as soon as it is queued, without acknowledgement."""

    kind: ClassVar = "aloha"
    queue: int = 16

    def __post_init__(self) -> None:
        at_least(self, queue=1)


class AlohaStation(Station):
    """A station that transmits without waiting."""

    def __init__(self, node: Node, mac: Aloha) -> None:
        super().__init__(node, queue=mac.queue, acknowledged=False)

    def _contend(self) -> None:
        self._transmit()
