"""Checks of every request before a route runs: address, origin, rate, token, size, time."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .access import LOCAL_USER, User, bearer, may, user_with_token

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' data:; style-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

_OPEN = frozenset({"/", "/health"})
_SENDING = "/api/readings"
_ACKNOWLEDGING = ("/api/acknowledge", "/api/mute")
_READ_ONLY = ("/api/check", "/api/explain", "/api/dry-run")


@dataclass(frozen=True)
class RequestLimits:
    """Limits for one request and for one client address. Sizes are in bytes, times in seconds."""

    body: int = 8 << 20
    decoded: int = 64 << 20
    """Bytes that an Arrow stream may take once it is decoded."""
    seconds: float = 30.0
    """How long a request's body may take to arrive."""
    requests: int = 200
    """Requests of one address per second."""
    failures: int = 10
    """Wrong tokens of one address per minute."""


class Rate:
    """A limit on the rate of events per address (a leaky bucket).

    Addresses without recent events are removed.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def _level(self, address: str) -> float:
        level, at = self._seen.get(address, (0.0, 0.0))
        return max(0.0, level - (self._clock() - at) * self._most / self._seconds)

    def is_full(self, address: str) -> bool:
        return self._level(address) > self._most - 1

    def count(self, address: str) -> None:
        """Count one event of an address now."""
        self._seen[address] = (self._level(address) + 1, self._clock())
        self._seen.move_to_end(address)
        if len(self._seen) > 10_000:
            self._seen.popitem(last=False)


class RefusedRequest(Exception):
    """Raised to refuse a request. It carries the HTTP status and the reason for the answer."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


def action(method: str, path: str) -> str | None:
    """Return the action that a request needs permission for, as named in the roles.

    Returns ``None`` for a path that everybody may use.
    """
    if path in _OPEN or path.startswith("/static/"):
        return None
    if path == _SENDING and method == "POST":
        return "send"
    if path.startswith(_ACKNOWLEDGING):
        return "acknowledge"
    if method in ("GET", "HEAD") or path.startswith(_READ_ONLY):
        return "see"
    return "edit"


def host_of(header: str) -> str:
    """Return the host of a ``Host`` header, without its port.

    >>> host_of("localhost:8080"), host_of("[::1]:80"), host_of("example.org")
    ('localhost', '::1', 'example.org')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


class Guard:
    """ASGI middleware that checks each request and passes on allowed ones.

    The application finds the user in ``scope["state"]``.
    """

    def __init__(self, app: App, users: Sequence[User], hosts: Sequence[str], limits: RequestLimits) -> None:
        self._app, self._users, self._limits = app, users, limits
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._requests, self._failures = Rate(limits.requests, 1.0), Rate(limits.failures, 60.0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in there]
                message = message | {"headers": [*message["headers"], *more]}
            await send(message)

        try:
            self._admit(scope)
        except RefusedRequest as definition_error:
            await _refuse(answer, definition_error)
        else:
            await self._app(scope, _limit_body(receive, self._limits), answer)

    def _admit(self, scope: Scope) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        address = scope["client"][0] if scope.get("client") else "?"
        self._require_rate(address)
        self._require_host(headers)
        if int(headers.get("content-length", "0") or 0) > self._limits.body:
            raise RefusedRequest(413, f"a body has {self._limits.body:,} bytes at most; send it in parts")
        wanted = action(scope["method"], scope["path"])
        user = LOCAL_USER if not self._users else None
        if user is None and wanted is not None:
            user = self._user(address, headers, wanted)
        scope.setdefault("state", {})["user"] = user or LOCAL_USER

    def _require_rate(self, address: str) -> None:
        if self._requests.is_full(address):
            raise RefusedRequest(429, "too many requests; wait a second", {"retry-after": "1"})
        self._requests.count(address)

    def _require_host(self, headers: dict[str, str]) -> None:
        """Refuse requests with an unknown host name, and requests that a web page of another site sends.

        The check of the host name prevents DNS rebinding.
        """
        host = headers.get("host", "")
        if host_of(host) not in self._hosts:
            raise RefusedRequest(421, "this service does not go by that name; see 'hosts' in serve.toml")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise RefusedRequest(403, "requests of other origins are not answered")

    def _user(self, address: str, headers: dict[str, str], wanted: str) -> User:
        if self._failures.is_full(address):
            raise RefusedRequest(429, "too many wrong tokens; wait a minute", {"retry-after": "60"})
        token = bearer(headers.get("authorization"))
        user = None if token is None else user_with_token(self._users, token)
        if user is None:
            if token is not None:
                self._failures.count(address)
            what = "a token is needed" if token is None else "this token is not known"
            raise RefusedRequest(401, what, {"www-authenticate": "Bearer"})
        if not may(user, wanted):
            raise RefusedRequest(403, f"the role '{user.role}' may not {wanted}")
        return user


def _limit_body(receive: Receive, limits: RequestLimits) -> Receive:
    """Wrap ``receive`` so that it limits the size and the time of a request's body.

    The result raises ``RefusedRequest`` for a body that is too long or arrives too slowly.
    """
    size, end = 0, time.monotonic() + limits.seconds
    done = False

    async def next_part() -> dict[str, Any]:
        nonlocal size, done
        if done:  # the body is complete: the next message is the disconnection
            return await receive()
        try:
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                message = await receive()
        except TimeoutError:
            raise RefusedRequest(408, f"a body must come within {limits.seconds:g} seconds") from None
        size += len(message.get("body", b""))
        if size > limits.body:
            raise RefusedRequest(413, f"a body has {limits.body:,} bytes at most; send it in parts")
        done = not message.get("more_body", False)
        return message

    return next_part


async def _refuse(send: Send, definition_error: RefusedRequest) -> None:
    body = json.dumps({"error": definition_error.reason}).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **definition_error.headers,
    }
    start = [(k.encode(), v.encode()) for k, v in headers.items()]
    await send({"type": "http.response.start", "status": definition_error.status, "headers": start})
    await send({"type": "http.response.body", "body": body})
