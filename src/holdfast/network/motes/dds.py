"""The DDS family on motes: rendezvous nodes, writers and readers; conditions run on the publishers' nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ...kinds.state.condition import StateCondition
from ...lang.condition import Checked
from ...model import topic as model
from ...model.event import Event, Notification
from ...model.instant import MILLISECOND, Duration, Instant
from ..protocols.dds import request
from ..protocols.dds.deployment import (
    AdaptiveSettings,
    DdsDeployment,
    DiscoverySettings,
    ModeName,
    ReliableSettings,
    RotationSettings,
)
from ..protocols.dds.ifs import SlotSchedule, grid_slots
from ..protocols.dds.interest import Interest
from ..protocols.dds.level import BEST_EFFORT, FULL, TRANSITION, Level
from ..protocols.dds.message import (
    DISCOVERY,
    PLAIN,
    UNIT,
    DataMessage,
    DdsMessage,
    DdsSubscribe,
    Have,
    Heartbeat,
    Nack,
    SampleAck,
    SampleName,
    SampleStream,
    bytes_of,
    cause_of,
    message_name,
)
from ..protocols.dds.message import DdsNotification as Notice
from ..protocols.dds.modes import MODES
from ..protocols.dds.participant import DdsParticipant
from ..protocols.dds.state import DdsState
from ..protocols.dds.topic import DdsTopic, SampleType, TopicId, TopicSet
from ..sim.chance import stream
from ..sim.frame import BROADCAST, NodeId
from ..sim.host import KIND, NodeHost, RoutingService
from ..sim.metrics import ENTRY_BYTES, footprint
from ..sim.node import Node
from ..sim.routing.datagram import Datagram, Destination
from ..sim.topology import Topology
from .account import LOST, ON_THE_WAY, WAITING, NodeSubscription, Row
from .conditions import mote_machines, scope, why_not_alone
from .context import ChargingRouter, ProtocolNodes, RunContext, schedule_subscriptions
from .fault import ScenarioError, at
from .nodes import NodeName, find_nodes
from .sink import Sinks

OVERFLOWED, GIVEN_UP = "overflowed", "given up"
LOST_WITH_ITS_NODE = "lost with its node"
NOBODY = "its rendezvous node knew nobody"
UNKNOWN = "its publisher did not know"
"""The fate of a sample whose publisher did not know of the subscription."""
NEVER = "never discovered"
"""The fate of a sample for a reader whose subscription never reached the node that must register it."""

LEVELS: Mapping[str | float, Level] = {"best-effort": BEST_EFFORT, "full": FULL, "transition": TRANSITION}
LATE_IN_ROUND = 0.9
"""The share of the reporting period after which nodes report in EATDDS, so that an election uses recent
values.
"""


@dataclass(frozen=True, kw_only=True)
class Dds:
    """Settings of TinyDDS and its successors."""

    kind: ClassVar = "dds"
    mode: ModeName = "DefTDDS"
    rendezvous: tuple[NodeName, ...] = ()
    """The rendezvous nodes, of which a hash selects one for each topic [D10]. By default, the node nearest to
    the centre.
    """
    level: Literal["best-effort", "full", "transition"] | float = "best-effort"
    """The reliability of samples. With a number, samples whose reading exceeds it must arrive [D8]. With
    ``transition``, samples that start or end a condition of the definition must arrive.
    """
    percent: Annotated[float, Meta(ge=0, le=100)] | None = None
    """For ARQoS: the share of samples that subscribers to a topic request, in percent; ``None`` without
    ARQoS.
    """
    reliable: ReliableSettings = field(default_factory=ReliableSettings)
    discovery: DiscoverySettings = field(default_factory=DiscoverySettings)
    rotation: RotationSettings = field(default_factory=RotationSettings)
    adaptive: AdaptiveSettings = field(default_factory=AdaptiveSettings)
    ifs: bool = False
    """Whether publishers of a grid send in their slots: interference-free scheduling. [D32]"""

    def on(self, context: RunContext) -> DdsNodes:
        """Set up the middleware on the nodes of a run, and return it."""
        return DdsNodes(self, context)

    def deployment(self, context: RunContext) -> DdsDeployment:
        """Return the configuration that is compiled into the nodes."""
        topology = context.topology
        conditions = _conditions_to_deploy(context, self.level)
        declared = enumerate(context.definition.topics.values())
        topics = TopicSet(tuple(_topic(i, topic, self.level, conditions) for i, topic in declared))
        definition = Checked(context.definition.checked.topics, tuple(conditions.values()))
        return DdsDeployment(
            topics=topics,
            table=tuple(map(str, _rendezvous(self, topology))),
            publishers={
                topics.by_its_name(name).id: tuple(map(str, publishers))
                for name, publishers in context.publishers.items()
            },
            mode=self.mode,
            reliable=self.reliable,
            discovery=self.discovery,
            rotation=self.rotation,
            adaptive=self.adaptive,
            schedule=_schedule(topology) if self.ifs else None,
            conditions=mote_machines(definition),
            positions={str(node): place for node, place in enumerate(topology.positions)},
        )


def _conditions_on_motes(context: RunContext) -> dict[str, StateCondition]:
    """Return the subscribed conditions that publishers' nodes evaluate. Subscribers evaluate the other
    conditions.
    """
    wanted = {sub.name for sub in context.subscriptions if not sub.plain}
    return {name: c for name, c in _mote_conditions(context).items() if name in wanted}


def _conditions_to_deploy(context: RunContext, level: str | float) -> dict[str, StateCondition]:
    """Return the conditions to deploy on publishers' nodes.

    With level ``transition`` these are all conditions that a mote can run, because a publisher must know
    which samples start or end a condition.
    """
    if level != TRANSITION:
        return _conditions_on_motes(context)
    conditions = _mote_conditions(context)
    covered = {each.topic.name for each in conditions.values()}
    for topic in {name: None for sub in context.subscriptions for name in sub.topics if name not in covered}:
        hint = "Define a state 'per source' or a filter on it."
        why = f"nothing that a mote can tell turns with samples of '{topic}'"
        raise ScenarioError(why, ("level",), hint=hint)
    return conditions


def _mote_conditions(context: RunContext) -> dict[str, StateCondition]:
    """Return the conditions that a mote can run."""
    return {name: c for name, c in context.definition.filters.items() if why_not_alone(c) is None}


def _topic(
    id: TopicId, topic: model.Topic, level: str | float, conditions: Mapping[str, StateCondition]
) -> DdsTopic:
    """Return the DDS topic for a topic of the definition, with its level and its conditions."""
    numbers = [each.name for each in topic.attributes if each.kind in ("float", "int")]
    reading = "value" if "value" in numbers or not numbers else numbers[0]
    known = LEVELS.get(level)
    structure = SampleType(topic.name, topic.attributes)
    at = float(level) if known is None else known
    covered = tuple(name for name, each in conditions.items() if each.topic.name == topic.name)
    return DdsTopic(id, topic.name, structure, level=at, reading=reading, transition_conditions=covered)


def _rendezvous(dds: Dds, topology: Topology) -> list[NodeId]:
    with at("rendezvous"):
        if dds.rendezvous:
            return find_nodes(topology, dds.rendezvous)
    middle = [sum(axis) / len(topology) for axis in zip(*topology.positions, strict=True)]
    distances = [sum((a - b) ** 2 for a, b in zip(each, middle, strict=True)) for each in topology.positions]
    return [distances.index(min(distances))]


def _schedule(topology: Topology) -> SlotSchedule:
    if topology.columns is None:
        raise ScenarioError("the slots are those of a grid; take nodes of kind grid", ("ifs",))
    return SlotSchedule(grid_slots(len(topology) // topology.columns, topology.columns))


Sample = tuple[str, SampleStream, Instant]
"""Identifies a sample that was passed to a writer, by publisher, stream, and time of publication."""


class DdsNodes(ProtocolNodes):
    """The middleware on the nodes of a run, and the account of its samples."""

    def __init__(self, dds: Dds, context: RunContext) -> None:
        super().__init__(context)
        self._dds, self.patience = dds, dds.reliable.rto
        with at("protocol"):
            self.deployment = dds.deployment(context)
        terms = dds.rotation
        rotation = max(terms.round, terms.reports, terms.sign)
        self.cycle = rotation if MODES[self.deployment.mode].rotates else dds.discovery.renewal
        self.hosts: dict[NodeId, NodeHost] = {}
        self._placed = _conditions_on_motes(context)
        subs = context.subscriptions
        here = [sub for sub in subs if not self._is_placed(sub) or self._placed[sub.name].tables]
        self._sinks = Sinks(context.definition, here, context.account)
        self._readers = {(w.node, name): w for w in context.subscriptions for name in self._interests(w)}
        self._names: dict[tuple[TopicId, str | None], tuple[str, ...]] = {}
        """The names of the subscriptions that messages serve, by topic and condition."""
        self._counts_of_lost: Counter[str] = Counter()
        """The middleware's counts on nodes that went down."""
        self.accepted: dict[Sample, SampleName] = {}
        self._refused: set[Sample] = set()
        self._given_up: set[SampleName] = set()
        self._unread: set[SampleName] = set()
        self._lost_with_node: tuple[set[SampleName], set[Sample]] = (set(), set())
        """Samples in the ring, or waiting for a slot, at nodes that died."""
        self._subscribed: dict[tuple[NodeId, str], Instant] = {}
        self._registered: dict[tuple[NodeId, str], dict[NodeId, Instant]] = {}
        """For each subscriber and topic, the time at which each node registered the subscription."""
        self._rebroadcasts = 0
        self._repeated = 0

    # During the run.

    def destinations(self) -> Iterable[Destination]:
        return [int(peer) for peer in self.deployment.positions]

    def _is_placed(self, sub: NodeSubscription) -> bool:
        """Return whether publishers' nodes run the condition, or the gate before it."""
        return sub.name in self._placed and not sub.plain

    def _interests(self, sub: NodeSubscription) -> dict[str, Interest]:
        """Return the interests of a subscriber, by the names of its readers."""
        if self._is_placed(sub):
            return {sub.name: Interest(topic=sub.topics[0], condition=sub.name)}
        return {f"{sub.name} {topic}": Interest(topic=topic) for topic in sub.topics}

    def boot(self, node: Node, router: RoutingService) -> None:
        self._sinks.boot(node)
        router.register_handler(KIND, True, self._on_transit)
        machine = DdsParticipant(self.deployment, str(node.id))
        charged = ChargingRouter(router, self._cause)
        host = NodeHost(node, machine, charged, size=bytes_of, deliver=self._on_delivery)
        self.hosts[node.id] = host
        for topic, publishers in self._context.publishers.items():
            if node.id in publishers:
                host.ask(request.DdsAdvertiseRequest(topic))
        schedule_subscriptions(node, self._context.subscriptions, self._subscribe, self._unsubscribe)
        if MODES[self.deployment.mode].rotates:
            self._report_from(node, host)

    def _report_from(self, node: Node, host: NodeHost) -> None:
        """Report the node's remaining energy to the middleware, periodically. [D47]"""
        period = self._dds.rotation.reports
        spread = stream(self._context.seed, "report", node.id).uniform(LATE_IN_ROUND, 0.99)

        def report(_: Any) -> None:
            left = node.energy.residual(node.clock.now)
            host.ask(request.ResidualEnergy(-node.energy.joules(node.clock.now) if left is None else left))
            node.after(period, report)

        node.after(round(spread * period), report)

    def bury(self, node: NodeId) -> None:
        if (host := self.hosts.pop(node, None)) is not None:
            self._counts_of_lost += host.state.counted
            ringed, slotted = _held_samples(node, host.state)
            self._lost_with_node[0].update(ringed)
            self._lost_with_node[1].update(slotted)

    def offset(self, node: NodeId) -> Duration | None:
        schedule = self.deployment.schedule
        return None if schedule is None else schedule.offset(str(node))

    def publish(self, node: Node, event: Event) -> None:
        self.hosts[node.id].ask(request.DdsPublishRequest(event.topic, event.attributes))

    def _subscribe(self, sub: NodeSubscription) -> None:
        host = self.hosts[sub.node]
        for topic in sub.topics:
            self._subscribed.setdefault((sub.node, topic), self._context.network.now)
        for name, interest in self._interests(sub).items():
            host.ask(request.DdsSubscribeRequest(name, interest))
            if self._dds.percent is not None and interest.condition is None:
                host.ask(request.AssureRequest(str(interest.topic), self._dds.percent))

    def _unsubscribe(self, sub: NodeSubscription) -> None:
        for name in self._interests(sub):
            self.hosts[sub.node].ask(request.DdsUnsubscribeRequest(name))

    # The account.

    def _cause(self, message: DdsMessage) -> str:
        """Record a message that leaves a node; return the cause to which its energy is charged."""
        about = _about(message)
        if (names := self._names.get(about)) is None:
            names = self._names[about] = self._subscription_names(*about)
        return self._context.account.charge(names, message_name(message), cause_of(message))

    def _subscription_names(self, topic: TopicId, condition: str | None) -> tuple[str, ...]:
        """Return the names of the subscriptions that a message serves."""
        name = self.deployment.topics.by_id[topic].name
        if condition:
            return (condition,)
        if condition is None:
            return tuple(self._context.about(name))
        plain = (sub for sub in self._sinks.subscriptions if not self._is_placed(sub))
        return tuple(sub.name for sub in plain if name in sub.topics)

    def _on_transit(self, datagram: Datagram) -> Any:
        """Count the rebroadcast of a flooded message in transit."""
        if datagram.destination == BROADCAST and isinstance(datagram.message, DISCOVERY):
            self._rebroadcasts += 1
        return datagram.message

    def _on_delivery(self, node: Node, what: request.DdsDelivery) -> None:
        match what:
            case request.DdsNotify():
                self._on_notification(node, self._readers[node.id, what.subscription], what)
            case request.SampleAccepted(name, _, time):
                self.accepted[name.origin, name.stream, time] = name
            case request.SampleRefused(stream, _, time):
                self._refused.add((str(node.id), stream, time))
            case request.SampleRepeated():
                self._repeated += 1
            case request.SampleGivenUp(name):
                self._given_up.add(name)
            case request.SampleUnread(name):
                self._unread.add(name)
            case request.SubscriptionRegistered(topic, subscriber):
                known = self._registered.setdefault((int(subscriber), topic), {})
                known.setdefault(node.id, self._context.network.now)

    def _on_notification(self, node: Node, sub: NodeSubscription, what: request.DdsNotify) -> None:
        """Record a notification at a subscriber. Receivers know the positions of motes."""
        topology, origin = self._context.topology, int(what.origin)
        place = tuple(topology.positions[origin])
        event = Event(what.topic, what.time, topology.names[origin], what.values, what.name.sequence, place)
        if sub in self._sinks.subscriptions:
            self._sinks.take(node, sub, event)
        else:
            where = scope(self._placed[sub.name], event)
            self._context.account.notify(sub, Notification(sub.name, event, what.status, where, what.since))

    # After the run.

    def fate(self, sub: NodeSubscription, event: Event) -> str:
        if event.topic not in sub.topics:
            return LOST
        topic = self.deployment.topics.by_its_name(event.topic).id
        origin = str(self._context.topology.names.index(event.source))
        lost, unknown = (NEVER, NEVER) if self._is_undiscovered(sub, event, int(origin)) else (LOST, UNKNOWN)
        condition = sub.name if self._is_placed(sub) else PLAIN
        sample = origin, SampleStream(topic, condition), event.time
        plain = origin, SampleStream(topic), event.time
        ringed, slotted = self._waiting
        if (name := self.accepted.get(sample)) is not None:
            return (
                GIVEN_UP if name in self._given_up
                else NOBODY if name in self._unread
                else WAITING if name in ringed
                else ON_THE_WAY if name in self._in_transit
                else LOST_WITH_ITS_NODE if name in self._lost_with_node[0]
                else lost
            )  # fmt: skip
        if sample in self._refused or plain in self._refused:
            return OVERFLOWED
        if plain in slotted:
            return WAITING
        return LOST_WITH_ITS_NODE if plain in self._lost_with_node[1] else unknown

    def _is_undiscovered(self, sub: NodeSubscription, event: Event, origin: NodeId) -> bool:
        """Return whether no node that could forward an event ever registered the subscription."""
        keepers = self._registrars(event.topic)
        needed = {origin} if origin in keepers else set(keepers)
        known = self._registered.get((sub.node, event.topic), {})
        return not known or not needed <= known.keys()

    @cached_property
    def _waiting(self) -> tuple[set[SampleName], set[Sample]]:
        """Return the samples in rings and the samples that wait for slots, at the end of the run."""
        held = [_held_samples(node, host.state) for node, host in self.hosts.items()]
        return {name for ringed, _ in held for name in ringed}, {each for _, some in held for each in some}

    @cached_property
    def _in_transit(self) -> set[SampleName]:
        """Return the samples in transit at the end of the run."""
        messages = (datagram.message for datagram in self._context.ledger.held())
        return {message.name for message in messages if isinstance(message, DataMessage)}

    def measures(self) -> Row:
        account, times = self._context.account, self._discovery()
        known = [time for time in times if time is not None]
        counts, memory = self.total_counts(), footprint(self._context.network, self.memory())
        floods = sum(account.messages[message_name(kind)] for kind in DISCOVERY)
        return {
            "issued": len(account.published),
            "overflowed": len(self._refused),
            "slotted": len(self._waiting[1]) + len(self._lost_with_node[1]),
            "retransmitted": counts["retransmitted"],
            "redundant": self._repeated,
            "discovery_ms": max(known) / MILLISECOND if known else None,
            "undiscovered": len(times) - len(known),
            "discovery_messages": self._rebroadcasts + floods,
            "ram_bytes": memory.ram_bytes,
            "fits": memory.fits if memory.platform.ram_bytes else None,
            "counted": dict(counts),
        }

    def memory(self) -> dict[str, int]:
        """Return the memory of the middleware in bytes, by part, on the node that needs most. Rings count in
        full. [D70]
        """
        bytes_by_node = [_memory(host.state, self.deployment) for host in self.hosts.values()]
        return max(bytes_by_node, key=lambda each: sum(each.values()), default={})

    def total_counts(self) -> Counter[str]:
        """Return the counts of the middleware, summed over all nodes."""
        return sum((host.state.counted for host in self.hosts.values()), self._counts_of_lost)

    def _discovery(self) -> list[Duration | None]:
        """Return, for each subscriber and topic, the time in µs until all responsible nodes registered the
        subscription.

        ``None`` where this did not happen. [D44]
        """
        found: list[Duration | None] = []
        for (subscriber, topic), since in self._subscribed.items():
            known = self._registered.get((subscriber, topic), {})
            must = self._registrars(topic)
            at = [known.get(node) for node in must] if must else [min(known.values(), default=None)]
            times = [when for when in at if when is not None]
            found.append(max(times) - since if len(times) == len(at) else None)
        return found

    def _registrars(self, topic: str) -> tuple[NodeId, ...]:
        """Return the nodes that register subscriptions to a topic.

        In DefTDDS this is the rendezvous node, in BLTDDS and HyTDDS every publisher. In EATDDS it is the
        present rendezvous node, which is not fixed.
        """
        mode = MODES[self.deployment.mode]
        if not mode.brokered:
            return self._context.publishers.get(topic, ())
        main = self.deployment.rendezvous(self.deployment.topics.by_its_name(topic).id)
        return () if mode.rotates else (int(main),)


def _held_samples(node: NodeId, state: DdsState) -> tuple[list[SampleName], list[Sample]]:
    """Return the samples that a node stores: by name the unacknowledged, unconfirmed and queued samples, and
    the samples that wait for its slot.
    """
    ringed = [held.data.name for writer in state.writers.values() for held in writer.ring]
    ringed += [data.name for history in state.histories.values() for data in history.sent.values()]
    return ringed, [(str(node), SampleStream(topic), time) for topic, _, time in state.waiting_for_slot]


def _memory(state: DdsState, deployment: DdsDeployment) -> dict[str, int]:
    """Return the memory of a node's state in bytes, by part."""
    known = deployment.topics.by_id
    reliable = [s for s in state.writers if s.condition != PLAIN or known[s.topic].level != BEST_EFFORT]
    tables = [*state.subscribers.values(), *(each.registry for each in state.rendezvous.values())]
    subscribe_messages = [sub for table in tables for sub in table.wishes.values()]
    return {
        "rings": len(reliable) * deployment.reliable.ring * UNIT,
        "subscriptions": sum(map(bytes_of, subscribe_messages)),
        "streams heard": len(state.last_delivered) * ENTRY_BYTES,
        "energies": sum(len(each.energies) for each in state.clusters.values()) * ENTRY_BYTES,
    }


def _about(message: DdsMessage) -> tuple[TopicId, str | None]:
    """Return the topic and condition of a message. The condition is empty for plain samples, and ``None`` for
    other messages.
    """
    match message:
        case Notice(sub):
            return _about(sub)
        case DataMessage(name=name) | SampleAck(name=name) | Heartbeat(name=name) | Have(name=name):
            return name.stream
        case Nack(stream=stream):
            return stream
        case DdsSubscribe(topic=topic, condition=condition):
            return topic, condition
    return message.topic, None
