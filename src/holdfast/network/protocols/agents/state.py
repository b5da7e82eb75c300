"""The state of a broker with agents, and the indexes by which it finds them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ....model.protocol import Peer
from ..cbps.broker import CbpsBrokerState
from ..cbps.connections import Connections
from ..cbps.message import BundleKey
from ..cbps.routing import RoutingTable
from .code_store import CodeStore
from .hosted_agent import HostedAgent
from .place_index import AgentPlace, PlaceIndex


@dataclass(slots=True)
class HostingState:
    """The state of a broker with agents, and the indexes of the agents."""

    broker: CbpsBrokerState
    agents: dict[AgentPlace, HostedAgent] = field(default_factory=dict)
    by_peer: dict[Peer, HostedAgent] = field(default_factory=dict)
    by_address: dict[str, HostedAgent] = field(default_factory=dict)
    refusals: dict[AgentPlace, str] = field(default_factory=dict)
    place_index: PlaceIndex = field(default_factory=PlaceIndex)
    with_publisher: set[AgentPlace] = field(default_factory=set)
    """The strategies with a matching publisher at any broker."""
    ways: dict[str, dict[BundleKey, None]] = field(default_factory=dict)
    """For each address, the ways that instances of the agent have laid for partners."""
    instances: dict[str, dict[BundleKey, None]] = field(default_factory=dict)
    """For each address, the ways that instances of the agent have laid for each other."""
    laid_ways: dict[BundleKey, list[tuple[str, str]]] = field(default_factory=dict)
    """For each bundle, the ways that it lays, as field and address."""
    agents_by_partner: dict[str, dict[AgentPlace, None]] = field(default_factory=dict)
    """For each address, the local agents that communicate with it."""
    of_origin: Counter[str] = field(default_factory=Counter)
    """The number of local agents of each subscriber."""
    codes: CodeStore = field(default_factory=CodeStore)
    bundles_by_code: dict[str, dict[BundleKey, None]] = field(default_factory=dict)
    """For each code digest, the bundles with this code."""
    workers: Counter[str] = field(default_factory=Counter)
    started_count: int = 0
    """The number of agents that this broker has started. Each gets a new name, so that its messages do not
    count as duplicates.
    """
    is_active: bool = False
    """Whether an active subscription has ever arrived. Before that, nothing is indexed."""

    @property
    def connections(self) -> Connections:
        """The broker's connections."""
        return self.broker.connections

    @property
    def routing(self) -> RoutingTable:
        """The broker's stored bundles."""
        return self.broker.routing

    @property
    def account(self) -> dict[str, int]:
        """The broker's statistics, with the number of running and refused agents if not zero."""
        counts = {"agents": len(self.agents), "refused agents": len(self.refusals)}
        return {**self.broker.account, **{name: number for name, number in counts.items() if number}}
