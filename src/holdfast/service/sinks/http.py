"""Notifications to other systems over HTTP: webhooks, and Prometheus' Alertmanager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import httpx

from ...errors import UsageError
from ...model.instant import MINUTE, SECOND, Instant
from ...runtimes.local.engine import Holding
from ..store import Told
from .delivery import Refusal, Unavailable
from .message import alerts, body, signature

_TIMEOUT = 10.0
_LATER = frozenset({408, 425, 429})
_FORBIDDEN = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_METADATA = ip_address("fd00:ec2::254")
"""Where a machine in a cloud learns its secrets; over IPv4 that is link-local."""
LASTS = 5 * MINUTE
"""How long Alertmanager believes us that something holds."""


def require_allowed(url: str, hosts: Sequence[str]) -> None:
    """Refuse an address whose host is not on the list: a service must not be made to call others."""
    try:
        parts = httpx.URL(url)  # as it will be called: two readers of addresses may differ
        host, written = parts.host, parts.raw_host.decode()
    except (httpx.InvalidURL, UnicodeError) as error:
        raise UsageError(f"'{url}' is no address: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"'{url}' is no address; write https://HOST/PATH")
    if not {host, written} & {host.lower() for host in hosts}:
        raise UsageError(f"'{url}': add '{host}' to allowed_hosts if it may be called")


def require_outside(host: str, address: str) -> None:
    """Refuse a name that leads to this machine, or to addresses under which clouds tell secrets; who wants
    that writes ``localhost``, or the address itself.

    >>> require_outside("localhost", "127.0.0.1")
    """
    found = ip_address(address.partition("%")[0])
    meant = getattr(found, "ipv4_mapped", None) or found  # ::ffff:127.0.0.1 is this machine, too
    inside = meant.is_loopback or meant.is_link_local or meant == _METADATA
    if inside and host != "localhost" and not _is(host, found):
        raise Unavailable(
            f"{host} leads to {address}, which is not called by a name; write the address itself"
        )


def _is(host: str, address: IPv4Address | IPv6Address) -> bool:
    """Whether a host is that address, however it is written."""
    try:
        return ip_address(host.partition("%")[0]) == address
    except ValueError:
        return False


def require_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that would be more than headers."""
    for name, value in headers.items():
        if not name.replace("-", "").isalnum() or not name.isascii() or name.lower() in _FORBIDDEN:
            raise UsageError(f"'{name}' cannot be a header here")
        if not value.isprintable() or not value.isascii():
            raise UsageError(f"header '{name}': its value must be printable ASCII in one line")


async def _posted(client: httpx.AsyncClient, url: str, content: bytes, headers: Mapping[str, str]) -> None:
    """Post once; redirects are not followed."""
    host = httpx.URL(url).host

    async def look(event: str, said: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":  # nothing is sent yet
            connection = said["return_value"]
            try:
                require_outside(host, connection.get_extra_info("server_addr")[0])
            except Unavailable:
                await connection.aclose()
                raise

    try:
        answer = await client.post(url, content=content, headers=dict(headers), extensions={"trace": look})
    except httpx.HTTPError as error:
        raise Unavailable(f"{url}: {error or type(error).__name__}") from None
    if answer.is_success:
        return
    what = f"{url} answers {answer.status_code}"
    if answer.status_code in _LATER or answer.status_code >= 500:
        raise Unavailable(what)
    raise Refusal(what)


class Webhook:
    """Posts notifications as JSON, signed if there is a secret."""

    kind = "webhook"
    heeds_mutes = True

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        secret: bytes | None,
        clock: Callable[[], Instant],
    ) -> None:
        self.name, self._url, self._headers, self._secret, self._clock = name, url, headers, secret, clock
        self._client = httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False, trust_env=False)

    async def deliver(self, told: Sequence[Told]) -> None:
        content = body(told)
        headers = {**self._headers, "content-type": "application/json"}
        if self._secret is not None:
            stamp = str(self._clock() // SECOND)
            headers["x-holdfast-timestamp"] = stamp
            headers["x-holdfast-signature"] = signature(self._secret, stamp, content)
        await _posted(self._client, self._url, content, headers)

    async def idle(self) -> None: ...

    async def close(self) -> None:
        await self._client.aclose()


class Alertmanager:
    """Keeps Alertmanager informed of what holds: at every change, and again before it would forget."""

    kind = "alertmanager"
    heeds_mutes = True

    def __init__(
        self, name: str, url: str, labels: Mapping[str, str],
        holding: Callable[[], Awaitable[list[Holding]]], clock: Callable[[], Instant],
    ) -> None:  # fmt: skip
        self.name, self._labels, self._holding, self._clock = name, labels, holding, clock
        self._url = url.rstrip("/") + "/api/v2/alerts"
        self._client = httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False, trust_env=False)

    async def deliver(self, told: Sequence[Told]) -> None:
        found: list[dict[str, Any]] = alerts(told, await self._holding(), self._clock() + LASTS, self._labels)
        if found:
            content = httpx.Request("POST", self._url, json=found).content
            await _posted(self._client, self._url, content, {"content-type": "application/json"})

    async def idle(self) -> None:
        await self.deliver(())

    async def close(self) -> None:
        await self._client.aclose()
