"""One connection: bytes become what they say, and what is to be said waits its turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, cast

from ....model.instant import SECOND, Duration, Instant
from ..wire.codec import Codec, codec, spoken
from ..wire.control import LONGEST_REASON, Account, Bye, Control, Hello, Inquiry, Ping, Pong, Role
from ..wire.fault import Refused, WireFault
from .handshake import Called, Caller
from .limits import Limits
from .outbox import Outbox

log = logging.getLogger("holdfast.overlay")

CHUNK = 64 << 10
"""About as much is read, and written, at a time."""
LINGER = 1 * SECOND
"""For so long the last word may travel before a connection is cut."""
PATIENCE = 30 * SECOND
"""For so long a peer may read what was sent before we leave."""


class Ending(NamedTuple):
    """How a connection ended: whether calling again is of no use, and whether we had to end it."""

    why: str
    final: bool = False
    fault: bool = False


class Owner(Protocol):
    """What a link asks of the node that it belongs to."""

    limits: Limits
    buffer: memoryview
    links: dict[str, Link]

    @property
    def now(self) -> Instant: ...
    @property
    def late(self) -> Callable[[Any, Duration], Any]: ...
    def met(self, link: Link) -> None: ...
    def greeted(self, link: Link) -> None: ...
    def received(self, link: Link, message: Any) -> None: ...
    def asked(self, link: Link, about: str) -> None: ...
    def told(self, counters: dict[str, Any]) -> None: ...
    def gave_up(self, link: Link, message: Any) -> None: ...
    def ended(self, link: Link, ending: Ending) -> None: ...
    def has_more(self, link: Link) -> None: ...
    def flush(self) -> None: ...
    def anonymous(self) -> str: ...


class Link(asyncio.BufferedProtocol):
    """A connection from the first byte to the last.

    What is read is handled at once, so a busy node reads no faster than it works, and TCP holds the
    peer back.  What is written goes out at the end of every turn; while the peer does not take it,
    it waits in the outbox.
    """

    def __init__(self, owner: Owner, handshake: Caller | Called, said: Codec | None = None) -> None:
        self.over: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.writable = asyncio.Event()
        self.writable.set()
        self.closed = asyncio.Event()
        self.peer = ""
        self.role: Role = "broker"
        self.silence = 0
        self.attends = True
        limits = owner.limits
        self.outbox = Outbox(limits.queue, limits.queue_bytes, limits.when_full, self._aged)
        self.arrived = owner.now
        self.codec = said
        self._owner, self._handshake = owner, handshake
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle
        self._fresh: list[bytes] = []
        self._fresh_size = 0
        self._receive: Callable[[Any], None] = self._greet
        self._deaf = False

    @property
    def caller(self) -> str:
        """The name of the end that called."""
        return self._handshake.name if isinstance(self._handshake, Caller) else self.peer

    @property
    def instance(self) -> bytes:
        """By what the end that called is known when it calls again."""
        return self._handshake.instance

    @property
    def whereabouts(self) -> str:
        """Host and port of the other end."""
        name = self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)

    # --- what asyncio says ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=CHUNK)
        wait = self._owner.limits.greeting / SECOND
        self._timer = asyncio.get_running_loop().call_later(wait, self._too_late)
        try:
            self._owner.met(self)
        except WireFault as fault:
            self.drop(str(fault))
            return
        if isinstance(self._handshake, Caller):
            assert self.codec is not None
            self._put(self.codec.opening())
            for word in self._handshake.opening():
                self.send(word)
            self.flush()

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._owner.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._deaf:
            return
        self.silence, self.arrived = 0, self._owner.now
        piece = self._owner.buffer[:nbytes]
        if self.codec is None:
            self.codec = codec(spoken(bytes(piece[:1])), self._owner.limits.max_frame)
            self._put(self.codec.opening())
        try:
            for said in self.codec.receive(piece):
                self._receive(said)
                if self._deaf:
                    break
        except WireFault as fault:
            self.drop(str(fault), final=isinstance(fault, Refused))
        self._owner.flush()

    def eof_received(self) -> None:
        self._end(Ending("the connection was closed"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._end(Ending(f"the connection was lost: {exc}" if exc else "the connection was closed"))
        self.writable.set()
        self.closed.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()
        while len(self.outbox) and self.writable.is_set():
            self._transport.write(self.outbox.take(CHUNK, self._owner.now))

    # --- what the node says ---

    def send(self, said: Any) -> None:
        """Say something, in order."""
        assert self.codec is not None
        self.put(self.codec.encode(said))

    def put(self, data: bytes, message: Any = None, *, losable: bool = False) -> None:
        """Send what is encoded already; a ``losable`` message may be given up for a slow peer."""
        if self._deaf:
            return
        if self.writable.is_set():
            self._put(data)
            return
        try:
            for lost in self.outbox.put(data, message, losable=losable, now=self._owner.now):
                self._owner.gave_up(self, lost)
        except WireFault as fault:
            self.drop(str(fault))

    def flush(self) -> None:
        """Hand over what was put since the last time."""
        if self._fresh:
            data = b"".join(self._fresh)
            self._fresh.clear()
            self._fresh_size = 0
            self._transport.write(data)

    def drop(self, why: str, *, final: bool = False) -> None:
        """End the connection because of a fault of the peer's, and say why."""
        self._close(Ending(why, final, fault=True), LINGER)

    async def leave(self, why: str, patience: Duration = PATIENCE) -> None:
        """End the connection when everything has been sent, and the peer has read it or has had time to."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience / SECOND):
                while not (self._deaf or self.writable.is_set()):
                    await self.writable.wait()
        self._close(Ending(why), patience)
        await self.closed.wait()

    def _aged(self, message: Any, waited: Duration) -> bytes | None:
        """A message that has waited, if that changes it."""
        assert self.codec is not None
        if message is None or (late := self._owner.late(message, waited)) is message:
            return None
        with suppress(WireFault):
            return self.codec.encode(late)
        return None

    def _put(self, data: bytes) -> None:
        if not self._fresh:
            self._owner.has_more(self)
        self._fresh.append(data)
        self._fresh_size += len(data)
        if self._fresh_size >= CHUNK:
            self.flush()

    # --- what the peer says ---

    def _greet(self, said: Any) -> None:
        handshake = self._handshake
        if not isinstance(said, Control):
            self._greet_silent()
            self._talk(said)
            return
        for answer in handshake.receive(said):
            self.send(answer)
        if handshake.peer is not None:
            assert self.codec is not None
            self.peer = handshake.peer
            if handshake.takes:
                self.codec.limit(handshake.takes)
            if isinstance(handshake, Called):
                self.role = handshake.role
            self._begin()

    def _greet_silent(self) -> None:
        """Take a peer that begins with a message, as the thesis' clients do, under a name of ours."""
        assert self.codec is not None
        if self.codec.language != "xml" or not isinstance(self._handshake, Called):
            raise WireFault("a message before the greeting")
        if self._handshake.token is not None:
            raise Refused("a token is needed here: begin with <Hello name=… nonce=…/>")
        self._handshake.receive(Hello(self._owner.anonymous()))
        assert self._handshake.peer is not None
        self.peer, self.role, self.attends = self._handshake.peer, "client", False
        self._begin()

    def _begin(self) -> None:
        self._timer.cancel()
        self._receive = self._talk
        self._owner.greeted(self)

    def _talk(self, said: Any) -> None:
        if not isinstance(said, Control):
            self._owner.received(self, said)
            return
        match said:
            case Ping():
                self.send(Pong())
            case Pong():
                pass
            case Inquiry(about):
                self._owner.asked(self, about)
            case Account(counters):
                self._owner.told(counters)
            case Bye():
                self._end(Ending(said.reason, said.final))
                self._transport.close()
            case other:
                raise WireFault(f"{type(other).__name__} is out of place after the greeting")

    # --- the end ---

    def _too_late(self) -> None:
        self.drop("no greeting in time")

    def _close(self, ending: Ending, linger: Duration) -> None:
        if not self._deaf:
            self._farewell(Bye(ending.why[:LONGEST_REASON], ending.final), linger)
            self._end(ending)

    def _farewell(self, bye: Bye, linger: Duration) -> None:
        """Send the last word, wait for the peer to close, and cut the connection if it does not."""
        if not self.writable.is_set():
            self._transport.abort()
            return
        if self.codec is None:
            self._transport.close()
            return
        self.send(bye)
        self.flush()
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(linger / SECOND, self._transport.abort)
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _end(self, ending: Ending) -> None:
        self._deaf = True
        if not self.over.done():
            self.over.set_result(ending)
            self._owner.ended(self, ending)
