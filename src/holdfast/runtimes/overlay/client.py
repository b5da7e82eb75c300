"""Publishers and subscribers on TCP."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from ...errors import HoldfastError
from ...model.event import Event
from ...model.topic import Topic
from ...protocols.cbps.bundle import is_losable
from ...protocols.cbps.client import HEARS, Client, Leave, Withdraw, advertise, publish
from ...protocols.cbps.event import advertised, to_content
from ...protocols.cbps.message import Kind
from ...protocols.cbps.ranges import Value
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
    accepts: tuple[Kind, ...] = HEARS,
) -> AsyncIterator[TcpHost]:
    """A client whose connection is there, and comes back when it is lost; at the end, everything that
    was submitted has reached the broker, and what is stored there is taken back.  Unless patient it fails
    if nobody answers the first call."""
    client = Client(identity.name, condition, accepts)
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


ANYBODY = ""
"""Stands for all sources of a topic; none has an empty name."""
ANYWHERE: Mapping[str, Value] = {}

Connector = Callable[..., AbstractAsyncContextManager[TcpHost]]
"""`connected` to somebody, as somebody: it lacks ``deliver`` only."""


MOST_SOURCES = 1_000
"""A publisher of more sources of a topic promises the topic alone, and forgets who they were."""


class Publisher:
    """Sends events, and advertises each source of a topic before its first, with where it is as long as it
    stays there."""

    def __init__(self, node: TcpHost) -> None:
        self._node = node
        self._known: dict[str, dict[str, Mapping[str, Value]]] = {}

    def advertise(self, topic: Topic, source: str, at: Mapping[str, Value] = ANYWHERE) -> bool:
        """Promise events of a source; whether the topic is news.  A new promise is made before an old one
        is taken back, so that nobody's interest is lost in between."""
        is_news, sources = topic.name not in self._known, self._known.setdefault(topic.name, {})
        if ANYBODY in sources or sources.get(source) in (at, ANYWHERE):
            return False
        if source in sources:  # it moves
            self._promise(topic, source, ANYWHERE)
            self._node.ask(Withdraw(_promise(topic, source, sources[source])))
            sources[source] = ANYWHERE
        elif len(sources) >= MOST_SOURCES:
            self._promise(topic, ANYBODY, ANYWHERE)
            for one, there in sources.items():
                self._node.ask(Withdraw(_promise(topic, one, there)))
            self._known[topic.name] = {ANYBODY: ANYWHERE}
        else:
            self._promise(topic, source, at)
            sources[source] = at
        return is_news

    def _promise(self, topic: Topic, source: str, at: Mapping[str, Value]) -> None:
        pinned = {"source": source, **at} if source != ANYBODY else {}
        self._node.ask(advertise(_promise(topic, source, at), advertised(topic, **pinned)))

    async def publish(self, event: Event) -> None:
        """Send an event as soon as the broker takes it."""
        await self._node.ready()
        self._node.ask(publish(to_content(event)))


def _promise(topic: Topic, source: str, at: Mapping[str, Value]) -> str:
    """The name of a promise."""
    return f"{topic.name} of {source}{' there' * bool(at)}"
