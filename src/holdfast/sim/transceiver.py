"""A node's radio, and what it is in the middle of."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..model.instant import Instant
from .clock import SIGNAL_STARTS, Clock, Entry
from .energy import LISTEN, NOBODY, OFF, RECEIVE, SLEEP, TRANSMIT, RadioMeter
from .frame import ASLEEP, CUT, DEAF, Frame, NodeId

if TYPE_CHECKING:
    from .medium import Medium

TURN = 5
"""The radio turns from listening to transmitting: it hears nothing, and draws what listening draws."""


class Upper(Protocol):
    """What a radio tells the layer above."""

    def received(self, frame: Frame) -> None:
        """A frame came through, for whomever it is."""

    def failed(self) -> None:
        """A frame that was being received was lost."""

    def transmitted(self, frame: Frame) -> None:
        """Our own frame has left."""


class Path(NamedTuple):
    """What a receiver gets of a sender's signal."""

    receiver: Transceiver
    power: float
    """mW"""
    per_us: float
    """The logarithm of the chance that a µs is right when nobody interferes."""
    quality: float
    """The chance that a frame is heard at all."""


class Audience(NamedTuple):
    """Who gets a node's signal: those who could receive it, and those whom it only disturbs."""

    receivers: tuple[Path, ...]
    disturbed: tuple[tuple[Transceiver, float], ...]


class Transmission:
    """A frame on the air."""

    __slots__ = ("audience", "end", "frame", "missed", "sender", "synchronised")

    def __init__(self, frame: Frame, sender: Transceiver, audience: Audience, synchronised: Instant) -> None:
        self.frame = frame
        self.sender = sender
        self.audience = audience
        self.synchronised = synchronised
        """When its preamble has passed."""
        self.missed: dict[Transceiver, str] = {}
        """Those who could have received it and do not, and why."""
        self.end: Entry


class Transceiver:
    """A node's radio."""

    __slots__ = (
        "_clock",
        "_turning",
        "disturbed",
        "heard",
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
        "since",
        "upper",
    )

    def __init__(self, id: NodeId, medium: Medium, meter: RadioMeter, random: Random) -> None:
        self.id = id
        self.medium = medium
        self.meter = meter
        self.random = random
        self.mode = OFF
        self.heard: dict[Transmission, float] = {}
        """mW of every signal that is there now."""
        self.sending: Transmission | None = None
        self.upper: Upper
        self._clock = medium.clock
        self._turning: Entry | None = None
        self.locked: Transmission | None = None
        """What is being received; then also:"""
        self.path: Path
        self.since: Instant = 0
        """When the present segment began, in which the interference is constant."""
        self.per_us = 0.0
        """The logarithm of the chance that a µs of the present segment is right."""
        self.log_right = 0.0
        """The same of all segments before."""
        self.disturbed = False

    # What the MAC does with it.

    def on(self) -> None:
        """Listen."""
        if self.mode in (OFF, SLEEP):
            self.rest()

    def off(self) -> None:
        """Sleep; what was being received is lost."""
        assert self.mode in (SLEEP, LISTEN, RECEIVE), f"node {self.id} cannot sleep in mode {self.mode}"
        self._lose(ASLEEP)
        self.enter(SLEEP)

    def transmit(self, frame: Frame) -> None:
        """Turn to transmitting and send a frame; what was being received is lost."""
        assert self.mode in (LISTEN, RECEIVE), f"node {self.id} cannot send in mode {self.mode}"
        if self.locked is not None:
            self._lose(DEAF)
            self.enter(LISTEN)
        self.mode = TURN
        self._turning = self._clock.after(self.medium.radio.turnaround, self._radiate, frame, SIGNAL_STARTS)

    def clear(self) -> bool:
        """Whether the channel is: no frame is being received, and there is little power."""
        return self.locked is None and (not self.heard or self.level() < self.medium.carrier)

    def level(self) -> float:
        """mW on the channel."""
        return sum(self.heard.values())

    def halt(self) -> None:
        """The node goes down, in the middle of whatever it does."""
        self._lose(CUT)
        if self._turning is not None:
            Clock.cancel(self._turning)
            self._turning = None
        if self.sending is not None:
            self.medium.cut(self.sending)
        self.enter(OFF)

    # What the medium does with it.

    def settle(self, now: Instant) -> None:
        """Close the segment that ends now."""
        if now > self.since:
            self.log_right += (now - self.since) * self.per_us
            self.since = now

    def enter(self, mode: int, cause: str = NOBODY) -> None:
        """Change to another mode, on behalf of that cause."""
        self.mode = mode
        self.meter.change(self._clock.now, mode, cause)

    def rest(self) -> None:
        """Listen, and lock on to a signal whose preamble has not passed."""
        self.mode = LISTEN
        self.meter.change(self._clock.now, LISTEN)
        for transmission in self.heard:
            if self.medium.join(transmission, self):
                return

    def _radiate(self, frame: Frame) -> None:
        self._turning = None
        self.enter(TRANSMIT, frame.cause)
        self.sending = self.medium.start(self, frame)

    def _lose(self, why: str) -> None:
        if self.locked is not None:
            self.locked.missed[self] = why
            self.locked = None
