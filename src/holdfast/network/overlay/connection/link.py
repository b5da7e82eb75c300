"""One TCP connection: it decodes received bytes and queues messages to be sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ....model.instant import SECOND, Duration
from ...protocols.wire_name import wire_name
from ..wire.codec import codec, detect_language
from ..wire.control import (
    LONGEST_REASON,
    AccountControl,
    Bye,
    Control,
    HelloControl,
    Inquiry,
    Ping,
    Pong,
    Role,
)
from ..wire.fault import ConnectionRefused, WireFault
from ..wire.frame import Codec
from .handshake import Caller, Listener
from .outbox import Outbox

if TYPE_CHECKING:
    from ..tcp import TcpHost

log = logging.getLogger("holdfast.overlay")

CHUNK = 64 << 10
"""The approximate number of bytes per read and write."""
LINGER = 1 * SECOND
"""The time in µs that the last message may take before a connection is aborted."""
PATIENCE = 30 * SECOND
"""The time in µs that a leaving client waits for a peer to read all messages."""


class LinkEnding(NamedTuple):
    """The end of a connection: the reason, whether a new call would be useless, and whether a fault caused
    it.
    """

    why: str
    final: bool = False
    fault: bool = False


class Link(asyncio.BufferedProtocol):
    """A connection from the first byte to the last.

    Received messages are handled at once, so a busy host reads no faster than it works, and TCP throttles the
    peer. Messages are written at the end of every turn of the event loop. While the peer does not read them,
    they wait in the outbox. All methods must be called in the thread of the event loop.
    """

    def __init__(self, owner: TcpHost, handshake: Caller | Listener, link_codec: Codec | None = None) -> None:
        self.over: asyncio.Future[LinkEnding] = asyncio.get_running_loop().create_future()
        self.writable = asyncio.Event()
        self.writable.set()
        self.closed = asyncio.Event()
        self.peer = ""
        self.role: Role = "broker"
        self.silence = 0
        self.sends_heartbeats = True
        limits = owner.limits
        self.outbox = Outbox(limits.queue, limits.queue_bytes, limits.when_full, self._with_waiting_time)
        self.arrival_time = owner.now
        self.codec = link_codec
        self._owner, self._handshake = owner, handshake
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle
        self._unsent: list[bytes] = []
        self._unsent_size = 0
        self._receive: Callable[[Any], None] = self._on_handshake
        self._is_closed = False

    @property
    def caller(self) -> str:
        """The name of the end that opened the connection."""
        return self._handshake.name if isinstance(self._handshake, Caller) else self.peer

    @property
    def instance(self) -> bytes:
        """A random value that identifies the calling end when it calls again."""
        return self._handshake.instance

    @property
    def whereabouts(self) -> str:
        """The host and port of the other end, for messages."""
        name = self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)

    # --- callbacks of asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=CHUNK)
        wait = self._owner.limits.greeting / SECOND
        self._timer = asyncio.get_running_loop().call_later(wait, self._on_greeting_timeout)
        try:
            self._owner.on_connected(self)
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
        if self._is_closed:
            return
        self.silence, self.arrival_time = 0, self._owner.now
        piece = self._owner.buffer[:nbytes]
        if self.codec is None:
            self.codec = codec(detect_language(bytes(piece[:1])), self._owner.limits.max_frame)
            self._put(self.codec.opening())
        try:
            for received in self.codec.receive(piece):
                self._receive(received)
                if self._is_closed:
                    break
        except WireFault as fault:
            self.drop(str(fault), final=isinstance(fault, ConnectionRefused))
        self._owner.flush()

    def eof_received(self) -> None:
        self._end(LinkEnding("the connection was closed"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._end(LinkEnding(f"the connection was lost: {exc}" if exc else "the connection was closed"))
        self.writable.set()
        self.closed.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()
        while len(self.outbox) and self.writable.is_set():
            self._transport.write(self.outbox.take(CHUNK, self._owner.now))

    # --- called by the host ---

    def send(self, message: Any) -> None:
        """Send a control or a message; the order of calls is preserved."""
        assert self.codec is not None
        self.put(self.codec.encode(message))

    def put(self, data: bytes, message: Any = None, *, losable: bool = False) -> None:
        """Send encoded bytes. A ``losable`` message may be dropped for a slow peer."""
        if self._is_closed:
            return
        if self.writable.is_set():
            self._put(data)
            return
        try:
            for lost in self.outbox.put(data, message, losable=losable, now=self._owner.now):
                self._owner.on_dropped(self, lost)
        except WireFault as fault:
            self.drop(str(fault))

    def flush(self) -> None:
        """Write all bytes that were put since the last flush."""
        if self._unsent:
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._unsent_size = 0
            self._transport.write(data)

    def drop(self, why: str, *, final: bool = False) -> None:
        """Send the reason and close the connection because of a fault of the peer."""
        self._close(LinkEnding(why, final, fault=True), LINGER)

    async def leave(self, why: str, patience: Duration = PATIENCE) -> None:
        """Close the connection after all messages have been sent, at the latest after ``patience`` µs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience / SECOND):
                while not (self._is_closed or self.writable.is_set()):
                    await self.writable.wait()
        self._close(LinkEnding(why), patience)
        await self.closed.wait()

    def _with_waiting_time(self, message: Any, waited: Duration) -> bytes | None:
        """Return the encoding of a message with its waiting time; ``None`` if the message does not contain
        it.
        """
        assert self.codec is not None
        if message is None or (late := self._owner.late(message, waited)) is message:
            return None
        with suppress(WireFault):
            return self.codec.encode(late)
        return None

    def _put(self, data: bytes) -> None:
        if not self._unsent:
            self._owner.has_more(self)
        self._unsent.append(data)
        self._unsent_size += len(data)
        if self._unsent_size >= CHUNK:
            self.flush()

    # --- messages of the peer ---

    def _on_handshake(self, message: Any) -> None:
        """Handle a message of the handshake."""
        handshake = self._handshake
        if not isinstance(message, Control):
            self._accept_without_greeting()
            self._on_message(message)
            return
        for answer in handshake.receive(message):
            self.send(answer)
        if handshake.peer is not None:
            assert self.codec is not None
            self.peer = handshake.peer
            if handshake.takes:
                self.codec.limit(handshake.takes)
            if isinstance(handshake, Listener):
                self.role = handshake.role
            self._start_talking()

    def _accept_without_greeting(self) -> None:
        """Accept a peer that begins with a message, under a generated name. The thesis' clients do so."""
        assert self.codec is not None
        if self.codec.language != "xml" or not isinstance(self._handshake, Listener):
            raise WireFault("a message before the greeting")
        if self._handshake.token is not None:
            raise ConnectionRefused("a token is needed here: begin with <Hello name=… nonce=…/>")
        self._handshake.receive(HelloControl(self._owner.anonymous()))
        assert self._handshake.peer is not None
        self.peer, self.role, self.sends_heartbeats = self._handshake.peer, "client", False
        self._start_talking()

    def _start_talking(self) -> None:
        """Start to handle messages after the handshake."""
        self._timer.cancel()
        self._receive = self._on_message
        self._owner.on_greeted(self)

    def _on_message(self, message: Any) -> None:
        """Handle a control or a message after the handshake."""
        if not isinstance(message, Control):
            self._owner.on_message(self, message)
            return
        match message:
            case Ping():
                self.send(Pong())
            case Pong():
                pass
            case Inquiry(about):
                self._owner.on_inquiry(self, about)
            case AccountControl(counters):
                self._owner.on_account(counters)
            case Bye():
                self._end(LinkEnding(message.reason, message.final))
                self._transport.close()
            case control:
                raise WireFault(f"{wire_name(control)} is not allowed after the greeting")

    # --- the end ---

    def _on_greeting_timeout(self) -> None:
        self.drop("no greeting in time")

    def _close(self, ending: LinkEnding, linger: Duration) -> None:
        if not self._is_closed:
            self._send_bye(Bye(ending.why[:LONGEST_REASON], ending.final), linger)
            self._end(ending)

    def _send_bye(self, bye: Bye, linger: Duration) -> None:
        """Send the last message and wait for the peer to close. Abort the connection if the peer does not."""
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

    def _end(self, ending: LinkEnding) -> None:
        self._is_closed = True
        if not self.over.done():
            self.over.set_result(ending)
            self._owner.on_ended(self, ending)
