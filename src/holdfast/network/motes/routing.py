"""Routing in a scenario: the settings of each protocol, and the machine that they give for a network.

A setting of ``None`` takes the protocol's default, or a value that depends on the speed of the network. To
add a protocol, add its settings to `Routing` and its machine to `machines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ...model.instant import Duration
from ..sim.frame import BROADCAST, NodeId
from ..sim.mac import Mac
from ..sim.routing import flooding, geographic, ondemand, overhear, static, tempo, tree
from ..sim.routing.datagram import Destination, RoutingMachine
from ..sim.topology import Topology
from .fault import ScenarioError, at
from .nodes import AtLeastOne, NodeName, find_nodes
from .plugin import make_machine

Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, kw_only=True)
class _Routing:
    """Settings that all protocols share. Messages to all nodes are flooded with every protocol."""

    jitter: Duration | None = None
    """The longest random delay in µs before a repetition."""


@dataclass(frozen=True, kw_only=True)
class IdGrid(_Routing):
    """Settings of ID-based routing with retries. The nodes must form a grid."""

    kind: ClassVar = "id-grid"
    resends: Count | None = None
    patience: Duration | None = None
    distrust: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Static(_Routing):
    """Settings of ID-based routing without retries. The nodes must form a grid."""

    kind: ClassVar = "static"


@dataclass(frozen=True, kw_only=True)
class Geographic(_Routing):
    """Settings of greedy geographic routing, with walks around holes."""

    kind: ClassVar = "geographic"
    beacons: Duration | None = None
    distrust: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Flooding(_Routing):
    """Settings of flooding: every node repeats every message once."""

    kind: ClassVar = "flooding"
    limit: AtLeastOne | None = None


@dataclass(frozen=True, kw_only=True)
class OnDemand(_Routing):
    """Settings of routing on demand, with requests, replies and errors as in DYMO."""

    kind: ClassVar = "on-demand"
    keep: Duration | None = None
    wait: Duration | None = None
    tries: AtLeastOne | None = None
    resends: Count | None = None
    second: bool | None = None
    buffers: AtLeastOne | None = None


@dataclass(frozen=True, kw_only=True)
class Tree(_Routing):
    """Settings of a tree to each sink, by default to every destination of messages."""

    kind: ClassVar = "tree"
    sinks: tuple[NodeName, ...] | None = None
    metric: Literal["etx", "hops"] | None = None
    beacons: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Python(_Routing):
    """Settings of a protocol of the user: a class in a Python file, ``gossip.py:Gossip``, and its
    arguments.
    """

    kind: ClassVar = "python"
    machine: str
    with_: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    code: str = ""
    """The text of the file; if it is empty, the file is read."""


Routing = IdGrid | Static | Geographic | Flooding | OnDemand | Tree | Python


def machines(
    routing: Routing, topology: Topology, mac: Mac, airing: Duration, ends: Iterable[Destination]
) -> tuple[RoutingMachine, flooding.Flooding]:
    """Return the routing machine for a network, and the flooding for messages to all nodes.

    ``airing`` is the time in µs that a node takes to send to its neighbours. ``ends`` are the destinations of
    messages.
    """
    settings: dict[str, Any] = {f.name: getattr(routing, f.name) for f in fields(routing)}
    settings = {name: value for name, value in settings.items() if value is not None}
    wait = settings.pop("jitter", tempo.jitter(mac, airing))
    to_all = flooding.Flooding(jitter=wait, limit=settings.pop("limit", flooding.FLOODING.limit))
    match routing:
        case IdGrid():
            given = {"patience": tempo.patience(airing)} | settings
            return overhear.IdGrid(*_shape(topology), **given), to_all
        case Static():
            return static.Static(*_shape(topology)), to_all
        case Geographic():
            if not topology.located:
                hint = "Give nodes a file with x,y."
                raise ScenarioError("nobody knows where these nodes are", ("kind",), hint=hint)
            pace = tempo.beacons(airing, settings.pop("beacons", None))
            return geographic.Geographic(topology.positions, pace, pause=wait, **settings), to_all
        case Flooding():
            return to_all, to_all
        case OnDemand():
            return ondemand.OnDemand(jitter=wait, **{"wait": tempo.answer(airing)} | settings), to_all
        case Tree():
            pace = tempo.beacons(airing, settings.pop("beacons", None))
            settings["sinks"] = _sinks(routing, topology, ends)
            return tree.Tree(beacons=pace, pause=wait, **settings), to_all
        case Python():
            known = {"topology": topology, "airing": airing, "jitter": wait}
            known["ends"] = tuple(dict.fromkeys(ends))
            return make_machine(routing.machine, routing.code, routing.with_, known), to_all


def _shape(topology: Topology) -> tuple[int, int]:
    if topology.columns is None:
        raise ScenarioError("ID-based routing needs nodes of kind grid", ("kind",))
    return len(topology) // topology.columns, topology.columns


def _sinks(routing: Tree, topology: Topology, ends: Iterable[Destination]) -> tuple[NodeId, ...]:
    if routing.sinks is None:
        sinks = [end for end in ends if isinstance(end, int) and end != BROADCAST]
    else:
        with at("sinks"):
            sinks = find_nodes(topology, routing.sinks)
    if not sinks:
        raise ScenarioError("a tree needs a sink", hint="Give sinks, or traffic to some node.")
    return tuple(dict.fromkeys(sinks))
