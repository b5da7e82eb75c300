"""A scenario with the contents of all files that it names, and the plan of a run with a seed.

Both steps check the scenario, so that errors appear before a run starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import did_you_mean
from ...model.instant import Instant
from ...model.space import Rectangle
from ...model.topic import Topic
from ..sim import propagation
from ..sim.chance import derive_seed, stream
from ..sim.frame import NodeId
from ..sim.mac.station import DATA_OVERHEAD
from ..sim.network import Network, Setup
from ..sim.platforms import Platform, platform
from ..sim.radio import RADIOS, Radio
from ..sim.routing.datagram import Destination
from ..sim.topology import Topology
from .account import NodeSubscription
from .conditions import ScenarioDefinition, load_definition
from .failure import action
from .fault import ScenarioError, at
from .nodes import Uniform, common_topology, find_node, find_nodes, random_topology, select_nodes
from .plugin import code_of
from .readings import Recording, load_recording, require_fitting
from .routing import Python
from .scenario import AsMeasured, Publisher, Scenario, Subscriber
from .traffic import TrafficStream, streams

LONGEST_HEADER = 34
"""The greatest number of bytes that routing writes before a message."""


@dataclass(frozen=True)
class SimulationCase:
    """A scenario with all its files read, so that it can run on any machine."""

    scenario: Scenario
    platform: Platform
    topology: Topology | None
    """The topology of all runs; ``None`` if each seed draws its own."""
    definition: ScenarioDefinition
    recordings: dict[int, Recording] = field(default_factory=dict)
    """The recordings that publishers play, by the index of the publisher."""

    def topology_for(self, seed: int) -> Topology:
        """Return the nodes of the run with this seed."""
        if self.topology is not None:
            return self.topology
        assert isinstance(self.scenario.nodes, Uniform)
        with at("nodes"):
            return random_topology(self.scenario.nodes, derive_seed(seed, "placement"))


def resolve_files(
    scenario: Scenario, folder: Path = Path(), lets: Mapping[str, Any] | None = None
) -> SimulationCase:
    """Read the files that a scenario names, relative to ``folder``. ``lets`` replaces parameters of its
    definition.
    """
    with at("energy", "platform"):
        name = scenario.energy.platform
        kind = platform(str(folder / name) if name.endswith(".toml") else name)
    with at("nodes"):
        topology = common_topology(scenario.nodes, folder)
    with at("definition"):
        definition = load_definition(scenario.definition, folder, lets)
    if isinstance(own := scenario.routing, Python) and not own.code:
        with at("routing", "machine"):
            scenario = replace(scenario, routing=replace(own, code=code_of(own.machine, folder)))
    recordings = {}
    for i, publisher in enumerate(scenario.publishers):
        with at("publishers", i):
            topic = _topic(definition, publisher.topic)
            if publisher.recorded is None:
                with at("readings"):
                    require_fitting(publisher.readings, topic)
            else:
                with at("recorded"):
                    recordings[i] = load_recording(publisher.recorded, topic, folder)
    return SimulationCase(scenario, kind, topology, definition, recordings)


def _topic(definition: ScenarioDefinition, name: str) -> Topic:
    if name not in definition.topics:
        known = ", ".join(definition.topics)
        there = f"There is {known}." if known else "It defines none."
        hint = did_you_mean(name, definition.topics) or there
        raise ScenarioError(f"the definition has no topic '{name}'", ("topic",), hint=hint)
    return definition.topics[name]


@dataclass(frozen=True)
class SourceNodes:
    """The nodes that publish a topic for one publisher of the scenario."""

    place: int
    """The index in the list of publishers."""
    publisher: Publisher
    topic: Topic
    nodes: tuple[NodeId, ...]


@dataclass(frozen=True)
class RunPlan:
    """The plan of the run with one seed: the network, and the task of each node."""

    topology: Topology
    setup: Setup
    streams: list[TrafficStream]
    sources: list[SourceNodes]
    subscriptions: list[NodeSubscription]
    actions: list[tuple[Instant, Callable[[Network], None]]]

    @property
    def room(self) -> int:
        """The number of bytes of a message that fit into a frame."""
        return _room(self.setup.radio)

    @property
    def ends(self) -> list[Destination]:
        """The destinations of traffic, followed by the subscribers' nodes."""
        sent_to = [end for sending in self.streams for end in sending.destinations]
        return sent_to + [sub.node for sub in self.subscriptions]


def _room(radio: Radio) -> int:
    return radio.longest - DATA_OVERHEAD - LONGEST_HEADER


def plan_run(case: SimulationCase, seed: int) -> RunPlan:
    """Return the plan of the run with a seed. Raise a `ScenarioError` if the scenario is impossible
    with it.
    """
    scenario, topology = case.scenario, case.topology_for(seed)
    setup = _setup(case, topology, seed)
    subscriptions = _subscriptions(case, topology)
    sources = _sources(case, topology, [sub.node for sub in subscriptions], seed)
    named = _name_sources(case, topology, sources)
    sending = streams(scenario.traffic, topology, seed, _room(setup.radio))
    return RunPlan(named, setup, sending, sources, subscriptions, _actions(scenario, topology))


def _setup(case: SimulationCase, topology: Topology, seed: int) -> Setup:
    """Return the settings of the simulated network for one seed."""
    scenario, energy = case.scenario, case.scenario.energy
    with at("energy", "mains"):
        mains = find_nodes(topology, energy.mains)
    return Setup(
        positions=topology.positions,
        propagation=_propagation(scenario, topology),
        radio=_radio(scenario),
        mac=scenario.mac,
        platform=case.platform,
        rest=energy.rest,
        battery_j=energy.battery,
        batteries=dict.fromkeys(mains),
        delays=energy.delays,
        seed=seed,
    )


def _propagation(scenario: Scenario, topology: Topology) -> propagation.Propagation:
    """Return the propagation model; raise a `ScenarioError` if the links do not fit the topology."""
    if not isinstance(scenario.links, AsMeasured):
        if not topology.located:
            hint = "Take links of kind measured, or give nodes a file with x,y."
            raise ScenarioError("nobody knows where these nodes are", ("links", "kind"), hint=hint)
        return scenario.links
    if topology.quality is None:
        hint = "Take nodes of kind intel-lab, or of kind csv with a table of links."
        raise ScenarioError("nobody measured the links of these nodes", ("links", "kind"), hint=hint)
    return propagation.Measured(topology.quality)


def _radio(scenario: Scenario) -> Radio:
    chip, settings = RADIOS[scenario.radio.chip], scenario.radio
    return replace(
        chip,
        power_dbm=chip.power_dbm if settings.power is None else settings.power,
        co_channel_db=chip.co_channel_db if settings.co_channel is None else settings.co_channel,
    )


def _sources(
    case: SimulationCase, topology: Topology, listening: Sequence[NodeId], seed: int
) -> list[SourceNodes]:
    """Return the nodes of each publisher of the scenario."""
    found: list[SourceNodes] = []
    for i, publisher in enumerate(case.scenario.publishers):
        with at("publishers", i, "from"):
            nodes = tuple(select_nodes(topology, publisher.from_, listening, stream(seed, "publishers", i)))
            same = {id for other in found if other.topic.name == publisher.topic for id in other.nodes}
            for twice in same & {*nodes}:
                raise ScenarioError(f"node {topology.names[twice]} publishes '{publisher.topic}' already")
        found.append(SourceNodes(i, publisher, case.definition.topics[publisher.topic], nodes))
    return found


def _name_sources(case: SimulationCase, topology: Topology, sources: Sequence[SourceNodes]) -> Topology:
    """Return the topology in which nodes that play a recording have the names of the sources that
    they play.
    """
    names = list(topology.names)
    for publishing in sources:
        if publishing.publisher.every is not None:
            continue
        recording = case.recordings[publishing.place]
        own_names = [topology.names[id] for id in publishing.nodes]
        for i, (id, name) in enumerate(zip(publishing.nodes, own_names, strict=True)):
            source = recording.source(i, name, own_names)
            if source is not None and names[id] not in (name, source):
                why = f"node {name} cannot play '{names[id]}' and '{source}'"
                raise ScenarioError(why, ("publishers", publishing.place))
            names[id] = source or names[id]
    return replace(topology, names=tuple(names))


def _subscriptions(case: SimulationCase, topology: Topology) -> list[NodeSubscription]:
    """Return the subscriptions of all subscribers of the scenario."""
    found: list[NodeSubscription] = []
    for i, subscriber in enumerate(case.scenario.subscribers):
        with at("subscribers", i):
            with at("node"):
                where = find_node(topology, subscriber.node)
            for sub in _subscriptions_of(case.definition, subscriber, where):
                if any((publishing.node, publishing.name) == (sub.node, sub.name) for publishing in found):
                    raise ScenarioError(f"node {subscriber.node} subscribes to '{sub.name}' twice")
                found.append(sub)
    return found


def _subscriptions_of(
    definition: ScenarioDefinition, subscriber: Subscriber, where: NodeId
) -> list[NodeSubscription]:
    """Return the subscriptions of a node, by the names of conditions or topics."""
    topics_by_name = definition.topics_by_subscription()
    names = (subscriber.to,) if isinstance(subscriber.to, str) else subscriber.to
    for name in names:
        if name not in topics_by_name and name not in definition.topics:
            known = [*topics_by_name, *definition.topics]
            hint = did_you_mean(name, known) or (f"There is {', '.join(known)}." if known else None)
            raise ScenarioError(f"the definition has no '{name}'", ("to",), hint=hint)
    if not names and not topics_by_name:
        raise ScenarioError("the definition has no subscription", hint="Say with 'to' which topic is wanted.")
    times = subscriber.start, subscriber.stop
    region = None if subscriber.region is None else Rectangle(*subscriber.region)
    return [
        NodeSubscription(
            name, where, topics_by_name.get(name, (name,)), name not in topics_by_name, *times, region
        )
        for name in names or topics_by_name
    ]


def _actions(scenario: Scenario, topology: Topology) -> list[tuple[Instant, Callable[[Network], None]]]:
    found = []
    for i, failure in enumerate(scenario.failures):
        with at("failures", i):
            found.append((failure.at, action(failure, topology)))
    return found
