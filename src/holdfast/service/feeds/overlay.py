"""A feed that reads every event of the declared topics from an overlay of brokers (``holdfast broker``).

The overlay stores nothing for absent clients: events published while the service is not connected are lost.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from ...errors import HoldfastError, InputError
from ...model.event import Event
from ...model.instant import Duration, Instant
from ...network.overlay.client import connect_client, free_name
from ...network.overlay.connection.address import Address
from ...network.overlay.connection.identity import Identity
from ...network.overlay.tcp import TcpHost
from ...network.protocols.cbps.client import ReceivedNotification, SubmissionRefused, subscribe
from ...network.protocols.cbps.content import Constraint, Filter
from ...network.protocols.cbps.event import to_event
from ..intake import Submission
from ..service import Service
from .arrival import check_arrival
from .feed import FeedStatus
from .submission import IncomingEvent, Rejected, lag_of, rejection

log = logging.getLogger("holdfast.service")

_AT_ONCE = 2_000


@dataclass
class OverlayFeed:
    """A feed that submits the events of an overlay's broker as readings."""

    service: Service
    address: Address
    token: bytes | None = None
    messages: int = 0
    connected: bool = False
    trouble: str | None = None
    lag: Duration | None = None
    _queue: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)

    @property
    def name(self) -> str:
        return f"overlay://{self.address.host}:{self.address.port}"

    async def run(self) -> None:
        """Submit events until cancelled. Connects again whenever the broker is not reachable or refuses."""
        while True:
            try:
                await self._listen()
            except HoldfastError as error:
                self._report(str(error))
            finally:
                self.connected = False
            await asyncio.sleep(2)

    async def _listen(self) -> None:
        identity = Identity(free_name("service"), token=self.token)
        async with connect_client(
            self.address, identity, deliver=self._queue.put_nowait, patient=True
        ) as node:
            self.connected = True
            self._report(None)
            asked: set[str] = set()
            while True:
                self._ask(node, asked)
                try:
                    async with asyncio.timeout(1):  # a new definition may declare topics
                        first = await node.unless_failed(self._queue.get())
                except TimeoutError:
                    continue
                await self._take([first, *self._rest()])

    def _ask(self, node: TcpHost, asked: set[str]) -> None:
        for name in self.service.topics.keys() - asked:
            node.ask(subscribe(name, Filter((Constraint("topic", "text", "=", name),))))
            asked.add(name)

    def _rest(self) -> list[Any]:
        return [self._queue.get_nowait() for _ in range(min(self._queue.qsize(), _AT_ONCE))]

    async def _take(self, received: list[Any]) -> None:
        now, incoming, rejected = self.service.clock(), list[IncomingEvent](), list[Rejected]()
        for item in received:
            if isinstance(item, SubmissionRefused):
                self._report(f"the broker refuses '{item.name}': {item.why}")
            elif isinstance(item, ReceivedNotification):
                self.messages += 1
                try:
                    event, wrong = check_arrival(self._event(item), now)
                except Exception as error:  # a bad message must not end the feed
                    content = repr(dict(item.content)).encode(errors="replace")
                    rejected.append(rejection("overlay", item.subscription, error, content, now))
                    continue
                self.service.counts.corrected += wrong
                incoming.append(IncomingEvent(event))
        if incoming:
            await self.service.submit(Submission(incoming))
            self.lag = now - max(incoming_event.event.time for incoming_event in incoming)
        await self.service.reject(rejected)

    def _event(self, received: ReceivedNotification) -> Event:
        topic = self.service.topics.get(received.subscription)
        event = None if topic is None else to_event(topic, received.content)
        if event is None:
            raise InputError(f"it is no event of topic '{received.subscription}'")
        return event

    def _report(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            log.warning("%s: %s", self.name, trouble or "connected")
            self.trouble = trouble

    def serves(self, _topic: str) -> bool:
        return True

    def read_until(self) -> Instant | None:
        """Return the current time, or ``None`` while messages wait in the queue.

        The overlay itself has no backlog.
        """
        return self.service.clock() if self.connected and self._queue.empty() else None

    def status(self) -> FeedStatus:
        """Return the status of the feed."""
        return {
            "name": self.name, "kind": "overlay", "connected": self.connected, "trouble": self.trouble,
            "caught_up": self.read_until() is not None, "lag": lag_of(self.lag),
            "messages": self.messages, "waiting": self._queue.qsize(), "dropped": 0,
        }  # fmt: skip
