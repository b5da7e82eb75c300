"""A condition machine at work: its state, and how far event time has come.

Events tell it, as everywhere.  Between events the clock does: event time is as far behind it as the event
that came latest of all, so live sensors are followed by the clock, and old readings that are played again
are not disturbed by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ...errors import UsageError
from ...model.event import Event, Notification
from ...model.instant import BEGINNING, Duration, Instant
from .condition import Condition, Watchable


@dataclass(slots=True)
class Running:
    """``reached`` is how far event time has come, ``lag`` the longest that an event took to come, and
    ``wakes`` for when a timer is set."""

    condition: Condition
    state: Any
    reached: Instant = BEGINNING
    lag: Duration = BEGINNING
    wakes: Instant | None = None

    @classmethod
    def begun(cls, condition: Condition) -> Running:
        """Before any event."""
        return cls(condition, condition.machine.initial())

    def take(self, event: Event, now: Instant) -> list[Notification]:
        """Take one event, with which event time has come so far."""
        machine = self.condition.machine
        self.reached = max(self.reached, event.time)
        if not self._is_late(event):
            self.lag = max(self.lag, now - event.time)
        self.state, said = machine.react(self.state, event)
        if machine.is_timed:
            self.state, more = machine.advance(self.state, self.reached)
            said += more
        return self.condition.told(said)

    def _is_late(self, event: Event) -> bool:
        """Whether an event corrects what was told, so nobody need wait for its like."""
        if event.time >= self.reached or not isinstance(self.condition, Watchable):
            return False
        seen = self.condition.outlook(self.state)
        return seen is not None and event.time < seen.until

    def wake(self, now: Instant) -> list[Notification]:
        """The timer has run out: let event time come as far as the clock says."""
        self.wakes, self.reached = None, max(self.reached, now - self.lag)
        self.state, said = self.condition.machine.advance(self.state, self.reached)
        return self.condition.told(said)

    def timer(self, awaited: Instant | None = None) -> Instant | None:
        """When to set the timer for, if it must be set anew; somebody may wait for an instant to pass."""
        found = (at for at in (self.condition.machine.due(self.state), awaited) if at is not None)
        due = min(found, default=None)
        if due is None or (self.wakes is not None and self.wakes <= due + self.lag + 1):
            return None
        self.wakes = due + self.lag + 1
        return self.wakes

    def to_bytes(self) -> bytes:
        """All of it, to go on elsewhere."""
        return msgspec.msgpack.encode((self.condition.machine.to_bytes(self.state), self.reached, self.lag))

    @classmethod
    def resumed(cls, condition: Condition, raw: bytes) -> Running:
        """What goes on here; whoever sent bytes that are no state is at fault."""
        try:
            state, reached, lag = msgspec.msgpack.decode(raw, type=tuple[bytes, Instant, Duration])
            return cls(condition, condition.machine.from_bytes(state), reached, lag)
        except Exception as error:
            raise UsageError(f"the state of '{condition.name}' is damaged: {error}") from error
