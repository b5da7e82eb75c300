"""A broker understands any message from the wire, refuses it or drops the sender, and continues."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random

import pytest

from holdfast.errors import HoldfastError
from holdfast.model.host import Host
from holdfast.model.protocol import Deliver, Drop, Joined, Left, Received, Send, Started
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.wire.codec import codec
from holdfast.network.overlay.wire.fault import WireFault
from holdfast.network.overlay.wire.packed import unpack
from holdfast.network.protocols.agents.code_store import digest_of
from holdfast.network.protocols.agents.host import AgentHost
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import CbpsClient
from support.wire_mutants import CODE, frame, message

LONG = 50 * int(os.environ.get("HOLDFAST_EXAMPLES") or 2_000)
"""How many are tried in the long form; ``HOLDFAST_EXAMPLES=20000`` makes it a million."""
SOAK = [pytest.param(seed, LONG // 10, marks=pytest.mark.soak) for seed in range(10, 20)]

CODEC = codec("msgpack", 1 << 20)
PEERS = {"client": "client", "another": "client", "broker": "broker", "second": "broker", "third": ""}


MACHINES = {
    "broker": CbpsBroker(compile_condition, most=50, name="hub", limit=4_096),
    "client": CbpsClient("c", compile_condition),
    "agents": AgentHost(
        CbpsBroker(compile_condition, most=50, name="hub", limit=4_096),
        max_agents=20,
        allowed=frozenset((digest_of(CODE),)),
    ),
}


class Hosted:
    """A machine among peers that send arbitrary messages. A peer that it drops leaves and comes back."""

    def __init__(self, machine):
        self.now = 0
        actions = {Send: self._send, Deliver: lambda _: None, Drop: lambda effect: self._drop(effect.peer)}
        self.host = Host(machine, machine.initial(), self, actions, self._blame)
        self.host.tell(Started, 1)
        for peer, role in PEERS.items():
            self.host.tell(Joined, peer, role)

    def receive(self, peer, raw):
        """Receive a frame of a peer and advance time. Return whether the frame was a message."""
        self.now += 1_000
        try:
            output = unpack(raw)
        except WireFault:
            return False
        self.host.tell(Received, peer, output)
        for timer, at in list(self.host.timers.items()):
            if at <= self.now and timer in self.host.timers:
                self.host.fire(timer)
        return True

    def _send(self, effect):
        """Encode a message. Every sent message must fit, unless it is too long."""
        with suppress(WireFault):
            CODEC.encode(effect.message)

    def _blame(self, given, error):
        if not isinstance(error, HoldfastError):
            raise error
        if isinstance(given, Received):
            self._drop(given.sender)

    def _drop(self, peer):
        self.host.tell(Left, peer)
        self.host.tell(Joined, peer, PEERS[peer])

    def at(self, when, *_):
        return when

    def cancel(self, _timer):
        """The host has forgotten it."""


@pytest.mark.parametrize(("seed", "count"), [(1, 1_500), *SOAK])
@pytest.mark.parametrize("kind", MACHINES)
def test_machines_survive_random_frames_from_the_wire(kind, seed, count):
    random = Random(seed)
    it, taken = Hosted(MACHINES[kind]), 0
    for _ in range(count):
        raw = frame(random)
        try:
            taken += it.receive(random.choice([*PEERS]), raw)
        except BaseException as error:
            error.add_note(f"of seed {seed}, the frame {raw!r}")
            raise
    assert count / 3 < taken < count


@pytest.mark.parametrize(("seed", "count"), [(1, 500), *SOAK])
def test_random_xml_is_read_or_refused(seed, count):
    random = Random(seed)
    for _ in range(count):
        it = codec("xml", 1 << 18)
        raw = bytearray(it.encode(message(random)))
        for _ in range(random.choice((0, 1, 3))):
            at = random.randrange(len(raw))
            raw[at : at + random.randrange(3)] = random.choice(
                (b"", b"<", b'"', b"&#0;", b"\xff", b"9" * 30, b"/>")
            )
        try:
            list(it.receive(bytes(raw)))
        except WireFault:
            pass
        except BaseException as error:
            error.add_note(f"of seed {seed}, the text {bytes(raw)!r}")
            raise
