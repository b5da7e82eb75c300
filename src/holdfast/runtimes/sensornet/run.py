"""One run: motes that publish and subscribe, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

from ...model.instant import MILLISECOND, SECOND, Duration
from ...protocols.dds import request
from ...protocols.dds.message import DISCOVERY, Data, Message, Name, Stream, bytes_of
from ...protocols.dds.modes import MODES
from ...protocols.dds.participant import Participant
from ...protocols.dds.state import State
from ...sim import metrics
from ...sim.chance import stream
from ...sim.frame import BROADCAST, NodeId
from ...sim.host import KIND, NodeHost
from ...sim.network import Network
from ...sim.node import Node
from ...sim.routing.datagram import Datagram
from ...sim.routing.ledger import Ledger
from ...sim.routing.router import Router
from .account import DELIVERED, LOST_WITH_ITS_NODE, WAITING, Account
from .outcome import Measured, Outcome
from .scenario import Scenario

SAMPLINGS = 250 * MILLISECOND
"""4 Hz.  [D62]"""
LATE_IN_ROUND = 0.9
"""EATDDS: nodes report in the last tenth of the reporting period, so that an election knows the latest."""


def run(scenario: Scenario) -> Outcome:
    """Run a scenario; equal ones give equal outcomes."""
    return Run(scenario).finish()


def repeat(make: Callable[[int], Scenario], runs: int = 10) -> list[Outcome]:
    """A point of an experiment: runs with the seeds 1, 2, …  [D66]"""
    return [run(make(seed)) for seed in range(1, runs + 1)]


@dataclass
class Run:
    """A network of motes with their applications, and the books that are kept."""

    scenario: Scenario
    network: Network = field(init=False)
    account: Account = field(init=False)
    ledger: Ledger = field(init=False)
    routers: dict[NodeId, Router] = field(default_factory=dict)
    hosts: dict[NodeId, NodeHost] = field(default_factory=dict)
    messages: Counter[str] = field(default_factory=Counter)
    rebroadcasts: int = 0
    counted: Counter[str] = field(default_factory=Counter)
    """What nodes that are no more had done."""
    buried: list[Name] = field(default_factory=list)
    """Samples in the rings of nodes that died."""

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.network = Network(scenario.setup())
        self.deployment = scenario.deployment()
        self.ledger = Ledger(len(self.network.nodes))
        self.account = Account(self.deployment.topics, scenario.subscriptions)
        self.network.on_death(self._died)
        for failure in scenario.failures:
            act = self._kill if failure.kind == "kill" else self.network.restart
            self.network.at(failure.at, partial(act, failure.node))
        self.network.boot(self._boot)

    def finish(self) -> Outcome:
        """Let it happen, and read the books."""
        self.network.run(self.scenario.end)
        for host in self.hosts.values():
            self._slotted(host.state, WAITING)
        return self._outcome()

    # Nodes.

    def _boot(self, node: Node) -> None:
        router = self.routers[node.id] = Router(node, self.scenario.router(), self.ledger)
        if self.scenario.sampling:
            node.after(SAMPLINGS, self._sample, node)
        if self.scenario.mode is None:
            self._boot_without_middleware(node, router)
            return
        router.register_handler(KIND, True, self._passes)
        machine = Participant(self.deployment, str(node.id))
        host = self.hosts[node.id] = NodeHost(node, machine, router, size=self._leaves, deliver=self._told)
        for topic, publishers in self.scenario.publishers.items():
            if node.id in publishers:
                host.ask(request.Advertise(topic))
                self._publish_from(node, topic, partial(self._publish, host, topic))
        for each in self.scenario.subscriptions:
            if each.node == node.id and (each.stop is None or node.now < each.stop):
                node.at(max(each.start, node.now), self._subscribe, (host, each))
        if self.scenario.mode == "EATDDS":
            self._report_from(node, host)

    def _publish_from(self, node: Node, topic: str, publish: Any) -> None:
        """An application samples again and again, by its node's clock."""
        scenario = self.scenario
        draw = stream(scenario.seed, "readings", node.id, topic, node.boots)
        phase: Duration = 0
        if (schedule := scenario.schedule()) is not None:
            phase = schedule.offset(str(node.id))
        elif scenario.phase == "random":
            phase = stream(scenario.seed, "phase", node.id, topic).randrange(scenario.ipi)
        first = scenario.start + phase
        late = max(0, -(-(node.now - first) // scenario.ipi))

        def sense(_: Any) -> None:
            if node.now < scenario.start + scenario.duration:
                self.account.issued += 1
                publish(scenario.readings(node.id, node.now, draw))
                node.after(scenario.ipi, sense)

        node.at(first + late * scenario.ipi, sense)

    @staticmethod
    def _publish(host: NodeHost, topic: str, values: Any) -> None:
        host.ask(request.Publish(topic, values))

    def _subscribe(self, which: Any) -> None:
        host, each = which
        for topic in each.interest.concerned(self.deployment.topics):
            self.account.subscribed.setdefault((each.node, topic.name), self.network.now)
        host.ask(request.Subscribe(each.name, each.interest))
        if each.percent is not None:
            for topic in each.interest.concerned(self.deployment.topics):
                host.ask(request.Assure(topic.name, each.percent))
        if each.stop is not None:
            self.network.nodes[each.node].at(each.stop, lambda _: host.ask(request.Unsubscribe(each.name)))

    def _report_from(self, node: Node, host: NodeHost) -> None:
        """The node's meter tells the middleware what is left.  [D47]"""
        period = self.scenario.rotation.reports
        spread = stream(self.scenario.seed, "report", node.id).uniform(LATE_IN_ROUND, 0.99)

        def report(_: Any) -> None:
            left = node.energy.residual(node.clock.now)
            host.ask(request.Residual(-node.energy.joules(node.clock.now) if left is None else left))
            node.after(period, report)

        node.after(round(spread * period), report)

    def _sample(self, node: Node) -> None:
        node.energy.mcu.work(node.clock.now, self.scenario.sampling, "sampling")
        node.after(SAMPLINGS, self._sample, node)

    def _kill(self, id: NodeId) -> None:
        if self.network.nodes[id].alive:
            self.network.kill(id)
            self._bury(id)

    def _died(self, node: Node) -> None:
        self._bury(node.id)
        if self.scenario.until_first_death:
            self.network.stop()

    def _bury(self, id: NodeId) -> None:
        """What a node had in its memory is gone."""
        if (host := self.hosts.pop(id, None)) is not None:
            state: State = host.state
            self.counted += state.counted
            self.buried += _ringed(state)
            self._slotted(state, LOST_WITH_ITS_NODE)

    def _slotted(self, state: State, fate: str) -> None:
        for topic, values, time in state.slotted:
            self.account.slot(Stream(topic), values, time, fate)

    # The books.

    def _leaves(self, message: Message) -> int:
        """A message leaves a node: how long it is."""
        self.messages[type(message).__name__] += 1
        return bytes_of(message)

    def _passes(self, datagram: Datagram) -> Any:
        """A message passes through a node; one of a flood is repeated there."""
        if datagram.destination == BROADCAST and isinstance(datagram.message, DISCOVERY):
            self.rebroadcasts += 1
        return datagram.message

    def _told(self, node: Node, what: request.Told) -> None:
        account, now = self.account, self.network.now
        match what:
            case request.Notify(name=name):
                account.arrive(name, node.id, now)
            case request.Accepted(name, values, time):
                account.take(name, values, time)
            case request.Refused(stream, values, time):
                account.refuse(stream, values, time)
            case request.Repeated():
                account.repeated += 1
            case request.GivenUp(name):
                account.given_up.add(name)
            case request.Registered(topic, subscriber):
                account.registered.setdefault((int(subscriber), topic), {}).setdefault(node.id, now)

    # Without middleware.  [D62]

    def _boot_without_middleware(self, node: Node, router: Router) -> None:
        router.register_handler(KIND, False, partial(self._came, node))
        for topic in self.deployment.topics:
            if node.id in self.scenario.publishers.get(topic.name, ()):
                self._publish_from(node, topic.name, partial(self._send, node, router, Stream(topic.id)))

    def _send(self, node: Node, router: Router, to: Stream, values: Any) -> None:
        name = Name(str(node.id), to, node.boots, len(self.account.samples))
        self.account.take(name, values, self.network.now)
        data = Data(name, False, values, self.network.now)
        for subscriber in self.account.samples[name].wanted:
            router.send(subscriber, KIND, data, self._leaves(data), "data")

    def _came(self, node: Node, datagram: Datagram) -> None:
        self.account.arrive(datagram.message.name, node.id, self.network.now)

    # What came of it.

    def _outcome(self) -> Outcome:
        account, network = self.account, self.network
        counted = sum((host.state.counted for host in self.hosts.values()), self.counted)
        fates = account.fates(self._in_rings(), self._on_the_way(), self.buried)
        delivered, delays = fates[DELIVERED], account.delays()
        found = [node.energy.read(network.now) for node in network.nodes]
        times = self._discovery()
        known = [time for time in times if time is not None]
        return Outcome(
            issued=account.issued,
            overflowed=account.overflowed,
            expected=account.expected(),
            fates=dict(fates),
            delivered=delivered,
            pdr=_share(delivered, account.expected()),
            eed_ms=fmean(delays) / MILLISECOND if delays else None,
            dmr=_share(account.overflowed, account.issued),
            retx=_share(counted["retransmitted"], delivered),
            rd=_share(account.repeated, delivered),
            retransmitted=counted["retransmitted"],
            redundant=account.repeated,
            discovery_ms=max(known) / MILLISECOND if known else None,
            undiscovered=len(times) - len(known),
            discovery_messages=self.rebroadcasts + sum(self.messages[kind.__name__] for kind in DISCOVERY),
            energy=metrics.energy(network, delivered),
            radio_mj=sum(reading.radio_joules for reading in found) * 1e3,
            mcu_mj=sum(reading.mcu_joules for reading in found) * 1e3,
            joules=tuple(network.joules()),
            dead=tuple(node.id for node in network.nodes if node.died is not None),
            seconds=network.now / SECOND,
            messages=dict(self.messages),
            transmissions=network.medium.transmissions,
            counted=dict(counted),
            rounds=tuple(sorted(self._rounds())),
        )

    def _rounds(self) -> Iterator[Measured]:
        for receiver, host in self.hosts.items():
            for agreement in host.state.agreements.values():
                for at, origin, pdr, reliable in agreement.measured:
                    yield Measured(at / SECOND, receiver, int(origin), pdr, reliable)

    def _in_rings(self) -> list[Name]:
        return [name for host in self.hosts.values() for name in _ringed(host.state)]

    def _on_the_way(self) -> list[Name]:
        return [
            datagram.message.name
            for router in self.routers.values()
            if router.alive
            for datagram in router.held()
            if isinstance(datagram.message, Data)
        ]

    def _discovery(self) -> list[Duration | None]:
        """For each subscriber and topic, how long it took until all who must know it did.  [D44]"""
        if self.scenario.mode is None:
            return []
        found: list[Duration | None] = []
        for (subscriber, topic), since in self.account.subscribed.items():
            known = self.account.registered.get((subscriber, topic), {})
            must = self._keepers(topic)
            at = [known.get(node) for node in must] if must else [min(known.values(), default=None)]
            times = [when for when in at if when is not None]
            found.append(max(times) - since if len(times) == len(at) else None)
        return found

    def _keepers(self, topic: str) -> tuple[NodeId, ...]:
        """Def: the RN; BL and Hy: every publisher; EA: whoever is RN."""
        mode = MODES[self.deployment.mode]
        if not mode.brokered:
            return self.scenario.publishers.get(topic, ())
        return (
            () if mode.rotates else (int(self.deployment.rendezvous(self.deployment.topics.named(topic).id)),)
        )


def _ringed(state: State) -> list[Name]:
    """The samples that a node's writers hold: unacknowledged, waiting behind such a one, or unconfirmed."""
    held = [held.data.name for writer in state.writers.values() for held in writer.ring]
    return held + [data.name for history in state.histories.values() for data in history.sent.values()]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
