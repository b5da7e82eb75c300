"""Medium access: the parameters of each MAC as values, and the ``Station`` that runs it on a node.

To add a MAC, write a parameter class and a subclass of ``Station``, and register both in ``_STATIONS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .aloha import Aloha, AlohaStation
from .csma import Csma, CsmaStation
from .dcf import DcfStation, RtsCts
from .lpl import LowPowerListening, LplStation
from .station import Station
from .tdma import Tdma, TdmaStation

if TYPE_CHECKING:
    from ..node import Node

Mac = Aloha | Csma | RtsCts | LowPowerListening | Tdma

_STATIONS: dict[type, Callable[[Node, Any], Station]] = {
    Aloha: AlohaStation,
    Csma: CsmaStation,
    RtsCts: DcfStation,
    LowPowerListening: LplStation,
    Tdma: TdmaStation,
}

__all__ = ["Aloha", "Csma", "LowPowerListening", "Mac", "RtsCts", "Station", "Tdma", "station"]


def station(mac: Mac, node: Node) -> Station:
    """Create the station that runs the given MAC on a node."""
    return _STATIONS[type(mac)](node, mac)
