"""A protocol without middleware: publishers send readings directly to the subscribers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from ...model.event import Event
from ..protocols.dds.message import DataMessage, SampleName, SampleStream, bytes_of
from ..sim.frame import NodeId
from ..sim.host import KIND, RoutingService
from ..sim.node import Node
from .account import LOST, ON_THE_WAY, NodeSubscription
from .conditions import Evaluator, why_not_alone
from .context import ProtocolNodes, RunContext
from .sink import Sinks


@dataclass(frozen=True, kw_only=True)
class Direct:
    """Settings of the protocol: readings are sent to the subscribers' nodes, which evaluate the
    conditions.
    """

    kind: ClassVar = "direct"
    filters: Literal["sink", "source"] = "sink"
    """The place of the filters. With ``source``, publishers send only readings that start or end a condition
    which they can evaluate alone.
    """

    def on(self, context: RunContext) -> DirectNodes:
        """Set up the direct delivery of readings in a run, and return it."""
        return DirectNodes(context, at_source=self.filters == "source")


class DirectNodes(ProtocolNodes):
    """The protocol on the nodes of a run: routers, subscribers, and the filters of publishers."""

    def __init__(self, context: RunContext, at_source: bool) -> None:
        super().__init__(context)
        filters = context.definition.filters
        alone = {name for name, condition in filters.items() if why_not_alone(condition) is None}
        self._filtered = [w for w in context.subscriptions if at_source and not w.plain and w.name in alone]
        self._watches: dict[tuple[NodeId, NodeSubscription], Evaluator] = {}
        self._routers: dict[NodeId, RoutingService] = {}
        self._sinks = Sinks(context.definition, context.subscriptions, context.account)

    def destinations(self) -> Iterable[NodeId]:
        return [sub.node for sub in self._context.subscriptions]

    def boot(self, node: Node, router: RoutingService) -> None:
        self._routers[node.id] = router
        self._sinks.boot(node)
        served = self._context.definition.operators() if self._filtered else {}
        for sub in self._filtered:
            self._watches[node.id, sub] = Evaluator(served[sub.name], sub.name)
        router.register_handler(KIND, False, lambda datagram: self._sinks.on_event(node, datagram.message))

    def publish(self, node: Node, event: Event) -> None:
        """Send an event once to each subscribing node. The message has the size of a DDS sample."""
        wanted: dict[NodeId, list[str]] = {}
        for sub in self._context.subscriptions:
            if event.topic in sub.topics and self._is_relevant(node, sub, event) and sub.at(event.time):
                wanted.setdefault(sub.node, []).append(sub.name)
        name = SampleName(event.source, SampleStream(0), 0, event.sequence)
        data = DataMessage(name, False, event.attributes, event.time)
        for subscriber, names in wanted.items():
            cause = self._context.account.charge(names, "Data", "data")
            self._routers[node.id].send(subscriber, KIND, event, bytes_of(data), cause)

    def _is_relevant(self, node: Node, sub: NodeSubscription, event: Event) -> bool:
        watch = self._watches.get((node.id, sub))
        return watch is None or bool(watch.react(event))

    def fate(self, _wish: NodeSubscription, event: Event) -> str:
        held = (datagram.message for datagram in self._context.ledger.held())
        return ON_THE_WAY if event in held else LOST
