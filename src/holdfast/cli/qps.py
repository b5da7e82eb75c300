"""The command ``qps``: a node of a Quad-PubSub network, over UDP."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError
from ..model.instant import SECOND
from ..model.space import Point, Rectangle

if TYPE_CHECKING:
    from ..network.protocols.qps.deployment import QpsDeployment
    from ..network.protocols.qps.tree import ScopeTree


def qps(
    values: Annotated[
        list[float] | None, typer.Argument(metavar="[VALUE …]", help="Readings to publish, of this place.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="This node's name.")] = "node",
    at: Annotated[str, typer.Option("--at", metavar="X,Y", help="Where it stands.")] = "0,0",
    listen: Annotated[
        str, typer.Option("--listen", "-l", metavar="HOST:PORT", help="Where; port 0 is any.")
    ] = "127.0.0.1:7500",
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", "-p", metavar="NAME@X,Y=HOST:PORT", help="Another node; may be repeated."),
    ] = None,
    relay: Annotated[
        bool,
        typer.Option(
            "--relay", help="Peers are only those near by: what is for others goes from node to node."
        ),
    ] = False,
    side: Annotated[float, typer.Option(help="Of the square of space, from 0,0.")] = 100.0,
    levels: Annotated[int, typer.Option(help="Of the tree of squares.")] = 3,
    topic: Annotated[str, typer.Option("--topic", help="Its events have one number, 'value'.")] = "Reading",
    want: Annotated[
        list[str] | None,
        typer.Option("--want", metavar="X,Y,X,Y", help="Print the events of a region; may be repeated."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="How much longer than straight ways may be.")] = 1.5,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Between two readings.")] = 1.0,
    settle: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Before the first.")] = 3.0,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after so many.")] = None,
) -> None:
    """Be a node of a network by topic and place: publish, subscribe, and act for brokers, until stopped."""
    from ..network.overlay.connection.address import parse_address
    from ..network.overlay.points import Alive, PointsNode
    from ..network.overlay.relays import Relays, Wire
    from ..network.overlay.udp import UdpHost
    from ..network.overlay.udp import listen as bind
    from ..network.protocols.qps import request
    from ..network.protocols.qps.deployment import QpsDeployment, check_epsilon
    from ..network.protocols.qps.envelope import Envelope
    from ..network.protocols.qps.mapping import RoleMapping
    from ..network.protocols.qps.physical import PhysicalNode
    from ..network.protocols.qps.tree import ScopeTree

    place = _numbers(at, 2, "--at")
    others = [_peer(text) for text in peer or []]
    deployment = QpsDeployment(
        tree=ScopeTree((0.0, 0.0), side, levels),
        topics=(topic,),
        renewal=2 * SECOND,
        mapping=RoleMapping(check=2 * SECOND, patience=SECOND),
    )
    near = _placed(name, others, deployment.tree)
    inner = PhysicalNode(deployment, place)
    machine: PointsNode | Relays = PointsNode(inner, name, {name: place} | near)
    wire: Any = Envelope | Alive
    if relay:
        machine, wire = Relays(inner, name, place, near, Envelope), Wire
    wanted = [_region(text, deployment) for text in want or []]
    check_epsilon(epsilon)
    _require_numbers(values or ())
    printed, enough = 0, asyncio.Event()

    def on_delivery(what: Any) -> None:
        nonlocal printed
        if isinstance(what, request.QpsNotify) and (count is None or printed < count):
            printed += 1
            typer.echo(
                json.dumps(
                    {
                        "topic": what.topic,
                        "source": what.publisher,
                        "x": what.location[0],
                        "y": what.location[1],
                        **what.values,
                    }
                )
            )
            if printed == count:
                enough.set()

    async def whole() -> None:
        host = UdpHost(name, machine, wire, {who: where for who, _, where in others}, on_delivery)
        await bind(host, parse_address(listen, "--listen"))
        typer.echo(f"{name} listens on {host.address[0]}:{host.address[1]}", err=True)
        for region in wanted:
            host.ask(request.QpsSubscribeRequest(name, topic, region, epsilon))
        if values:
            host.ask(request.QpsAdvertiseRequest(name, topic, _spot(place, side)))
            await asyncio.sleep(settle)
        for value in values or ():
            host.ask(request.QpsPublishRequest(name, topic, place, {"value": value}))
            await asyncio.sleep(every)
        try:
            if count is not None or not values or wanted:
                await enough.wait()
        finally:
            host.close()

    asyncio.run(whole())


def _spot(place: Point, side: float) -> Rectangle:
    half = side / 2000
    low = tuple(min(max(c - half, 0.0), side - 2 * half) for c in place)
    return Rectangle(low, tuple(c + 2 * half for c in low))


def _peer(text: str) -> tuple[str, Point, tuple[str, int]]:
    from ..network.overlay.connection.address import parse_address

    who, equals, address = text.partition("=")
    name, is_placed, where = who.partition("@")
    if not (equals and is_placed and name):
        raise UsageError(f"--peer {text}: write it as NAME@X,Y=HOST:PORT")
    return name, _numbers(where, 2, "--peer"), parse_address(address, "--peer")


def _placed(name: str, others: Sequence[tuple[str, Point, Any]], tree: ScopeTree) -> dict[str, Point]:
    """Return the positions of the peers, which must have distinct names."""
    found: dict[str, Point] = {}
    for who, where, _ in others:
        if who == name or who in found:
            whose = "this node's own" if who == name else "that of two peers"
            raise UsageError(f"--peer {who}: the name is {whose}; each node needs one of its own")
        tree.inside(where)
        found[who] = where
    return found


def _region(text: str, deployment: QpsDeployment) -> Rectangle:
    corners = _numbers(text, 4, "--want")
    region = Rectangle(corners[:2], corners[2:])
    try:
        deployment.region(region)
    except UsageError as error:
        raise UsageError(f"--want {text}: {error}") from None
    return region


def _require_numbers(values: Iterable[float]) -> None:
    if not all(map(math.isfinite, values)):
        raise UsageError("a reading is a number; what is missing is not published")


def _numbers(text: str, many: int, option: str) -> tuple[float, ...]:
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = ()
    if len(found) != many:
        raise UsageError(
            f"{option} {text}: {many} numbers with commas between them, such as {','.join(['10'] * many)}"
        )
    return found
