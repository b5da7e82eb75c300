"""All that a broker with agents remembers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ...model.protocol import Peer
from ..cbps.broker import BrokerState
from ..cbps.connecting import Connections
from ..cbps.message import Key
from ..cbps.routing import Routing
from .codes import Codes
from .hosted import Hosted
from .placing import Place, Placing


@dataclass(slots=True)
class HostingState:
    """The broker's state, and the agents."""

    broker: BrokerState
    agents: dict[Place, Hosted] = field(default_factory=dict)
    by_peer: dict[Peer, Hosted] = field(default_factory=dict)
    by_address: dict[str, Hosted] = field(default_factory=dict)
    refused: dict[Place, str] = field(default_factory=dict)
    placing: Placing = field(default_factory=Placing)
    found: set[Place] = field(default_factory=set)
    """Strategies for which there is a publisher somewhere."""
    ways: dict[str, dict[Key, None]] = field(default_factory=dict)
    """By address: the ways that instances of the agent have laid for partners."""
    instances: dict[str, dict[Key, None]] = field(default_factory=dict)
    """By address: the ways that instances of the agent have laid for one another."""
    laid: dict[Key, list[tuple[str, str]]] = field(default_factory=dict)
    """By bundle: the ways that it lays, by field and address."""
    talkers: dict[str, dict[Place, None]] = field(default_factory=dict)
    """By address: the agents here that talk to it."""
    of_origin: Counter[str] = field(default_factory=Counter)
    """How many agents each subscriber has here."""
    codes: Codes = field(default_factory=Codes)
    coded: dict[str, dict[Key, None]] = field(default_factory=dict)
    """By digest: the bundles whose code it is."""
    workers: Counter[str] = field(default_factory=Counter)
    started: int = 0
    """How many agents were started: one that is started again has a new name, so that it is heard."""
    is_asked: bool = False
    """Whether an active subscription has ever come; until then a broker is nothing but a broker."""

    @property
    def connections(self) -> Connections:
        """How the broker is joined to others."""
        return self.broker.connections

    @property
    def routing(self) -> Routing:
        """What the broker has stored."""
        return self.broker.routing

    @property
    def account(self) -> dict[str, int]:
        """What the broker has done, and the agents that it runs or refuses, if any."""
        now = {"agents": len(self.agents), "refused agents": len(self.refused)}
        return {**self.broker.account, **{what: number for what, number in now.items() if number}}
