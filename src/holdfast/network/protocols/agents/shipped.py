"""Agents with shipped code, which runs in a process of its own and is not trusted.

The host passes calls to a *worker* (`WorkerCall`), which answers later (`WorkerResult`). A strategy is
Starlark source with five functions. The state of an agent is a value that each call returns:

    start(me, others, relation) -> state
    read(state, reading)        -> state, wants      a reading of its publisher
    hear(state, sender, said)   -> state, wants      a message of another agent
    lost(state, other)          -> state, wants      another agent cannot be reached
    found(state, other)         -> state, wants      another agent can be reached

The outputs are a list of ``say(to, message)`` and ``report(status, by, reading, value)``. The host checks the
receivers, the number and the rate of messages, and adds the sender.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from ....errors import UsageError
from ....model.instant import SECOND, Instant
from ....model.relation import Relation
from .talk import Agent, AgentOutputs, AgentReading, AgentReport, RunCode, SendToAgent

STARLARK = "starlark"
"""The implementation name of shipped strategies."""
LONGEST = 4 << 10
"""The greatest length of a message in characters."""
BURST, RATE = 1_000, 100
"""The number of outputs that an agent may produce at once, and the number per second after that."""


FAR = sys.float_info.max
"""The number that stands for infinity, which Starlark does not accept."""


class ShippedMessage(msgspec.Struct, frozen=True, tag="Note"):
    """A message between shipped agents, as JSON."""

    text: str


class WorkerCall(msgspec.Struct, frozen=True):
    """A call of an agent's function in a worker. The worker is started with its code when needed."""

    worker: str
    code: str
    agent: str
    call: str
    arguments: tuple[Any, ...]


class WorkerDone(msgspec.Struct, frozen=True):
    """Reports that a worker has no agents any more and can be ended."""

    worker: str


class WorkerResult(msgspec.Struct, frozen=True):
    """The outputs of an agent's call, or the reason why it ended."""

    agent: str
    wants: tuple[Any, ...] = ()
    fault: str | None = None


@dataclass
class ShippedAgent(Agent):
    """An agent that runs in a worker. All its inputs become calls."""

    name: str
    others: tuple[str, ...]
    relation: Relation
    is_first: bool = True
    """Whether its publisher is listed first. Only that agent may report."""
    allowance: float = BURST
    since: Instant = 0
    accepts: ClassVar[tuple[type, ...]] = (ShippedMessage,)

    @property
    def reports(self) -> bool:
        return self.is_first

    def start(self, again: bool) -> AgentOutputs:
        """Return the call that starts the agent."""
        relation = self.relation
        bounds = {
            word: (max(test.within.low, -FAR), min(test.within.high, FAR))
            for word, test in (("enter", relation.enter), ("exit", relation.exit))
        }
        about = {"kind": relation.kind, "is_first": self.is_first, "again": again}
        return [RunCode("start", (self.name, self.others, {**bounds, **about}))]

    def on_reading(self, reading: AgentReading) -> AgentOutputs:
        return [RunCode("read", (reading._asdict(),))]

    def on_message(self, sender: str, message: ShippedMessage) -> AgentOutputs:
        return [RunCode("hear", (sender, msgspec.json.decode(message.text)))]

    def on_lost(self, other: str) -> AgentOutputs:
        return [RunCode("lost", (other,))]

    def on_found(self, other: str) -> AgentOutputs:
        return [RunCode("found", (other,))]

    def on_partner_changed(self, other: str) -> AgentOutputs:
        """Return calls that report the partner as lost and found. The code cannot keep its knowledge of the
        former instance.
        """
        return [*self.on_lost(other), *self.on_found(other)]

    def knowledge(self) -> None:
        """Return ``None``: the state of shipped code stays in its worker, and no other agent can adopt it."""

    def change_relation(self, relation: Relation) -> AgentOutputs:
        self.relation = relation
        return self.start(True)

    # --- outputs ---

    def check_outputs(self, raw: tuple[Any, ...], now: Instant) -> AgentOutputs:
        """Check the outputs of the code and convert them. Raise a `UsageError` if they are not allowed."""
        self.allowance = min(BURST, self.allowance + RATE * max(0, now - self.since) / SECOND) - len(raw)
        self.since = now
        if self.allowance < 0:
            raise UsageError(f"it sends more than {BURST} outputs at once, and then {RATE} a second")
        return [self._check_output(output) for output in raw]

    def _check_output(self, raw: Any) -> SendToAgent | AgentReport:
        """Convert one output; raise a `UsageError` if it is not allowed."""
        match raw:
            case {"say": str(to), "message": message} if to in self.others:
                text = msgspec.json.encode(message).decode()
                if len(text) > LONGEST:
                    raise UsageError(
                        f"its message has {len(text):,} characters; at most {LONGEST:,} are allowed"
                    )
                return SendToAgent(to, ShippedMessage(text))
            case {"report": "ingress" | "egress" | "unknown" as status, "by": str(by), "value": value}:
                number = float(value) if isinstance(value, int | float) else math.nan
                return AgentReport(status, by, _reading(raw.get("reading")), number)
            case {"say": to, "message": _}:
                raise UsageError(f"its message goes to {to!r}, which is not one of its partners")
        raise UsageError("its output is neither say(to, message) nor report(…)")


def _reading(raw: Any) -> AgentReading | None:
    """Convert a reading in a report of shipped code; ``None`` stays ``None``."""
    if raw is None:
        return None
    try:
        values = [raw[name] for name in AgentReading._fields]
        return AgentReading(*msgspec.convert(values, tuple[int, int, Any, float]))
    except (KeyError, TypeError, msgspec.MsgspecError):
        raise UsageError("its report has an invalid reading") from None
