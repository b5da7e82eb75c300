"""The command ``dds``: writers, readers and rendezvous nodes of the DDS family, over UDP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError
from ..model.instant import MILLISECOND, SECOND, show_instant
from .command import Command, CommandGroup

if TYPE_CHECKING:
    from ..network.overlay.udp import UdpHost
    from ..network.protocols.dds.deployment import DdsDeployment
    from ..network.protocols.dds.request import DdsNotify
    from ..network.protocols.dds.state import DdsState

dds = typer.Typer(
    cls=CommandGroup,
    name="dds",
    help="Samples from writers to readers over UDP, as reliably as each reader asks.",
    no_args_is_help=True,
)

QUIET = 5
"""The number of timeouts that a finished reader waits without input, because its last ACK may be lost."""
REPEATS, EVERY = 600, SECOND // 2
"""Processes are started by hand, so a subscription is repeated for five minutes."""

LEASE = 30.0
"""In seconds; all nodes of a topic have the same."""

Name = Annotated[str, typer.Option("--name", help="This node's name.")]
Listen = Annotated[str, typer.Option("--listen", "-l", metavar="HOST:PORT", help="Where; port 0 is any.")]
Peers = Annotated[
    list[str] | None,
    typer.Option("--peer", "-p", metavar="NAME=HOST:PORT", help="Another node; may be repeated."),
]
OfTopic = Annotated[str, typer.Option("--topic", help="The topic; its samples have one number, 'value'.")]
Writers = Annotated[
    list[str] | None, typer.Option("--writer", metavar="NAME", help="Who publishes; may be repeated.")
]
Via = Annotated[
    str | None,
    typer.Option("--via", metavar="NAME", help="The rendezvous node (DefTDDS); without, none (BLTDDS)."),
]
Rto = Annotated[int, typer.Option("--rto", metavar="MS", min=1, help="The retransmission timeout.")]
Lease = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="Wait no longer for a reader that has not said for so long that it is there; 0: for ever.",
    ),
]
Loss = Annotated[float, typer.Option("--loss", help="The share of datagrams to lose on purpose.")]
Twice = Annotated[float, typer.Option("--twice", help="The share of datagrams to send twice.")]
Late = Annotated[int, typer.Option("--late", metavar="MS", min=0, help="How long to hold some back.")]
Seed = Annotated[int, typer.Option("--seed", help="Of what goes wrong on purpose.")]

WRITER, READER, RENDEZVOUS = "writer", "reader", "rendezvous"


@dds.command(cls=Command)
def write(
    values: Annotated[
        list[float] | None,
        typer.Argument(metavar="[VALUE …]", help="Readings; without any, lines of standard input."),
    ] = None,
    name: Name = WRITER,
    listen: Listen = "127.0.0.1:7400",
    peer: Peers = None,
    topic: OfTopic = "Reading",
    writer: Writers = None,
    via: Via = None,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Between two samples.")] = 0.0,
    subscribers: Annotated[
        int, typer.Option(min=0, help="Begin when so many are known (without --via).")
    ] = 1,
    settle: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="With --via: begin after so long.")
    ] = 3.0,
    retries: Annotated[
        int | None, typer.Option(min=0, help="Give a sample up after so many repetitions; never.")
    ] = None,
    rto: Rto = 400,
    lease: Lease = LEASE,
    loss: Loss = 0.0,
    twice: Twice = 0.0,
    late: Late = 0,
    seed: Seed = 0,
) -> None:
    """Publish readings, and end when every reader that needs them has them."""
    from ..network.protocols.dds import request

    known: set[str] = set()

    def on_delivery(what: Any) -> None:
        if isinstance(what, request.SubscriptionRegistered):
            known.add(what.subscriber)

    async def work(host: UdpHost) -> None:
        host.ask(request.DdsAdvertiseRequest(topic))
        if via is not None:
            await asyncio.sleep(settle)
        await _until(lambda: via is not None or len(known) >= subscribers)
        for value in values if values else _lines():
            await _until(lambda: _held(host.state) < host_ring)
            host.ask(request.DdsPublishRequest(topic, {"value": value}))
            await asyncio.sleep(every)
        await _until(lambda: not _held(host.state))
        done = host.state.counted
        words = {"published": "published", "retransmitted": "sent again", "given up": "given up"}
        typer.echo(", ".join(f"{done[name]} {word}" for name, word in words.items()), err=True)

    deployment = _deployment(topic, writer or [WRITER if name == READER else name], via, rto, lease, retries)
    host_ring = deployment.reliable.ring
    _run(name, deployment, listen, peer, on_delivery, work, (loss, twice, late, seed))


@dds.command(cls=Command)
def read(
    name: Name = READER,
    listen: Listen = "127.0.0.1:0",
    peer: Peers = None,
    topic: OfTopic = "Reading",
    writer: Writers = None,
    via: Via = None,
    level: Annotated[
        str,
        typer.Option(
            metavar="best-effort|full|NUMBER",
            help="How reliably; a number: above it fully, else best effort.",
        ),
    ] = "best-effort",
    percent: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="ARQoS: the share that is to arrive; 100 by NACK.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after so many.")] = None,
    rto: Rto = 400,
    lease: Lease = LEASE,
    loss: Loss = 0.0,
    twice: Twice = 0.0,
    late: Late = 0,
    seed: Seed = 0,
) -> None:
    """Print samples as JSON lines, until stopped."""
    from ..network.protocols.dds import request
    from ..network.protocols.dds.interest import Interest

    asked, printed = _level(level), 0

    def on_delivery(what: Any) -> None:
        nonlocal printed
        if isinstance(what, request.DdsNotify) and (count is None or printed < count):
            printed += 1
            typer.echo(_format_sample(what))

    async def work(host: UdpHost) -> None:
        host.ask(request.DdsSubscribeRequest(topic, Interest(topic=topic, level=asked)))
        if percent is not None:
            host.ask(request.AssureRequest(topic, percent))
        await _until(lambda: count is not None and printed >= count)
        await _quiet(host, QUIET * rto / 1000)

    deployment = _deployment(topic, writer or [WRITER], via, rto, lease)
    _run(name, deployment, listen, peer, on_delivery, work, (loss, twice, late, seed))


@dds.command(cls=Command)
def meet(
    name: Name = RENDEZVOUS,
    listen: Listen = "127.0.0.1:7401",
    peer: Peers = None,
    topic: OfTopic = "Reading",
    writer: Writers = None,
    rto: Rto = 400,
    lease: Lease = LEASE,
    loss: Loss = 0.0,
    twice: Twice = 0.0,
    late: Late = 0,
    seed: Seed = 0,
) -> None:
    """Be the rendezvous node: forward samples to subscribers, until stopped."""

    async def work(_: UdpHost) -> None:
        await asyncio.Event().wait()

    deployment = _deployment(topic, writer or [WRITER], name, rto, lease)
    _run(name, deployment, listen, peer, lambda _: None, work, (loss, twice, late, seed))


def _deployment(
    topic: str, writers: list[str], via: str | None, rto: int, lease: float, retries: int | None = None
) -> DdsDeployment:
    """Return the configuration of all nodes of this topic.

    A publisher that uses a rendezvous node is reliable until that node reports another requirement.
    """
    from ..network.protocols.dds.deployment import DdsDeployment, DiscoverySettings, ReliableSettings
    from ..network.protocols.dds.level import BEST_EFFORT, FULL
    from ..network.protocols.dds.topic import DdsTopic, TopicSet

    return DdsDeployment(
        topics=TopicSet((DdsTopic(0, topic, level=BEST_EFFORT if via is None else FULL),)),
        table=(via or writers[0],),
        publishers={0: tuple(writers)},
        mode="BLTDDS" if via is None else "DefTDDS",
        reliable=ReliableSettings(rto=rto * MILLISECOND, retries=retries),
        discovery=DiscoverySettings(repeats=REPEATS, every=EVERY, lease=round(lease * SECOND) or None),
    )


def _run(
    name: str,
    deployment: DdsDeployment,
    listen: str,
    peers: list[str] | None,
    on_delivery: Callable[[Any], None],
    work: Callable[[UdpHost], Awaitable[None]],
    weather: tuple[float, float, int, int],
) -> None:
    """Run a node until its work is done, and print its address."""
    from ..network.overlay.connection.address import parse_address
    from ..network.overlay.udp import DatagramFaults, UdpHost
    from ..network.overlay.udp import listen as bind
    from ..network.protocols.dds.message import DdsMessage
    from ..network.protocols.dds.participant import DdsParticipant

    loss, twice, late, seed = weather
    host = UdpHost(
        name,
        DdsParticipant(deployment, name),
        DdsMessage,
        dict(_peer(text) for text in peers or []),
        on_delivery,
        DatagramFaults(loss, twice, late * MILLISECOND, seed),
    )

    async def whole() -> None:
        await bind(host, parse_address(listen, "--listen"))
        typer.echo(f"{name} listens on {host.address[0]}:{host.address[1]}", err=True)
        try:
            await work(host)
        finally:
            host.close()

    asyncio.run(whole())


def _peer(text: str) -> tuple[str, tuple[str, int]]:
    from ..network.overlay.connection.address import parse_address

    name, equals, address = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--peer {text}: write it as NAME=HOST:PORT")
    return name, parse_address(address, "--peer")


def _level(text: str) -> float:
    from ..network.protocols.dds.level import BEST_EFFORT, FULL, partial

    named = {"best-effort": BEST_EFFORT, "full": FULL}
    if text in named:
        return named[text]
    try:
        return partial(float(text))
    except ValueError:
        raise UsageError(f"--level {text}: best-effort, full, or a number, the threshold") from None


def _lines() -> list[float]:
    """Return the readings in standard input, one per line."""
    found = []
    for number, line in enumerate(typer.get_text_stream("stdin"), 1):
        if line.strip():
            try:
                found.append(float(line))
            except ValueError:
                raise UsageError(f"line {number} of standard input: '{line.strip()}' is no number") from None
    return found


def _format_sample(notice: DdsNotify) -> str:
    return json.dumps(
        {
            "topic": notice.topic,
            "source": notice.origin,
            "sequence": notice.name.sequence,
            "time": show_instant(notice.time),
            **notice.values,
        }
    )


def _held(state: DdsState) -> int:
    """Return the number of samples that have not arrived at all readers that need them."""
    sent = sum(len(history.sent) for history in state.histories.values())
    return sent + sum(len(writer.ring) for writer in state.writers.values())


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


async def _quiet(host: UdpHost, seconds: float) -> None:
    """Wait until nothing has arrived for ``seconds``."""
    before = -1
    while host.counted["received"] != before:
        before = host.counted["received"]
        await asyncio.sleep(seconds)
