"""Agents whose code came from somewhere else: it runs in a process of its own, and is believed nothing.

The host hands calls to a *worker* (`Work`), which answers later (`Worked`).  A strategy is Starlark source
with five functions.  What an agent remembers is a value that each call returns:

    start(me, others, relation) -> state
    read(state, reading)        -> state, wants      its publisher has said something
    hear(state, sender, said)   -> state, wants      another agent has
    lost(state, other)          -> state, wants      another agent cannot be reached
    found(state, other)         -> state, wants      it can be

What it wants is a list of ``say(to, message)`` and ``report(status, by, reading, value)``.  To whom it may
speak, how much and how often, the host decides; who it is, the host says.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from ...errors import UsageError
from ...model.instant import SECOND, Instant
from ...model.relation import Relation
from .talk import Knowledge, Reading, Report, Run, Say, Wants

STARLARK = "starlark"
"""The implementation of strategies whose code is shipped."""
LONGEST = 4 << 10
"""How many characters a message may have."""
BURST, RATE = 1_000, 100
"""How much an agent may say at once, and then in a second."""


FAR = sys.float_info.max
"""Stands for infinity, which Starlark takes from nobody."""


class Note(msgspec.Struct, frozen=True, tag=True):
    """What one shipped agent says to another, as JSON."""

    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """Call a function of an agent in a worker; the worker is started, with its code, when it is needed."""

    worker: str
    code: str
    agent: str
    call: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """A worker has nothing to do any more."""

    worker: str


@dataclass(frozen=True, slots=True)
class Worked:
    """What an agent wants, or why it ended."""

    agent: str
    wants: tuple[Any, ...] = ()
    fault: str | None = None


@dataclass
class Shipped:
    """An agent that runs elsewhere: all that it is given becomes a call."""

    name: str
    others: tuple[str, ...]
    relation: Relation
    is_first: bool = True
    """Whether its publisher is listed first; it may be the one that reports."""
    allowance: float = BURST
    since: Instant = 0
    hears: ClassVar[tuple[type, ...]] = (Note,)

    @property
    def reports(self) -> bool:
        return self.is_first

    def start(self, again: bool) -> Wants:
        relation = self.relation
        bounds = {
            word: (max(test.within.low, -FAR), min(test.within.high, FAR))
            for word, test in (("enter", relation.enter), ("exit", relation.exit))
        }
        about = {"kind": relation.kind, "is_first": self.is_first, "again": again}
        return [Run("start", (self.name, self.others, {**bounds, **about}))]

    def read(self, reading: Reading) -> Wants:
        return [Run("read", (reading._asdict(),))]

    def hear(self, sender: str, message: Note) -> Wants:
        return [Run("hear", (sender, msgspec.json.decode(message.text)))]

    def lost(self, other: str) -> Wants:
        return [Run("lost", (other,))]

    def found(self, other: str) -> Wants:
        return [Run("found", (other,))]

    def renew(self, other: str) -> Wants:
        """What it knew of the other, its code cannot keep: it is lost."""
        return [*self.lost(other), *self.found(other)]

    def knowledge(self) -> None:
        """What it remembers is a value of its own, in its worker."""

    def adopt(self, _knowledge: Knowledge) -> None:
        """What others knew, it cannot read."""

    def doubt(self) -> None:
        """It is told when it starts."""

    def reset(self, relation: Relation) -> Wants:
        self.relation = relation
        return self.start(True)

    # --- what it wants ---

    def wanted(self, raw: tuple[Any, ...], now: Instant) -> Wants:
        """What its code wants, once it is seen that it may."""
        self.allowance = min(BURST, self.allowance + RATE * max(0, now - self.since) / SECOND) - len(raw)
        self.since = now
        if self.allowance < 0:
            raise UsageError(f"it says more than {BURST} things at once, and then {RATE} a second")
        return [self._want(one) for one in raw]

    def _want(self, raw: Any) -> Say | Report:
        match raw:
            case {"say": str(to), "message": message} if to in self.others:
                text = msgspec.json.encode(message).decode()
                if len(text) > LONGEST:
                    raise UsageError(f"it says {len(text):,} characters at once; {LONGEST:,} may be")
                return Say(to, Note(text))
            case {"report": "ingress" | "egress" | "unknown" as status, "by": str(by), "value": value}:
                number = float(value) if isinstance(value, int | float) else math.nan
                return Report(status, by, _reading(raw.get("reading")), number)
            case {"say": to, "message": _}:
                raise UsageError(f"it wants to speak to {to!r}, who is none of its partners")
        raise UsageError("it wants something that is neither say(to, message) nor report(…)")


def _reading(raw: Any) -> Reading | None:
    if raw is None:
        return None
    try:
        return Reading(*msgspec.convert([raw[name] for name in Reading._fields], tuple[int, int, Any, float]))
    except (KeyError, TypeError, msgspec.MsgspecError):
        raise UsageError("it reports a reading that is none") from None
