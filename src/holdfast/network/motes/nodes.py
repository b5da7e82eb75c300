"""The nodes of a scenario: their positions, and their names in the scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from ...errors import did_you_mean
from ...model.quantity import Metres
from ..sim import topology
from ..sim.frame import NodeId
from ..sim.topology import Topology
from .fault import ScenarioError, at

AtLeastOne = Annotated[int, Meta(ge=1)]
NodeName = int | str
"""A node, as its name in the scenario."""

MOST = 10_000
"""The greatest number of nodes of a network."""


@dataclass(frozen=True)
class Grid:
    """A grid of nodes, numbered row by row from 0."""

    kind: ClassVar = "grid"
    rows: AtLeastOne
    columns: AtLeastOne
    spacing: Metres


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Nodes at random positions in a rectangle, such that all are connected over ``reach`` metres."""

    kind: ClassVar = "uniform"
    count: Annotated[int, Meta(ge=1, le=MOST)]
    width: Metres
    height: Metres
    reach: Metres
    seed: int | None = None
    """A seed that gives all runs the same positions. With ``None``, each run draws positions from its own
    seed.
    """


@dataclass(frozen=True)
class Csv:
    """A network from files: a table node,x,y and, if measured, a table sender,receiver,quality. One of them
    is sufficient.
    """

    kind: ClassVar = "csv"
    file: str | None = None
    links: str | None = None

    def __post_init__(self) -> None:
        if self.file is None and self.links is None:
            raise ScenarioError("'file' is missing, or 'links' if only the links are known")


@dataclass(frozen=True)
class IntelLab:
    """The 54 motes of the Intel Berkeley lab, from a folder with mote_locs.txt and connectivity.txt."""

    kind: ClassVar = "intel-lab"
    folder: str


@dataclass(frozen=True)
class Redwood:
    """One of the two redwoods of Sonoma, from mote-location-data.txt."""

    kind: ClassVar = "redwood"
    file: str
    tree: Literal["interior", "edge"] = "interior"


Nodes = Grid | Uniform | Csv | IntelLab | Redwood


def common_topology(nodes: Nodes, folder: Path) -> Topology | None:
    """Return the topology that is equal in all runs; ``None`` if each seed draws its own."""
    match nodes:
        case Grid():
            if (count := nodes.rows * nodes.columns) > MOST:
                raise ScenarioError(f"{count:,} nodes; a network has {MOST:,} at most")
            with at("spacing"):
                return topology.grid(nodes.rows, nodes.columns, nodes.spacing)
        case Uniform():
            return None if nodes.seed is None else random_topology(nodes, nodes.seed)
        case Csv():
            links = None if nodes.links is None else folder / nodes.links
            if nodes.file is not None:
                with at("file"):
                    return topology.from_csv(folder / nodes.file, links)
            assert links is not None
            with at("links"):
                return topology.from_links(links)
        case IntelLab():
            with at("folder"):
                place = folder / nodes.folder
                return topology.intel_lab(place / "mote_locs.txt", place / "connectivity.txt")
        case Redwood():
            with at("file"):
                return topology.redwood(folder / nodes.file, nodes.tree)


def random_topology(nodes: Uniform, seed: int) -> Topology:
    """Return the topology of one run, with random positions."""
    return topology.uniform(nodes.count, nodes.width, nodes.height, nodes.reach, seed)


# By name.


def find_node(network: Topology, given: NodeName) -> NodeId:
    """Return the node with a name; raise a `ScenarioError` if there is none."""
    name = str(given)
    if name not in network.names:
        some = f"Nodes are {', '.join(network.names[:3])} … {network.names[-1]}."
        near = None if name.isdecimal() else did_you_mean(name, network.names)
        raise ScenarioError(f"there is no node '{name}'", hint=near or some)
    return network.names.index(name)


def find_nodes(network: Topology, given: Sequence[NodeName]) -> list[NodeId]:
    """Return the nodes with the given names; raise a `ScenarioError` for an unknown name."""
    found = []
    for i, name in enumerate(given):
        with at(i):
            found.append(find_node(network, name))
    return found


@dataclass(frozen=True)
class RandomNodes:
    """A number of nodes that the seed draws."""

    any: AtLeastOne


NodeChoice = NodeName | tuple[NodeName, ...] | RandomNodes
"""A node, several nodes, ``all`` except the destinations, or a number of nodes that the seed draws."""


def select_nodes(
    network: Topology, given: NodeChoice, excluded: Sequence[object], draw: Random
) -> list[NodeId]:
    """Select nodes. The nodes in ``excluded`` are selected only if they are named."""
    others = [id for id in range(len(network)) if id not in excluded]
    match given:
        case RandomNodes(any=count):
            if count > len(others):
                raise ScenarioError(f"there are only {len(others)} nodes beside the destination", ("any",))
            return sorted(draw.sample(others, count))
        case tuple():
            return find_nodes(network, given)
        case "all":
            return others
        case name:
            return [find_node(network, name)]
