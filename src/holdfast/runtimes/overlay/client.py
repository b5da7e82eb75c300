"""Publishers and subscribers on TCP."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from ...errors import HoldfastError
from ...model.event import Event
from ...model.topic import Topic
from ...protocols.cbps.bundle import is_losable
from ...protocols.cbps.client import Client, Leave, advertise, publish
from ...protocols.cbps.event import advertised, to_content
from .conditions import condition
from .connection.address import Address
from .connection.identity import Identity
from .connection.limits import Limits
from .tcp import DEFAULTS, TcpHost


def free_name(role: str) -> str:
    """A name that nobody else has."""
    return f"{role}-{secrets.token_hex(6)}"


@asynccontextmanager
async def connected(
    address: Address,
    identity: Identity,
    *,
    deliver: Callable[[Any], None],
    limits: Limits = DEFAULTS,
    patient: bool = False,
) -> AsyncIterator[TcpHost]:
    """A client whose connection is there, and comes back when it is lost; at the end, everything that
    was submitted has reached the broker, and what is stored there is taken back.  Unless patient it fails
    if nobody answers the first call."""
    client = Client(identity.name, condition)
    node = TcpHost(identity, client, limits=limits, losable=is_losable, deliver=deliver)
    node.start()
    node.call(address, patient=patient)
    try:
        await node.ready()
        yield node
    finally:
        node.ask(Leave())
        await node.stop("it has finished")
        with suppress(HoldfastError):
            if node.failed.done():
                node.failed.result()


Connector = Callable[..., AbstractAsyncContextManager[TcpHost]]
"""`connected` to somebody, as somebody: it lacks ``deliver`` only."""


class Publisher:
    """Sends events, and advertises each source of a topic before its first."""

    def __init__(self, node: TcpHost) -> None:
        self._node = node
        self._known: set[tuple[str, str]] = set()

    def advertise(self, topic: Topic, source: str) -> bool:
        """Promise events of a source; whether that is news."""
        if (topic.name, source) in self._known:
            return False
        self._known.add((topic.name, source))
        self._node.ask(advertise(f"{topic.name} of {source}", advertised(topic, source=source)))
        return True

    async def publish(self, event: Event) -> None:
        """Send an event as soon as the broker takes it."""
        await self._node.ready()
        self._node.ask(publish(to_content(event)))
