"""Who wants what of a topic: the table of an RN, or of a publisher without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

import msgspec

from ...model.instant import Duration, Instant
from ...model.protocol import Peer
from .interest import holds
from .level import BEST_EFFORT, is_reliable, strongest
from .message import EVERY_READER, PLAIN, Data, Demand, Subscribe, Unsubscribe
from .topic import Topic

ReaderKey = tuple[Peer, int]


@dataclass(slots=True)
class Registry:
    """Wishes by subscriber and reader.  Of each the latest version counts, in whatever order they come."""

    topic: Topic
    wishes: dict[ReaderKey, Subscribe] = field(default_factory=dict)
    withdrawn: dict[ReaderKey, Instant] = field(default_factory=dict)
    """The versions up to which subscriptions are over."""
    switched: dict[tuple[Peer, Peer], bool] = field(default_factory=dict)
    """ARQoS: receivers that ordered an origin to reliable mode."""
    signs: dict[ReaderKey, Instant] = field(default_factory=dict)
    """When each reader was heard of last."""

    def add(self, wish: Subscribe, now: Instant) -> bool:
        """Take a subscription; whether it is new.  Repetitions are signs of life, old ones change nothing."""
        key = (wish.subscriber, wish.reader)
        known = self.wishes.get(key)
        over = max(self.withdrawn.get(key, 0), self.withdrawn.get((wish.subscriber, EVERY_READER), 0))
        if wish.version < over or (known is not None and known.version > wish.version):
            return False
        self.signs[key] = now
        if known is not None and known.version == wish.version:
            return False
        self.wishes[key] = wish
        return True

    def remove(self, wish: Unsubscribe) -> None:
        """End a subscription, or all of a subscriber."""
        asked = (wish.subscriber, wish.reader)
        self.withdrawn[asked] = max(wish.version, self.withdrawn.get(asked, 0))
        over = [
            key
            for key, known in self.wishes.items()
            if known.version < wish.version
            and (key == asked or (wish.reader == EVERY_READER and key[0] == wish.subscriber))
        ]
        self._forget(over)

    def _forget(self, keys: list[ReaderKey]) -> None:
        for key in keys:
            del self.wishes[key], self.signs[key]
        left = {subscriber for subscriber, _ in keys} - set(self.subscribers())
        for pair in [pair for pair in self.switched if pair[0] in left]:
            del self.switched[pair]

    def heard(self, subscriber: Peer, now: Instant) -> None:
        """A subscriber shows that it is there, by an ACK."""
        for key in self.signs:
            if key[0] == subscriber:
                self.signs[key] = now

    def lapse(self, now: Instant, lease: Duration) -> list[Peer]:
        """Forget readers without a sign of life for a lease; who has none left."""
        over = [key for key, at in self.signs.items() if now - at > lease]
        self._forget(over)
        return sorted({subscriber for subscriber, _ in over} - set(self.subscribers()))

    def subscribers(self) -> Iterator[Peer]:
        """Everybody who wants something, once."""
        return iter(dict.fromkeys(subscriber for subscriber, _ in self.wishes))

    def recipients(self, data: Data) -> dict[Peer, bool]:
        """Who wants a sample, and who needs it: each subscriber's copy has a bit of its own.  [D8, D13]

        A transition must arrive with all who watch the condition.
        """
        found: dict[Peer, bool] = {}
        origin, stream = data.name.origin, data.name.stream
        reading = data.values.get(self.topic.reading)
        for (peer, _), wish in self.wishes.items():
            if wish.condition == stream.condition and holds(wish.where, data.values):
                needed = (
                    stream.condition != PLAIN
                    or is_reliable(wish.level, reading, data.turns)
                    or self.switched.get((peer, origin), False)
                )
                found[peer] = found.get(peer, False) or (data.reliable and needed)
        return found

    def demand(self) -> Demand:
        """What publishers must know; without subscribers, and in the usual case, the default."""
        plain = [wish.level for wish in self.wishes.values() if wish.condition == PLAIN]
        conditions = sorted({wish.condition for wish in self.wishes.values()} - {PLAIN})
        level, turns = strongest(plain or [self.topic.level])
        return Demand(self.topic.id, level, bool(plain) or not conditions, tuple(conditions), turns)


def usual(topic: Topic) -> Demand:
    """What publishers assume that nobody told otherwise: all samples are wanted, at the topic's level."""
    level, turns = strongest([topic.level])
    return Demand(topic.id, level, turns=turns)


@lru_cache(1 << 10)
def digest(demand: Demand) -> int:
    """Two bytes that tell one demand from another; samples carry them, so the RN sees what was heard."""
    return crc32(msgspec.msgpack.encode(demand)) & 0xFFFF


def must_recognise(wish: Subscribe) -> bool:
    """Whether a publisher must know of it, or something is lost that was promised."""
    return wish.level != BEST_EFFORT or wish.condition != PLAIN
