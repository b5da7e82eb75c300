"""A broker as a process, and the inquiry of its statistics."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from ..client import Connector
from ..connection.address import Address
from ..connection.link import log
from ..tcp import TcpHost

T = TypeVar("T")


async def until_stopped(work: Coroutine[Any, Any, T]) -> T | None:
    """Run a coroutine to its end. SIGTERM and SIGINT cancel it; the result is then ``None``."""
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


async def serve(
    broker: AbstractAsyncContextManager[tuple[TcpHost, Address]], is_there: Callable[[Address], None]
) -> None:
    """Run a broker until it is cancelled. ``is_there`` is called with its address when it listens."""
    _log_to_stderr()
    async with broker as (node, address):
        identity = node.identity
        if not (address.is_local or identity.token or identity.certificates.of_callers):
            warning = "%s: every host that can reach it may publish and subscribe; see --token-file"
            log.warning(warning, address)
        is_there(address)
        try:
            await node.failed
        finally:
            log.info("%s", ", ".join(f"{n:,} {what}" for what, n in node.account().items() if n))


async def inquire(connect: Connector, about: str = "") -> dict[str, Any]:
    """Return the statistics of a running broker, or the value that it stores under the key ``about``."""
    async with connect(deliver=lambda _: None) as node:
        return await node.unless_failed(node.inquire(about))


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
