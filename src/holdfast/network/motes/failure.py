"""Failures of a scenario, and the actions that apply them to a network.

To add a failure, write a class, add it to `Failure`, and handle it in `action`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...model.instant import Duration
from ...model.quantity import Ppm
from ..sim.frame import NodeId
from ..sim.network import Network
from ..sim.topology import Topology
from .fault import ScenarioError, at
from .nodes import NodeName, find_nodes


@dataclass(frozen=True)
class _ToNodes:
    """The base class of failures of nodes."""

    at: Duration
    nodes: tuple[NodeName, ...]


@dataclass(frozen=True)
class _ToLinks:
    """The base class of failures of links between pairs of nodes."""

    at: Duration
    links: tuple[tuple[NodeName, NodeName], ...]


class Kill(_ToNodes):
    """A failure in which nodes go down."""

    kind: ClassVar = "kill"


class Restart(_ToNodes):
    """The restart of nodes, without memory."""

    kind: ClassVar = "restart"


class Cut(_ToLinks):
    """A failure in which links are cut in both directions."""

    kind: ClassVar = "cut"


class Mend(_ToLinks):
    """The repair of cut links."""

    kind: ClassVar = "mend"


@dataclass(frozen=True)
class Partition:
    """A failure in which only links within a group work. The nodes that are in no group form one further
    group.
    """

    kind: ClassVar = "partition"
    at: Duration
    groups: tuple[tuple[NodeName, ...], ...]


@dataclass(frozen=True)
class Heal:
    """The repair of all links."""

    kind: ClassVar = "heal"
    at: Duration


@dataclass(frozen=True)
class Drift(_ToNodes):
    """A failure in which the clocks of nodes deviate, in parts per million."""

    kind: ClassVar = "drift"
    by: Ppm


Failure = Kill | Restart | Cut | Mend | Partition | Heal | Drift


def action(failure: Failure, topology: Topology) -> Callable[[Network], None]:
    """Return the function that applies a failure to a network. Raise a `ScenarioError` if it does not fit the
    topology.
    """
    match failure:
        case Kill(_, nodes) | Restart(_, nodes) | Drift(_, nodes):
            if isinstance(failure, Drift) and not -1e5 <= failure.by <= 1e5:
                raise ScenarioError("a clock runs wrong by 100000 ppm at most", ("by",))
            with at("nodes"):
                ids = [(id,) for id in find_nodes(topology, nodes)]
            if isinstance(failure, Drift):
                return _for_each(Network.drift, [(*id, failure.by) for id in ids])
            return _for_each(Network.kill if isinstance(failure, Kill) else Network.restart, ids)
        case Cut(_, links) | Mend(_, links):
            pairs = _node_groups(topology, links, "links")
            return _for_each(Network.cut if isinstance(failure, Cut) else Network.mend, pairs)
        case Partition(_, groups):
            apart = _node_groups(topology, groups, "groups")
            if len({id for group in apart for id in group}) < sum(map(len, apart)):
                raise ScenarioError("a node is in two groups", ("groups",))
            return lambda network: network.partition(*apart)
        case Heal():
            return Network.heal


def _node_groups(topology: Topology, given: Sequence[Sequence[NodeName]], where: str) -> list[list[NodeId]]:
    found = []
    for i, group in enumerate(given):
        with at(where, i):
            found.append(find_nodes(topology, group))
    return found


def _for_each(act: Callable[..., None], arguments: Sequence[Sequence[Any]]) -> Callable[[Network], None]:
    """Return a function that calls a method of a network once with each of ``arguments``."""

    def apply(network: Network) -> None:
        for given in arguments:
            act(network, *given)

    return apply
