"""The commands ``broker``, ``publish`` and ``subscribe`` of the overlay."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError, did_you_mean
from ..kinds.relation.condition import RelationCondition
from .options import load, require_choice

if TYPE_CHECKING:
    from ..definition.app import App
    from ..network.overlay.client import Connector
    from ..network.overlay.connection.identity import Identity
    from ..network.protocols.agents.follower import ReportFollower

HERE = "127.0.0.1:4653"

Connect = Annotated[str, typer.Option("--connect", "-c", metavar="HOST:PORT", help="The broker.")]
Named = Annotated[
    str | None, typer.Option("--name", help="Under which name; each is used once at a time. A free one.")
]
Token = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="PATH", help="A secret that both ends must know; it is not sent."),
]
Cert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="PATH", help="The certificate to show (PEM).")
]
PrivateKey = Annotated[Path | None, typer.Option("--tls-key", metavar="PATH", help="Its key (PEM).")]
Authority = Annotated[
    Path | None,
    typer.Option("--tls-ca", metavar="PATH", help="Call with TLS; trust what this authority signed (PEM)."),
]
Wire = Annotated[str, typer.Option("--wire", metavar="msgpack|xml", help="The language to speak.")]
MaxFrame = Annotated[int, typer.Option("--max-frame", metavar="BYTES", help="The longest message.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for a broker that is not there yet.")]
Definition = Annotated[
    Path | None, typer.Argument(metavar="[APP.hf]", help="The definition.", show_default=False)
]


def broker(
    name: Annotated[str | None, typer.Option("--name", help="Its name, unique in the overlay.")] = None,
    listen: Annotated[
        str, typer.Option("--listen", "-l", metavar="HOST:PORT", help="Where to take calls; port 0 is any.")
    ] = HERE,
    connect: Annotated[
        list[str] | None,
        typer.Option("--connect", "-c", metavar="HOST:PORT", help="A broker to call; may be repeated."),
    ] = None,
    queue: Annotated[int, typer.Option("--queue", help="How many messages wait for a slow peer.")] = 10_000,
    when_full: Annotated[
        str, typer.Option("--when-full", metavar="drop-oldest|disconnect", help="What to do when more would.")
    ] = "drop-oldest",
    max_frame: MaxFrame = 1 << 20,
    peers: Annotated[int, typer.Option("--peers", min=1, help="How many connections at a time.")] = 1_000,
    heartbeat: Annotated[
        float, typer.Option("--heartbeat", metavar="SECONDS", min=0.001, help="Silence after which to ask.")
    ] = 10.0,
    retry: Annotated[
        float, typer.Option("--retry", metavar="SECONDS", min=0.001, help="The longest wait between calls.")
    ] = 5.0,
    token_file: Token = None,
    tls_cert: Cert = None,
    tls_key: PrivateKey = None,
    tls_ca: Authority = None,
    tls_callers: Annotated[
        bool, typer.Option("--tls-callers", help="Callers, too, must show what --tls-ca signed.")
    ] = False,
    regions: Annotated[
        Path | None,
        typer.Option(
            "--regions",
            metavar="GAZETTEER",
            help="The regions of the network, for subscribers that say 'scope regions' and have none.",
        ),
    ] = None,
    allow_code: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-code",
            metavar="DIGEST|FILE",
            help="A strategy that subscribers may ship to agents here; may be repeated. None.",
        ),
    ] = None,
    allow_signer: Annotated[
        list[Path] | None,
        typer.Option(
            "--allow-signer",
            metavar="FILE",
            help="The public key of somebody whose strategies they may ship; may be repeated. Nobody's.",
        ),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option("--ask", metavar="HOST:PORT", help="Print what a running broker has done, and end."),
    ] = None,
) -> None:
    """Forward events to subscribers: a broker, alone or joined with others, until stopped.

    Prints the address on which it listens to standard output, and connections and disconnections to the error
    stream.
    """
    import json

    from ..model.instant import SECOND
    from ..network.overlay.broker import run_broker
    from ..network.overlay.client import connect_client
    from ..network.overlay.commands.serve import inquire, serve
    from ..network.overlay.connection.address import parse_address
    from ..network.overlay.connection.backoff import Backoff
    from ..network.overlay.connection.limits import ConnectionLimits
    from ..network.overlay.connection.outbox import POLICIES
    from ..network.overlay.regions import regions as of_network

    if ask is not None:
        identity = _identity("client", None, token_file, tls_cert, tls_key, tls_ca)
        answer = _run(inquire(partial(connect_client, parse_address(ask, "--ask"), identity)))
        typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    if name is None:
        raise UsageError("a broker needs a name, unique in its overlay: --name NAME")
    require_choice("--when-full", when_full, [*POLICIES])
    limits = ConnectionLimits(
        max_frame=max_frame,
        queue=queue,
        when_full=when_full,  # type: ignore[arg-type]
        peers=peers,
        heartbeat=int(heartbeat * SECOND),
    )
    it = run_broker(
        _identity("broker", name, token_file, tls_cert, tls_key, tls_ca, of_callers=tls_callers),
        parse_address(listen, "--listen"),
        [parse_address(text, "--connect") for text in connect or []],
        limits=limits,
        backoff=Backoff(most=int(retry * SECOND)),
        allowed=[_digest(one) for one in allow_code or []],
        signers=allow_signer or (),
        regions="" if regions is None else of_network(regions),
    )
    _run(serve(it, lambda address: typer.echo(f"listening on {address}")))


def publish(
    events: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EVENT …]", help="Events as JSON; without any, lines of standard input."),
    ] = None,
    connect: Connect = HERE,
    definition: Annotated[
        Path | None, typer.Option("--topics", metavar="APP.hf", help="Declares the topics, and their kinds.")
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Of events that do not say theirs.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Of events that do not say theirs.")] = None,
    settle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How long subscriptions may take to come, once a topic is advertised.",
        ),
    ] = 0.3,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first line that is no event.")
    ] = False,
    filters: Annotated[
        bool, typer.Option("--filter", help="Drop here already what nobody wants to hear.")
    ] = False,
    wait: Wait = False,
    name: Named = None,
    wire: Wire = "msgpack",
    max_frame: MaxFrame = 1 << 20,
    token_file: Token = None,
    tls_cert: Cert = None,
    tls_key: PrivateKey = None,
    tls_ca: Authority = None,
) -> None:
    """Send events to a broker: JSON with source, topic, time (else now) and attributes, one a line."""
    from ..network.overlay.commands.lines import LineReader
    from ..network.overlay.commands.publish import LinePublisher
    from ..network.protocols.cbps.client import PUBLISHER_KINDS

    lines = LineReader(_topics(definition), topic, source)
    identity = _identity("publisher", name, token_file, tls_cert, tls_key, tls_ca, wire)
    client = _client(connect, identity, max_frame, wait)
    if filters:
        client = partial(client, accepts=PUBLISHER_KINDS)
    publishing = LinePublisher(client, lines, settle, strict, lambda message: typer.echo(message, err=True))
    if (done := _run(publishing.publish(events or None))) is not None:
        typer.echo(done, err=True)
    if publishing.has_failed:
        raise typer.Exit(1)


def subscribe(
    definition: Definition = None,
    connect: Connect = HERE,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Of the definition only these.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="EXPRESSION", help="Without a definition: 'topic == \"T\" && value > 40'."
        ),
    ] = None,
    ship: Annotated[
        Path | None,
        typer.Option(
            "--ship", metavar="FILE", help="Let agents watch relationships by this strategy (Starlark)."
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option("--sign", metavar="KEY", help="The private key with which to sign what is shipped."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="End after so many notifications.")
    ] = None,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs",
            help="When it is to end, report no more starts, and stay until every reported start has ended.",
        ),
    ] = False,
    wait: Wait = False,
    name: Named = None,
    wire: Wire = "msgpack",
    max_frame: MaxFrame = 1 << 20,
    token_file: Token = None,
    tls_cert: Cert = None,
    tls_key: PrivateKey = None,
    tls_ca: Authority = None,
) -> None:
    """Print what happens as JSON lines, until stopped: the starts and ends of conditions, or matches.

    If events may have been lost while a condition was active, it is reported with the status "unknown".
    """
    from ..network.overlay.commands.subscribe import subscribe as hear

    if sign is not None and ship is None:
        raise UsageError("--sign signs what --ship ships: give that, too")
    identity = _identity("subscriber", name, token_file, tls_cert, tls_key, tls_ca, wire)
    client = _client(connect, identity, max_frame, wait)
    app = None if definition is None else _among_regions(definition, client)
    requests, followed = _requests(app, only or [], where, ship, sign)
    _run(
        hear(
            client,
            requests,
            followed,
            count=count,
            subscribed=lambda at: typer.echo(f"subscribed at '{at}'", err=True),
            pairs=pairs,
        )
    )


def _among_regions(definition: Path, client: Connector) -> App:
    """Load a definition. If it uses regions and declares none, add those of the broker."""
    from ..definition.parse import load as parsed
    from ..lang.scopes import lacks_regions
    from ..network.overlay.commands.serve import inquire
    from ..network.overlay.regions import REGIONS, with_regions

    app = parsed(definition)
    if not lacks_regions(app.statements):
        return app
    if (answer := _run(inquire(client, REGIONS))) is None:
        raise typer.Exit
    if not answer.get(REGIONS):
        raise UsageError(
            f"{definition} says 'scope regions' and declares none, and broker '{answer['name']}' has none: "
            "declare some, or start the broker with --regions"
        )
    return with_regions(app, answer[REGIONS])


def _requests(
    app: App | None, only: list[str], where: str | None, ship: Path | None, sign: Path | None
) -> tuple[list[Any], dict[str, ReportFollower]]:
    """Return the requests to the broker, and the followers of relationships that agents monitor."""
    from ..network.overlay.commands.content_filter import content_filter
    from ..network.protocols.cbps.client import subscribe

    if (app is None) == (where is None):
        raise UsageError("give a definition (APP.hf), or a filter: --where 'topic == \"T\" && value > 40'")
    if where is not None:
        if only or ship:
            raise UsageError(f"--{'only' if only else 'ship'} goes with a definition; --where has none")
        return [subscribe("where", content_filter(where))], {}
    from ..definition.check import check
    from ..network.overlay.commands.agent_requests import agent_requests
    from ..network.overlay.requests import requests_of

    assert app is not None
    found = requests_of(app)
    for name in only:
        if name not in found:
            hint = did_you_mean(name, found) or f"There is {', '.join(found) or 'none'}."
            raise UsageError(f"--only {name}: {app.file} has no subscription of that name. {hint}")
    if not found:
        raise UsageError(f"{app.file} subscribes to nothing: add a filter or a state")
    wanted = {name: request for name, request in found.items() if not only or name in only}
    active = [one for one in check(app).of(RelationCondition) if one.name in wanted and (one.using or ship)]
    if ship and not active:
        raise UsageError(f"--ship {ship}: {app.file} has no relationship that could be watched by it")
    code = None if ship is None else _text(ship)
    submitted, followed = agent_requests(active, code, _signature(code, sign))
    rest = [request for name, request in wanted.items() if name not in followed]
    return [*rest, *submitted], followed


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from error


def _signature(code: str | None, key: Path | None) -> str:
    from ..network.overlay.shipped.signing import sign_digest
    from ..network.protocols.agents.code_store import digest_of

    return "" if code is None or key is None else sign_digest(digest_of(code), key)


def _digest(given: str) -> str:
    """Return a digest in hexadecimal, or the digest of a named file."""
    import re

    from ..network.protocols.agents.code_store import digest_of

    if re.fullmatch(r"[0-9a-f]{64}", given):
        return given
    if not Path(given).is_file():
        raise UsageError(f"--allow-code {given}: neither a digest (64 characters of 0-9a-f) nor a file")
    return digest_of(_text(Path(given)))


def _topics(definition: Path | None) -> dict[str, Any]:
    return {} if definition is None else {topic.name: topic for topic in load(definition).topics}


def _identity(
    role: str,
    name: str | None,
    token_file: Path | None,
    cert: Path | None,
    key: Path | None,
    ca: Path | None,
    wire: str = "msgpack",
    *,
    of_callers: bool = False,
) -> Identity:
    from ..network.overlay.client import free_name
    from ..network.overlay.connection.handshake import read_token
    from ..network.overlay.connection.identity import Identity
    from ..network.overlay.connection.tls import Certificates
    from ..network.overlay.wire.codec import LANGUAGES

    require_choice("--wire", wire, [*LANGUAGES])
    return Identity(
        name or free_name(role),
        "broker" if role == "broker" else "client",
        None if token_file is None else read_token(token_file),
        Certificates(cert, key, ca, of_callers),
        wire,  # type: ignore[arg-type]
    )


def _client(broker: str, identity: Identity, max_frame: int, wait: bool) -> Connector:
    """Return a function that connects to the broker at an address."""
    from ..network.overlay.client import connect_client
    from ..network.overlay.connection.address import parse_address
    from ..network.overlay.connection.limits import ConnectionLimits

    address, limits = parse_address(broker, "--connect"), ConnectionLimits(max_frame=max_frame)
    return partial(connect_client, address, identity, limits=limits, patient=wait)


def _run(work: Any) -> Any:
    """Run a coroutine until it ends, or SIGTERM or Ctrl-C stops it. Return its result."""
    import asyncio

    from ..network.overlay.commands.serve import until_stopped

    return asyncio.run(until_stopped(work))
