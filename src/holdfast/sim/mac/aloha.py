"""Pure ALOHA: send at once, listen to nobody.  The oldest MAC, and the one with a formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .station import Owner, Station, at_least


@dataclass(frozen=True, slots=True)
class Aloha:
    """Every packet is sent once, when it is there; nothing is acknowledged."""

    kind: ClassVar = "aloha"
    queue: int = 16

    def __post_init__(self) -> None:
        at_least(self, queue=1)


class AlohaStation(Station):
    def __init__(self, node: Owner, mac: Aloha) -> None:
        super().__init__(node, queue=mac.queue, acknowledged=False)

    def _contend(self) -> None:
        self._transmit()
