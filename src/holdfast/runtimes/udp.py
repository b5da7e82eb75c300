"""A protocol machine on a UDP socket: datagrams that may get lost, come twice, or overtake each other.

The network does that by itself, seldom; ``Weather`` does it on purpose, by a seed.  Whoever sends a datagram
is known by its name and address from then on.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import msgspec

from ..errors import InputError, UsageError
from ..model.instant import SECOND, Duration, Instant
from ..model.protocol import (
    EVERYBODY,
    Asked,
    CancelTimer,
    Deliver,
    Drop,
    Effect,
    Fired,
    Input,
    Peer,
    ProtocolMachine,
    Received,
    Send,
    SetTimer,
    Started,
)

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Weather:
    """What happens to datagrams that are sent, besides what the network does."""

    loss: float = 0.0
    """The share that is not sent."""
    twice: float = 0.0
    """The share that is sent twice."""
    late: Duration = 0
    """How long one may be held back at most; so they overtake each other."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("loss", "twice"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it is from 0 to below 1")
        if self.late < 0:
            raise UsageError(f"late is {self.late} µs; it must not be negative")


FAIR = Weather()


class UdpHost(asyncio.DatagramProtocol):
    """Runs a machine under a name; ``deliver`` gets what is for its user."""

    def __init__(
        self,
        name: Peer,
        machine: ProtocolMachine,
        wire: Any,
        peers: Mapping[Peer, Address],
        deliver: Callable[[Any], None],
        weather: Weather = FAIR,
    ) -> None:
        self._name, self._machine, self._deliver, self._weather = name, machine, deliver, weather
        self._random = Random(weather.seed)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(tuple[str, wire]).decode
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._shunned: set[Peer] = set()
        self.peers: dict[Peer, Address] = dict(peers)
        self.state = machine.initial()
        self.counted: Counter[str] = Counter()
        """Datagrams that were sent, lost on purpose, received, not understood."""
        self._transport: asyncio.DatagramTransport | None = None

    @property
    def address(self) -> Address:
        """Where it listens."""
        assert self._transport is not None
        host, port, *_ = self._transport.get_extra_info("sockname")
        return host, port

    def ask(self, request: Any) -> None:
        """The user wants something."""
        self._handle(Asked(_now(), request))

    def close(self) -> None:
        """Send and hear nothing more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._transport is not None:
            self._transport.close()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self._handle(Started(_now(), self._weather.seed))

    def datagram_received(self, data: bytes, addr: Any) -> None:
        try:
            sender, message = self._decode(data)
        except msgspec.DecodeError:
            self.counted["not understood"] += 1
            return
        self.counted["received"] += 1
        if sender not in self._shunned and sender != self._name:
            self.peers[sender] = (addr[0], addr[1])
            self._handle(Received(_now(), sender, message))

    def error_received(self, exc: Exception) -> None:
        self.counted["refused by the network"] += 1  # nobody listens there yet, or any more

    # The machine.

    def _handle(self, given: Input) -> None:
        self.state, effects = self._machine.handle(self.state, given)
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(to, message):
                datagram = self._encode((self._name, message))
                for peer in [*self.peers] if to == EVERYBODY else [to]:
                    self._send(peer, datagram)
            case SetTimer(timer, at):
                self._cancel(timer)
                loop = asyncio.get_running_loop()
                self._timers[timer] = loop.call_later(max(0, at - _now()) / SECOND, self._fired, timer)
            case CancelTimer(timer):
                self._cancel(timer)
            case Deliver(what):
                self._deliver(what)
            case Drop(peer):
                self._shunned.add(peer)

    def _fired(self, timer: str) -> None:
        del self._timers[timer]
        self._handle(Fired(_now(), timer))

    def _cancel(self, timer: str) -> None:
        if (running := self._timers.pop(timer, None)) is not None:
            running.cancel()

    def _send(self, peer: Peer, datagram: bytes) -> None:
        if peer not in self.peers:
            self.counted["to nobody"] += 1
            return
        for _ in range(2 if self._random.random() < self._weather.twice else 1):
            if self._random.random() < self._weather.loss:
                self.counted["lost on purpose"] += 1
                continue
            self.counted["sent"] += 1
            late = self._random.uniform(0, self._weather.late) / SECOND
            if late:
                asyncio.get_running_loop().call_later(late, self._put, datagram, self.peers[peer])
            else:
                self._put(datagram, self.peers[peer])

    def _put(self, datagram: bytes, address: Address) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(datagram, address)


async def listen(host: UdpHost, address: Address) -> None:
    """Bind a host to an address and start its machine."""
    try:
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: host, local_addr=address)
    except OSError as error:
        raise InputError(f"cannot listen on {address[0]}:{address[1]}: {error.strerror or error}") from None


def _now() -> Instant:
    return time.time_ns() // 1_000
