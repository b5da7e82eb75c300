"""A scenario with all that it takes from files, and what follows for a seed; faults are found here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import did_you_mean
from ...model.instant import Instant
from ...model.space import Rectangle
from ...model.topic import Topic
from ...sim import propagation
from ...sim.chance import derived, stream
from ...sim.frame import NodeId
from ...sim.mac.station import DATA_OVERHEAD
from ...sim.network import Network, Setup
from ...sim.platforms import Platform, platform
from ...sim.radio import RADIOS, Radio
from ...sim.routing.datagram import Destination
from ...sim.topology import Topology
from .account import Wish
from .conditions import Definition, defined
from .failure import action
from .fault import Fault, at
from .nodes import Uniform, chosen, drawn, fixed, node, several
from .plugin import code_of
from .readings import Recording, loaded, require_fitting
from .routing import Python
from .scenario import AsMeasured, Publisher, Scenario, Subscriber
from .traffic import Stream, streams

LONGEST_HEADER = 34
"""Bytes that routing writes before a message, at most."""


@dataclass(frozen=True)
class Case:
    """Needs nothing else to run, anywhere."""

    scenario: Scenario
    platform: Platform
    topology: Topology | None
    """None where each seed draws its own."""
    definition: Definition
    recordings: dict[int, Recording] = field(default_factory=dict)
    """What publishers play from files, by their place in the list."""

    def placed(self, seed: int) -> Topology:
        """Where the nodes are in the run with that seed."""
        if self.topology is not None:
            return self.topology
        assert isinstance(self.scenario.nodes, Uniform)
        with at("nodes"):
            return drawn(self.scenario.nodes, derived(seed, "placement"))


def resolved(scenario: Scenario, folder: Path = Path(), lets: Mapping[str, Any] | None = None) -> Case:
    """The scenario with what it names in files, which are looked for in a folder."""
    with at("energy", "platform"):
        name = scenario.energy.platform
        kind = platform(str(folder / name) if name.endswith(".toml") else name)
    with at("nodes"):
        places = fixed(scenario.nodes, folder)
    with at("definition"):
        definition = defined(scenario.definition, folder, lets)
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
                    recordings[i] = loaded(publisher.recorded, topic, folder)
    return Case(scenario, kind, places, definition, recordings)


def _topic(definition: Definition, name: str) -> Topic:
    if name not in definition.topics:
        known = ", ".join(definition.topics)
        hint = did_you_mean(name, definition.topics) or (
            f"There is {known}." if known else "It defines none."
        )
        raise Fault(f"the definition has no topic '{name}'", ("topic",), hint=hint)
    return definition.topics[name]


@dataclass(frozen=True)
class Source:
    """Nodes that publish a topic."""

    place: int
    """In the list of publishers."""
    publisher: Publisher
    topic: Topic
    nodes: tuple[NodeId, ...]


@dataclass(frozen=True)
class Plan:
    """What there is, and who does what, in the run with one seed."""

    placed: Topology
    setup: Setup
    streams: list[Stream]
    sources: list[Source]
    wishes: list[Wish]
    actions: list[tuple[Instant, Callable[[Network], None]]]

    @property
    def room(self) -> int:
        """The bytes of a message that fit into a frame."""
        return _room(self.setup.radio)

    @property
    def ends(self) -> list[Destination]:
        """Those to whom something is sent, or told."""
        return [end for some in self.streams for end in some.destinations] + [w.node for w in self.wishes]


def _room(radio: Radio) -> int:
    return radio.longest - DATA_OVERHEAD - LONGEST_HEADER


def planned(case: Case, seed: int) -> Plan:
    """A fault if something cannot be with that seed."""
    scenario, placed = case.scenario, case.placed(seed)
    setup = _setup(case, placed, seed)
    wishes = _wishes(case, placed)
    sources = _sources(case, placed, [wish.node for wish in wishes], seed)
    return Plan(
        _voiced(case, placed, sources),
        setup,
        streams(scenario.traffic, placed, seed, _room(setup.radio)),
        sources,
        wishes,
        _actions(scenario, placed),
    )


def _setup(case: Case, placed: Topology, seed: int) -> Setup:
    scenario, energy = case.scenario, case.scenario.energy
    with at("energy", "mains"):
        mains = several(placed, energy.mains)
    return Setup(
        positions=placed.positions,
        propagation=_propagation(scenario, placed),
        radio=_radio(scenario),
        mac=scenario.mac,
        platform=case.platform,
        rest=energy.rest,
        battery_j=energy.battery,
        batteries=dict.fromkeys(mains),
        delays=energy.delays,
        seed=seed,
    )


def _propagation(scenario: Scenario, placed: Topology) -> propagation.Propagation:
    if not isinstance(scenario.links, AsMeasured):
        if not placed.located:
            hint = "Take links of kind measured, or give nodes a file with x,y."
            raise Fault("nobody knows where these nodes are", ("links", "kind"), hint=hint)
        return scenario.links
    if placed.quality is None:
        raise Fault(
            "nobody measured the links of these nodes",
            ("links", "kind"),
            hint="Take nodes of kind intel-lab, or of kind csv with a table of links.",
        )
    return propagation.Measured(placed.quality)


def _radio(scenario: Scenario) -> Radio:
    chip, said = RADIOS[scenario.radio.chip], scenario.radio
    return replace(
        chip,
        power_dbm=chip.power_dbm if said.power is None else said.power,
        co_channel_db=chip.co_channel_db if said.co_channel is None else said.co_channel,
    )


def _sources(case: Case, placed: Topology, listening: Sequence[NodeId], seed: int) -> list[Source]:
    found: list[Source] = []
    for i, publisher in enumerate(case.scenario.publishers):
        with at("publishers", i, "from"):
            who = tuple(chosen(placed, publisher.from_, listening, stream(seed, "publishers", i)))
            for each in found:
                for twice in {*each.nodes} & {*who} if each.topic.name == publisher.topic else ():
                    raise Fault(f"node {placed.names[twice]} publishes '{publisher.topic}' already")
        found.append(Source(i, publisher, case.definition.topics[publisher.topic], who))
    return found


def _voiced(case: Case, placed: Topology, sources: Sequence[Source]) -> Topology:
    """The nodes under the names of the sources that they play, where each reading has its own time."""
    names = list(placed.names)
    for each in sources:
        if each.publisher.every is not None:
            continue
        recording, theirs = case.recordings[each.place], [placed.names[id] for id in each.nodes]
        for i, (id, name) in enumerate(zip(each.nodes, theirs, strict=True)):
            source = recording.source(i, name, theirs)
            if source is not None and names[id] not in (name, source):
                raise Fault(
                    f"node {name} cannot play '{names[id]}' and '{source}'", ("publishers", each.place)
                )
            names[id] = source or names[id]
    return replace(placed, names=tuple(names))


def _wishes(case: Case, placed: Topology) -> list[Wish]:
    found: list[Wish] = []
    for i, subscriber in enumerate(case.scenario.subscribers):
        with at("subscribers", i):
            with at("node"):
                where = node(placed, subscriber.node)
            for wish in _wished(case.definition, subscriber, where):
                if any((each.node, each.name) == (wish.node, wish.name) for each in found):
                    raise Fault(f"node {subscriber.node} subscribes to '{wish.name}' twice")
                found.append(wish)
    return found


def _wished(definition: Definition, subscriber: Subscriber, where: NodeId) -> list[Wish]:
    """A subscription by its name or, by a topic's, all its events."""
    heard = definition.readings()
    named = (subscriber.to,) if isinstance(subscriber.to, str) else subscriber.to
    for name in named:
        if name not in heard and name not in definition.topics:
            known = [*heard, *definition.topics]
            hint = did_you_mean(name, known) or (f"There is {', '.join(known)}." if known else None)
            raise Fault(f"the definition has no '{name}'", ("to",), hint=hint)
    if not named and not heard:
        raise Fault("the definition has no subscription", hint="Say with 'to' which topic is wanted.")
    times = subscriber.start, subscriber.stop
    region = None if subscriber.region is None else Rectangle(*subscriber.region)
    return [
        Wish(name, where, heard.get(name, (name,)), name not in heard, *times, region)
        for name in named or heard
    ]


def _actions(scenario: Scenario, placed: Topology) -> list[tuple[Instant, Callable[[Network], None]]]:
    found = []
    for i, failure in enumerate(scenario.failures):
        with at("failures", i):
            found.append((failure.at, action(failure, placed)))
    return found
