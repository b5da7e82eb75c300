"""One run: build the network, put traffic and a protocol on its nodes, let it work, and read the books."""

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
from ...sim.chance import stream
from ...sim.frame import BROADCAST, NodeId
from ...sim.host import Routing
from ...sim.network import Network
from ...sim.node import Node
from ...sim.routing import tempo
from ...sim.routing.ledger import Ledger
from ...sim.routing.router import Router
from ...sim.trace import Trace
from . import plugin
from .account import Account, Wish
from .case import Case, Plan, Source, planned, resolved
from .conditions import Definition, Watch
from .family import Family, Scene
from .fault import Fault, at
from .outcome import STEPS, Outcome, Samples, by_node, measured, with_subscribers
from .readings import Sample, averaged, made_up
from .routing import Python, machines
from .scenario import Scenario
from .traffic import Stream, send


def run(case: Case, seed: int, trace: Trace | None = None) -> Outcome:
    """Run a case with a seed; the same of both give the same."""
    try:
        return Run(case, seed, trace).finish()
    except Exception as error:
        routing = case.scenario.routing
        if isinstance(routing, Python) and (where := plugin.raised(error, routing.machine)):
            raise UsageError(where) from error
        raise


def check(
    scenario: Scenario,
    folder: Path = Path(),
    seeds: Sequence[int] = (1,),
    lets: Mapping[str, Any] | None = None,
) -> Case:
    """The scenario, with what it names in files; a fault if something in it cannot be with these seeds."""
    case = resolved(scenario, folder, lets)
    for seed in seeds if case.topology is None else seeds[:1]:
        plan = planned(case, seed)
        _routing(case, plan, 0)
    if scenario.publishers or scenario.subscribers:
        Run(case, seeds[0])
    return case


def _routing(case: Case, plan: Plan, airing: Duration) -> Any:
    with at("routing"):
        found = machines(case.scenario.routing, plan.placed, plan.setup.mac, airing, plan.ends)
    for some in plan.streams:
        for destination in some.destinations:
            if destination != BROADCAST and (why := found[0].refuses(destination)):
                raise Fault(why, ("traffic", some.place, "to"))
    return found


def _minds_places(definition: Definition, wish: Wish) -> bool:
    """Whether it may matter to a wish where its events come from."""
    condition = definition.filters.get(wish.name)
    return not wish.plain and (condition is None or condition.forest is not None)


class Run:
    """A network with its applications, and the books that are kept."""

    def __init__(self, case: Case, seed: int, trace: Trace | None = None) -> None:
        self.case, self.seed, self.trace = case, seed, trace
        self.plan = plan = planned(case, seed)
        self.network = network = Network(plan.setup, trace)
        airing = tempo.airing(network.setup.mac, network.setup.radio, network.hearers())
        self._routing = _routing(case, plan, airing)
        self.ledger = Ledger(plan.placed.positions)
        served = case.definition.operators()
        watched = {w: None if w.plain else Watch(served[w.name], w.name) for w in plan.wishes}
        self.account = Account(watched, lambda: network.now, case.scenario.warm_up, tempo.answer(airing))
        publishers: dict[str, tuple[NodeId, ...]] = {}
        for source in plan.sources:
            publishers[source.topic.name] = publishers.get(source.topic.name, ()) + source.nodes
        scene = Scene(
            network,
            plan.placed,
            seed,
            airing,
            plan.room,
            case.definition,
            publishers,
            self.account,
            self.ledger,
        )
        self.family: Family = case.scenario.protocol.on(scene)
        for end in self.family.destinations():
            if why := self._routing[0].refuses(end):
                raise Fault(why, ("routing", "kind"))
        self._sending: dict[NodeId, list[Stream]] = {}
        for some in plan.streams:
            self._sending.setdefault(some.source, []).append(some)
        self._publishing: dict[NodeId, list[Source]] = {}
        for source in plan.sources:
            for id in source.nodes:
                self._publishing.setdefault(id, []).append(source)
        self._numbers: Counter[tuple[NodeId, str]] = Counter()
        self.located = any(_minds_places(case.definition, wish) for wish in plan.wishes)
        if self.located and not plan.placed.located:
            hint = "Give nodes a file with x,y."
            raise Fault(
                "nobody knows where these nodes are, and a subscription minds places", ("nodes",), hint=hint
            )

    def finish(self) -> Outcome:
        """Let it happen, and read the books."""
        scenario, network = self.case.scenario, self.network
        periods = [flow.every for flow in scenario.traffic]
        periods += [each.every for each in scenario.publishers if each.every is not None]
        step = min(max(-(-scenario.duration // STEPS), *periods, 1), scenario.duration)
        samples = Samples(network, step, scenario.warm_up)
        for time, act in self.plan.actions:
            network.at(time, partial(self._act, act))
        if self.trace is not None:
            network.meter(step)
        network.on_death(self._died)
        network.boot(self._boot)
        network.run(scenario.duration)
        self.account.close()
        measures = measured(network, self.ledger, samples, scenario.warm_up)
        return Outcome(
            with_subscribers(measures, self.account.delays() if self.plan.wishes else None),
            by_node(network, self.ledger, self.plan.placed.names, scenario.warm_up),
            samples.rows(self.ledger),
            self.account.rows(self.family.fate, measures["energy_by_cause_mj"]),
            self.family.measures(),
        )

    # What happens.

    def _router(self, node: Node) -> Routing:
        """How messages of a node that starts are carried."""
        machine, flooding = self._routing
        return Router(node, machine, self.ledger, flooding)

    def _boot(self, node: Node) -> None:
        router = self._router(node)
        for i, some in enumerate(self._sending.get(node.id, ())):
            send(node, router, some, i, self.seed)
        self.family.boot(node, router)
        for source in self._publishing.get(node.id, ()):
            self._publish_from(node, source)

    def _publish_from(self, node: Node, source: Source) -> None:
        """An application samples again and again, by its node's clock."""
        publisher, topic, every = source.publisher, source.topic, source.publisher.every
        if every is None:
            self._play(node, source)
            return
        sample = self._sampled(node, source)
        if publisher.sampled is not None:
            sample = averaged(sample, publisher.sampled, every // publisher.sampled)
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

    def _play(self, node: Node, source: Source) -> None:
        """An application says what was recorded, each reading at its own time."""
        publisher, recording = source.publisher, self.case.recordings[source.place]
        tape = recording.tapes.get(self.plan.placed.names[node.id], ())
        begin = recording.begin - publisher.start
        if publisher.sampled is not None:
            self._sample_on(node, publisher.sampled, publisher.stop)

        def wait(place: int) -> None:
            if place < len(tape):
                node.at(tape[place].time - begin, say, place)

        def say(place: int) -> None:
            if publisher.stop is None or node.now < publisher.stop:
                if publisher.sampled is None:
                    self._sample(node)
                self._publish(node, source.topic, tape[place].attributes)
                wait(place + 1)

        wait(bisect_left(tape, node.now + begin, key=lambda event: event.time))

    def _sampled(self, node: Node, source: Source) -> Sample:
        name = self.plan.placed.names[node.id]
        if (recording := self.case.recordings.get(source.place)) is not None:
            return recording.sample(source.nodes.index(node.id), name, source.publisher.start)
        draw = stream(self.seed, "readings", node.id, source.topic.name, node.boots)
        return made_up(source.publisher.readings, source.topic, node.id, draw)

    def _publish(self, node: Node, topic: Topic, values: Mapping[str, Value]) -> None:
        number = self._numbers[node.id, topic.name]
        self._numbers[node.id, topic.name] += 1
        source = self.plan.placed.names[node.id]
        place = tuple(node.position) if self.located else None
        event = Event(topic.name, node.now, source, values, number, place)
        self.account.publish(event, tuple(node.position[:2]))
        self.family.publish(node, event)

    def _sample(self, node: Node) -> None:
        """A sensor is read."""
        if length := self.case.scenario.energy.sampling:
            node.energy.mcu.work(node.clock.now, length, "sampling")

    def _sample_on(self, node: Node, every: Duration, stop: Duration | None) -> None:
        """A sensor is read again and again, until its publisher stops."""

        def read(_: Any) -> None:
            if stop is None or node.now < stop:
                self._sample(node)
                node.after(every, read)

        node.after(every, read)

    def _act(self, act: Callable[[Network], None]) -> None:
        """Something goes wrong; what nodes that are down had in their memory is gone."""
        act(self.network)
        for node in self.network.nodes:
            if not node.alive:
                self.family.bury(node.id)

    def _died(self, node: Node) -> None:
        self.family.bury(node.id)
        if self.case.scenario.until_first_death:
            self.network.stop()
