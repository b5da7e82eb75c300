"""Medium access: the parameters of each MAC as values, and the ``Station`` that runs it on a node."""

from __future__ import annotations

from .aloha import Aloha, AlohaStation
from .csma import Csma, CsmaStation
from .dcf import DcfStation, RtsCts
from .lpl import LowPowerListening, LplStation
from .station import Station, StationOwner
from .tdma import Tdma, TdmaStation

Mac = Aloha | Csma | RtsCts | LowPowerListening | Tdma

__all__ = ["Aloha", "Csma", "LowPowerListening", "Mac", "RtsCts", "Station", "Tdma", "station"]


def station(mac: Mac, node: StationOwner) -> Station:
    """The station of a node for the given MAC."""
    match mac:
        case Aloha():
            return AlohaStation(node, mac)
        case Csma():
            return CsmaStation(node, mac)
        case RtsCts():
            return DcfStation(node, mac)
        case LowPowerListening():
            return LplStation(node, mac)
        case Tdma():
            return TdmaStation(node, mac)
