"""Which way messages go: what a scenario says of it, and the machine that follows for a network.

What is not said is as the protocol has it, or as the speed of the network suggests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ...model.instant import Duration
from ...sim.frame import BROADCAST, NodeId
from ...sim.mac import Mac
from ...sim.routing import flooding, geographic, ondemand, overhear, static, tempo, tree
from ...sim.routing.datagram import Destination, RoutingMachine
from ...sim.topology import Topology
from .fault import Fault, at
from .nodes import Named, Some, several
from .plugin import made

Count = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True, kw_only=True)
class _Routing:
    """What all have: messages to everybody are flooded, whatever the kind."""

    jitter: Duration | None = None
    """The longest wait before something is repeated."""


@dataclass(frozen=True, kw_only=True)
class IdGrid(_Routing):
    """The rules of ID-based routing; nodes must be a grid."""

    kind: ClassVar = "id-grid"
    resends: Count | None = None
    patience: Duration | None = None
    distrust: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Static(_Routing):
    """The same without listening whether the next one forwards: what is lost is lost."""

    kind: ClassVar = "static"


@dataclass(frozen=True, kw_only=True)
class Geographic(_Routing):
    """Greedy, with perimeters round the holes."""

    kind: ClassVar = "geographic"
    beacons: Duration | None = None
    distrust: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Flooding(_Routing):
    """Everybody repeats everything once."""

    kind: ClassVar = "flooding"
    limit: Some | None = None


@dataclass(frozen=True, kw_only=True)
class OnDemand(_Routing):
    """Requests, replies and errors, as in DYMO."""

    kind: ClassVar = "on-demand"
    keep: Duration | None = None
    wait: Duration | None = None
    tries: Some | None = None
    resends: Count | None = None
    second: bool | None = None
    buffers: Some | None = None


@dataclass(frozen=True, kw_only=True)
class Tree(_Routing):
    """A tree to each sink; by default to whoever something is sent to."""

    kind: ClassVar = "tree"
    sinks: tuple[Named, ...] | None = None
    metric: Literal["etx", "hops"] | None = None
    beacons: Duration | None = None


@dataclass(frozen=True, kw_only=True)
class Python(_Routing):
    """Your own: a class in a Python file, ``gossip.py:Gossip``, and what it is made with."""

    kind: ClassVar = "python"
    machine: str
    with_: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    code: str = ""
    """The text of the file, if it is not to be read."""


Routing = IdGrid | Static | Geographic | Flooding | OnDemand | Tree | Python


def machines(
    routing: Routing, placed: Topology, mac: Mac, airing: Duration, ends: Iterable[Destination]
) -> tuple[RoutingMachine, flooding.Flooding]:
    """For a network in which it takes so long to say something: the machine, and how messages to all go.

    ``ends`` are those to whom something is sent.
    """
    said: dict[str, Any] = {f.name: getattr(routing, f.name) for f in fields(routing)}
    said = {name: value for name, value in said.items() if value is not None}
    wait = said.pop("jitter", tempo.jitter(mac, airing))
    to_all = flooding.Flooding(jitter=wait, limit=said.pop("limit", flooding.FLOODING.limit))
    match routing:
        case IdGrid():
            given = {"patience": tempo.patience(airing)} | said
            return overhear.IdGrid(*_shape(placed), **given), to_all
        case Static():
            return static.Static(*_shape(placed)), to_all
        case Geographic():
            if not placed.located:
                raise Fault(
                    "nobody knows where these nodes are", ("kind",), hint="Give nodes a file with x,y."
                )
            pace = tempo.beacons(airing, said.pop("beacons", None))
            return geographic.Geographic(placed.positions, pace, pause=wait, **said), to_all
        case Flooding():
            return to_all, to_all
        case OnDemand():
            return ondemand.OnDemand(jitter=wait, **{"wait": tempo.answer(airing)} | said), to_all
        case Tree():
            pace = tempo.beacons(airing, said.pop("beacons", None))
            said["sinks"] = _sinks(routing, placed, ends)
            return tree.Tree(beacons=pace, pause=wait, **said), to_all
        case Python():
            known = {"topology": placed, "airing": airing, "jitter": wait, "ends": tuple(dict.fromkeys(ends))}
            return made(routing.machine, routing.code, routing.with_, known), to_all


def _shape(placed: Topology) -> tuple[int, int]:
    if placed.columns is None:
        raise Fault("ID-based routing needs nodes of kind grid", ("kind",))
    return len(placed) // placed.columns, placed.columns


def _sinks(routing: Tree, placed: Topology, ends: Iterable[Destination]) -> tuple[NodeId, ...]:
    if routing.sinks is None:
        found = [end for end in ends if isinstance(end, int) and end != BROADCAST]
    else:
        with at("sinks"):
            found = several(placed, routing.sinks)
    if not found:
        raise Fault("a tree needs a sink", hint="Give sinks, or traffic to some node.")
    return tuple(dict.fromkeys(found))
