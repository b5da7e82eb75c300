"""Small networks for tests: who is where, what they send, and what came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from holdfast.model.instant import Instant
from holdfast.network.sim.chance import stream
from holdfast.network.sim.frame import Frame, NodeId, Outcome
from holdfast.network.sim.network import Network, Setup
from holdfast.network.sim.node import Node
from holdfast.network.sim.propagation import Measured
from holdfast.network.sim.trace import Trace


@dataclass
class Air:
    """A booted network, and everything that its nodes received."""

    network: Network
    came: list[tuple[Instant, NodeId, Any]] = field(default_factory=list)
    overheard: list[tuple[Instant, NodeId, Any]] = field(default_factory=list)
    outcomes: list[tuple[Instant, NodeId, Outcome]] = field(default_factory=list)

    def send(self, at: Instant, source: NodeId, to: NodeId, payload: Any = "hello", size: int = 20) -> None:
        """Have a node send something at a time."""

        def done(outcome: Outcome) -> None:
            self.outcomes.append((self.network.now, source, outcome))

        def say() -> None:
            node = self.network.nodes[source]
            if node.alive:
                node.link.send(to, payload, size, cause=f"from {source}", done=done)

        self.network.at(at, say)

    def receivers(self) -> list[NodeId]:
        return [node for _, node, _ in self.came]


def air(positions: Iterable[Any], trace: Trace | None = None, **setup: Any) -> Air:
    """A network at these positions whose nodes record what comes."""
    made = Air(Network(Setup(positions=list(positions), **setup), trace))

    def boot(node: Node) -> None:
        def record(where: list[tuple[Instant, NodeId, Any]]) -> Callable[[Frame], None]:
            return lambda frame: where.append((made.network.now, node.id, frame.payload))

        node.link.listen(record(made.came), record(made.overheard))

    made.network.boot(boot)
    return made


def links(*pairs: tuple[NodeId, NodeId], quality: float = 1.0) -> Measured:
    """Links between the named nodes with a quality of 1, or the given one; other nodes have no link."""
    return Measured({pair: quality for a, b in pairs for pair in ((a, b), (b, a))})


def poisson(
    network: Network, senders: Sequence[NodeId], to: NodeId, size: int, mean_us: float, *names: object
) -> None:
    """Packets at times without memory, dealt to the senders in turn, so that none has two at once."""
    chance, turns = stream(network.setup.seed, "poisson", *names), cycle(senders)

    def arrive(_: None) -> None:
        network.nodes[next(turns)].link.send(to, network.now, size)
        network.clock.after(round(chance.expovariate(1 / mean_us)), arrive)

    network.clock.after(round(chance.expovariate(1 / mean_us)), arrive)
