"""Hosts of protocol machines on UDP: datagrams may get lost, arrive twice, or overtake each other.

Real networks do this rarely; ``DatagramFaults`` simulates it from a seed. A datagram carries its sender's
name, and the host stores the sender's address for answers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from random import Random
from typing import Any, cast

import msgspec

from ...errors import InputError, UsageError
from ...model.host import Actions, Host
from ...model.instant import SECOND, Duration
from ...model.protocol import EVERYBODY, Deliver, Drop, Peer, ProtocolMachine, Received, Send, Started
from .clock import LoopClock

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class DatagramFaults:
    """Simulated faults of sent datagrams, in addition to the faults of the real network."""

    loss: float = 0.0
    """The share of datagrams that are not sent."""
    twice: float = 0.0
    """The share of datagrams that are sent twice."""
    late: Duration = 0
    """The greatest delay in µs. Different delays make datagrams overtake each other."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("loss", "twice"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it is from 0 to below 1")
        if self.late < 0:
            raise UsageError(f"late is {self.late} µs; it must not be negative")


NO_FAULTS = DatagramFaults()


@dataclass(eq=False)
class UdpHost(asyncio.DatagramProtocol):
    """Runs a machine under a name. ``deliver`` receives its deliveries. Datagrams of dropped peers are
    ignored.
    """

    name: Peer
    machine: ProtocolMachine
    wire: InitVar[Any]
    """The type of the machine's messages."""
    peers: dict[Peer, Address]
    deliver: Callable[[Any], None]
    faults: DatagramFaults = NO_FAULTS
    counted: Counter[str] = field(default_factory=Counter, init=False)
    """The counters of datagrams, such as sent, received, and lost by simulated faults."""

    def __post_init__(self, wire: Any) -> None:
        self._random = Random(self.faults.seed)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(tuple[str, wire]).decode
        self._dropped_peers: set[Peer] = set()
        self._transport: asyncio.DatagramTransport | None = None
        actions: Actions = {
            Send: self._send,
            Deliver: lambda effect: self.deliver(effect.what),
            Drop: lambda effect: self._dropped_peers.add(effect.peer),
        }
        self._host = Host(self.machine, self.machine.initial(), LoopClock(), actions)

    @property
    def state(self) -> Any:
        """The present state of the machine."""
        return self._host.state

    @property
    def address(self) -> Address:
        """The host and port on which the host listens. It must have started."""
        assert self._transport is not None
        host, port, *_ = self._transport.get_extra_info("sockname")
        return host, port

    def ask(self, request: Any) -> None:
        """Pass a request of the user to the machine."""
        self._host.ask(request)

    def close(self) -> None:
        """Stop sending and receiving."""
        self._host.stop()
        if self._transport is not None:
            self._transport.close()

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        self._host.tell(Started, self.faults.seed)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        try:
            sender, message = self._decode(data)
        except msgspec.DecodeError:
            self.counted["not understood"] += 1
            return
        self.counted["received"] += 1
        if sender not in self._dropped_peers and sender != self.name:
            self.peers[sender] = (addr[0], addr[1])
            self._host.tell(Received, sender, message)

    def error_received(self, _exc: Exception) -> None:
        self.counted["refused by the network"] += 1  # no host listens at that address now

    # Effects of the machine.

    def _send(self, effect: Send) -> None:
        datagram = self._encode((self.name, effect.message))
        for peer in [*self.peers] if effect.to == EVERYBODY else [effect.to]:
            self._send_to(peer, datagram)

    def _send_to(self, peer: Peer, datagram: bytes) -> None:
        """Send a datagram to a peer, with the simulated faults."""
        if peer not in self.peers:
            self.counted["to nobody"] += 1
            return
        for _ in range(2 if self._random.random() < self.faults.twice else 1):
            if self._random.random() < self.faults.loss:
                self.counted["lost on purpose"] += 1
                continue
            self.counted["sent"] += 1
            late = self._random.uniform(0, self.faults.late) / SECOND
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
