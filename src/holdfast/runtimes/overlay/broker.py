"""Brokers on TCP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ...errors import UsageError
from ...protocols.agents.hosting import Hosting
from ...protocols.cbps.broker import Broker
from ...protocols.cbps.bundle import is_losable
from ...protocols.cbps.context import late, stamped
from .conditions import condition
from .connection.address import Address
from .connection.backoff import Backoff
from .connection.identity import Identity
from .connection.limits import Limits
from .regions import REGIONS
from .shipped.pool import BOUNDS, Bounds, Pool, require_starlark
from .shipped.signing import vouching
from .tcp import BACKOFF, DEFAULTS, TcpHost


@asynccontextmanager
async def listening(
    identity: Identity,
    listen: Address,
    connect: Sequence[Address] = (),
    *,
    limits: Limits = DEFAULTS,
    backoff: Backoff = BACKOFF,
    allowed: Collection[str] = (),
    signers: Collection[Path] = (),
    bounds: Bounds = BOUNDS,
    regions: str = "",
) -> AsyncIterator[tuple[TcpHost, Address]]:
    """A broker that takes calls and calls others, and where it listens.  Of the code that subscribers ship it
    runs what is allowed, by digest or by the public keys of its signers, within bounds.  ``regions`` are told
    to subscribers whose definitions have none of their own."""
    if allowed or signers:
        require_starlark()
    pool = Pool(lambda worked: node.ask(worked), bounds)
    node = TcpHost(
        identity,
        Hosting(
            Broker(condition, name=identity.name, limit=limits.max_frame),
            allowed=frozenset(allowed),
            vouches=vouching(signers),
        ),
        deliver=pool.take,
        limits=limits,
        backoff=backoff,
        losable=is_losable,
        stamp=stamped,
        late=late,
        counted=lambda state: state.account,
        known={REGIONS: regions},
    )
    node.start()
    try:
        address = await _listen(node, listen)
        for other in connect:
            node.call(other)
        yield node, address
    finally:
        await node.stop()
        await pool.stop()


async def _listen(node: TcpHost, address: Address) -> Address:
    try:
        return await node.listen(address)
    except OSError as error:
        raise UsageError(f"--listen {address}: {error.strerror or error}") from error
