"""A broker as a process, and how to ask it what it has done."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ...errors import UsageError
from ...protocols.cbps.broker import Broker
from ...protocols.cbps.bundle import is_losable
from .address import Address
from .backoff import Backoff
from .client import connected
from .conditions import condition
from .identity import Identity
from .limits import Limits
from .link import log
from .tcp import BACKOFF, DEFAULTS, TcpHost

T = TypeVar("T")


async def until_stopped(work: Coroutine[Any, Any, T]) -> T | None:
    """Run something; SIGTERM and SIGINT end it in order."""
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def listening(
    identity: Identity,
    listen: Address,
    connect: Sequence[Address] = (),
    *,
    limits: Limits = DEFAULTS,
    backoff: Backoff = BACKOFF,
) -> AsyncIterator[tuple[TcpHost, Address]]:
    """A broker that takes calls and calls others, and where it listens."""
    machine = Broker(condition)
    node = TcpHost(
        identity,
        machine,
        limits=limits,
        backoff=backoff,
        losable=is_losable,
        counted=lambda state: state.account,
    )
    node.start()
    try:
        address = await node.listen(listen)
        for other in connect:
            node.call(other)
        yield node, address
    finally:
        await node.stop()


async def serve(
    identity: Identity,
    listen: Address,
    connect: Sequence[Address],
    limits: Limits,
    backoff: Backoff,
    is_there: Callable[[Address], None],
) -> None:
    """A broker as a process, until it is cancelled."""
    _log_to_stderr()
    try:
        async with listening(identity, listen, connect, limits=limits, backoff=backoff) as (node, address):
            if not (address.is_local or identity.token or identity.certificates.of_callers):
                log.warning("%s: whoever can reach it may publish and subscribe; see --token-file", address)
            is_there(address)
            try:
                await node.failed
            finally:
                log.info("%s", ", ".join(f"{n:,} {what}" for what, n in node.account().items() if n))
    except OSError as error:
        raise UsageError(f"--listen {listen}: {error.strerror or error}") from error


async def inquire(address: Address, identity: Identity) -> dict[str, Any]:
    """What a running broker has done so far."""
    async with connected(address, identity, deliver=lambda what: None) as node:
        return await node.inquire()


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
