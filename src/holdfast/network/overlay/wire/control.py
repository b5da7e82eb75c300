"""Controls: messages between the two ends of a connection about the connection itself."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["broker", "client"]

LONGEST_REASON = 300


class Control(msgspec.Struct, frozen=True, array_like=True):
    """The base class of all controls. Unknown further fields are ignored."""


class HelloControl(Control, frozen=True, tag="hello"):
    """The caller's name, and the longest message in bytes that it accepts (0: unspecified).

    ``instance`` is a random value that stays the same when the caller calls again. It distinguishes a caller
    whose connection was lost without notice from another caller with the same name.
    """

    name: str
    role: Role = "client"
    nonce: bytes = b""
    instance: bytes = b""
    max_frame: int = 0


class Challenge(Control, frozen=True, tag="challenge"):
    """Asks the caller to prove that it knows the token."""

    nonce: bytes


class Proof(Control, frozen=True, tag="proof"):
    """The answer to a challenge."""

    proof: bytes


class Welcome(Control, frozen=True, tag="welcome"):
    """The listener's name, the proof that it knows the token, and the longest message that it accepts."""

    name: str
    proof: bytes = b""
    max_frame: int = 0


class Ping(Control, frozen=True, tag="ping"):
    """Asks the peer for a sign of life."""


class Pong(Control, frozen=True, tag="pong"):
    """The answer to a ping."""


class Bye(Control, frozen=True, tag="bye"):
    """The last message of one end. With ``final``, a new call would not succeed."""

    why: str
    final: bool = False

    @property
    def reason(self) -> str:
        """The reason as one short line for logs."""
        return "".join(c if c.isprintable() else " " for c in self.why[:LONGEST_REASON])


class Inquiry(Control, frozen=True, tag="inquiry"):
    """Asks for statistics, or for the value stored under the key ``about``."""

    about: str = ""


class AccountControl(Control, frozen=True, tag="account"):
    """The answer to an inquiry: counters by name, or a stored value."""

    counters: dict[str, int | float | str]


Controls = HelloControl | Challenge | Proof | Welcome | Ping | Pong | Bye | Inquiry | AccountControl
