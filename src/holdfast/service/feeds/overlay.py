"""Readings from an overlay of brokers (``holdfast broker``): every event of the topics that are declared.

The overlay keeps nothing for who is away: what is published while we are not connected does not come.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from ...errors import HoldfastError, InputError
from ...model.event import Event
from ...model.instant import Duration, Instant
from ...protocols.cbps.client import Heard, Refused, subscribe
from ...protocols.cbps.content import Constraint, Filter
from ...protocols.cbps.event import to_event
from ...runtimes.overlay.client import connected, free_name
from ...runtimes.overlay.connection.address import Address
from ...runtimes.overlay.connection.identity import Identity
from ...runtimes.overlay.tcp import TcpHost
from ..service import Service, Submission
from .arrival import arrived
from .submission import Given, Rejected, lag_of, rejection

log = logging.getLogger("holdfast.service")

_AT_ONCE = 2_000


@dataclass
class OverlayFeed:
    """A broker's events as readings."""

    service: Service
    address: Address
    token: bytes | None = None
    messages: int = 0
    connected: bool = False
    trouble: str | None = None
    lag: Duration | None = None
    _heard: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)

    @property
    def name(self) -> str:
        return f"overlay://{self.address.host}:{self.address.port}"

    async def run(self) -> None:
        """Take events until cancelled; a broker that is not there, or refuses us, is tried again."""
        while True:
            try:
                await self._listen()
            except HoldfastError as error:
                self._say(str(error))
            finally:
                self.connected = False
            await asyncio.sleep(2)

    async def _listen(self) -> None:
        identity = Identity(free_name("service"), token=self.token)
        async with connected(self.address, identity, deliver=self._heard.put_nowait, patient=True) as node:
            self.connected = True
            self._say(None)
            asked: set[str] = set()
            while True:
                self._ask(node, asked)
                try:
                    async with asyncio.timeout(1):  # a definition may have brought topics
                        first = await node.unless_failed(self._heard.get())
                except TimeoutError:
                    continue
                await self._take([first, *self._rest()])

    def _ask(self, node: TcpHost, asked: set[str]) -> None:
        for name in self.service.topics.keys() - asked:
            node.ask(subscribe(name, Filter((Constraint("topic", "text", "=", name),))))
            asked.add(name)

    def _rest(self) -> list[Any]:
        return [self._heard.get_nowait() for _ in range(min(self._heard.qsize(), _AT_ONCE))]

    async def _take(self, heard: list[Any]) -> None:
        now, given, rejected = self.service.clock(), list[Given](), list[Rejected]()
        for what in heard:
            if isinstance(what, Refused):
                self._say(f"the broker refuses '{what.name}': {what.why}")
            elif isinstance(what, Heard):
                self.messages += 1
                try:
                    event, wrong = arrived(self._event(what), now)
                except Exception as error:  # whatever it is, the feed goes on
                    said = repr(dict(what.content)).encode(errors="replace")
                    rejected.append(rejection("overlay", what.subscription, error, said, now))
                    continue
                self.service.counts.corrected += wrong
                given.append(Given(event))
        if given:
            await self.service.submit(Submission(given))
            self.lag = now - max(one.event.time for one in given)
        await self.service.reject(rejected)

    def _event(self, heard: Heard) -> Event:
        topic = self.service.topics.get(heard.subscription)
        event = None if topic is None else to_event(topic, heard.content)
        if event is None:
            raise InputError(f"it is no event of topic '{heard.subscription}'")
        return event

    def _say(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            log.warning("%s: %s", self.name, trouble or "connected")
            self.trouble = trouble

    def serves(self, _topic: str) -> bool:
        return True

    def read_until(self) -> Instant | None:
        """Up to now while nothing waits: the overlay keeps nothing for who is away."""
        return self.service.clock() if self.connected and self._heard.empty() else None

    def status(self) -> dict[str, Any]:
        """How it stands."""
        return {
            "name": self.name, "kind": "overlay", "connected": self.connected, "trouble": self.trouble,
            "caught_up": self.read_until() is not None, "lag": lag_of(self.lag),
            "messages": self.messages, "waiting": self._heard.qsize(), "dropped": 0,
        }  # fmt: skip
