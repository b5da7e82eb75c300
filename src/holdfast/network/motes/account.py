"""The account of a run: expected notifications, actual ones with their times, and messages sent for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ...model.event import Event, Notification, Status
from ...model.instant import MILLISECOND, Duration, Instant
from ...model.space import Point, Rectangle, contains
from ..sim.frame import NodeId
from ..sim.statistics import percentile, ratio
from .conditions import Evaluator

Row = dict[str, Any]
Key = tuple[str | None, str, Instant, Status]
"""Identifies a notification of a subscription by scope, source, time and status."""

WAITING, ON_THE_WAY, LOST = "waiting at its publisher", "on the way", "lost on the way"
IN_FLIGHT = (WAITING, ON_THE_WAY)
"""The fates of notifications that may still arrive."""


@dataclass(frozen=True, eq=False)
class NodeSubscription:
    """A subscription of one node: to a condition by name or, if ``plain``, to every event of its topics."""

    name: str
    node: NodeId
    topics: tuple[str, ...]
    """The topics whose events the subscription needs."""
    plain: bool = False
    start: Instant = 0
    stop: Instant | None = None
    region: Rectangle | None = None
    """The region to which the subscription is restricted; ``None`` for no restriction."""

    def takes(self, event: Event, place: Point | None) -> bool:
        """Return whether an event that was published at ``place`` counts for the subscription."""
        inside = self.region is None or contains(self.region, place)
        return event.topic in self.topics and self.at(event.time) and inside

    def at(self, time: Instant) -> bool:
        """Return whether the subscription is active at a time."""
        return self.start <= time and (self.stop is None or time < self.stop)


Fate = Callable[[NodeSubscription, Event], str]
"""A function that returns why a subscription was not notified of an event."""


@dataclass(slots=True)
class ExpectedDelivery:
    """An expected notification, with the time of its arrival; ``None`` if it has not arrived."""

    event: Event
    arrived: Instant | None = None

    @property
    def delay_ms(self) -> float | None:
        """The delay in ms from the event to the arrival; ``None`` if the notification did not arrive."""
        return None if self.arrived is None else (self.arrived - self.event.time) / MILLISECOND


@dataclass(slots=True)
class ExpectedDeliveries:
    """The notifications that a subscription should get without delays and losses.

    A notification that is caused by time alone is expected after ``allowance`` µs, because a subscriber waits
    that long for delayed events.
    """

    watch: Evaluator | None
    allowance: Duration
    deliveries: dict[Key, ExpectedDelivery] = field(default_factory=dict)
    unexpected: list[Notification] = field(default_factory=list)
    """The notifications that arrived but are not expected."""

    def publish(self, event: Event) -> None:
        """Evaluate an event of the subscription's topics, and store the expected notifications."""
        if self.watch is None:
            self._expect([Notification("", event, "atomic", None, None)])
        else:
            self._expect(self.watch.react(event))
            self.advance(event.time)

    def advance(self, now: Instant) -> None:
        """Advance the watermark to ``now`` minus the allowance."""
        if self.watch is not None:
            self._expect(self.watch.advance(now - self.allowance))

    def _expect(self, notifications: Iterable[Notification]) -> None:
        for notification in notifications:
            self.deliveries[_key(notification)] = ExpectedDelivery(notification.event)

    def record(self, notification: Notification, now: Instant) -> None:
        """Match an actual notification with an expected one; otherwise record it as unexpected."""
        delivery = self.deliveries.get(_key(notification))
        if delivery is None:
            self.unexpected.append(notification)
        elif delivery.arrived is None:
            delivery.arrived = now


def _key(notification: Notification) -> Key:
    return notification.scope, notification.event.source, notification.event.time, notification.status


class RunAccount:
    """The account of all subscriptions. Costs and rates exclude events and messages before ``since``."""

    def __init__(
        self,
        subscriptions: Mapping[NodeSubscription, Evaluator | None],
        now: Callable[[], Instant],
        since: Instant,
        allowance: Duration = 0,
    ) -> None:
        self._now, self._since, self.allowance = now, since, allowance
        self.expected = {sub: ExpectedDeliveries(watch, allowance) for sub, watch in subscriptions.items()}
        self.notifications: list[tuple[Instant, NodeSubscription, Notification]] = []
        self.published: list[Event] = []
        self._readings: Counter[NodeSubscription] = Counter()
        """The number of events that count for each subscription."""
        self.messages: Counter[str] = Counter()
        """The number of messages that nodes sent to one another end to end, by kind."""
        self._sent: Counter[str] = Counter()
        self._causes: dict[tuple[tuple[str, ...], str], str] = {}
        self._shared: dict[str, tuple[str, ...]] = {}

    # During the run.

    def publish(self, event: Event, place: Point | None = None) -> None:
        """Record that an application published an event at ``place``."""
        self.published.append(event)
        for sub, expected in self.expected.items():
            if sub.takes(event, place):
                self._readings[sub] += event.time >= self._since
                expected.publish(event)

    def notify(self, sub: NodeSubscription, notification: Notification) -> None:
        """Record a notification of a subscriber."""
        self.notifications.append((self._now(), sub, notification))

    def charge(self, names: Iterable[str], kind: str, word: str) -> str:
        """Record a message sent for the named subscriptions; return the cause to which its energy is
        charged.
        """
        asked = (tuple(names), word)
        if (cause := self._causes.get(asked)) is None:
            shared = tuple(dict.fromkeys(asked[0])) or ("all",)
            cause = self._causes[asked] = f"{'+'.join(shared)} {word}"
            self._shared[cause] = shared
        self.messages[kind] += 1
        self._sent[cause] += self._now() >= self._since
        return cause

    # After the run.

    def close(self) -> None:
        """Compare actual with expected notifications. Call this once, at the end of the run."""
        for expected in self.expected.values():
            expected.advance(self._now())
        for time, sub, notification in self.notifications:
            if sub.at(notification.event.time):
                self.expected[sub].record(notification, time)

    def delays(self) -> list[float | None]:
        """Return the delay in ms of each expected notification; ``None`` where it did not arrive."""
        return [delivery.delay_ms for _, delivery in self._due()]

    def rows(self, fate: Fate, millijoules: Mapping[str, float]) -> list[Row]:
        """Return a row of measures for each subscription. Costs that several subscriptions share are divided
        equally.
        """
        names = dict.fromkeys(sub.name for sub in self.expected)
        return [self._row(name, fate, millijoules) for name in names]

    def _row(self, name: str, fate: Fate, millijoules: Mapping[str, float]) -> Row:
        """Return the row of measures for the subscriptions with a name."""
        own = {sub: expected for sub, expected in self.expected.items() if sub.name == name}
        due = [(sub, delivery) for sub, delivery in self._due() if sub in own]
        delays = sorted(delay for _, delivery in due if (delay := delivery.delay_ms) is not None)
        fates = Counter(fate(sub, delivery.event) for sub, delivery in due if delivery.arrived is None)
        energy = self._share(name, millijoules)
        false = [notification for expected in own.values() for notification in expected.unexpected]
        return {
            "subscription": name,
            "subscribers": len(own),
            "readings": sum(self._readings[sub] for sub in own),
            "expected": len(due),
            "delivered": len(delays),
            "in_flight": sum(fates[why] for why in IN_FLIGHT),
            "lost": {why: count for why, count in sorted(fates.items()) if why not in IN_FLIGHT},
            "loss": ratio(sum(count for why, count in fates.items() if why not in IN_FLIGHT), len(due)),
            "unexpected": sum(notification.event.time >= self._since for notification in false),
            "delay_ms": fmean(delays) if delays else None,
            "delay_p95_ms": percentile(delays, 95),
            "messages": self._share(name, self._sent),
            "energy_mj": energy,
            "energy_per_delivery_mj": ratio(energy, len(delays)),
        }

    def _due(self) -> Iterator[tuple[NodeSubscription, ExpectedDelivery]]:
        """Yield the expected deliveries of events since the warm-up, each with its subscription."""
        for sub, expected in self.expected.items():
            for delivery in expected.deliveries.values():
                if delivery.event.time >= self._since:
                    yield sub, delivery

    def _share(self, name: str, by_cause: Mapping[str, float]) -> float:
        shared = self._shared.items()
        return sum(by_cause.get(cause, 0) / len(names) for cause, names in shared if name in names)
