"""The table of subscriptions of a topic, at an RN or, in modes without an RN's table, at a publisher."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

import msgspec

from ....model.instant import Duration, Instant
from ....model.protocol import Peer
from .interest import satisfies_all
from .level import BEST_EFFORT, is_reliable, strongest
from .message import EVERY_READER, PLAIN, DataMessage, DdsSubscribe, DdsUnsubscribe, Demand
from .topic import DdsTopic

ReaderKey = tuple[Peer, int]


@dataclass(slots=True)
class SubscriptionTable:
    """Subscriptions by subscriber and reader. The latest version counts, whatever the order of arrival."""

    topic: DdsTopic
    wishes: dict[ReaderKey, DdsSubscribe] = field(default_factory=dict)
    ended: dict[ReaderKey, Instant] = field(default_factory=dict)
    """For each reader, the version up to which its subscription has ended."""
    reliable_orders: dict[tuple[Peer, Peer], bool] = field(default_factory=dict)
    """For ARQoS: whether a receiver ordered reliable mode from an origin, by receiver and origin."""
    signs: dict[ReaderKey, Instant] = field(default_factory=dict)
    """The time of each reader's last sign of life."""

    def add(self, wish: DdsSubscribe, now: Instant) -> bool:
        """Add a subscription; return whether it is new.

        A repetition counts as a sign of life. An old version is ignored.
        """
        key = (wish.subscriber, wish.reader)
        known = self.wishes.get(key)
        ended = max(self.ended.get(key, 0), self.ended.get((wish.subscriber, EVERY_READER), 0))
        if wish.version < ended or (known is not None and known.version > wish.version):
            return False
        self.signs[key] = now
        if known is not None and known.version == wish.version:
            return False
        self.wishes[key] = wish
        return True

    def apply(self, wish: DdsSubscribe | DdsUnsubscribe, now: Instant) -> bool:
        """Add or end a subscription; return whether it is a new subscription."""
        if isinstance(wish, DdsSubscribe):
            return self.add(wish, now)
        self.remove(wish)
        return False

    def apply_all(self, wishes: Iterable[DdsSubscribe | DdsUnsubscribe], now: Instant) -> None:
        """Add or end several subscriptions."""
        for wish in wishes:
            self.apply(wish, now)

    def remove(self, wish: DdsUnsubscribe) -> None:
        """End one subscription, or all subscriptions of a subscriber."""
        key_to_end = (wish.subscriber, wish.reader)
        self.ended[key_to_end] = max(wish.version, self.ended.get(key_to_end, 0))
        older = [key for key, known in self.wishes.items() if known.version < wish.version]
        is_all = wish.reader == EVERY_READER
        self._forget([k for k in older if k == key_to_end or (is_all and k[0] == wish.subscriber)])

    def _forget(self, keys: list[ReaderKey]) -> None:
        """Remove entries, and the ARQoS orders of subscribers that have no entries left."""
        for key in keys:
            del self.wishes[key], self.signs[key]
        left = {subscriber for subscriber, _ in keys} - set(self.subscribers())
        for pair in [pair for pair in self.reliable_orders if pair[0] in left]:
            del self.reliable_orders[pair]

    def record_sign(self, subscriber: Peer, now: Instant) -> None:
        """Record a sign of life of a subscriber, such as an ACK."""
        for key in self.signs:
            if key[0] == subscriber:
                self.signs[key] = now

    def remove_lapsed(self, now: Instant, lease: Duration) -> list[Peer]:
        """Remove readers without a sign of life for a lease; return the subscribers that have no
        reader left.
        """
        lapsed = [key for key, at in self.signs.items() if now - at > lease]
        self._forget(lapsed)
        return sorted({subscriber for subscriber, _ in lapsed} - set(self.subscribers()))

    def subscribers(self) -> Iterator[Peer]:
        """Iterate over the subscribers, each of them once."""
        return iter(dict.fromkeys(subscriber for subscriber, _ in self.wishes))

    def recipients(self, data: DataMessage) -> dict[Peer, bool]:
        """Return the subscribers of a sample, and for each whether the sample must arrive. [D8, D13]

        Each copy has a bit of its own. A transition must arrive at all subscribers of its condition.
        """
        found: dict[Peer, bool] = {}
        origin, stream = data.name.origin, data.name.stream
        reading = data.values.get(self.topic.reading)
        for (peer, _), wish in self.wishes.items():
            if wish.condition == stream.condition and satisfies_all(wish.where, data.values):
                ordered = stream.condition != PLAIN or self.reliable_orders.get((peer, origin), False)
                needed = ordered or is_reliable(wish.level, reading, data.turns)
                found[peer] = found.get(peer, False) or (data.reliable and needed)
        return found

    def demand(self) -> Demand:
        """Return the combined demand of all subscribers; the default demand if there are none."""
        plain = [wish.level for wish in self.wishes.values() if wish.condition == PLAIN]
        conditions = sorted({wish.condition for wish in self.wishes.values()} - {PLAIN})
        level, turns = strongest(plain or [self.topic.level])
        return Demand(self.topic.id, level, bool(plain) or not conditions, tuple(conditions), turns)


def default_demand(topic: DdsTopic) -> Demand:
    """Return the default demand that publishers assume: all samples, at the topic's level."""
    level, turns = strongest([topic.level])
    return Demand(topic.id, level, turns=turns)


@lru_cache(1 << 10)
def digest(demand: Demand) -> int:
    """Return a number of 16 bits that identifies a demand. Samples carry it, so the RN detects outdated
    publishers.
    """
    return crc32(msgspec.msgpack.encode(demand)) & 0xFFFF


def must_confirm(wish: DdsSubscribe) -> bool:
    """Whether a publisher must confirm a subscription, because reliable delivery depends on it."""
    return wish.level != BEST_EFFORT or wish.condition != PLAIN
