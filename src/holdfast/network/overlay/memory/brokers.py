"""An overlay in one process: brokers and clients, joined by queues.  [B48]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ....model.host import Host
from ....model.instant import Instant
from ....model.protocol import Received, Send, Undelivered
from ...protocols.cbps.broker import CbpsBroker
from ...protocols.cbps.bundle import is_droppable
from ...protocols.cbps.client import CbpsClient
from ...protocols.cbps.condition import CompileCondition
from ...protocols.cbps.context import stamp_arrival
from ...protocols.cbps.message import CbpsMessage
from ..conditions import compile_condition
from .network import Link, QueueNetwork


class Overlay(QueueNetwork):
    """A network of brokers and clients in one process.

    ``traffic`` counts the messages of each link by cause. ``tap`` is called with every message when it is
    sent.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        now: Instant = 0,
        conditions: CompileCondition = compile_condition,
        tap: Callable[[str, str, CbpsMessage], None] = lambda *_: None,
    ) -> None:
        super().__init__(seed=seed, now=now)
        self.traffic: Counter[tuple[str, str, str]] = Counter()
        self._conditions, self._tap = conditions, tap
        self._roles: dict[str, str] = {}

    def broker(self, name: str, *, to: Iterable[str] = (), machine: CbpsBroker | None = None) -> Host:
        """Start a broker, connect it to other brokers, and return its host."""
        self._roles[name] = "broker"
        return self.start(name, machine or CbpsBroker(self._conditions, name=name), to, seed=len(self._roles))

    def client(self, name: str, to: str | None = None, *, machine: CbpsClient | None = None) -> Host:
        """Start a client, connect it to a broker if one is named, and return its host."""
        self._roles[name] = "client"
        return self.start(name, machine or CbpsClient(name, self._conditions), () if to is None else (to,))

    def role(self, name: str) -> str:
        return self._roles[name]

    def give_up(self, sender: str, to: str) -> bool:
        """Drop the oldest notification on its way over a link, as a host does for a slow peer.

        Return whether there was one.
        """
        line = self._lines[sender, to]
        for waiting in line:
            _, (_, message) = waiting
            if is_droppable(message):
                line.remove(waiting)
                self._link_order.remove((sender, to))
                self._tell(sender, Undelivered, to, message)
                return True
        return False

    def _cross(self, link: Link, send: Send) -> None:
        self._tap(*link, send.message)
        self.traffic[*link, send.cause] += 1
        self._put(link, Received, link[0], stamp_arrival(send.message, self.now))
