"""A run: build the network, install traffic and a protocol on its nodes, process all events, and return the
outcome.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...model.event import Event, Value
from ...model.instant import Duration
from ...model.topic import Topic
from ..sim.chance import stream
from ..sim.frame import BROADCAST, NodeId
from ..sim.host import RoutingService
from ..sim.network import Network
from ..sim.node import Node
from ..sim.routing import tempo
from ..sim.routing.ledger import MessageLedger
from ..sim.routing.router import Router
from ..sim.trace import Trace
from . import plugin
from .account import NodeSubscription, RunAccount
from .case import RunPlan, SimulationCase, SourceNodes, plan_run, resolve_files
from .conditions import Evaluator, ScenarioDefinition
from .context import ProtocolNodes, RunContext
from .fault import ScenarioError, at
from .outcome import STEPS, RunOutcome, Samples, by_node, measure, with_subscribers
from .readings import Sample, average, simulate_sample
from .routing import Python, machines
from .scenario import Scenario
from .traffic import TrafficStream, send


def run(case: SimulationCase, seed: int, trace: Trace | None = None) -> RunOutcome:
    """Run a case with a seed. Equal cases and seeds give equal outcomes. ``trace`` records the run if it is
    not ``None``.
    """
    try:
        return SimulationRun(case, seed, trace).finish()
    except Exception as error:
        routing = case.scenario.routing
        if isinstance(routing, Python) and (where := plugin.describe_if_own(error, routing.machine)):
            raise UsageError(where) from error
        raise


def check(
    scenario: Scenario,
    folder: Path = Path(),
    seeds: Sequence[int] = (1,),
    lets: Mapping[str, Any] | None = None,
) -> SimulationCase:
    """Read the files that a scenario names, and check it. Raise a `ScenarioError` if it is impossible with
    one of ``seeds``.
    """
    case = resolve_files(scenario, folder, lets)
    for seed in seeds if case.topology is None else seeds[:1]:
        plan = plan_run(case, seed)
        _routing(case, plan, 0)
    if scenario.publishers or scenario.subscribers:
        SimulationRun(case, seeds[0])
    return case


def _routing(case: SimulationCase, plan: RunPlan, airing: Duration) -> Any:
    with at("routing"):
        found = machines(case.scenario.routing, plan.topology, plan.setup.mac, airing, plan.ends)
    for sending in plan.streams:
        for destination in sending.destinations:
            if destination != BROADCAST and (why := found[0].refuses(destination)):
                raise ScenarioError(why, ("traffic", sending.place, "to"))
    return found


def _needs_position(definition: ScenarioDefinition, subscription: NodeSubscription) -> bool:
    """Return whether the result of a subscription may depend on the positions of its events."""
    condition = definition.filters.get(subscription.name)
    return not subscription.plain and (condition is None or condition.forest is not None)


class SimulationRun:
    """A network with its applications and their account. Call `finish` once to run it."""

    def __init__(self, case: SimulationCase, seed: int, trace: Trace | None = None) -> None:
        self.case, self.seed, self.trace = case, seed, trace
        self.plan = plan = plan_run(case, seed)
        self.network = network = Network(plan.setup, trace)
        airing = tempo.airing(network.setup.mac, network.setup.radio, network.receivers())
        self._routing = _routing(case, plan, airing)
        self.ledger = MessageLedger(plan.topology.positions)
        served = case.definition.operators()
        watched = {w: None if w.plain else Evaluator(served[w.name], w.name) for w in plan.subscriptions}
        self.account = RunAccount(watched, lambda: network.now, case.scenario.warm_up, tempo.answer(airing))
        publishers: dict[str, tuple[NodeId, ...]] = {}
        for source in plan.sources:
            publishers[source.topic.name] = publishers.get(source.topic.name, ()) + source.nodes
        setting = network, plan.topology, seed, airing, plan.room
        context = RunContext(*setting, case.definition, publishers, self.account, self.ledger)
        self.family: ProtocolNodes = case.scenario.protocol.on(context)
        for end in self.family.destinations():
            if why := self._routing[0].refuses(end):
                raise ScenarioError(why, ("routing", "kind"))
        self._sending: dict[NodeId, list[TrafficStream]] = {}
        for sending in plan.streams:
            self._sending.setdefault(sending.source, []).append(sending)
        self._publishing: dict[NodeId, list[SourceNodes]] = {}
        for source in plan.sources:
            for id in source.nodes:
                self._publishing.setdefault(id, []).append(source)
        self._numbers: Counter[tuple[NodeId, str]] = Counter()
        self.located = any(_needs_position(case.definition, sub) for sub in plan.subscriptions)
        if self.located and not plan.topology.located:
            why = "nobody knows where these nodes are, and a subscription minds places"
            raise ScenarioError(why, ("nodes",), hint="Give nodes a file with x,y.")

    def finish(self) -> RunOutcome:
        """Process the run to its end and return the outcome."""
        scenario, network = self.case.scenario, self.network
        periods = [flow.every for flow in scenario.traffic]
        periods += [each.every for each in scenario.publishers if each.every is not None]
        step = min(max(-(-scenario.duration // STEPS), *periods, 1), scenario.duration)
        samples = Samples(network, step, scenario.warm_up)
        for time, act in self.plan.actions:
            network.at(time, partial(self._act, act))
        if self.trace is not None:
            network.meter(step)
        network.on_death(self._on_death)
        network.boot(self._boot)
        network.run(scenario.duration)
        self.account.close()
        measures = measure(network, self.ledger, samples, scenario.warm_up)
        return RunOutcome(
            with_subscribers(measures, self.account.delays() if self.plan.subscriptions else None),
            by_node(network, self.ledger, self.plan.topology.names, scenario.warm_up),
            samples.rows(self.ledger),
            self.account.rows(self.family.fate, measures["energy_by_cause_mj"]),
            self.family.measures(),
        )

    # Callbacks.

    def _router(self, node: Node) -> RoutingService:
        """Return the routing service of a node that starts. A rehearsal overrides this method."""
        machine, flooding = self._routing
        return Router(node, machine, self.ledger, flooding)

    def _boot(self, node: Node) -> None:
        router = self._router(node)
        for i, sending in enumerate(self._sending.get(node.id, ())):
            send(node, router, sending, i, self.seed)
        self.family.boot(node, router)
        for source in self._publishing.get(node.id, ()):
            self._publish_from(node, source)

    def _publish_from(self, node: Node, source: SourceNodes) -> None:
        """Publish readings of a source periodically, by the node's clock; or play its recording."""
        publisher, topic, every = source.publisher, source.topic, source.publisher.every
        if every is None:
            self._play(node, source)
            return
        sample = self._samples_of(node, source)
        if publisher.sampled is not None:
            sample = average(sample, publisher.sampled, every // publisher.sampled)
            self._sample_on(node, publisher.sampled, publisher.stop)
        phase = self.family.offset(node.id)
        if phase is None:
            random = stream(self.seed, "phase", node.id, topic.name)
            phase = random.randrange(every) if publisher.phase == "random" else 0
        first = publisher.start + phase
        late = max(0, -(-(node.now - first) // every))

        def sense(_: Any) -> None:
            if publisher.stop is None or node.now < publisher.stop:
                if publisher.sampled is None:
                    self._sample(node)
                self._publish(node, topic, sample(node.now))
                node.after(every, sense)

        node.at(first + late * every, sense)

    def _play(self, node: Node, source: SourceNodes) -> None:
        """Publish the readings of a recording, each at its own time."""
        publisher, recording = source.publisher, self.case.recordings[source.place]
        tape = recording.tapes.get(self.plan.topology.names[node.id], ())
        begin = recording.begin - publisher.start
        if publisher.sampled is not None:
            self._sample_on(node, publisher.sampled, publisher.stop)

        def wait(place: int) -> None:
            if place < len(tape):
                node.at(tape[place].time - begin, publish_reading, place)

        def publish_reading(place: int) -> None:
            if publisher.stop is None or node.now < publisher.stop:
                if publisher.sampled is None:
                    self._sample(node)
                self._publish(node, source.topic, tape[place].attributes)
                wait(place + 1)

        wait(bisect_left(tape, node.now + begin, key=lambda event: event.time))

    def _samples_of(self, node: Node, source: SourceNodes) -> Sample:
        name = self.plan.topology.names[node.id]
        if (recording := self.case.recordings.get(source.place)) is not None:
            return recording.sample(source.nodes.index(node.id), name, source.publisher.start)
        draw = stream(self.seed, "readings", node.id, source.topic.name, node.boots)
        return simulate_sample(source.publisher.readings, source.topic, node.id, draw)

    def _publish(self, node: Node, topic: Topic, values: Mapping[str, Value]) -> None:
        number = self._numbers[node.id, topic.name]
        self._numbers[node.id, topic.name] += 1
        source = self.plan.topology.names[node.id]
        place = tuple(node.position) if self.located else None
        event = Event(topic.name, node.now, source, values, number, place)
        self.account.publish(event, tuple(node.position[:2]))
        self.family.publish(node, event)

    def _sample(self, node: Node) -> None:
        """Charge the processor's work to read a sensor to its energy."""
        if length := self.case.scenario.energy.sampling:
            node.energy.mcu.work(node.clock.now, length, "sampling")

    def _sample_on(self, node: Node, every: Duration, stop: Duration | None) -> None:
        """Read a sensor periodically, until its publisher stops."""

        def read(_: Any) -> None:
            if stop is None or node.now < stop:
                self._sample(node)
                node.after(every, read)

        node.after(every, read)

    def _act(self, act: Callable[[Network], None]) -> None:
        """Apply a failure, and inform the protocol of the nodes that are down."""
        act(self.network)
        for node in self.network.nodes:
            if not node.alive:
                self.family.bury(node.id)

    def _on_death(self, node: Node) -> None:
        self.family.bury(node.id)
        if self.case.scenario.until_first_death:
            self.network.stop()
