"""A condition machine at a broker or client, with its state and its watermark.

Events advance the watermark. Between events the clock advances it: the watermark follows the clock at a
distance of the longest delay of any event. Conditions on live sensors therefore do not wait for further
events, and the clock does not disturb a replay of old readings.
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

    ``lag`` is the longest delay in µs between an event's time and its arrival. ``timer_at`` is the time for
    which a timer is set.
    """

    condition: NetworkCondition
    state: Any
    watermark: Instant = BEGINNING
    lag: Duration = BEGINNING
    timer_at: Instant | None = None

    @classmethod
    def start(cls, condition: NetworkCondition, raw: bytes | None = None) -> ConditionRunner:
        """Return a runner without events, or a runner that continues from the bytes of `to_bytes`.

        Raise a `UsageError` if the bytes are damaged.
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
        """Whether an event corrects earlier notifications. Its delay does not change ``lag``."""
        if event.time >= self.watermark or not isinstance(self.condition, SubscriberCondition):
            return False
        progress = self.condition.progress(self.state)
        return progress is not None and event.time < progress.notified_until

    def on_timer(self, now: Instant) -> list[Notification]:
        """Advance the watermark to the clock after the timer has fired; return the notifications."""
        self.timer_at, self.watermark = None, max(self.watermark, now - self.lag)
        self.state, transitions = advance_alone(self.condition.machine, self.state, self.watermark)
        return self.condition.to_notifications(transitions)

    def next_timer(self, extra: Instant | None = None) -> Instant | None:
        """Return the time for which to set the timer; ``None`` if it is set already. ``extra`` is a further
        time to wait for.
        """
        times = (at for at in (self.condition.machine.due(self.state), extra) if at is not None)
        due = min(times, default=None)
        if due is None or (self.timer_at is not None and self.timer_at <= due + self.lag + 1):
            return None
        self.timer_at = due + self.lag + 1
        return self.timer_at

    def to_bytes(self) -> bytes:
        """Serialize state, watermark and lag, so that another broker can continue."""
        return msgspec.msgpack.encode((self.condition.machine.dump(self.state), self.watermark, self.lag))
