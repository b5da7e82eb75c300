"""Where the nodes of a scenario are, and how it names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from ...errors import did_you_mean
from ...model.quantity import Metres
from ...sim import topology
from ...sim.frame import NodeId
from ...sim.topology import Topology
from .fault import Fault, at

Some = Annotated[int, Meta(ge=1)]
Named = int | str
"""A node, by its name."""

MOST = 10_000
"""How many nodes a network may have."""


@dataclass(frozen=True)
class Grid:
    """Rows of nodes, numbered row by row from 0."""

    kind: ClassVar = "grid"
    rows: Some
    columns: Some
    spacing: Metres


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Nodes anywhere in a rectangle, all connected over ``reach``."""

    kind: ClassVar = "uniform"
    count: Annotated[int, Meta(ge=1, le=MOST)]
    width: Metres
    height: Metres
    reach: Metres
    seed: int | None = None
    """The same placement in all runs; without it, each run's seed draws its own."""


@dataclass(frozen=True)
class Csv:
    """Your own: a table node,x,y and, measured, a table sender,receiver,quality; one of them is enough."""

    kind: ClassVar = "csv"
    file: str | None = None
    links: str | None = None

    def __post_init__(self) -> None:
        if self.file is None and self.links is None:
            raise Fault("'file' is missing, or 'links' if only the links are known")


@dataclass(frozen=True)
class IntelLab:
    """The 54 motes of the Intel Berkeley lab: a folder with mote_locs.txt and connectivity.txt."""

    kind: ClassVar = "intel-lab"
    folder: str


@dataclass(frozen=True)
class Redwood:
    """One of the two redwoods of Sonoma, by mote-location-data.txt."""

    kind: ClassVar = "redwood"
    file: str
    tree: Literal["interior", "edge"] = "interior"


Nodes = Grid | Uniform | Csv | IntelLab | Redwood


def fixed(nodes: Nodes, folder: Path) -> Topology | None:
    """Where nodes are in every run; nothing where each seed draws its own."""
    match nodes:
        case Grid():
            if (count := nodes.rows * nodes.columns) > MOST:
                raise Fault(f"{count:,} nodes; a network has {MOST:,} at most")
            with at("spacing"):
                return topology.grid(nodes.rows, nodes.columns, nodes.spacing)
        case Uniform():
            return None if nodes.seed is None else drawn(nodes, nodes.seed)
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


def drawn(nodes: Uniform, seed: int) -> Topology:
    """Where the nodes of a run are."""
    return topology.uniform(nodes.count, nodes.width, nodes.height, nodes.reach, seed)


# By name.


def node(placed: Topology, given: Named) -> NodeId:
    """The node of that name."""
    name = str(given)
    if name not in placed.names:
        some = f"Nodes are {', '.join(placed.names[:3])} … {placed.names[-1]}."
        near = None if name.isdecimal() else did_you_mean(name, placed.names)
        raise Fault(f"there is no node '{name}'", hint=near or some)
    return placed.names.index(name)


def several(placed: Topology, given: Sequence[Named]) -> list[NodeId]:
    """The nodes of those names."""
    found = []
    for i, name in enumerate(given):
        with at(i):
            found.append(node(placed, name))
    return found


@dataclass(frozen=True)
class Drawn:
    """So many nodes, drawn by the seed."""

    any: Some


Chosen = Named | tuple[Named, ...] | Drawn
"""A node, several, ``all`` but those that it goes to, or some that are drawn."""


def chosen(placed: Topology, given: Chosen, but: Sequence[object], draw: Random) -> list[NodeId]:
    """The nodes that are meant; ``but`` are those that are not, unless they are named."""
    others = [id for id in range(len(placed)) if id not in but]
    match given:
        case Drawn(any=count):
            if count > len(others):
                raise Fault(f"there are only {len(others)} nodes beside the destination", ("any",))
            return sorted(draw.sample(others, count))
        case tuple():
            return several(placed, given)
        case "all":
            return others
        case name:
            return [node(placed, name)]
