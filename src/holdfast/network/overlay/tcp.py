"""Hosts of protocol machines on TCP: a broker that listens and calls, or a client that calls."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from typing import Any, TypeVar

from ...errors import HoldfastError
from ...model.host import Actions, Host
from ...model.instant import SECOND, Duration, Instant, show_duration
from ...model.protocol import (
    Deliver,
    Drop,
    Input,
    Joined,
    Left,
    ProtocolMachine,
    Received,
    Send,
    Started,
    Undelivered,
)
from .clock import LoopClock
from .connection.address import Address
from .connection.backoff import Backoff
from .connection.calling import keep_calling
from .connection.handshake import NONCE, Listener
from .connection.identity import Identity
from .connection.limits import ConnectionLimits
from .connection.link import CHUNK, LINGER, PATIENCE, Link, LinkEnding, log
from .wire.control import AccountControl, Inquiry, Ping
from .wire.fault import ConnectionRefused, WireFault
from .wire.frame import Language

T = TypeVar("T")

COUNTERS = (
    "joined", "left", "received", "sent", "delivered", "dropped", "unsent", "faults", "internal errors",
)  # fmt: skip
"""The counters of every host.

``dropped`` messages were dropped for slow peers, were too large, or waited for a peer that left. ``unsent``
messages had no connection. ``faults`` are errors because of which this host closed a connection.
"""
SILENT = 3
"""The number of heartbeats without data after which a peer counts as dead."""
DEFAULTS, BACKOFF = ConnectionLimits(), Backoff()


@dataclass(eq=False)
class TcpHost:
    """A machine with its connections and counters. All methods must be called in the thread of the event
    loop.

    ``losable`` decides which messages may be dropped for a slow consumer. ``stamp`` writes the arrival time
    into a message, and ``late`` the time that it waited to be sent. ``deliver`` receives the machine's
    deliveries. ``machine_counters`` reads the machine's own counters from its state. ``known`` are the values
    that peers can inquire. ``failed`` is a future that gets an error when the host cannot continue.
    """

    identity: Identity
    machine: ProtocolMachine
    _: KW_ONLY
    limits: ConnectionLimits = DEFAULTS
    backoff: Backoff = BACKOFF
    losable: Callable[[Any], bool] = lambda _: False
    stamp: Callable[[Any, Instant], Any] = lambda message, _: message
    late: Callable[[Any, Duration], Any] = lambda message, _: message
    deliver: Callable[[Any], None] = lambda _: None
    machine_counters: Callable[[Any], Mapping[str, int]] = lambda _: {}
    known: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.buffer = memoryview(bytearray(CHUNK))
        self.counters: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
        self.links: dict[str, Link] = {}
        self.linked = asyncio.Event()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        actions: Actions = {Send: self._send, Deliver: self._hand_over, Drop: self._drop}
        self._host = Host(self.machine, self.machine.initial(), LoopClock(), actions, self._on_error)
        self._strangers: dict[Link, None] = {}
        self._with_more: list[Link] = []
        self._servers: list[asyncio.Server] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._inquiries: deque[asyncio.Future[dict[str, Any]]] = deque()
        self._numbers = count(1)
        self._encoded: tuple[Any, Language, bytes] = (None, "msgpack", b"")

    # --- life ---

    def start(self) -> None:
        """Start the machine and its heartbeats. Call this once, before `listen` or `call`."""
        self._run_background(self._beat())
        self._host.tell(Started, secrets.randbits(63))

    async def listen(self, address: Address) -> Address:
        """Accept connections at an address; return the address with the actual port."""
        loop = asyncio.get_running_loop()
        security = self.identity.certificates.for_listening()
        wait = self.limits.greeting / SECOND if security else None
        who = self.identity.name, self.identity.token

        def accept() -> Link:
            return Link(self, Listener(*who, secrets.token_bytes(NONCE), self.limits.max_frame))

        server = await loop.create_server(accept, *address, ssl=security, ssl_handshake_timeout=wait)
        self._servers.append(server)
        host, port, *_ = server.sockets[0].getsockname()
        return Address(host, port)

    def call(self, address: Address, *, patient: bool = True) -> None:
        """Keep a connection to an address. Unless ``patient``, the host fails if the first call is not
        answered.
        """
        self._run_background(self._keep_calling(address, patient))

    async def stop(self, why: str = "it stops", patience: Duration | None = None) -> None:
        """Close all connections after peers have read all messages, at the latest after ``patience`` µs.

        By default, a client waits long, because it may lose data, and a broker waits briefly.
        """
        if patience is None:
            patience = PATIENCE if self.identity.role == "client" else LINGER
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        for stranger in list(self._strangers):
            stranger.drop(why)
        await asyncio.gather(*(link.leave(why, patience) for link in list(self.links.values())))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._host.stop()

    async def ready(self) -> Link:
        """Wait for a connection that accepts data and return it. Raise the host's own failure."""
        while True:
            for link in self.links.values():
                if link.writable.is_set():
                    return link
            waited = next((link.writable for link in self.links.values()), self.linked)
            await self.unless_failed(waited.wait())

    async def unless_failed(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. Raise the host's own failure if that comes first."""
        turn = asyncio.ensure_future(work)
        waited: set[asyncio.Future[Any]] = {turn, self.failed}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done():
                self.failed.result()
            return turn.result()
        finally:
            turn.cancel()

    @property
    def now(self) -> Instant:
        """The time of the machine's clock."""
        return self._host.clock.now

    def account(self) -> dict[str, int]:
        """Return the counters of host and machine, and the number of queued messages."""
        waiting = sum(len(link.outbox) for link in self.links.values())
        counters = self.machine_counters(self._host.state)
        routed = {f"routing: {name}": number for name, number in counters.items()}
        return {**self.counters, "peers": len(self.links), "waiting": waiting, **routed}

    async def inquire(self, about: str = "") -> dict[str, Any]:
        """Return the peer's statistics, or the value that it stores under the key ``about``."""
        link = await self.ready()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._inquiries.append(answer)
        link.send(Inquiry(about))
        return await answer

    def _run_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a background task. An error in it makes the host fail."""

        def on_done(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fail(error)

        task = asyncio.create_task(work)
        task.add_done_callback(on_done)
        self._tasks.append(task)

    async def _keep_calling(self, address: Address, patient: bool) -> None:
        self._fail(await keep_calling(self, self.identity, self.backoff, address, patient=patient))

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    async def _beat(self) -> None:
        """Ping silent peers periodically, and drop the peers that do not answer."""
        while True:
            await asyncio.sleep(self.limits.heartbeat / SECOND)
            for link in [link for link in self.links.values() if link.sends_heartbeats]:
                link.silence += 1
                if link.silence > SILENT:
                    link.drop(f"silent for {show_duration(SILENT * self.limits.heartbeat)}")
                elif link.silence > 1:
                    link.send(Ping())

    # --- callbacks of links ---

    def on_connected(self, link: Link) -> None:
        """Handle a new connection, whose peer is still unknown."""
        self._strangers[link] = None
        if len(self._strangers) > self.limits.strangers:
            next(iter(self._strangers)).drop("too many connections wait for a greeting; greet sooner")

    def on_greeted(self, link: Link) -> None:
        """Handle a connection whose peer is known and trusted."""
        if link.peer == self.identity.name:
            raise ConnectionRefused(f"'{link.peer}' is the name of this broker; choose another (--name)")
        if (other := self.links.get(link.peer)) is not None:
            if other.caller < link.caller:
                why = f"'{link.peer}' is connected already, the other way round; once is enough"
                raise ConnectionRefused(why)
            if other.caller == link.caller and not (link.instance and link.instance == other.instance):
                raise ConnectionRefused(
                    f"'{link.peer}' is connected already, from {other.whereabouts}; "
                    "a name is used once at a time, choose another (--name)"
                )
            other.drop(f"'{link.peer}' has connected once more, from {link.whereabouts}", final=True)
        elif len(self.links) >= self.limits.peers:
            raise WireFault(f"no more than {self.limits.peers} connections are taken here (--peers)")
        self._strangers.pop(link, None)
        self.links[link.peer] = link
        self.linked.set()
        self.counters["joined"] += 1
        log.info("%s '%s' joined from %s", link.role, link.peer, link.whereabouts)
        self._host.tell(Joined, link.peer, link.role)

    def on_message(self, link: Link, message: Any) -> None:
        """Pass a received message to the machine, with its arrival time."""
        self.counters["received"] += 1
        self._host.tell(Received, link.peer, self.stamp(message, link.arrival_time))

    def on_inquiry(self, link: Link, about: str) -> None:
        """Answer an inquiry about statistics or a stored value."""
        answer = {about: self.known.get(about, "")} if about else self.account()
        link.send(AccountControl({"name": self.identity.name, **answer}))

    def on_account(self, counters: dict[str, Any]) -> None:
        """Handle the answer to an inquiry."""
        if self._inquiries and not (waiting := self._inquiries.popleft()).done():
            waiting.set_result(counters)

    def _fail_inquiries(self, error: WireFault) -> None:
        """Fail all inquiries that wait for an answer."""
        while self._inquiries:
            if not (waiting := self._inquiries.popleft()).done():
                waiting.set_exception(error)

    def on_dropped(self, link: Link, message: Any) -> None:
        """Handle a message that was dropped for a slow peer."""
        self.counters["dropped"] += 1
        self._host.tell(Undelivered, link.peer, message)

    def on_ended(self, link: Link, ending: LinkEnding) -> None:
        """Handle the end of a connection: count its unsent messages and inform the machine."""
        self._strangers.pop(link, None)
        self.counters["dropped"] += len(link.outbox)
        self.counters["faults"] += ending.fault
        if self.links.get(link.peer) is not link:
            log.info("%s: %s", link.whereabouts, ending.why)
            return
        del self.links[link.peer]
        if not self.links:
            self.linked.clear()
        self.counters["left"] += 1
        log.info("'%s' left: %s", link.peer, ending.why)
        self._fail_inquiries(WireFault(f"'{link.peer}' left: {ending.why}"))
        self._host.tell(Left, link.peer, ending.why)

    def has_more(self, link: Link) -> None:
        """Schedule a flush of a link at the end of the turn."""
        if not self._with_more:
            asyncio.get_running_loop().call_soon(self.flush)
        self._with_more.append(link)

    def flush(self) -> None:
        """Write all messages that were sent in this turn of the event loop."""
        links, self._with_more = self._with_more, []
        for link in links:
            link.flush()

    def anonymous(self) -> str:
        """Return a free name for a peer that sends no name."""
        return next(name for n in self._numbers if (name := f"peer-{n}") not in self.links)

    # --- the machine ---

    def ask(self, request: Any) -> None:
        """Pass a request of the user to the machine."""
        self._host.ask(request)

    def _on_error(self, given: Input, error: Exception) -> None:
        """Drop a peer whose message raised an error. Log errors of this program."""
        if not isinstance(error, HoldfastError):
            self.counters["internal errors"] += 1
            log.error("an error of our own about %s", type(given).__name__, exc_info=error)
        if isinstance(given, Received) and (link := self.links.get(given.sender)) is not None:
            link.drop(str(error) if isinstance(error, HoldfastError) else "an internal error")

    def _hand_over(self, effect: Deliver) -> None:
        self.counters["delivered"] += 1
        try:
            self.deliver(effect.what)
        except Exception as error:
            self._fail(error)

    def _drop(self, effect: Drop) -> None:
        if (link := self.links.get(effect.peer)) is not None:
            link.drop(effect.why)

    def _send(self, effect: Send) -> None:
        """Send a message to a peer. Without a connection it counts as unsent; a too large message is
        dropped.
        """
        to, message = effect.to, effect.message
        link = self.links.get(to)
        if link is None:
            self.counters["unsent"] += 1
            return
        assert link.codec is not None
        known, language, data = self._encoded
        try:
            if known is not message or language != link.codec.language:
                data = link.codec.encode(message)
            else:
                link.codec.require(data)
        except WireFault as fault:
            log.warning("'%s' cannot be sent %s", to, fault)
            self.on_dropped(link, message)
            return
        self._encoded = (message, link.codec.language, data)
        self.counters["sent"] += 1
        link.put(data, message, losable=self.losable(message))
