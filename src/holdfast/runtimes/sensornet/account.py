"""The books of a run: what should be told to whom, what was told when, and what was sent for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ...model.event import Event, Notification, Status
from ...model.instant import MILLISECOND, Duration, Instant
from ...model.space import Point, Rectangle, contains
from ...sim.frame import NodeId
from ...sim.statistics import percentile, ratio
from .conditions import Watch

Row = dict[str, Any]
Key = tuple[str | None, str, Instant, Status]
"""What tells deliveries of a subscription apart: scope, source, time, status."""

WAITING, ON_THE_WAY, LOST = "waiting at its publisher", "on the way", "lost on the way"
IN_FLIGHT = (WAITING, ON_THE_WAY)
"""Fates of what may still come."""


@dataclass(frozen=True, eq=False)
class Wish:
    """A node's wish to know: a subscription or, if it is ``plain``, every event of a topic."""

    name: str
    node: NodeId
    topics: tuple[str, ...]
    """Whose events it is about."""
    plain: bool = False
    start: Instant = 0
    stop: Instant | None = None
    region: Rectangle | None = None
    """If it is only about events from there."""

    def takes(self, event: Event, place: Point | None) -> bool:
        """Whether it is about an event that was published at a place."""
        inside = self.region is None or contains(self.region, place)
        return event.topic in self.topics and self.at(event.time) and inside

    def at(self, time: Instant) -> bool:
        """Whether it is one then."""
        return self.start <= time and (self.stop is None or time < self.stop)


@dataclass(slots=True)
class Delivery:
    """Something that a subscriber should be told, and when it was."""

    event: Event
    came: Instant | None = None


@dataclass(slots=True)
class Expected:
    """What a wish should be told of what was published, without a network; of what time alone decides, only
    what whoever waits for ``allowance`` can know."""

    watch: Watch | None
    allowance: Duration
    deliveries: dict[Key, Delivery] = field(default_factory=dict)
    unexpected: list[Notification] = field(default_factory=list)
    """What was told and is not so."""

    def publish(self, event: Event) -> None:
        """An event of its topic was published."""
        if self.watch is None:
            self._expect([Notification("", event, "atomic", None, None)])
        else:
            self._expect(self.watch.react(event))
            self.advance(event.time)

    def advance(self, now: Instant) -> None:
        """Time has come so far."""
        if self.watch is not None:
            self._expect(self.watch.advance(now - self.allowance))

    def _expect(self, told: Iterable[Notification]) -> None:
        for each in told:
            self.deliveries[_key(each)] = Delivery(each.event)

    def told(self, what: Notification, now: Instant) -> None:
        """The subscriber was told something."""
        delivery = self.deliveries.get(_key(what))
        if delivery is None:
            self.unexpected.append(what)
        elif delivery.came is None:
            delivery.came = now


def _delay(event: Event, came: Instant) -> float:
    return (came - event.time) / MILLISECOND


def _key(told: Notification) -> Key:
    return told.scope, told.event.source, told.event.time, told.status


class Account:
    """All of it; what was published or sent before ``since`` is left out of what subscriptions cost."""

    def __init__(
        self,
        wishes: Mapping[Wish, Watch | None],
        now: Callable[[], Instant],
        since: Instant,
        allowance: Duration = 0,
    ) -> None:
        self._now, self._since, self.allowance = now, since, allowance
        self.expected = {wish: Expected(watch, allowance) for wish, watch in wishes.items()}
        self.told: list[tuple[Instant, Wish, Notification]] = []
        self.published: list[Event] = []
        self._readings: Counter[Wish] = Counter()
        """How many events each wish is about."""
        self.messages: Counter[str] = Counter()
        """What nodes sent to one another end to end, by kind."""
        self._sent: Counter[str] = Counter()
        self._causes: dict[tuple[tuple[str, ...], str], str] = {}
        self._shared: dict[str, tuple[str, ...]] = {}

    # What happens.

    def publish(self, event: Event, place: Point | None = None) -> None:
        """An application has published an event, there."""
        self.published.append(event)
        for wish, expected in self.expected.items():
            if wish.takes(event, place):
                self._readings[wish] += event.time >= self._since
                expected.publish(event)

    def tell(self, wish: Wish, what: Notification) -> None:
        """A subscriber was told something."""
        self.told.append((self._now(), wish, what))

    def charge(self, names: Iterable[str], kind: str, word: str) -> str:
        """A message of a kind leaves a node for these subscriptions: the cause that it is accounted under."""
        asked = (tuple(names), word)
        if (cause := self._causes.get(asked)) is None:
            shared = tuple(dict.fromkeys(asked[0])) or ("all",)
            cause = self._causes[asked] = f"{'+'.join(shared)} {word}"
            self._shared[cause] = shared
        self.messages[kind] += 1
        self._sent[cause] += self._now() >= self._since
        return cause

    # What came of it.

    def close(self) -> None:
        """Nothing more will happen: see what came of what was expected."""
        for expected in self.expected.values():
            expected.advance(self._now())
        for time, wish, what in self.told:
            if wish.at(what.event.time):
                self.expected[wish].told(what, time)

    def delays(self) -> list[float | None]:
        """The delay (ms) of each expected delivery to a subscriber; none where it did not arrive."""
        due = (each for expected in self.expected.values() for each in self._counted(expected))
        return [None if (came := each.came) is None else _delay(each.event, came) for each in due]

    def rows(self, fate: Callable[[Wish, Event], str], millijoules: Mapping[str, float]) -> list[Row]:
        """A row for each subscription; what serves several is charged to them in equal parts."""
        names = dict.fromkeys(wish.name for wish in self.expected)
        return [self._row(name, fate, millijoules) for name in names]

    def _row(self, name: str, fate: Callable[[Wish, Event], str], millijoules: Mapping[str, float]) -> Row:
        mine = {wish: expected for wish, expected in self.expected.items() if wish.name == name}
        due = [(wish, each) for wish, expected in mine.items() for each in self._counted(expected)]
        delays = sorted(_delay(each.event, each.came) for _, each in due if each.came is not None)
        fates = Counter(fate(wish, each.event) for wish, each in due if each.came is None)
        energy = self._share(name, millijoules)
        false = [what for expected in mine.values() for what in expected.unexpected]
        return {
            "subscription": name,
            "subscribers": len(mine),
            "readings": sum(self._readings[wish] for wish in mine),
            "expected": len(due),
            "delivered": len(delays),
            "in_flight": sum(fates[why] for why in IN_FLIGHT),
            "lost": {why: count for why, count in sorted(fates.items()) if why not in IN_FLIGHT},
            "loss": ratio(sum(count for why, count in fates.items() if why not in IN_FLIGHT), len(due)),
            "unexpected": sum(what.event.time >= self._since for what in false),
            "delay_ms": fmean(delays) if delays else None,
            "delay_p95_ms": percentile(delays, 95),
            "messages": self._share(name, self._sent),
            "energy_mj": energy,
            "energy_per_delivery_mj": ratio(energy, len(delays)),
        }

    def _counted(self, expected: Expected) -> list[Delivery]:
        return [each for each in expected.deliveries.values() if each.event.time >= self._since]

    def _share(self, name: str, by_cause: Mapping[str, float]) -> float:
        return sum(
            by_cause.get(cause, 0) / len(names) for cause, names in self._shared.items() if name in names
        )
