"""A protocol machine on TCP: a broker that listens and calls, or a client that calls."""

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
from .connection.handshake import NONCE, Called
from .connection.identity import Identity
from .connection.limits import Limits
from .connection.link import CHUNK, LINGER, PATIENCE, Ending, Link, log
from .wire.codec import Language
from .wire.control import Account, Inquiry, Ping
from .wire.fault import Refused, WireFault

T = TypeVar("T")

COUNTERS = (
    "joined",
    "left",
    "received",
    "sent",
    "delivered",
    "dropped",
    "unsent",
    "faults",
    "internal errors",
)
"""What every node counts: ``dropped`` were given up for slow peers, too large, or waited for one that left,
``unsent`` had nobody to go to, ``faults`` made us end a connection."""
SILENT = 3
"""After so many heartbeats in which a peer said nothing it is taken to be dead."""
DEFAULTS, BACKOFF = Limits(), Backoff()


@dataclass(eq=False)
class TcpHost:
    """A machine, its connections, and the counters of what it did.

    ``losable`` says which messages may be given up for a slow consumer; ``stamp`` writes on a message when
    it arrived, and ``late`` how long it has waited to be sent.  ``deliver`` takes what the machine has for
    its own user; ``counted`` reads what it counts itself from its state; ``known`` is what it tells those who
    ask.  ``failed`` ends with an error when the host cannot go on.
    """

    identity: Identity
    machine: ProtocolMachine
    _: KW_ONLY
    limits: Limits = DEFAULTS
    backoff: Backoff = BACKOFF
    losable: Callable[[Any], bool] = lambda _: False
    stamp: Callable[[Any, Instant], Any] = lambda message, _: message
    late: Callable[[Any, Duration], Any] = lambda message, _: message
    deliver: Callable[[Any], None] = lambda _: None
    counted: Callable[[Any], Mapping[str, int]] = lambda _: {}
    known: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.buffer = memoryview(bytearray(CHUNK))
        self.counters: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
        self.links: dict[str, Link] = {}
        self.linked = asyncio.Event()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        actions: Actions = {Send: self._send, Deliver: self._hand_over, Drop: self._drop}
        self._host = Host(self.machine, self.machine.initial(), LoopClock(), actions, self._blame)
        self._strangers: dict[Link, None] = {}
        self._with_more: list[Link] = []
        self._servers: list[asyncio.Server] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._inquiries: deque[asyncio.Future[dict[str, Any]]] = deque()
        self._numbers = count(1)
        self._encoded: tuple[Any, Language, bytes] = (None, "msgpack", b"")

    # --- life ---

    def start(self) -> None:
        """Begin."""
        self._keep(self._beat())
        self._host.tell(Started, secrets.randbits(63))

    async def listen(self, address: Address) -> Address:
        """Take calls at an address; which it is, if the port was left open."""
        loop = asyncio.get_running_loop()
        security = self.identity.certificates.for_listening()
        wait = self.limits.greeting / SECOND if security else None
        who = self.identity.name, self.identity.token
        server = await loop.create_server(
            lambda: Link(self, Called(*who, secrets.token_bytes(NONCE), self.limits.max_frame)),
            address.host,
            address.port,
            ssl=security,
            ssl_handshake_timeout=wait,
        )
        self._servers.append(server)
        host, port, *_ = server.sockets[0].getsockname()
        return Address(host, port)

    def call(self, address: Address, *, patient: bool = True) -> None:
        """Keep a connection to whoever listens there; unless patient, fail if that cannot be begun."""
        self._keep(self._keep_calling(address, patient))

    async def stop(self, why: str = "it stops", patience: Duration | None = None) -> None:
        """End: say goodbye to everybody, and wait until they have heard it.  A client has much patience,
        for it has something to lose; a broker little."""
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
        """Wait until there is a connection that takes more; the node's own failure is raised."""
        while True:
            for link in self.links.values():
                if link.writable.is_set():
                    return link
            waited = next((link.writable for link in self.links.values()), self.linked)
            await self.unless_failed(waited.wait())

    async def unless_failed(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of something that is waited for; the node's own failure is raised before."""
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
        """The machine's clock."""
        return self._host.clock.now

    def account(self) -> dict[str, int]:
        """What the node has done, and what is waiting."""
        waiting = sum(len(link.outbox) for link in self.links.values())
        routed = {f"routing: {what}": number for what, number in self.counted(self._host.state).items()}
        return {**self.counters, "peers": len(self.links), "waiting": waiting, **routed}

    async def inquire(self, about: str = "") -> dict[str, Any]:
        """What the peer has done, or what it knows about something."""
        link = await self.ready()
        told: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._inquiries.append(told)
        link.send(Inquiry(about))
        return await told

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside; the node fails with it."""

        def noticed(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fail(error)

        task = asyncio.create_task(work)
        task.add_done_callback(noticed)
        self._tasks.append(task)

    async def _keep_calling(self, address: Address, patient: bool) -> None:
        self._fail(await keep_calling(self, self.identity, self.backoff, address, patient=patient))

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    async def _beat(self) -> None:
        """Ask those who are silent whether they are there, and drop those who are not."""
        while True:
            await asyncio.sleep(self.limits.heartbeat / SECOND)
            for link in [link for link in self.links.values() if link.attends]:
                link.silence += 1
                if link.silence > SILENT:
                    link.drop(f"silent for {show_duration(SILENT * self.limits.heartbeat)}")
                elif link.silence > 1:
                    link.send(Ping())

    # --- what links say ---

    def met(self, link: Link) -> None:
        """A connection is there; whose, it has yet to say."""
        self._strangers[link] = None
        if len(self._strangers) > self.limits.strangers:
            next(iter(self._strangers)).drop("others wait, too; say who you are sooner")

    def greeted(self, link: Link) -> None:
        """The peer of a connection is known and trusted."""
        if link.peer == self.identity.name:
            raise Refused(f"'{link.peer}' is the name of this broker; choose another (--name)")
        if (other := self.links.get(link.peer)) is not None:
            if other.caller < link.caller:
                raise Refused(f"'{link.peer}' is connected already, the other way round; once is enough")
            if other.caller == link.caller and not (link.instance and link.instance == other.instance):
                raise Refused(
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

    def received(self, link: Link, message: Any) -> None:
        self.counters["received"] += 1
        self._host.tell(Received, link.peer, self.stamp(message, link.arrived))

    def asked(self, link: Link, about: str) -> None:
        """A peer wants to know how we are doing, or what we know about something."""
        told = {about: self.known.get(about, "")} if about else self.account()
        link.send(Account({"name": self.identity.name, **told}))

    def told(self, counters: dict[str, Any]) -> None:
        """A peer says how it is doing."""
        if self._inquiries and not (waiting := self._inquiries.popleft()).done():
            waiting.set_result(counters)

    def _unanswered(self, error: WireFault) -> None:
        """No answer will come any more."""
        while self._inquiries:
            if not (waiting := self._inquiries.popleft()).done():
                waiting.set_exception(error)

    def gave_up(self, link: Link, message: Any) -> None:
        """A message was given up for a slow peer."""
        self.counters["dropped"] += 1
        self._host.tell(Undelivered, link.peer, message)

    def ended(self, link: Link, ending: Ending) -> None:
        """A connection is over."""
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
        self._unanswered(WireFault(f"'{link.peer}' left: {ending.why}"))
        self._host.tell(Left, link.peer, ending.why)

    def has_more(self, link: Link) -> None:
        """A link has something to flush at the end of the turn."""
        if not self._with_more:
            asyncio.get_running_loop().call_soon(self.flush)
        self._with_more.append(link)

    def flush(self) -> None:
        """End a turn: everything that was sent in it goes out."""
        links, self._with_more = self._with_more, []
        for link in links:
            link.flush()

    def anonymous(self) -> str:
        """A free name for a peer that gives none."""
        return next(name for n in self._numbers if (name := f"peer-{n}") not in self.links)

    # --- the machine ---

    def ask(self, request: Any) -> None:
        """Pass on what the machine's own user wants."""
        self._host.ask(request)

    def _blame(self, given: Input, error: Exception) -> None:
        """Drop a peer whose message could not be handled; if that is our fault, say so in the log."""
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
            self.gave_up(link, message)
            return
        self._encoded = (message, link.codec.language, data)
        self.counters["sent"] += 1
        link.put(data, message, losable=self.losable(message))
