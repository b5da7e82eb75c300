"""What two ends of a connection say to one another about the connection itself."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["broker", "client"]

LONGEST_REASON = 300


class Control(msgspec.Struct, frozen=True, array_like=True):
    """Anything said about the connection; what comes after more than we know is ignored."""


class Hello(Control, frozen=True, tag="hello"):
    """The end that called says who it is, and the longest message that it takes (0: it does not say).

    ``instance`` is the same whenever it calls again, and nobody else's: by it a connection that was lost
    without a word is told from somebody else of the same name.
    """

    name: str
    role: Role = "client"
    nonce: bytes = b""
    instance: bytes = b""
    max_frame: int = 0


class Challenge(Control, frozen=True, tag="challenge"):
    """The end that was called wants to be shown that the other knows the token."""

    nonce: bytes


class Proof(Control, frozen=True, tag="proof"):
    """The answer to a challenge."""

    proof: bytes


class Welcome(Control, frozen=True, tag="welcome"):
    """The end that was called says who it is, that it knows the token too, and the longest message that it
    takes."""

    name: str
    proof: bytes = b""
    max_frame: int = 0


class Ping(Control, frozen=True, tag="ping"):
    """Are you there?"""


class Pong(Control, frozen=True, tag="pong"):
    """I am."""


class Bye(Control, frozen=True, tag="bye"):
    """The last word of an end; with ``final`` it is of no use to come back."""

    why: str
    final: bool = False

    @property
    def reason(self) -> str:
        """Why, as it may stand in a log: one line, and not long."""
        return "".join(c if c.isprintable() else " " for c in self.why[:LONGEST_REASON])


class Inquiry(Control, frozen=True, tag="inquiry"):
    """How are you doing?  Or, what do you know ``about`` something?"""

    about: str = ""


class Account(Control, frozen=True, tag="account"):
    """What a broker has done so far, as counters by name."""

    counters: dict[str, int | float | str]


Controls = Hello | Challenge | Proof | Welcome | Ping | Pong | Bye | Inquiry | Account
