"""The task that keeps a connection to an address and restores it after a loss."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import ssl
from errno import errorcode
from typing import TYPE_CHECKING

from ....model.instant import SECOND
from ..wire.codec import codec
from ..wire.fault import ConnectionRefused
from .address import Address
from .backoff import Backoff
from .handshake import NONCE, Caller
from .identity import Identity
from .link import Link, LinkEnding, log

if TYPE_CHECKING:
    from ..tcp import TcpHost


async def keep_calling(
    owner: TcpHost, identity: Identity, backoff: Backoff, address: Address, *, patient: bool
) -> ConnectionRefused:
    """Call an address, and call again whenever the connection is lost.

    Return the reason when further calls cannot succeed. Unless ``patient``, the first call must be answered.
    A client stops when the peer asks it not to call again. A broker that has another connection with this
    peer calls when that connection is lost.
    """
    failures, instance, refusal = 0, secrets.token_bytes(NONCE), ""
    while True:
        try:
            ending, peer = await _call(owner, identity, address, instance)
        except OSError as error:
            ending, peer = LinkEnding(_call_error(error, address)), None
        if (ending.final and identity.role == "client") or not (peer or patient):
            return ConnectionRefused(f"{address}: {ending.why}")
        patient = True
        failures = 1 if peer else failures + 1
        if failures == 1 and not (ending.final and ending.why == refusal):
            log.warning("%s: %s; calling again", address, ending.why)
        refusal = ending.why if ending.final else ""
        wait = backoff.most if ending.final else backoff.wait(failures, random.random())
        if peer and ending.final and (other := owner.links.get(peer)):
            await asyncio.shield(other.over)
            wait = backoff.wait(1, random.random())
        await asyncio.sleep(wait / SECOND)


async def _call(
    owner: TcpHost, identity: Identity, address: Address, instance: bytes
) -> tuple[LinkEnding, str | None]:
    """Run one connection from the call to its end. Return its ending, and the peer if the handshake
    succeeded.
    """
    security = identity.certificates.for_calling()
    nonce, most = secrets.token_bytes(NONCE), owner.limits.max_frame
    caller = Caller(identity.name, identity.role, identity.token, nonce, instance, most)
    connection_codec = codec(identity.language, most)
    async with asyncio.timeout(owner.limits.greeting / SECOND):
        _, link = await asyncio.get_running_loop().create_connection(
            lambda: Link(owner, caller, connection_codec), address.host, address.port, ssl=security
        )
    ending = await asyncio.shield(link.over)
    return ending, caller.peer


def _call_error(error: OSError, address: Address) -> str:
    """Return the reason why a call failed, for users."""
    if isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    number = error.errno or 0
    why = os.strerror(number) if number in errorcode else error.strerror or "no answer"
    return f"{why}; is a broker there? (holdfast broker --name NAME --listen {address})"
