"""What goes wrong in a scenario, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...model.instant import Duration
from ...model.quantity import Ppm
from ...sim.frame import NodeId
from ...sim.network import Network
from ...sim.topology import Topology
from .fault import Fault, at
from .nodes import Named, several


@dataclass(frozen=True)
class _ToNodes:
    """Something happens to nodes."""

    at: Duration
    nodes: tuple[Named, ...]


@dataclass(frozen=True)
class _ToLinks:
    """Something happens between pairs of nodes."""

    at: Duration
    links: tuple[tuple[Named, Named], ...]


class Kill(_ToNodes):
    """Nodes go down."""

    kind: ClassVar = "kill"


class Restart(_ToNodes):
    """Nodes come up again and remember nothing."""

    kind: ClassVar = "restart"


class Cut(_ToLinks):
    """They no longer hear each other."""

    kind: ClassVar = "cut"


class Mend(_ToLinks):
    """They hear each other again."""

    kind: ClassVar = "mend"


@dataclass(frozen=True)
class Partition:
    """Nodes hear only those of their own group; those in none are one group together."""

    kind: ClassVar = "partition"
    at: Duration
    groups: tuple[tuple[Named, ...], ...]


@dataclass(frozen=True)
class Heal:
    """All links are as at the beginning."""

    kind: ClassVar = "heal"
    at: Duration


@dataclass(frozen=True)
class Drift(_ToNodes):
    """Clocks of nodes run fast, or slow, by so much."""

    kind: ClassVar = "drift"
    by: Ppm


Failure = Kill | Restart | Cut | Mend | Partition | Heal | Drift


def action(failure: Failure, placed: Topology) -> Callable[[Network], None]:
    """What is done to a network."""
    match failure:
        case Kill(_, nodes):
            down = _named(placed, nodes)
            return lambda network: _each(network.kill, down)
        case Restart(_, nodes):
            up = _named(placed, nodes)
            return lambda network: _each(network.restart, up)
        case Cut(_, links):
            pairs = _grouped(placed, links, "links")
            return lambda network: _each(lambda pair: network.cut(*pair), pairs)
        case Mend(_, links):
            pairs = _grouped(placed, links, "links")
            return lambda network: _each(lambda pair: network.mend(*pair), pairs)
        case Partition(_, groups):
            apart = _grouped(placed, groups, "groups")
            if len({id for group in apart for id in group}) < sum(map(len, apart)):
                raise Fault("a node is in two groups", ("groups",))
            return lambda network: network.partition(*apart)
        case Heal():
            return Network.heal
        case Drift(_, nodes, by):
            if not -1e5 <= by <= 1e5:
                raise Fault("a clock runs wrong by 100000 ppm at most", ("by",))
            clocks = _named(placed, nodes)
            return lambda network: _each(lambda id: network.drift(id, by), clocks)


def _named(placed: Topology, given: Sequence[Named]) -> list[NodeId]:
    with at("nodes"):
        return several(placed, given)


def _grouped(placed: Topology, given: Sequence[Sequence[Named]], where: str) -> list[list[NodeId]]:
    found = []
    for i, some in enumerate(given):
        with at(where, i):
            found.append(several(placed, some))
    return found


def _each(act: Callable[[Any], None], things: Sequence[Any]) -> None:
    for thing in things:
        act(thing)
