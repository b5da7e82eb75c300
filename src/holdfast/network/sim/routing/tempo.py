"""Waiting times of routing protocols, derived from the speed of the network."""

from __future__ import annotations

from collections.abc import Mapping, Set

from ....model.instant import MILLISECOND, SECOND, Duration
from ..frame import NodeId
from ..mac import LowPowerListening, Mac, Tdma
from ..mac.station import ACK_BYTES
from ..mac.tdma import colouring
from ..radio import Radio
from .neighbours import Beacons

_TYPICAL_BYTES = 60
_BACKOFFS = 8


def airing(mac: Mac, radio: Radio, hearers: Mapping[NodeId, Set[NodeId]]) -> Duration:
    """Return the approximate time in µs that a node takes to send to all its neighbours on a clear
    channel.
    """
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
    """Return the longest random delay in µs before a repetition. It lets about eight neighbours send one
    after the other.
    """
    return 0 if isinstance(mac, Tdma) else 8 * airing


def patience(airing: Duration) -> Duration:
    """Return the time in µs to wait until a neighbour is overheard to forward."""
    return max(200 * MILLISECOND, 6 * airing)


def answer(airing: Duration) -> Duration:
    """Return the time in µs to wait for a reply from the other end of the network."""
    return max(1 * SECOND, 60 * airing)


def beacons(airing: Duration, slow: Duration | None = None) -> Beacons:
    """Return beacon intervals that a network of this speed can carry."""
    slow = max(32 * SECOND, 1280 * airing) if slow is None else slow
    return Beacons(max(slow // 32, 1), max(slow, 1))
