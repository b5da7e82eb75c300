"""Low-power listening: radios sleep, and wake for a short check in every interval.

There are two strategies to wake a neighbour. With ``preamble``, a station sends one preamble that is longer
than the interval, then the frame (B-MAC; Polastre, Hill, Culler, SenSys 2004). With ``strobes``, it repeats
the frame until the frame is acknowledged, or a broadcast for the whole interval (BoX-MAC-2, ContikiMAC).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ....errors import UsageError
from ....model.instant import MILLISECOND, Duration, Instant
from ..clock import Clock, Entry
from ..energy import LISTEN, SLEEP
from ..frame import BROADCAST, CHANNEL_BUSY, Frame, LinkPacket, Outcome
from .station import Station, at_least

if TYPE_CHECKING:
    from ..node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class LowPowerListening:
    """Parameters of low-power listening: a radio wakes every ``interval`` µs and checks the channel for
    ``check`` µs.

    By default, the check is as long as a gap between strobes, or as two samples of the channel.
    """

    kind: ClassVar = "low-power-listening"
    interval: Duration = 100 * MILLISECOND
    wake: Literal["strobes", "preamble"] = "strobes"
    check: Duration | None = None
    linger: Duration = 10 * MILLISECOND
    """The time in µs to stay awake after a frame, in case another frame follows."""
    exponent: int = 3
    backoffs: int = 8
    retries: int = 2
    queue: int = 16

    def __post_init__(self) -> None:
        at_least(self, linger=0, exponent=0, backoffs=0, retries=0, queue=1)
        if self.interval <= (self.check or 0):
            raise UsageError(
                f"LowPowerListening: interval is {self.interval} µs and check {self.check} µs; "
                "a node sleeps between two checks"
            )


class LplStation(Station):
    """A station that sleeps between checks and sends bursts that last until its neighbour wakes."""

    def __init__(self, node: Node, mac: LowPowerListening) -> None:
        super().__init__(node, queue=mac.queue, retries=mac.retries)
        gap = self.patience + self.spec.turnaround + self.spec.sensing
        self.check = mac.check or (gap if mac.wake == "strobes" else 2 * self.spec.sensing)
        if self.check >= mac.interval:
            raise UsageError(
                f"LowPowerListening: an interval of {mac.interval} µs is too short for {self.spec.name}, "
                f"which needs {self.check} µs to look for a signal"
            )
        self._mac = mac
        self._awake_until: Instant = 0
        self._burst_until: Instant = 0
        self._was_busy = False
        self._found_busy = 0
        self._alarm: Entry | None = None

    # Sleep.

    def start(self) -> None:
        super().start()
        self.radio.off()
        self._alarm = self.clock.after(self.node.random.randrange(self._mac.interval), self._wake)

    def halt(self) -> None:
        super().halt()
        if self._alarm is not None:
            Clock.cancel(self._alarm)

    def _wake(self, _: None) -> None:
        local = self.node.local
        at = local.when(local.local(self.clock.now) + self._mac.interval)
        self._alarm = self.clock.at(max(at, self.clock.now + 1), self._wake)
        if self.radio.mode == SLEEP:
            self.radio.on()
            self._was_busy = not self.radio.clear()
            self._stay_awake(self.check)

    def _stay_awake(self, length: Duration) -> None:
        """Stay awake for at least ``length`` µs, then sleep unless there is a reason to stay awake."""
        self._awake_until = max(self._awake_until, self.clock.now + length)
        self.clock.at(self._awake_until, self._sleep_if_idle)

    def _sleep_if_idle(self, _: None) -> None:
        """Sleep if the channel was clear at this check and the previous one. One check could fall into a gap
        between strobes.
        """
        if not self._up or self._current is not None or self.radio.mode != LISTEN:
            return
        if self.clock.now < self._awake_until:
            return
        was_busy, self._was_busy = self._was_busy, not self.radio.clear()
        if was_busy or self._was_busy:
            self._stay_awake(self.check)
        else:
            self.radio.off()

    # Receiving.

    def on_frame(self, frame: Frame) -> None:
        self._was_busy = False
        super().on_frame(frame)
        self._stay_awake(self._mac.linger if frame.destination in (self.node.id, BROADCAST) else 0)

    def on_frame_lost(self) -> None:
        self._stay_awake(self.check)

    # Sending.

    def _contend(self) -> None:
        self._found_busy = 0
        self.radio.on()
        self._back_off()

    def _back_off(self) -> None:
        delay = self.node.random.randrange(1 << self._mac.exponent) * self.unit
        self._wait(delay + self.check, self._sense)

    def _sense(self, _: None) -> None:
        if self.radio.mode == LISTEN and self.radio.clear():
            self._burst_until = self.clock.now + self._mac.interval + self.check
            self._transmit()
        elif self._found_busy < self._mac.backoffs:
            self._found_busy += 1
            self._back_off()
        else:
            self._conclude(CHANNEL_BUSY)

    def _frame(self, packet: LinkPacket) -> Frame:
        frame = super()._frame(packet)
        if self._mac.wake == "preamble":
            frame.wakeup = self._mac.interval + self.check
        return frame

    def _is_burst_open(self) -> bool:
        return self._mac.wake == "strobes" and self.clock.now < self._burst_until

    def _on_data_sent(self, frame: Frame) -> None:
        packet = self._current
        if packet is not None and packet.destination == BROADCAST and self._is_burst_open():
            self._radiate(self._frame(packet))
        else:
            super()._on_data_sent(frame)

    def _on_ack_timeout(self, _: None) -> None:
        packet = self._current
        assert packet is not None
        if self._is_burst_open() and self.radio.mode == LISTEN:
            self._radiate(self._frame(packet))
        else:
            super()._on_ack_timeout(None)

    def on_transmitted(self, frame: Frame) -> None:
        super().on_transmitted(frame)
        if self._current is None:
            self._stay_awake(0)

    def _conclude(self, outcome: Outcome) -> None:
        super()._conclude(outcome)
        self._stay_awake(0)
