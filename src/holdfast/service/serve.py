"""The service as a process: feeds, sinks and the web server, created from the configuration.

To add a kind of feed or sink, create it in ``feeds_of`` or ``sinks_of``.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from ..errors import HoldfastError, UsageError
from ..model.instant import Instant
from ..network.overlay.connection.address import parse_address
from .api.app import application
from .api.guard import LOOPBACK
from .api.site import Site
from .config import Config, limits_of, secret_of, settings_of, users_of
from .core import DefinitionChange
from .feeds.feed import Feed
from .feeds.mapping import Pattern, Route, require_sense
from .feeds.mqtt import MqttFeed
from .feeds.overlay import OverlayFeed
from .service import Service, wall_clock
from .sinks.delivery import SinkDelivery
from .sinks.http import Alertmanager, Webhook
from .sinks.mqtt import MqttSink
from .sinks.parquet import ParquetSink
from .sinks.sink import Sink
from .supervision import Supervised

log = logging.getLogger("holdfast.service")

_TURN = 0.0005
"""Seconds that a thread computes before another gets the interpreter. A message passes through six
threads."""
_COLLECT = (2_000, 20, 20)
"""Garbage is collected often and in small steps, because all threads wait meanwhile."""
DEFAULT_ROUTE = "holdfast/readings/{topic}/{source}"
DEFAULT_EVENTS = "holdfast/events/{subscription}/{scope}"
DEFAULT_STATE = "holdfast/state/{subscription}/{scope}"


@dataclass(frozen=True)
class Address:
    """The host and port on which the service listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(text: str) -> Address:
    """Parse ``HOST:PORT``. Raises ``UsageError`` for any other text.

    >>> str(address_of("[::1]:8080"))
    '[::1]:8080'
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise UsageError(f"'{text}' is no address; write HOST:PORT, such as 127.0.0.1:8080")
    return Address(host.strip("[]"), int(port))


@dataclass(frozen=True)
class ServicePlan:
    """The options of ``holdfast serve``: definition, data folder, address and configuration."""

    definition: Path
    data: Path
    listen: Address
    config: Config = field(default_factory=Config)
    folder: Path = Path()
    """The folder to which paths of the configuration are relative."""
    restart: Sequence[str] = ()
    accept_loss: bool = False
    """Continue without the missing parts of the log."""
    feeds: Sequence[Callable[[Service], Feed]] = ()
    """Functions that create further feeds for a service."""
    clock: Callable[[], Instant] = wall_clock


def require_safe(plan: ServicePlan) -> None:
    """Refuse an unsafe configuration: the network without users, or half of a TLS configuration."""
    if plan.listen.host not in LOOPBACK and not plan.config.user:
        raise UsageError(
            f"--listen {plan.listen}: whoever can reach it could read and change everything; add a [[user]] "
            "to serve.toml first (holdfast serve --new-token NAME makes one), or listen on 127.0.0.1"
        )
    if (plan.config.certificate is None) != (plan.config.key is None):
        raise UsageError("serve.toml: TLS needs both certificate and key")


def feeds_of(plan: ServicePlan, service: Service) -> list[Feed]:
    """Create the feeds of a plan. They do not run yet."""
    found: list[Feed] = [make(service) for make in plan.feeds]
    for part in plan.config.mqtt:
        routes = [one.route() for one in part.map] or [Route(Pattern(DEFAULT_ROUTE))]
        for route in routes:
            require_sense(route, service.topics)
        found.append(MqttFeed(service, part.broker(plan.folder), routes))
    for overlay in plan.config.overlay:
        address = parse_address(overlay.connect, "connect")
        found.append(OverlayFeed(service, address, overlay.token(plan.folder)))
    for member in plan.config.dds:
        from .dds import Membership  # optional dependency
        from .feeds.dds import DdsFeed

        found.append(DdsFeed(service, Membership(member.domain, member.interface)))
    return found


def sinks_of(plan: ServicePlan, service: Service) -> list[Sink]:
    """Create the sinks of a plan. They do not run yet."""
    config, clock = plan.config, service.clock
    found: list[Sink] = []
    for broker in config.mqtt:
        events, state = broker.events, broker.state
        if events is None and state is None:
            events, state = DEFAULT_EVENTS, DEFAULT_STATE
        if events or state:
            found.append(MqttSink(broker.broker(plan.folder), events, state))
    for member in config.dds:
        from .dds import Membership
        from .sinks.dds import DdsSink

        found.append(DdsSink(Membership(member.domain, member.interface)))
    for hook in config.webhook:
        found.append(Webhook(hook.name, hook.url, hook.headers, secret_of(hook, plan.folder), clock))
    for manager in config.alertmanager:
        found.append(Alertmanager(manager.name, manager.url, manager.labels, clock))
    for part in config.parquet:
        found.append(ParquetSink(part.name, plan.folder / part.folder))
    return found


@asynccontextmanager
async def serving(plan: ServicePlan) -> AsyncIterator[tuple[Site, Address]]:
    """Run a service with its feeds, sinks and web server. Yields the site and its address."""
    require_safe(plan)
    _text(plan.definition)  # fails before the data folder is created
    service = Service(
        plan.data, plan.definition.parent, settings_of(plan.config), plan.clock, accept_loss=plan.accept_loss
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(service.running())
        await _load_definition(plan, service)
        feeds, sinks = feeds_of(plan, service), sinks_of(plan, service)
        site = Site(
            service,
            plan.definition.parent,
            (lambda changed: _save(plan.definition, changed)) if plan.config.edit else None,
            None if plan.config.files is None else plan.folder / plan.config.files,
            users_of(plan.config),
            tuple(plan.config.hosts),
            limits_of(plan.config),
            [SinkDelivery(service, sink) for sink in sinks],
            feeds,
        )
        service.store.retain_sinks(sink.name for sink in sinks)
        server, listening = _server(plan, site)
        site.tasks = {id(one): Supervised(name, one.run) for one, name in _names(site)}
        for sink in site.sinks:
            stack.push_async_callback(sink.close)
        outs = [asyncio.create_task(site.tasks[id(sink)].run()) for sink in site.sinks]
        stack.push_async_callback(_cancel, outs)
        page = asyncio.create_task(server.serve([listening]))
        stack.push_async_callback(_stop_server, server, page)
        await service.attach_feeds(feeds)
        ins = [asyncio.create_task(site.tasks[id(feed)].run()) for feed in feeds]
        stack.push_async_callback(_cancel, ins)
        while not server.started:
            await asyncio.sleep(0.01)
        host, port = listening.getsockname()[:2]
        yield site, Address(host, port)


def _names(site: Site) -> Iterator[tuple[Any, str]]:
    """Yield the feeds and sinks with their names for log messages."""
    for feed in site.feeds:
        yield feed, f"feed {feed.status()['name']}"
    for sink in site.sinks:
        yield sink, f"sink {sink.sink.name}"


async def _load_definition(plan: ServicePlan, service: Service) -> None:
    """Run the current content of the definition's file, with the files that it names.

    If only a named file is missing or wrong, the service continues with its copies.
    """
    try:
        await service.take(lambda: _text(plan.definition), plan.restart)
    except HoldfastError as error:
        if service.core.definition != _text(plan.definition):
            raise
        log.warning("the files that the definition names go on as they were: %s", error)


async def serve(plan: ServicePlan, is_there: Callable[[Address], None]) -> None:
    """Serve until cancelled. ``is_there`` is called once with the address; SIGHUP reloads the definition."""
    sys.setswitchinterval(_TURN)
    requested = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGHUP, requested.set
    )  # the signal may arrive during the start
    async with serving(plan) as (site, address):
        gc.freeze()  # objects of the start live as long as the process
        gc.set_threshold(*_COLLECT)
        reloading = asyncio.create_task(_reload(plan, site.service, requested))
        is_there(address)
        try:
            raise await site.service.failed
        finally:
            reloading.cancel()


async def _reload(plan: ServicePlan, service: Service, requested: asyncio.Event) -> None:
    """Reload the definition at each request. A definition with errors changes nothing."""
    while await requested.wait():
        requested.clear()
        try:
            change = await service.take(lambda: _text(plan.definition))
        except HoldfastError as error:
            log.warning("the definition goes on as it was: %s", error)
            continue
        except Exception:  # an unexpected error must not prevent the next reload
            log.exception("the definition goes on as it was")
            continue
        description = (
            "as it was"
            if change is None
            else ", ".join(_describe(change)) or "with files that make no change"
        )
        log.info("the definition was read again: %s", description)


def _describe(change: DefinitionChange) -> list[str]:
    """Return a phrase for each condition that begins, ends or changes."""
    parts = {"begins": change.added, "ends": change.removed, "changes": change.changed}
    return [f"{name} {word}" for word, names in parts.items() for name in names]


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _stop_server(server: uvicorn.Server, task: asyncio.Task[Any]) -> None:
    server.should_exit = server.force_exit = True
    await asyncio.gather(task, return_exceptions=True)


def _server(plan: ServicePlan, site: Site) -> tuple[uvicorn.Server, socket.socket]:
    config = plan.config
    settings = uvicorn.Config(
        application(site),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        timeout_keep_alive=15,
        limit_concurrency=5_000,
        h11_max_incomplete_event_size=32 << 10,
        ssl_certfile=None if config.certificate is None else plan.folder / config.certificate,
        ssl_keyfile=None if config.key is None else plan.folder / config.key,
    )
    server = uvicorn.Server(settings)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # they are the command's
    family = socket.AF_INET6 if ":" in plan.listen.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((plan.listen.host, plan.listen.port))
    except OSError as error:
        listening.close()
        raise UsageError(f"--listen {plan.listen}: {error.strerror}") from error
    return server, listening


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a definition: it is not UTF-8 text") from error


def _save(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise UsageError(f"the definition {path} cannot be changed: {error.strerror}") from error
