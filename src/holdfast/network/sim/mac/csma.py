"""Unslotted CSMA/CA of IEEE 802.15.4-2006 (7.5.1.4), with acknowledgements and retries (7.5.6.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ....errors import UsageError
from ....model.instant import Duration
from ..energy import LISTEN
from ..frame import CHANNEL_BUSY
from .station import Station, at_least

if TYPE_CHECKING:
    from ..node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Csma:
    """Parameters of CSMA/CA: macMinBE, macMaxBE, macMaxCSMABackoffs and macMaxFrameRetries, with the
    standard's defaults.

    ``congestion`` gives bounds in µs for a uniform backoff after a busy channel, in place of the standard's
    growing backoff. TinyOS uses such a backoff of 0.3 to 2.5 ms (10 to 80 ticks of 32 kHz).
    """

    kind: ClassVar = "csma"
    min_exponent: int = 3
    max_exponent: int = 5
    backoffs: int = 4
    retries: int = 3
    acknowledged: bool = True
    queue: int = 16
    congestion: tuple[Duration, Duration] | None = None

    def __post_init__(self) -> None:
        at_least(self, backoffs=0, retries=0, queue=1)
        if not 0 <= self.min_exponent <= self.max_exponent <= 20:
            exponents = f"from {self.min_exponent} to {self.max_exponent}"
            raise UsageError(f"Csma: exponents {exponents}; 0 <= min <= max <= 20")
        if self.congestion is not None and not 0 <= self.congestion[0] <= self.congestion[1]:
            raise UsageError(f"Csma: congestion is {self.congestion} µs; 0 <= shortest <= longest")


class CsmaStation(Station):
    """A station that waits for a random backoff, senses the channel, and transmits if the channel is
    clear.
    """

    def __init__(self, node: Node, mac: Csma) -> None:
        super().__init__(node, queue=mac.queue, retries=mac.retries, acknowledged=mac.acknowledged)
        self.spacing = 2 * self.unit  # macMinLIFSPeriod
        self._mac = mac
        self._found_busy = 0

    def _contend(self) -> None:
        self._found_busy = 0
        self._back_off()

    def _back_off(self) -> None:
        self._wait(self._delay() + self.spec.sensing, self._sense)

    def _delay(self) -> Duration:
        if self._found_busy and self._mac.congestion is not None:
            return self.node.random.randint(*self._mac.congestion)
        exponent = min(self._mac.min_exponent + self._found_busy, self._mac.max_exponent)
        return self.node.random.randrange(1 << exponent) * self.unit

    def _sense(self, _: None) -> None:
        if self.radio.mode == LISTEN and self.radio.clear():
            self._transmit()
        elif self._found_busy < self._mac.backoffs:
            self._found_busy += 1
            self._back_off()
        else:
            self._conclude(CHANNEL_BUSY)
