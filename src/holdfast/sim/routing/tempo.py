"""How fast a network is, and so how long routing protocols should wait."""

from __future__ import annotations

from collections.abc import Mapping, Set

from ...model.instant import MILLISECOND, SECOND, Duration
from ..frame import NodeId
from ..mac import LowPowerListening, Mac, Tdma
from ..mac.station import ACK_BYTES
from ..mac.tdma import colouring
from ..radio import Radio
from .neighbours import Beacons

_TYPICAL_BYTES = 60
_BACKOFFS = 8


def airing(mac: Mac, radio: Radio, hearers: Mapping[NodeId, Set[NodeId]]) -> Duration:
    """How long it takes a node, about, to say something to all its neighbours when nobody else speaks."""
    once = radio.airtime(_TYPICAL_BYTES) + _BACKOFFS * (radio.turnaround + radio.sensing)
    match mac:
        case LowPowerListening():
            return mac.interval + once
        case Tdma():
            slots = mac.slots if mac.slots is not None else colouring(dict(hearers))
            slot = mac.slot or radio.airtime(radio.longest) + radio.airtime(ACK_BYTES) + 2 * mac.guard
            return (max(slots, default=0) + 1) * slot
    return once


def jitter(mac: Mac, airing: Duration) -> Duration:
    """The longest wait before a repetition that lets some eight neighbours speak one after the other."""
    return 0 if isinstance(mac, Tdma) else 8 * airing


def patience(airing: Duration) -> Duration:
    """How long to wait until a neighbour is heard to forward."""
    return max(200 * MILLISECOND, 6 * airing)


def answer(airing: Duration) -> Duration:
    """How long to wait for an answer from the other end of the network."""
    return max(1 * SECOND, 60 * airing)


def beacons(airing: Duration, slow: Duration | None = None) -> Beacons:
    """As often as a network of this speed can bear."""
    slow = max(32 * SECOND, 1280 * airing) if slow is None else slow
    return Beacons(max(slow // 32, 1), max(slow, 1))
