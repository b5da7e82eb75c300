"""The handshake: names, and the proof that both ends know the token.

The token itself is never sent. Each end sends a random number, and the other end answers with a keyed digest
(HMAC) of both numbers and the caller's name. The caller sends its proof first, so that a broker reveals
nothing to strangers.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ....errors import UsageError
from ...protocols.wire_name import wire_name
from ..wire.control import Bye, Challenge, Control, HelloControl, Proof, Role, Welcome
from ..wire.fault import ConnectionRefused, WireFault

NONCE = 32
LONGEST_NAME = 200
SHORTEST_TOKEN = 16
SMALLEST_FRAME = 1 << 10
"""The message length in bytes that every end accepts."""


def read_token(path: Path) -> bytes:
    """Read the token from a file, without surrounding blanks; raise an error if it is too short."""
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"--token-file {path}: {error.strerror}") from error
    if len(token) < SHORTEST_TOKEN:
        why = f"a token has at least {SHORTEST_TOKEN} characters"
        raise UsageError(f"--token-file {path}: {why}; make one with: openssl rand -hex 32 > {path}")
    return token


def _proof(token: bytes, side: str, name: str, called: bytes, caller: bytes) -> bytes:
    return hmac.digest(token, msgspec.msgpack.encode((side, name, called, caller)), "sha256")


def _require_frame(greeting: HelloControl | Welcome) -> int:
    if 0 < greeting.max_frame < SMALLEST_FRAME or greeting.max_frame < 0:
        why = f"messages of {SMALLEST_FRAME} bytes must be taken, not of {greeting.max_frame} at most"
        raise ConnectionRefused(why)
    return greeting.max_frame


def _require_name(name: str) -> None:
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ConnectionRefused(f"a name has 1 to {LONGEST_NAME} printable characters, not {name[:50]!r}")


@dataclass
class Caller:
    """The end that connects.

    ``peer`` is the other end's name after success. ``takes`` is the longest message that the other end
    accepts in bytes, 0 if unknown.
    """

    name: str
    role: Role
    token: bytes | None
    nonce: bytes
    instance: bytes = b""
    max_frame: int = 0
    challenge: bytes = b""
    peer: str | None = None
    takes: int = 0

    def opening(self) -> list[Control]:
        """Return the messages with which the caller begins the handshake."""
        return [HelloControl(self.name, self.role, self.nonce, self.instance, self.max_frame)]

    def receive(self, control: Control) -> list[Control]:
        """Process a message of the listener; return the answer. Raise a `ConnectionRefused` if the ends
        cannot agree.
        """
        match control:
            case Challenge(nonce) if not self.challenge and len(nonce) == NONCE:
                if self.token is None:
                    raise ConnectionRefused("the broker asks for a token: give --token-file")
                self.challenge = nonce
                return [Proof(_proof(self.token, "caller", self.name, nonce, self.nonce))]
            case Welcome(name, proof):
                if self.token is not None:
                    self._require_proof(proof)
                _require_name(name)
                self.peer, self.takes = name, _require_frame(control)
                return []
            case Bye():
                kind = ConnectionRefused if control.final else WireFault
                raise kind(f"the broker says: {control.reason}")
        raise WireFault(f"{wire_name(control)} is not allowed in a greeting")

    def _require_proof(self, proof: bytes) -> None:
        assert self.token is not None
        if not self.challenge:
            why = "the broker asks for no token: start it with --token-file, or leave it out here"
            raise ConnectionRefused(why)
        expected = _proof(self.token, "called", self.name, self.challenge, self.nonce)
        if not hmac.compare_digest(proof, expected):
            raise ConnectionRefused("the broker does not know the token")


@dataclass
class Listener:
    """The end that listens. ``peer`` and ``role`` describe the other end once it is trusted."""

    name: str
    token: bytes | None
    nonce: bytes
    max_frame: int = 0
    hello: HelloControl | None = None
    peer: str | None = None
    role: Role = "client"
    takes: int = 0

    @property
    def instance(self) -> bytes:
        """A random value that identifies the other end when it calls again."""
        return b"" if self.hello is None else self.hello.instance

    def receive(self, control: Control) -> list[Control]:
        """Process a message of the caller; return the answer."""
        match control:
            case HelloControl(name, role) if self.hello is None:
                _require_name(name)
                self.hello, self.role, self.takes = control, role, _require_frame(control)
                if self.token is None:
                    self.peer = name
                    return [Welcome(self.name, max_frame=self.max_frame)]
                if len(control.nonce) != NONCE:
                    raise ConnectionRefused(f"the nonce of a greeting has {NONCE} bytes")
                return [Challenge(self.nonce)]
            case Proof(proof) if self.token is not None and self.hello is not None:
                known = (self.hello.name, self.nonce, self.hello.nonce)
                if not hmac.compare_digest(proof, _proof(self.token, "caller", *known)):
                    raise ConnectionRefused("the token is wrong")
                self.peer = self.hello.name
                return [Welcome(self.name, _proof(self.token, "called", *known), self.max_frame)]
            case Bye():
                raise WireFault(f"the peer says: {control.reason}")
        raise WireFault(f"{wire_name(control)} is not allowed in a greeting")
