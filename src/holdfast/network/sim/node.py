"""A simulated node: position, clock, random numbers, energy, timers, and the link to its neighbours."""

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
"""A function that installs the protocols on a node. It is called when the node starts, and after each
restart.
"""


@dataclass(eq=False)
class Node:
    """A node with the members and services that its protocols may use. Timers and ``now`` follow the node's
    own clock.
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
    """Whether the processing time of a frame delays it."""
    boots: int = field(default=0, init=False)
    """The number of times that the node was switched on."""
    alive: bool = field(default=False, init=False)
    died: Instant | None = field(default=None, init=False)
    """The simulated time at which its battery was empty; ``None`` while it is not."""
    work: ProcessingTimes = field(init=False)
    link: Station = field(init=False)

    def __post_init__(self) -> None:
        self.work = self.platform.work

    @property
    def now(self) -> Instant:
        """The time that the node's clock shows."""
        return self.local.local(self.clock.now)

    def after(self, delay: Duration, action: Action, argument: Any = None) -> Entry:
        """Call ``action(argument)`` when ``delay`` µs have passed on the node's clock, unless the node goes
        down before.
        """
        return self.at(self.now + delay, action, argument)

    def at(self, local: Instant, action: Action, argument: Any = None) -> Entry:
        """Call ``action(argument)`` when the node's clock shows ``local``, or at once if that time has
        passed.
        """
        when = max(self.local.when(local), self.clock.now)
        return self.clock.at(when, self._fire, (self.boots, action, argument))

    @staticmethod
    def cancel(timer: Entry) -> None:
        """Cancel a timer of `after` or `at`."""
        Clock.cancel(timer)

    def _fire(self, timer: tuple[int, Action, Any]) -> None:
        boots, action, argument = timer
        if self.alive and boots == self.boots:
            self.energy.mcu.work(self.clock.now, self.work.timer)
            action(argument)

    def start(self, boot: Boot) -> None:
        """Switch the node on with a new link and without memory, and call ``boot``."""
        assert not self.alive
        now = self.clock.now
        self.boots += 1
        self.alive = True
        self.energy.mcu.start(now)
        self.link = self.radio.upper = station(self.mac, self)
        self.link.start()
        boot(self)

    def halt(self) -> None:
        """Switch the node off immediately, even while it works."""
        assert self.alive
        self.alive = False
        self.link.halt()
        self.radio.halt()
        self.energy.mcu.stop(self.clock.now)
