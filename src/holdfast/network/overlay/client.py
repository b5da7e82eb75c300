"""Publishers and subscribers on TCP: the connection of a client, and the advertisements of a publisher."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from ...errors import HoldfastError
from ...model.event import Event
from ...model.topic import Topic
from ..protocols.cbps.bundle import is_droppable
from ..protocols.cbps.client import (
    SUBSCRIBER_KINDS,
    CbpsClient,
    LeaveNetwork,
    WithdrawSubmission,
    advertise,
    publish,
)
from ..protocols.cbps.event import advertisement_for, to_content
from ..protocols.cbps.message import Kind
from ..protocols.cbps.ranges import Value
from .conditions import compile_condition
from .connection.address import Address
from .connection.identity import Identity
from .connection.limits import ConnectionLimits
from .tcp import DEFAULTS, TcpHost


def free_name(role: str) -> str:
    """Return a random name that begins with the role."""
    return f"{role}-{secrets.token_hex(6)}"


@asynccontextmanager
async def connect_client(
    address: Address,
    identity: Identity,
    *,
    deliver: Callable[[Any], None],
    limits: ConnectionLimits = DEFAULTS,
    patient: bool = False,
    accepts: tuple[Kind, ...] = SUBSCRIBER_KINDS,
) -> AsyncIterator[TcpHost]:
    """Run a client that keeps a connection to a broker.

    On exit, the broker has received all submitted bundles, and stored bundles are withdrawn. Unless
    ``patient``, an unanswered first call raises an error.
    """
    client = CbpsClient(identity.name, compile_condition, accepts)
    node = TcpHost(identity, client, limits=limits, losable=is_droppable, deliver=deliver)
    node.start()
    node.call(address, patient=patient)
    try:
        await node.ready()
        yield node
    finally:
        node.ask(LeaveNetwork())
        await node.stop("it has finished")
        with suppress(HoldfastError):
            if node.failed.done():
                node.failed.result()


ALL_SOURCES = ""
"""The name that stands for all sources of a topic. No source has an empty name."""
ANYWHERE: Mapping[str, Value] = {}

Connector = Callable[..., AbstractAsyncContextManager[TcpHost]]
"""A function like `connect_client` that needs only the argument ``deliver``."""


MOST_SOURCES = 1_000
"""The greatest number of sources that a publisher advertises separately. Above it, the topic is advertised as
a whole.
"""


class Publisher:
    """Sends events, and advertises each source of a topic before its first event.

    The advertisement includes the source's location while that does not change.
    """

    def __init__(self, node: TcpHost) -> None:
        self._node = node
        self._known: dict[str, dict[str, Mapping[str, Value]]] = {}

    def advertise(self, topic: Topic, source: str, at: Mapping[str, Value] = ANYWHERE) -> bool:
        """Advertise events of a source; return whether the topic is new.

        A new advertisement precedes the withdrawal of the old one, so that no subscription is lost in
        between.
        """
        is_news, sources = topic.name not in self._known, self._known.setdefault(topic.name, {})
        if ALL_SOURCES in sources or sources.get(source) in (at, ANYWHERE):
            return False
        if source in sources:  # it moves
            self._promise(topic, source, ANYWHERE)
            self._node.ask(WithdrawSubmission(_advertisement_name(topic, source, sources[source])))
            sources[source] = ANYWHERE
        elif len(sources) >= MOST_SOURCES:
            self._promise(topic, ALL_SOURCES, ANYWHERE)
            for one, there in sources.items():
                self._node.ask(WithdrawSubmission(_advertisement_name(topic, one, there)))
            self._known[topic.name] = {ALL_SOURCES: ANYWHERE}
        else:
            self._promise(topic, source, at)
            sources[source] = at
        return is_news

    def _promise(self, topic: Topic, source: str, at: Mapping[str, Value]) -> None:
        pinned = {"source": source, **at} if source != ALL_SOURCES else {}
        self._node.ask(advertise(_advertisement_name(topic, source, at), advertisement_for(topic, **pinned)))

    async def publish(self, event: Event) -> None:
        """Wait until the connection accepts data, then send an event."""
        await self._node.ready()
        self._node.ask(publish(to_content(event)))


def _advertisement_name(topic: Topic, source: str, at: Mapping[str, Value]) -> str:
    """Return the name of an advertisement."""
    return f"{topic.name} of {source}{' there' * bool(at)}"
