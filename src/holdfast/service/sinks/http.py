"""Sinks over HTTP: webhooks, and Prometheus' Alertmanager."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import httpx

from ...errors import UsageError
from ...model.instant import MINUTE, SECOND, Instant
from ...runtimes.local.engine import Holding
from ..store import NotificationRow
from .delivery import isolate
from .message import Alert, alerts, body, signature, standing_alert
from .sink import Refusal, Unavailable

_TIMEOUT = 10.0
"""Seconds without progress before a request fails."""
_DEADLINE = 30.0
"""Seconds for a whole request with its response."""
_ANSWER = 500
"""Bytes of an error response that are read."""
_ALERTS = 500
"""Alerts in one request when all are sent again."""
_LATER = frozenset({408, 425, 429})
_FORBIDDEN = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_METADATA = ip_address("fd00:ec2::254")
"""The address of cloud metadata services, which contain secrets; over IPv4 it is link-local."""
LASTS = 5 * MINUTE
"""How long Alertmanager keeps an alert active without an update."""


def require_allowed(url: str, hosts: Sequence[str]) -> None:
    """Refuse a URL whose host is not in ``hosts``.

    A user could otherwise make the service send requests to any host.
    """
    try:
        parts = httpx.URL(url)  # the parser that is used for the request: two parsers may differ
        host, written = parts.host, parts.raw_host.decode()
    except (httpx.InvalidURL, UnicodeError) as error:
        raise UsageError(f"'{url}' is no address: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"'{url}' is no address; write https://HOST/PATH")
    if not {host, written} & {host.lower() for host in hosts}:
        raise UsageError(f"'{url}': add '{host}' to allowed_hosts if it may be called")


def require_outside(host: str, address: str) -> None:
    """Refuse a host name that resolves to this machine or to metadata services of clouds.

    ``localhost`` and literal addresses are allowed, because they are written on purpose.

    >>> require_outside("localhost", "127.0.0.1")
    """
    found = ip_address(address.partition("%")[0])
    meant = getattr(found, "ipv4_mapped", None) or found  # ::ffff:127.0.0.1 is this machine, too
    inside = meant.is_loopback or meant.is_link_local or meant == _METADATA
    if inside and host != "localhost" and not _is_literal(host, found):
        raise Unavailable(
            f"{host} leads to {address}, which is not called by a name; write the address itself"
        )


def _is_literal(host: str, address: IPv4Address | IPv6Address) -> bool:
    """Whether a host is written as a literal address that equals ``address``."""
    try:
        return ip_address(host.partition("%")[0]) == address
    except ValueError:
        return False


def require_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that could change the structure of the request."""
    for name, value in headers.items():
        if not name.replace("-", "").isalnum() or not name.isascii() or name.lower() in _FORBIDDEN:
            raise UsageError(f"'{name}' cannot be a header here")
        if not value.isprintable() or not value.isascii():
            raise UsageError(f"header '{name}': its value must be printable ASCII in one line")


async def _post(client: httpx.AsyncClient, url: str, content: bytes, headers: Mapping[str, str]) -> None:
    """Post once, within the deadline, and raise ``Unavailable`` or ``Refusal`` if that fails.

    Redirects are not followed. Only the status of the response is read, and the first bytes of an error.
    """
    host = httpx.URL(url).host

    async def check_address(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":  # nothing is sent yet
            connection = info["return_value"]
            try:
                require_outside(host, connection.get_extra_info("server_addr")[0])
            except Unavailable:
                await connection.aclose()
                raise

    request = {"content": content, "headers": dict(headers), "extensions": {"trace": check_address}}
    try:
        async with asyncio.timeout(_DEADLINE), client.stream("POST", url, **request) as answer:  # type: ignore[arg-type]
            status = answer.status_code
            if answer.is_success:
                return
            is_refusal = status < 500 and status not in _LATER
            reason = await _beginning(answer) if is_refusal else ""
    except TimeoutError:
        raise Unavailable(f"{url} does not answer within {_DEADLINE:g} s") from None
    except httpx.HTTPError as error:
        raise Unavailable(f"{url}: {error or type(error).__name__}") from None
    if is_refusal:
        raise Refusal(f"{url} answers {status}" + (reason and f": {reason}"))
    raise Unavailable(f"{url} answers {status}")


async def _beginning(answer: httpx.Response) -> str:
    """Return the first bytes of a response as one line of text.

    Nothing more is read, because the length and the compression of a response are not limited.
    """
    found = b""
    async for part in answer.aiter_raw(_ANSWER):
        found += part
        if len(found) >= _ANSWER:
            break
    text = found[:_ANSWER].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class Webhook:
    """A sink that posts notifications as JSON, signed if the webhook has a secret."""

    kind = "webhook"
    heeds_mutes = True
    refresh_every = None

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

    async def deliver(self, notifications: Sequence[NotificationRow]) -> None:
        """Post notifications in one request, signed if there is a secret."""
        content = body(notifications)
        headers = {**self._headers, "content-type": "application/json"}
        if self._secret is not None:
            stamp = str(self._clock() // SECOND)
            headers["x-holdfast-timestamp"] = stamp
            headers["x-holdfast-signature"] = signature(self._secret, stamp, content)
        await _post(self._client, self._url, content, headers)

    async def refresh(self, active: Sequence[Holding]) -> None: ...

    async def close(self) -> None:
        await self._client.aclose()


class Alertmanager:
    """A sink that reports active conditions to Alertmanager.

    It reports at every change, and again before the alerts expire.
    """

    kind = "alertmanager"
    heeds_mutes = True
    refresh_every = LASTS / SECOND / 10

    def __init__(self, name: str, url: str, labels: Mapping[str, str], clock: Callable[[], Instant]) -> None:
        self.name, self._labels, self._clock = name, labels, clock
        self._url = url.rstrip("/") + "/api/v2/alerts"
        self._client = httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False, trust_env=False)

    async def deliver(self, notifications: Sequence[NotificationRow]) -> None:
        await self._send(alerts(notifications, self._clock() + LASTS, self._labels))

    async def refresh(self, active: Sequence[Holding]) -> None:
        """Send all active conditions again. A refused one does not prevent the others."""
        until = self._clock() + LASTS
        found = [standing_alert(row, until, self._labels) for row in active]
        refusals: list[Refusal] = []

        async def note(_alert: Alert, refusal: Refusal) -> None:
            refusals.append(refusal)

        for first in range(0, len(found), _ALERTS):
            await isolate(found[first : first + _ALERTS], self._send, note)
        if refusals:
            raise Refusal(f"{len(refusals)} of {len(found)} active conditions: {refusals[0]}")

    async def _send(self, found: Sequence[Alert]) -> None:
        if found:
            content = httpx.Request("POST", self._url, json=list(found)).content
            await _post(self._client, self._url, content, {"content-type": "application/json"})

    async def close(self) -> None:
        await self._client.aclose()
