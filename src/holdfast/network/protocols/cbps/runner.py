"""A condition machine at a broker or client, with its state and its watermark.

Events advance the watermark. Between events the clock does: the watermark follows the clock at a distance of
the longest delay of any event so far. So live sensors are followed by the clock, and a replay of old readings
is not disturbed by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ....engine.graph import advance_alone, push_alone
from ....errors import UsageError
from ....model.event import Event, Notification
from ....model.instant import BEGINNING, Duration, Instant
from .condition import NetworkCondition, SubscriberCondition


@dataclass(slots=True)
class ConditionRunner:
    """Runs one condition.

    ``watermark`` is the watermark, ``lag`` the longest delay between an event's time and its arrival, and
    ``timer_at`` the time for which a timer is set.
    """

    condition: NetworkCondition
    state: Any
    watermark: Instant = BEGINNING
    lag: Duration = BEGINNING
    timer_at: Instant | None = None

    @classmethod
    def start(cls, condition: NetworkCondition, raw: bytes | None = None) -> ConditionRunner:
        """Return a runner before any event, or one that continues from bytes of `to_bytes`.

        Raises a `UsageError` if the bytes are damaged.
        """
        if raw is None:
            return cls(condition, condition.machine.initial())
        try:
            state, watermark, lag = msgspec.msgpack.decode(raw, type=tuple[bytes, Instant, Duration])
            return cls(condition, condition.machine.load(state), watermark, lag)
        except Exception as error:
            raise UsageError(f"the state of '{condition.name}' is damaged: {error}") from error

    def process(self, event: Event, now: Instant) -> list[Notification]:
        """Process one event and advance the watermark to its time."""
        self.watermark = max(self.watermark, event.time)
        if not self._is_late(event):
            self.lag = max(self.lag, now - event.time)
        machine = self.condition.machine
        self.state, transitions = push_alone(machine, self.state, event, self.watermark)
        return self.condition.to_notifications(transitions)

    def _is_late(self, event: Event) -> bool:
        """Whether an event corrects earlier notifications; its delay does not count for ``lag``."""
        if event.time >= self.watermark or not isinstance(self.condition, SubscriberCondition):
            return False
        progress = self.condition.progress(self.state)
        return progress is not None and event.time < progress.notified_until

    def on_timer(self, now: Instant) -> list[Notification]:
        """Advance the watermark to the clock after the timer has fired."""
        self.timer_at, self.watermark = None, max(self.watermark, now - self.lag)
        self.state, transitions = advance_alone(self.condition.machine, self.state, self.watermark)
        return self.condition.to_notifications(transitions)

    def next_timer(self, extra: Instant | None = None) -> Instant | None:
        """Return the time to set the timer for, ``None`` if it is set; ``extra`` is a further time to wait
        for."""
        times = (at for at in (self.condition.machine.due(self.state), extra) if at is not None)
        due = min(times, default=None)
        if due is None or (self.timer_at is not None and self.timer_at <= due + self.lag + 1):
            return None
        self.timer_at = due + self.lag + 1
        return self.timer_at

    def to_bytes(self) -> bytes:
        """Serialize state, watermark and lag, to continue elsewhere."""
        return msgspec.msgpack.encode((self.condition.machine.dump(self.state), self.watermark, self.lag))
