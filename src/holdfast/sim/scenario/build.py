"""From a scenario to what runs: positions, radio, MAC, routing, who sends what to whom, what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import HoldfastError, did_you_mean
from ...model.instant import Instant
from .. import mac as macs
from .. import propagation, radio, topology
from ..chance import derived, stream
from ..energy import Rest
from ..frame import BROADCAST, NodeId
from ..mac.station import DATA_OVERHEAD
from ..network import Network, Setup
from ..platforms import Platform, platform
from ..routing import tempo
from ..routing.datagram import Destination, RoutingMachine
from ..routing.flooding import Flooding
from ..routing.geographic import Geographic
from ..routing.ondemand import OnDemand
from ..routing.overhear import IdGrid
from ..routing.tree import Tree
from ..topology import Topology
from . import values
from .document import Route
from .values import Scenario

EVERYONE = "all"
MOST_NODES = 10_000
LONGEST_HEADER = 34
"""Bytes that routing writes before a message, at most."""


class Fault(Exception):
    """What is wrong with a scenario, and where."""

    def __init__(self, route: Route, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.route, self.message, self.hint = route, message, hint


@contextmanager
def _at(*route: str | int) -> Iterator[None]:
    """What somebody else finds wrong is wrong here."""
    try:
        yield
    except HoldfastError as error:
        raise Fault(route, str(error)) from error


@dataclass(frozen=True)
class Case:
    """A scenario with everything that it takes from files; needs nothing else to run, anywhere."""

    scenario: Scenario
    platform: Platform
    topology: Topology | None
    """None where each seed draws its own."""

    def placed(self, seed: int) -> Topology:
        """Where the nodes are in the run with that seed."""
        if self.topology is not None:
            return self.topology
        nodes = self.scenario.nodes
        assert isinstance(nodes, values.Uniform)
        return _drawn(nodes, derived(seed, "placement"))


def check(scenario: Scenario, folder: Path, seeds: Sequence[int]) -> Case:
    """The scenario with what it names in files; a fault if something in it cannot be with these seeds."""
    if scenario.duration <= 0:
        raise Fault(("duration",), "a run takes some time, such as '100 s'")
    if scenario.warm_up >= scenario.duration:
        raise Fault(("warm-up",), "the run is over before the warm-up is")
    with _at("energy", "platform"):
        name = scenario.energy.platform
        kind = platform(str(folder / name) if name.endswith(".toml") else name)
    case = Case(scenario, kind, _fixed(scenario.nodes, folder))
    for seed in seeds if case.topology is None else seeds[:1]:
        with _at("nodes"):
            placed = case.placed(seed)
        setup(case, placed, seed)
        streams(scenario, placed, seed)
        actions(scenario, placed)
        machine(scenario, placed, 0)
    return case


# Nodes.


def _fixed(nodes: values.Nodes, folder: Path) -> Topology | None:
    match nodes:
        case values.Grid():
            if nodes.rows * nodes.columns > MOST_NODES:
                raise Fault(
                    ("nodes",), f"{nodes.rows * nodes.columns:,} nodes; a network has {MOST_NODES:,} at most"
                )
            with _at("nodes", "spacing"):
                return topology.grid(nodes.rows, nodes.columns, nodes.spacing)
        case values.Uniform():
            with _at("nodes"):
                return None if nodes.seed is None else _drawn(nodes, nodes.seed)
        case values.Csv():
            with _at("nodes", "file"):
                return topology.from_csv(folder / nodes.file, folder / nodes.links if nodes.links else None)
        case values.IntelLab():
            with _at("nodes", "folder"):
                place = folder / nodes.folder
                return topology.intel_lab(place / "mote_locs.txt", place / "connectivity.txt")
        case values.Redwood():
            with _at("nodes", "file"):
                return topology.redwood(folder / nodes.file, nodes.tree)


def _drawn(nodes: values.Uniform, seed: int) -> Topology:
    return topology.uniform(nodes.count, nodes.width, nodes.height, nodes.reach, seed)


def node(placed: Topology, given: values.Named, route: Route) -> NodeId:
    """The node of that name."""
    name = str(given)
    if name not in placed.names:
        some = f"Nodes are {', '.join(placed.names[:3])} … {placed.names[-1]}."
        near = None if name.isdecimal() else did_you_mean(name, placed.names)
        raise Fault(route, f"there is no node '{name}'", near or some)
    return placed.names.index(name)


def nodes(placed: Topology, given: list[values.Named], *route: str | int) -> list[NodeId]:
    """The nodes of those names."""
    return [node(placed, name, (*route, i)) for i, name in enumerate(given)]


# The network.


def setup(case: Case, placed: Topology, seed: int) -> Setup:
    """Everything that the network is made of."""
    scenario, energy = case.scenario, case.scenario.energy
    if energy.battery is not None and energy.battery <= 0:
        raise Fault(("energy", "battery"), "a battery holds more than nothing; leave it out for no limit")
    mains = nodes(placed, energy.mains, "energy", "mains")
    with _at("energy"):
        return Setup(
            positions=placed.positions,
            propagation=_links(scenario.links, placed),
            radio=_radio(scenario.radio),
            mac=_mac(scenario.mac),
            platform=case.platform,
            rest=Rest(energy.rest.radio, energy.rest.mcu),
            battery_j=energy.battery,
            batteries=dict.fromkeys(mains),
            seed=seed,
        )


def _links(links: values.Links, placed: Topology) -> propagation.Propagation:
    with _at("links"):
        match links:
            case values.LogDistance():
                return propagation.LogDistance(
                    links.exponent, links.shadowing, links.asymmetry, links.loss_at_1_m
                )
            case values.Disk():
                return propagation.UnitDisk(links.range, links.interference)
            case values.Measured():
                if placed.quality is None:
                    raise Fault(
                        ("links", "kind"),
                        "nobody measured the links of these nodes",
                        "Take nodes of kind intel-lab, or of kind csv with a table of links.",
                    )
                return propagation.Measured(placed.quality)


def _radio(given: values.Radio) -> radio.Radio:
    chip = {"cc2420": radio.CC2420, "cc1000": radio.CC1000}[given.chip]
    return chip if given.power is None else replace(chip, power_dbm=float(given.power))


def _mac(given: values.Mac) -> macs.Mac:
    with _at("mac"):
        fields: dict[str, Any] = {name: getattr(given, name) for name in given.__struct_fields__}
        return _MACS[type(given)](**fields)


_MACS: dict[type, Callable[..., macs.Mac]] = {
    values.Csma: macs.Csma,
    values.RtsCts: macs.RtsCts,
    values.LowPowerListening: macs.LowPowerListening,
    values.Tdma: macs.Tdma,
    values.Aloha: macs.Aloha,
}


def machine(scenario: Scenario, placed: Topology, airing: int) -> tuple[RoutingMachine, Flooding]:
    """The routing protocol, with waits that fit a network of this speed, and how messages to all go."""
    mac = _mac(scenario.mac)
    wait = tempo.jitter(mac, airing)
    routing, flooding = scenario.routing, Flooding(jitter=wait)
    match routing:
        case values.IdGrid():
            if placed.columns is None:
                raise Fault(("routing", "kind"), "ID-based routing needs nodes of kind grid")
            rows = len(placed) // placed.columns
            patience = tempo.patience(airing) if routing.patience is None else int(routing.patience)
            found: RoutingMachine = IdGrid(rows, placed.columns, routing.resends, patience, routing.distrust)
        case values.Geographic():
            pace = tempo.beacons(airing, routing.beacons)
            found = Geographic(placed.positions, pace, distrust=routing.distrust, pause=wait)
        case values.Flooding():
            found = flooding = Flooding(routing.limit, wait if routing.jitter is None else routing.jitter)
        case values.OnDemand():
            answer = tempo.answer(airing) if routing.wait is None else routing.wait
            found = OnDemand(routing.keep, answer, routing.tries, jitter=wait)
        case values.Tree():
            pace = tempo.beacons(airing, routing.beacons)
            found = Tree(_sinks(scenario, routing, placed), routing.metric, pace, pause=wait)
    for i, flow in enumerate(scenario.traffic):
        for destination in _destinations(flow, placed, i):
            if destination != BROADCAST and (why := found.refuses(destination)):
                raise Fault(("traffic", i, "to"), why)
    return found, flooding


def _sinks(scenario: Scenario, routing: values.Tree, placed: Topology) -> tuple[NodeId, ...]:
    if routing.sinks is not None:
        found = nodes(placed, routing.sinks, "routing", "sinks")
    else:
        ends = [d for i, flow in enumerate(scenario.traffic) for d in _destinations(flow, placed, i)]
        found = [end for end in ends if isinstance(end, int) and end != BROADCAST]
    if not found:
        raise Fault(("routing",), "a tree needs a sink", "Give sinks, or traffic to some node.")
    return tuple(dict.fromkeys(found))


# Traffic.


@dataclass(frozen=True)
class Stream:
    """What one node sends: which flow, and to whom."""

    source: NodeId
    flow: values.Flow
    name: str
    destinations: tuple[Destination, ...]


def streams(scenario: Scenario, placed: Topology, seed: int) -> list[Stream]:
    """Everything that is sent, in the run with that seed."""
    found = []
    for i, flow in enumerate(scenario.traffic):
        if flow.every <= 0:
            raise Fault(("traffic", i, "every"), "messages are some time apart, such as '2 s'")
        if flow.stop is not None and flow.stop <= flow.start:
            raise Fault(("traffic", i, "stop"), "it stops before it starts")
        most = _radio(scenario.radio).longest - DATA_OVERHEAD - LONGEST_HEADER
        if flow.size > most:
            raise Fault(("traffic", i, "size"), f"a frame has room for {most} bytes of a message")
        ends = _destinations(flow, placed, i)
        name = flow.name or f"flow {i}"
        for source in _sources(flow, placed, ends, i, seed):
            others = tuple(end for end in ends if end != source)
            if others:
                found.append(Stream(source, flow, name, others))
    return found


def _destinations(flow: values.Flow, placed: Topology, i: int) -> tuple[Destination, ...]:
    match flow.to:
        case values.Spot(x=x, y=y):
            return ((float(x), float(y)),)
        case list():
            return tuple(nodes(placed, flow.to, "traffic", i, "to"))
        case "all":
            return (BROADCAST,)
        case name:
            return (node(placed, name, ("traffic", i, "to")),)


def _sources(
    flow: values.Flow, placed: Topology, ends: tuple[Destination, ...], i: int, seed: int
) -> list[NodeId]:
    others = [id for id in range(len(placed)) if id not in ends]
    match flow.sources:
        case values.Drawn(any=count):
            if count > len(others):
                raise Fault(
                    ("traffic", i, "from", "any"),
                    f"there are only {len(others)} nodes beside the destination",
                )
            return sorted(stream(seed, "traffic", i).sample(others, count))
        case list():
            return nodes(placed, flow.sources, "traffic", i, "from")
        case "all":
            return others
        case name:
            return [node(placed, name, ("traffic", i, "from"))]


# What goes wrong.


def actions(scenario: Scenario, placed: Topology) -> list[tuple[Instant, Callable[[Network], None]]]:
    """What is done to the network, and when."""
    found = []
    for i, failure in enumerate(scenario.failures):
        if not 0 <= failure.at <= scenario.duration:
            raise Fault(("failures", i, "at"), "this is not within the duration of the run")
        found.append((int(failure.at), _action(failure, placed, i)))
    return found


def _action(failure: values.Failure, placed: Topology, i: int) -> Callable[[Network], None]:
    at = ("failures", i)
    match failure:
        case values.Kill():
            down = nodes(placed, failure.nodes, *at, "nodes")
            return lambda network: _each(network.kill, down)
        case values.Restart():
            up = nodes(placed, failure.nodes, *at, "nodes")
            return lambda network: _each(network.restart, up)
        case values.Cut() | values.Mend():
            pairs = [nodes(placed, list(pair), *at, "links", j) for j, pair in enumerate(failure.links)]
            if isinstance(failure, values.Cut):
                return lambda network: _each(lambda pair: network.cut(*pair), pairs)
            return lambda network: _each(lambda pair: network.mend(*pair), pairs)
        case values.Partition():
            groups = [nodes(placed, group, *at, "groups", j) for j, group in enumerate(failure.groups)]
            members = [id for group in groups for id in group]
            if len(set(members)) < len(members):
                raise Fault((*at, "groups"), "a node is in two groups")
            return lambda network: network.partition(*groups)
        case values.Heal():
            return lambda network: network.heal()
        case values.Drift():
            clocks, by = nodes(placed, failure.nodes, *at, "nodes"), float(failure.by)
            if not -1e5 <= by <= 1e5:
                raise Fault((*at, "by"), "a clock runs wrong by 100000 ppm at most")
            return lambda network: _each(lambda id: network.drift(id, by), clocks)


def _each(act: Callable[[Any], None], things: list[Any]) -> None:
    for thing in things:
        act(thing)
