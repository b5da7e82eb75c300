"""Small networks with routing, and a record of their sends and deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.model.instant import Instant
from holdfast.network.sim.frame import NodeId
from holdfast.network.sim.network import Network, Setup
from holdfast.network.sim.node import Node
from holdfast.network.sim.routing.datagram import Datagram, RoutingMachine
from holdfast.network.sim.routing.flooding import FLOODING, Flooding
from holdfast.network.sim.routing.ledger import MessageLedger
from holdfast.network.sim.routing.router import Router


@dataclass
class Routed:
    """A booted network whose nodes record what comes to them."""

    network: Network
    ledger: MessageLedger
    routers: dict[NodeId, Router] = field(default_factory=dict)
    came: list[tuple[Instant, NodeId, Datagram]] = field(default_factory=list)

    def send(self, at: Instant, source: NodeId, to: Any, message: Any = "hello", size: int = 20) -> None:
        def say() -> None:
            if self.network.nodes[source].alive:
                self.routers[source].send(to, "test", message, size, "test")

        self.network.at(at, say)

    def messages(self, node: NodeId) -> list[Any]:
        return [datagram.message for _, there, datagram in self.came if there == node]


def routed_network(machine: RoutingMachine, flooding: Flooding = FLOODING, **setup: Any) -> Routed:
    """A network in which every node runs this machine."""
    network = Network(Setup(**setup))
    made = Routed(network, MessageLedger([node.position for node in network.nodes]))

    def boot(node: Node) -> None:
        router = made.routers[node.id] = Router(node, machine, made.ledger, flooding)
        router.register_handler("test", False, lambda d: made.came.append((network.now, node.id, d)))

    network.boot(boot)
    return made
