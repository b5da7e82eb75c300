"""RTS/CTS as in the distributed coordination function of IEEE 802.11 (1999, 9.2).

Slots, spaces and frames are scaled to the radio: a slot is sensing and turnaround, SIFS is turnaround, DIFS
is SIFS and two slots. A station that receives an RTS or CTS for another node stays silent for the announced
time (NAV). After a lost frame it waits long enough for an acknowledgement to pass (EIFS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ....errors import UsageError
from ....model.instant import Duration, Instant
from ..energy import LISTEN
from ..frame import BROADCAST, CTS, NO_ACK, RTS, Frame, LinkPacket
from .station import ACK_BYTES, DATA_OVERHEAD, Station, at_least

if TYPE_CHECKING:
    from ..node import Node

RTS_BYTES, CTS_BYTES = 13, 11
"""Frame sizes in 802.15.4 encoding: control, sequence, PAN, addresses, duration, checksum."""

DIFS_SLOTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RtsCts:
    """Parameters of RTS/CTS: contention window and retry limits as in 802.11. Packets below ``threshold``
    bytes are sent without RTS.
    """

    kind: ClassVar = "rts-cts"
    window_min: int = 15
    window_max: int = 1023
    short_retries: int = 7
    long_retries: int = 4
    threshold: int = 0
    queue: int = 16

    def __post_init__(self) -> None:
        at_least(self, short_retries=1, long_retries=0, threshold=0, queue=1)
        if not 0 <= self.window_min <= self.window_max:
            raise UsageError(f"RtsCts: windows from {self.window_min} to {self.window_max}; 0 <= min <= max")


class DcfStation(Station):
    """A station that counts down random slots and reserves the channel before it sends data."""

    def __init__(self, node: Node, mac: RtsCts) -> None:
        super().__init__(node, queue=mac.queue, retries=mac.long_retries)
        self._mac = mac
        self._short = 0
        """The number of RTS frames for the current packet that no CTS answered."""
        self._slots = self._quiet = 0
        self._nav: Instant = 0
        self._awaits_cts = False

    # Contention.

    def _contend(self) -> None:
        packet = self._current
        assert packet is not None
        if not packet.tries:
            self._short = 0
        self._start_backoff(packet)

    def _start_backoff(self, packet: LinkPacket) -> None:
        window = min((self._mac.window_min + 1 << packet.tries + self._short) - 1, self._mac.window_max)
        self._slots = self.node.random.randint(0, window)
        self._quiet = 0
        self._wait(self.unit, self._slot)

    def _slot(self, _: None) -> None:
        """Count a slot if the channel was clear for long enough. Send when no slots are left."""
        now = self.clock.now
        if now < self._nav or self.radio.mode != LISTEN or not self.radio.clear():
            self._quiet = 0
            self._wait(max(self.unit, self._nav - now), self._slot)
        elif self._quiet < DIFS_SLOTS:
            self._quiet += 1
            self._wait(self.unit, self._slot)
        elif self._slots:
            self._slots -= 1
            self._wait(self.unit, self._slot)
        else:
            self._request_channel()

    # The exchange.

    def _request_channel(self) -> None:
        packet = self._current
        assert packet is not None
        if packet.destination == BROADCAST or packet.size < self._mac.threshold:
            self._transmit()
            return
        sizes = CTS_BYTES, packet.size + DATA_OVERHEAD, ACK_BYTES
        reserve = 3 * self.spec.turnaround + sum(map(self.spec.airtime, sizes))
        self._radiate(self._control(RTS, packet.destination, RTS_BYTES, packet.cause, reserve))

    def on_transmitted(self, frame: Frame) -> None:
        ours = frame is self._on_air
        super().on_transmitted(frame)
        if ours and frame.kind == RTS and self._current is not None:
            self._awaits_cts = True
            self._wait(self.unit + self.spec.turnaround + self.spec.airtime(CTS_BYTES), self._on_cts_timeout)

    def on_frame(self, frame: Frame) -> None:
        if frame.destination not in (self.node.id, BROADCAST):
            self._keep_silent(frame.reserve)
        elif frame.kind == RTS:
            self._send_cts(frame)
        elif frame.kind == CTS and self._awaits_cts:
            self._awaits_cts = False
            self._transmit()
        super().on_frame(frame)

    def on_frame_lost(self) -> None:
        self._keep_silent(self.spec.turnaround + self.spec.airtime(ACK_BYTES))

    def _send_cts(self, frame: Frame) -> None:
        if self.clock.now < self._nav:
            return
        reserve = frame.reserve - self.spec.turnaround - self.spec.airtime(CTS_BYTES)
        self._keep_silent(frame.reserve)
        self._radiate(self._control(CTS, frame.source, CTS_BYTES, frame.cause, reserve))

    def _on_cts_timeout(self, _: None) -> None:
        packet = self._current
        assert packet is not None
        self._awaits_cts = False
        self._short += 1
        if self._short < self._mac.short_retries:
            self._start_backoff(packet)
        else:
            self._conclude(NO_ACK)

    def _frame(self, packet: LinkPacket) -> Frame:
        frame = super()._frame(packet)
        if packet.destination != BROADCAST:
            frame.reserve = self.spec.turnaround + self.spec.airtime(ACK_BYTES)
        return frame

    def _control(self, kind: str, to: int, size: int, cause: str, reserve: Duration) -> Frame:
        return Frame(kind, self.node.id, to, 0, 0, size, cause, reserve=reserve)

    def _keep_silent(self, length: Duration) -> None:
        self._nav = max(self._nav, self.clock.now + length)
