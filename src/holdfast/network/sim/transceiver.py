"""A node's radio: its mode, the signals that reach it, and the frame to which it is locked."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from ...model.instant import Instant
from .clock import SIGNAL_STARTS, Clock, Entry
from .energy import LISTEN, NO_CAUSE, OFF, RECEIVE, SLEEP, TRANSMIT, RadioMeter
from .frame import ASLEEP, CUT, DEAF, Frame, NodeId

if TYPE_CHECKING:
    from .mac.station import Station
    from .medium import Medium

TURN = 5
"""The mode in which a radio turns from listening to transmitting. It receives nothing and draws the current
of listening.
"""


class Path(NamedTuple):
    """The path of a signal from one sender to a receiver."""

    receiver: Transceiver
    power: float
    """The received power in mW."""
    per_us: float
    """The log of the probability that 1 µs of the signal is received correctly without interference."""
    quality: float
    """The probability that the receiver can synchronise to a frame at all."""


class Audience(NamedTuple):
    """The nodes that a signal reaches: nodes that could receive it, and nodes at which it only interferes."""

    receivers: tuple[Path, ...]
    disturbed: tuple[tuple[Transceiver, float], ...]


class Transmission:
    """A frame that is being transmitted."""

    __slots__ = ("audience", "end", "frame", "missed", "sender", "synchronised")

    def __init__(self, frame: Frame, sender: Transceiver, audience: Audience, synchronised: Instant) -> None:
        self.frame = frame
        self.sender = sender
        self.audience = audience
        self.synchronised = synchronised
        """The time at which the preamble of the frame has passed."""
        self.missed: dict[Transceiver, str] = {}
        """The nodes that could have received the frame but did not, each with the cause of the loss."""
        self.end: Entry


class Transceiver:
    """A node's radio. The MAC switches it and transmits; the medium locks it on to signals."""

    __slots__ = (
        "_clock",
        "_turning",
        "disturbed",
        "id",
        "locked",
        "log_right",
        "medium",
        "meter",
        "mode",
        "path",
        "per_us",
        "random",
        "sending",
        "signals",
        "since",
        "upper",
    )

    def __init__(self, id: NodeId, medium: Medium, meter: RadioMeter, random: Random) -> None:
        self.id = id
        self.medium = medium
        self.meter = meter
        self.random = random
        self.mode = OFF
        self.signals: dict[Transmission, float] = {}
        """The present power in mW of every signal at this node."""
        self.sending: Transmission | None = None
        self.upper: Station
        self._clock = medium.clock
        self._turning: Entry | None = None
        self.locked: Transmission | None = None
        """The signal being received; the following members describe its reception:"""
        self.path: Path
        self.since: Instant = 0
        """Start of the present segment, in which the interference is constant."""
        self.per_us = 0.0
        """Log of the probability that 1 µs of the present segment is correct."""
        self.log_right = 0.0
        """The sum of the logs over all earlier segments."""
        self.disturbed = False

    # Called by the MAC.

    def on(self) -> None:
        """Start to listen, if the radio is off or asleep."""
        if self.mode in (OFF, SLEEP):
            self.rest()

    def off(self) -> None:
        """Let the radio sleep. A frame that is being received is lost."""
        assert self.mode in (SLEEP, LISTEN, RECEIVE), f"node {self.id} cannot sleep in mode {self.mode}"
        self._lose(ASLEEP)
        self.enter(SLEEP)

    def transmit(self, frame: Frame) -> None:
        """Turn to transmitting and send a frame. A frame that is being received is lost."""
        assert self.mode in (LISTEN, RECEIVE), f"node {self.id} cannot send in mode {self.mode}"
        if self.locked is not None:
            self._lose(DEAF)
            self.enter(LISTEN)
        self.mode = TURN
        turnaround = self.medium.radio.turnaround
        self._turning = self._clock.after(turnaround, self._start_signal, frame, SIGNAL_STARTS)

    def clear(self) -> bool:
        """Return whether the channel is clear: no frame is being received, and the power is below the carrier
        threshold.
        """
        return self.locked is None and (not self.signals or self.level() < self.medium.carrier)

    def level(self) -> float:
        """Return the total power of all signals at this node, in mW."""
        return sum(self.signals.values())

    def halt(self) -> None:
        """Switch off at once. The transmission of a frame is aborted."""
        self._lose(CUT)
        if self._turning is not None:
            Clock.cancel(self._turning)
            self._turning = None
        if self.sending is not None:
            self.medium.cut(self.sending)
        self.enter(OFF)

    # Called by the medium.

    def settle(self, now: Instant) -> None:
        """Close the segment of constant interference that ends now."""
        if now > self.since:
            self.log_right += (now - self.since) * self.per_us
            self.since = now

    def enter(self, mode: int, cause: str = NO_CAUSE) -> None:
        """Change to another mode, and charge its energy to ``cause``."""
        self.mode = mode
        self.meter.change(self._clock.now, mode, cause)

    def rest(self) -> None:
        """Listen, and lock on to a present signal whose preamble has not passed."""
        self.mode = LISTEN
        self.meter.change(self._clock.now, LISTEN)
        for transmission in self.signals:
            if self.medium.join(transmission, self):
                return

    def _start_signal(self, frame: Frame) -> None:
        self._turning = None
        self.enter(TRANSMIT, frame.cause)
        self.sending = self.medium.start(self, frame)

    def _lose(self, why: str) -> None:
        if self.locked is not None:
            self.locked.missed[self] = why
            self.locked = None
