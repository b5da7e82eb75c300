"""A node: where it stands, its clock, its chance, its energy, and its link to the neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from random import Random
from typing import Any

from ..model.instant import Duration, Instant
from ..model.space import Point
from .clock import Action, Clock, Entry, LocalClock
from .energy import Account
from .frame import NodeId
from .mac import Mac, Station, station
from .mac.station import Ledgers
from .platforms import Platform, Work
from .transceiver import Transceiver

Boot = Callable[["Node"], None]
"""Installs what runs on a node; called when it starts, and again after each restart."""


@dataclass(eq=False)
class Node:
    """What everything that runs on a node may use.  Timers and ``now`` follow its own clock."""

    id: NodeId
    position: Point
    _: KW_ONLY
    clock: Clock
    local: LocalClock
    random: Random
    seed: int
    radio: Transceiver
    energy: Account
    platform: Platform
    mac: Mac
    ledgers: Ledgers
    delays: bool = False
    """Whether the processor's time for a frame delays it."""
    boots: int = field(default=0, init=False)
    """How often it was switched on."""
    alive: bool = field(default=False, init=False)
    died: Instant | None = field(default=None, init=False)
    """When its battery was empty."""
    work: Work = field(init=False)
    link: Station = field(init=False)

    def __post_init__(self) -> None:
        self.work = self.platform.work

    @property
    def now(self) -> Instant:
        """What its clock shows."""
        return self.local.local(self.clock.now)

    def after(self, delay: Duration, action: Action, argument: Any = None) -> Entry:
        """Have ``action(argument)`` called when the node's clock shows ``delay`` more, if it is still up."""
        return self.at(self.now + delay, action, argument)

    def at(self, local: Instant, action: Action, argument: Any = None) -> Entry:
        """Have ``action(argument)`` called when the node's clock shows ``local``, or now if it has."""
        when = max(self.local.when(local), self.clock.now)
        return self.clock.at(when, self._fire, (self.boots, action, argument))

    @staticmethod
    def cancel(timer: Entry) -> None:
        """Forget a timer."""
        Clock.cancel(timer)

    def _fire(self, timer: tuple[int, Action, Any]) -> None:
        boots, action, argument = timer
        if self.alive and boots == self.boots:
            self.energy.mcu.work(self.clock.now, self.work.timer)
            action(argument)

    def start(self, boot: Boot) -> None:
        """Switch it on: a new link, nothing remembered."""
        assert not self.alive
        now = self.clock.now
        self.boots += 1
        self.alive = True
        self.energy.mcu.start(now)
        self.link = self.radio.upper = station(self.mac, self)
        self.link.start()
        boot(self)

    def halt(self) -> None:
        """Switch it off, in the middle of whatever it does."""
        assert self.alive
        self.alive = False
        self.link.halt()
        self.radio.halt()
        self.energy.mcu.stop(self.clock.now)
