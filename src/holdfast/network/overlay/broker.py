"""The broker of the content-based family on TCP, with workers for shipped code."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ...errors import UsageError
from ..protocols.agents.host import AgentHost
from ..protocols.cbps.broker import CbpsBroker
from ..protocols.cbps.bundle import is_droppable
from ..protocols.cbps.context import add_output_delay, stamp_arrival
from .conditions import compile_condition
from .connection.address import Address
from .connection.backoff import Backoff
from .connection.identity import Identity
from .connection.limits import ConnectionLimits
from .regions import REGIONS
from .shipped.pool import BOUNDS, WorkerBounds, WorkerPool, require_starlark
from .shipped.signing import make_verifier
from .tcp import BACKOFF, DEFAULTS, TcpHost


@asynccontextmanager
async def run_broker(
    identity: Identity,
    listen: Address,
    connect: Sequence[Address] = (),
    *,
    limits: ConnectionLimits = DEFAULTS,
    backoff: Backoff = BACKOFF,
    allowed: Collection[str] = (),
    signers: Collection[Path] = (),
    bounds: WorkerBounds = BOUNDS,
    regions: str = "",
) -> AsyncIterator[tuple[TcpHost, Address]]:
    """Run a broker; yield its host and the address on which it listens.

    The broker runs shipped code only if its digest is in ``allowed`` or a public key in ``signers`` has
    signed it, within ``bounds``. ``regions`` are sent to subscribers whose definitions have no regions.
    """
    if allowed or signers:
        require_starlark()
    pool = WorkerPool(lambda worked: node.ask(worked), bounds)
    broker = CbpsBroker(compile_condition, name=identity.name, limit=limits.max_frame)
    node = TcpHost(
        identity,
        AgentHost(broker, allowed=frozenset(allowed), is_trusted=make_verifier(signers)),
        deliver=pool.carry_out,
        limits=limits,
        backoff=backoff,
        losable=is_droppable,
        stamp=stamp_arrival,
        late=add_output_delay,
        machine_counters=lambda state: state.account,
        known={REGIONS: regions},
    )
    node.start()
    try:
        try:
            address = await node.listen(listen)
        except OSError as error:
            raise UsageError(f"--listen {listen}: {error.strerror or error}") from error
        for other in connect:
            node.call(other)
        yield node, address
    finally:
        await node.stop()
        await pool.stop()
