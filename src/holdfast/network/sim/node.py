"""A node: position, clock, random numbers, energy, timers, and the link to its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Any

from ...model.instant import Duration, Instant
from ...model.space import Point
from .clock import Action, Clock, Entry, LocalClock
from .energy import NodeEnergy
from .frame import NodeId
from .mac import Mac, Station, station
from .mac.station import PacketLedgers
from .platforms import Platform, ProcessingTimes
from .transceiver import Transceiver

Boot = Callable[["Node"], None]
"""Installs the protocols on a node; called when it starts, and again after each restart."""


@dataclass(eq=False)
class Node:
    """The members and services that protocols on a node may use.  Timers and ``now`` follow the node's own
    clock.
    """

    id: NodeId
    position: Point
    _: KW_ONLY
    clock: Clock
    local: LocalClock
    random: Random
    seed: int
    radio: Transceiver
    energy: NodeEnergy
    platform: Platform
    mac: Mac
    ledgers: PacketLedgers
    delays: bool = False
    """Whether the processor's time for a frame delays it."""
    boots: int = field(default=0, init=False)
    """How many times the node was switched on."""
    alive: bool = field(default=False, init=False)
    died: Instant | None = field(default=None, init=False)
    """When its battery was empty."""
    work: ProcessingTimes = field(init=False)
    link: Station = field(init=False)

    def __post_init__(self) -> None:
        self.work = self.platform.work

    @property
    def now(self) -> Instant:
        """The time that its clock shows."""
        return self.local.local(self.clock.now)

    def after(self, delay: Duration, action: Action, argument: Any = None) -> Entry:
        """Call ``action(argument)`` when ``delay`` µs have passed on the node's clock, unless it went
        down.
        """
        return self.at(self.now + delay, action, argument)

    def at(self, local: Instant, action: Action, argument: Any = None) -> Entry:
        """Call ``action(argument)`` when the node's clock shows ``local``; at once if that has passed."""
        when = max(self.local.when(local), self.clock.now)
        return self.clock.at(when, self._fire, (self.boots, action, argument))

    @staticmethod
    def cancel(timer: Entry) -> None:
        """Cancel a timer."""
        Clock.cancel(timer)

    def _fire(self, timer: tuple[int, Action, Any]) -> None:
        boots, action, argument = timer
        if self.alive and boots == self.boots:
            self.energy.mcu.work(self.clock.now, self.work.timer)
            action(argument)

    def start(self, boot: Boot) -> None:
        """Switch the node on, with a new link and no memory, and call ``boot``."""
        assert not self.alive
        now = self.clock.now
        self.boots += 1
        self.alive = True
        self.energy.mcu.start(now)
        self.link = self.radio.upper = station(self.mac, self)
        self.link.start()
        boot(self)

    def halt(self) -> None:
        """Switch the node off, in the middle of its work."""
        assert self.alive
        self.alive = False
        self.link.halt()
        self.radio.halt()
        self.energy.mcu.stop(self.clock.now)
