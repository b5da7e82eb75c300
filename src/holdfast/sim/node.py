"""A node: where it stands, its clock, its chance, its energy, and its link to the neighbours."""

from __future__ import annotations

from collections.abc import Callable
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


class Node:
    """What everything that runs on a node may use.  Timers and ``now`` follow its own clock."""

    def __init__(
        self,
        id: NodeId,
        position: Point,
        *,
        clock: Clock,
        local: LocalClock,
        random: Random,
        seed: int,
        radio: Transceiver,
        energy: Account,
        platform: Platform,
        mac: Mac,
        ledgers: Ledgers,
    ) -> None:
        self.id = id
        self.position = position
        self.clock = clock
        self.local = local
        self.random = random
        self.seed = seed
        self.radio = radio
        self.energy = energy
        self.platform = platform
        self.work: Work = platform.work
        self.ledgers = ledgers
        self.boots = 0
        """How often it was switched on."""
        self.alive = False
        self.died: Instant | None = None
        """When its battery was empty."""
        self.link: Station
        self._mac = mac

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
        self.link = self.radio.upper = station(self._mac, self)
        self.link.start()
        boot(self)

    def halt(self) -> None:
        """Switch it off, in the middle of whatever it does."""
        assert self.alive
        self.alive = False
        self.link.halt()
        self.radio.halt()
        self.energy.mcu.stop(self.clock.now)
