"""The DDS family on motes: rendezvous nodes, writers and readers; conditions run on the publishers' nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ...lang.condition import Checked, Condition
from ...model import topic as model
from ...model.event import Event, Notification
from ...model.instant import MILLISECOND, Duration, Instant
from ...protocols.dds import request
from ...protocols.dds.deployment import Adaptive, Deployment, Discovery, ModeName, Reliable, Rotation
from ...protocols.dds.ifs import Schedule, grid_slots
from ...protocols.dds.interest import Interest
from ...protocols.dds.level import BEST_EFFORT, FULL, TRANSITION, Level
from ...protocols.dds.message import (
    DISCOVERY,
    PLAIN,
    UNIT,
    Ack,
    Data,
    Have,
    Heartbeat,
    Message,
    Nack,
    Name,
    Stream,
    Subscribe,
    bytes_of,
    cause_of,
)
from ...protocols.dds.message import Notification as Notice
from ...protocols.dds.modes import MODES
from ...protocols.dds.participant import Participant
from ...protocols.dds.state import State
from ...protocols.dds.topic import Structure, Topic, TopicId, Topics
from ...sim.chance import stream
from ...sim.frame import BROADCAST, NodeId
from ...sim.host import KIND, NodeHost, Routing
from ...sim.metrics import ENTRY_BYTES, footprint
from ...sim.node import Node
from ...sim.routing.datagram import Datagram, Destination
from ...sim.topology import Topology
from .account import LOST, ON_THE_WAY, WAITING, Row, Wish
from .conditions import on_motes, scope, why_not_alone
from .family import Charged, Scene, when_wished
from .fault import Fault, at
from .nodes import Named, several
from .sink import Sinks

OVERFLOWED, GIVEN_UP = "overflowed", "given up"
LOST_WITH_ITS_NODE = "lost with its node"
NOBODY = "its rendezvous node knew nobody"
UNKNOWN = "its publisher did not know"
"""Nobody had told the publisher that it was wanted."""
NEVER = "never discovered"
"""No subscription of the reader ever came to the node that has to know it."""

LEVELS: Mapping[str | float, Level] = {"best-effort": BEST_EFFORT, "full": FULL, "transition": TRANSITION}
LATE_IN_ROUND = 0.9
"""EATDDS: nodes report in the last tenth of the reporting period, so that an election knows the latest."""


@dataclass(frozen=True, kw_only=True)
class Dds:
    """TinyDDS and its successors."""

    kind: ClassVar = "dds"
    mode: ModeName = "DefTDDS"
    rendezvous: tuple[Named, ...] = ()
    """By hash [D10]; none: the node that is nearest to the middle."""
    level: Literal["best-effort", "full", "transition"] | float = "best-effort"
    """How reliably samples travel: a number is the reading above which they must arrive [D8]; by transition,
    those must that start or end a condition of the definition."""
    percent: Annotated[float, Meta(ge=0, le=100)] | None = None
    """ARQoS: the share of its samples that subscribers to a topic ask for."""
    reliable: Reliable = field(default_factory=Reliable)
    discovery: Discovery = field(default_factory=Discovery)
    rotation: Rotation = field(default_factory=Rotation)
    adaptive: Adaptive = field(default_factory=Adaptive)
    ifs: bool = False
    """Interference-free scheduling: publishers of a grid send in their slots.  [D32]"""

    def on(self, scene: Scene) -> Motes:
        """Put on nodes."""
        return Motes(self, scene)

    def deployment(self, scene: Scene) -> Deployment:
        """What is compiled into the nodes."""
        placed = scene.placed
        conditions = _deployed(scene, self.level)
        topics = Topics(
            tuple(
                _topic(i, each, self.level, conditions)
                for i, each in enumerate(scene.definition.topics.values())
            )
        )
        definition = Checked(scene.definition.checked.topics, tuple(conditions.values()))
        return Deployment(
            topics=topics,
            table=tuple(map(str, _rendezvous(self, placed))),
            publishers={
                topics.named(name).id: tuple(map(str, who)) for name, who in scene.publishers.items()
            },
            mode=self.mode,
            reliable=self.reliable,
            discovery=self.discovery,
            rotation=self.rotation,
            adaptive=self.adaptive,
            schedule=_schedule(placed) if self.ifs else None,
            conditions=on_motes(definition),
            positions={str(node): place for node, place in enumerate(placed.positions)},
        )


def _on_motes(scene: Scene) -> dict[str, Condition]:
    """The conditions that publishers' nodes run; others are evaluated where they are wanted."""
    wanted = {wish.name for wish in scene.wishes if not wish.plain}
    return {name: c for name, c in _able(scene).items() if name in wanted}


def _deployed(scene: Scene, level: str | float) -> dict[str, Condition]:
    """Those, and by transition all others that a mote can run: it must know what its samples turn."""
    if level != TRANSITION:
        return _on_motes(scene)
    able = _able(scene)
    turned = {each.topic.name for each in able.values()}
    for topic in {name: None for wish in scene.wishes for name in wish.topics if name not in turned}:
        hint = "Define a state 'per source' or a filter on it."
        raise Fault(f"nothing that a mote can tell turns with samples of '{topic}'", ("level",), hint=hint)
    return able


def _able(scene: Scene) -> dict[str, Condition]:
    """The conditions that a mote can run."""
    return {name: c for name, c in scene.definition.filters.items() if why_not_alone(c) is None}


def _topic(id: TopicId, topic: model.Topic, level: str | float, conditions: Mapping[str, Condition]) -> Topic:
    numbers = [each.name for each in topic.attributes if each.kind in ("float", "int")]
    reading = "value" if "value" in numbers or not numbers else numbers[0]
    known = LEVELS.get(level)
    structure = Structure(topic.name, topic.attributes)
    at = float(level) if known is None else known
    turned = tuple(name for name, each in conditions.items() if each.topic.name == topic.name)
    return Topic(id, topic.name, structure, level=at, reading=reading, turned=turned)


def _rendezvous(dds: Dds, placed: Topology) -> list[NodeId]:
    with at("rendezvous"):
        if dds.rendezvous:
            return several(placed, dds.rendezvous)
    middle = [sum(axis) / len(placed) for axis in zip(*placed.positions, strict=True)]
    away = [sum((a - b) ** 2 for a, b in zip(each, middle, strict=True)) for each in placed.positions]
    return [away.index(min(away))]


def _schedule(placed: Topology) -> Schedule:
    if placed.columns is None:
        raise Fault("the slots are those of a grid; take nodes of kind grid", ("ifs",))
    return Schedule(grid_slots(len(placed) // placed.columns, placed.columns))


Sample = tuple[str, Stream, Instant]
"""What a writer is given: by whom, for which stream, and when it was published."""


class Motes:
    """The middleware on the nodes of a run, and what its nodes said of their samples."""

    def __init__(self, dds: Dds, scene: Scene) -> None:
        self._dds, self._scene = dds, scene
        with at("protocol"):
            self.deployment = dds.deployment(scene)
        self.hosts: dict[NodeId, NodeHost] = {}
        self._placed = _on_motes(scene)
        here = [wish for wish in scene.wishes if not self._is_placed(wish) or self._placed[wish.name].tables]
        self._sinks = Sinks(scene.definition, here, scene.account)
        self._readers = {(w.node, name): w for w in scene.wishes for name in self._interests(w)}
        self._names: dict[tuple[TopicId, str | None], tuple[str, ...]] = {}
        """The subscriptions that messages are for, by topic and condition."""
        self._counted: Counter[str] = Counter()
        """What nodes that are no more had done."""
        self.accepted: dict[Sample, Name] = {}
        self._refused: set[Sample] = set()
        self._given_up: set[Name] = set()
        self._unread: set[Name] = set()
        self._buried: tuple[set[Name], set[Sample]] = (set(), set())
        """What was in the ring, or waited for a slot, at nodes that died."""
        self._subscribed: dict[tuple[NodeId, str], Instant] = {}
        self._registered: dict[tuple[NodeId, str], dict[NodeId, Instant]] = {}
        """By subscriber and topic: when which node had it in its table."""
        self._rebroadcasts = 0
        self._repeated = 0

    # What happens.

    def destinations(self) -> Iterable[Destination]:
        return [int(peer) for peer in self.deployment.positions]

    @property
    def patience(self) -> Duration | None:
        return self._dds.reliable.rto

    @property
    def cycle(self) -> Duration | None:
        terms = self._dds.rotation
        if MODES[self.deployment.mode].rotates:
            return max(terms.round, terms.reports, terms.sign)
        return self._dds.discovery.renewal

    def _is_placed(self, wish: Wish) -> bool:
        """Whether publishers' nodes look for what a subscriber wants, or for what may matter to it."""
        return wish.name in self._placed and not wish.plain

    def _interests(self, wish: Wish) -> dict[str, Interest]:
        """What a subscriber asks for, by the name that its readers have."""
        if self._is_placed(wish):
            return {wish.name: Interest(topic=wish.topics[0], condition=wish.name)}
        return {f"{wish.name} {topic}": Interest(topic=topic) for topic in wish.topics}

    def boot(self, node: Node, router: Routing) -> None:
        self._sinks.boot(node)
        router.register_handler(KIND, True, self._passes)
        machine = Participant(self.deployment, str(node.id))
        charged = Charged(router, self._cause)
        host = self.hosts[node.id] = NodeHost(node, machine, charged, size=bytes_of, deliver=self._told)
        for topic, publishers in self._scene.publishers.items():
            if node.id in publishers:
                host.ask(request.Advertise(topic))
        when_wished(node, self._scene.wishes, self._subscribe, self._unsubscribe)
        if MODES[self.deployment.mode].rotates:
            self._report_from(node, host)

    def _report_from(self, node: Node, host: NodeHost) -> None:
        """The node's meter tells the middleware what is left.  [D47]"""
        period = self._dds.rotation.reports
        spread = stream(self._scene.seed, "report", node.id).uniform(LATE_IN_ROUND, 0.99)

        def report(_: Any) -> None:
            left = node.energy.residual(node.clock.now)
            host.ask(request.Residual(-node.energy.joules(node.clock.now) if left is None else left))
            node.after(period, report)

        node.after(round(spread * period), report)

    def bury(self, node: NodeId) -> None:
        if (host := self.hosts.pop(node, None)) is not None:
            self._counted += host.state.counted
            ringed, slotted = _held(node, host.state)
            self._buried[0].update(ringed)
            self._buried[1].update(slotted)

    def offset(self, node: NodeId) -> Duration | None:
        schedule = self.deployment.schedule
        return None if schedule is None else schedule.offset(str(node))

    def publish(self, node: Node, event: Event) -> None:
        self.hosts[node.id].ask(request.Publish(event.topic, event.attributes))

    def _subscribe(self, wish: Wish) -> None:
        host = self.hosts[wish.node]
        for topic in wish.topics:
            self._subscribed.setdefault((wish.node, topic), self._scene.network.now)
        for name, interest in self._interests(wish).items():
            host.ask(request.Subscribe(name, interest))
            if self._dds.percent is not None and interest.condition is None:
                host.ask(request.Assure(str(interest.topic), self._dds.percent))

    def _unsubscribe(self, wish: Wish) -> None:
        for name in self._interests(wish):
            self.hosts[wish.node].ask(request.Unsubscribe(name))

    # The books.

    def _cause(self, message: Message) -> str:
        """A message leaves a node."""
        about = _about(message)
        if (names := self._names.get(about)) is None:
            names = self._names[about] = self._named(*about)
        return self._scene.account.charge(names, type(message).__name__, cause_of(message))

    def _named(self, topic: TopicId, condition: str | None) -> tuple[str, ...]:
        """The subscriptions that a message is for."""
        name = self.deployment.topics.by_id[topic].name
        if condition:
            return (condition,)
        if condition is None:
            return tuple(self._scene.about(name))
        plain = (wish for wish in self._sinks.wishes if not self._is_placed(wish))
        return tuple(wish.name for wish in plain if name in wish.topics)

    def _passes(self, datagram: Datagram) -> Any:
        """A message passes through a node; one of a flood is repeated there."""
        if datagram.destination == BROADCAST and isinstance(datagram.message, DISCOVERY):
            self._rebroadcasts += 1
        return datagram.message

    def _told(self, node: Node, what: request.Told) -> None:
        match what:
            case request.Notify():
                self._notified(node, self._readers[node.id, what.subscription], what)
            case request.Accepted(name, _, time):
                self.accepted[name.origin, name.stream, time] = name
            case request.Refused(stream, _, time):
                self._refused.add((str(node.id), stream, time))
            case request.Repeated():
                self._repeated += 1
            case request.GivenUp(name):
                self._given_up.add(name)
            case request.Unread(name):
                self._unread.add(name)
            case request.Registered(topic, subscriber):
                known = self._registered.setdefault((int(subscriber), topic), {})
                known.setdefault(node.id, self._scene.network.now)

    def _notified(self, node: Node, wish: Wish, what: request.Notify) -> None:
        """Where a mote stands is known to whoever hears it."""
        placed, origin = self._scene.placed, int(what.origin)
        place = tuple(placed.positions[origin])
        event = Event(what.topic, what.time, placed.names[origin], what.values, what.name.sequence, place)
        if wish in self._sinks.wishes:
            self._sinks.take(node, wish, event)
        else:
            where = scope(self._placed[wish.name], event)
            self._scene.account.tell(wish, Notification(wish.name, event, what.status, where, what.since))

    # What came of it.

    def fate(self, wish: Wish, event: Event) -> str:
        if event.topic not in wish.topics:
            return LOST
        topic = self.deployment.topics.named(event.topic).id
        origin = str(self._scene.placed.names.index(event.source))
        lost, unknown = (NEVER, NEVER) if self._is_undiscovered(wish, event, int(origin)) else (LOST, UNKNOWN)
        condition = wish.name if self._is_placed(wish) else PLAIN
        sample = origin, Stream(topic, condition), event.time
        plain = origin, Stream(topic), event.time
        ringed, slotted = self._waiting
        if (name := self.accepted.get(sample)) is not None:
            return (
                GIVEN_UP if name in self._given_up
                else NOBODY if name in self._unread
                else WAITING if name in ringed
                else ON_THE_WAY if name in self._carried
                else LOST_WITH_ITS_NODE if name in self._buried[0]
                else lost
            )  # fmt: skip
        if sample in self._refused or plain in self._refused:
            return OVERFLOWED
        return WAITING if plain in slotted else LOST_WITH_ITS_NODE if plain in self._buried[1] else unknown

    def _is_undiscovered(self, wish: Wish, event: Event, origin: NodeId) -> bool:
        """Whether nobody who could bring an event to a subscriber ever knew of it."""
        keepers = self._keepers(event.topic)
        needed = {origin} if origin in keepers else set(keepers)
        known = self._registered.get((wish.node, event.topic), {})
        return not known or not needed <= known.keys()

    @cached_property
    def _waiting(self) -> tuple[set[Name], set[Sample]]:
        """In rings, and for slots, at the end."""
        held = [_held(node, host.state) for node, host in self.hosts.items()]
        return {name for ringed, _ in held for name in ringed}, {each for _, some in held for each in some}

    @cached_property
    def _carried(self) -> set[Name]:
        """In the hands of routing, at the end."""
        messages = (datagram.message for datagram in self._scene.ledger.held())
        return {message.name for message in messages if isinstance(message, Data)}

    def measures(self) -> Row:
        account, times = self._scene.account, self._discovery()
        known = [time for time in times if time is not None]
        counted, memory = self.counted(), footprint(self._scene.network, self.memory())
        return {
            "issued": len(account.published),
            "overflowed": len(self._refused),
            "slotted": len(self._waiting[1]) + len(self._buried[1]),
            "retransmitted": counted["retransmitted"],
            "redundant": self._repeated,
            "discovery_ms": max(known) / MILLISECOND if known else None,
            "undiscovered": len(times) - len(known),
            "discovery_messages": self._rebroadcasts
            + sum(account.messages[kind.__name__] for kind in DISCOVERY),
            "ram_bytes": memory.ram_bytes,
            "fits": memory.fits if memory.platform.ram_bytes else None,
            "counted": dict(counted),
        }

    def memory(self) -> dict[str, int]:
        """Bytes of the middleware on the node that keeps most; rings are there, full or not.  [D70]"""
        kept = [_memory(host.state, self.deployment) for host in self.hosts.values()]
        return max(kept, key=lambda each: sum(each.values()), default={})

    def counted(self) -> Counter[str]:
        """What all nodes' middleware says that it has done."""
        return sum((host.state.counted for host in self.hosts.values()), self._counted)

    def _discovery(self) -> list[Duration | None]:
        """For each subscriber and topic, how long it took until all who must know it did.  [D44]"""
        found: list[Duration | None] = []
        for (subscriber, topic), since in self._subscribed.items():
            known = self._registered.get((subscriber, topic), {})
            must = self._keepers(topic)
            at = [known.get(node) for node in must] if must else [min(known.values(), default=None)]
            times = [when for when in at if when is not None]
            found.append(max(times) - since if len(times) == len(at) else None)
        return found

    def _keepers(self, topic: str) -> tuple[NodeId, ...]:
        """Def: the RN; BL and Hy: every publisher; EA: whoever is RN."""
        mode = MODES[self.deployment.mode]
        if not mode.brokered:
            return self._scene.publishers.get(topic, ())
        main = self.deployment.rendezvous(self.deployment.topics.named(topic).id)
        return () if mode.rotates else (int(main),)


def _held(node: NodeId, state: State) -> tuple[list[Name], list[Sample]]:
    """What a node holds: samples that are unacknowledged, wait behind such a one or are unconfirmed, by name;
    and those that wait for its slot."""
    ringed = [held.data.name for writer in state.writers.values() for held in writer.ring]
    ringed += [data.name for history in state.histories.values() for data in history.sent.values()]
    return ringed, [(str(node), Stream(topic), time) for topic, _, time in state.slotted]


def _memory(state: State, deployment: Deployment) -> dict[str, int]:
    reliable = [
        stream
        for stream in state.writers
        if stream.condition != PLAIN or deployment.topics.by_id[stream.topic].level != BEST_EFFORT
    ]
    tables = [*state.subscribers.values(), *(each.registry for each in state.rendezvous.values())]
    wishes = [wish for table in tables for wish in table.wishes.values()]
    return {
        "rings": len(reliable) * deployment.reliable.ring * UNIT,
        "subscriptions": sum(map(bytes_of, wishes)),
        "streams heard": len(state.heard) * ENTRY_BYTES,
        "energies": sum(len(each.energies) for each in state.clusters.values()) * ENTRY_BYTES,
    }


def _about(message: Message) -> tuple[TopicId, str | None]:
    """The topic of a message, and its condition if it is about one, or about none."""
    match message:
        case Notice(wish):
            return _about(wish)
        case Data(name=name) | Ack(name=name) | Heartbeat(name=name) | Have(name=name):
            return name.stream
        case Nack(stream=stream):
            return stream
        case Subscribe(topic=topic, condition=condition):
            return topic, condition
    return message.topic, None
