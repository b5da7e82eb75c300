"""How far the wall clock may let event time come: never beyond what the feeds have brought.

Events advance event time.  The wall clock does so only for topics whose feeds are connected and have read
all that was published, and stays behind by what readings take to arrive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from ..model.batch import times
from ..model.instant import SECOND, Duration, Instant

_RECENT = 60 * SECOND
"""Sources that have reported within as long before the last reading count as those of now, at least."""


class Feed(Protocol):
    """Where readings come from, as far as time is concerned."""

    def serves(self, topic: str, /) -> bool:
        """Whether it may bring readings of a topic."""

    def read_until(self) -> Instant | None:
        """The instant of the wall clock up to which the log has all that was published; nothing if the feed
        is not connected, or there may be a backlog."""


def read_until(feeds: Iterable[Feed], topics: Iterable[str], now: Instant) -> dict[str, Instant]:
    """For each topic of which all feeds have caught up, up to when they have brought all of it."""
    known = [(feed, feed.read_until()) for feed in feeds]
    found: dict[str, Instant] = {}
    for topic in topics:
        mine = [until for feed, until in known if feed.serves(topic)]
        if None not in mine:
            found[topic] = min((until for until in mine if until is not None), default=now)
    return found


@dataclass
class Lags:
    """How long readings take from their time to their arrival, by the last of each source of late."""

    _latest: dict[str, dict[str, Duration]] = field(default_factory=dict)
    _before: dict[str, dict[str, Duration]] = field(default_factory=dict)
    _begun: dict[str, Instant] = field(default_factory=dict)
    _last: dict[str, Instant] = field(default_factory=dict)

    def add(self, topic: str, source: str, lag: Duration, now: Instant) -> None:
        """A reading has arrived."""
        if now - self._begun.get(topic, now - _RECENT - 1) > _RECENT:
            is_recent = now - self._last.get(topic, now) <= _RECENT
            self._before[topic] = self._latest.get(topic, {}) if is_recent else {}
            self._latest[topic], self._begun[topic] = {}, now
        self._last[topic] = now
        self._latest[topic][source] = max(0, lag)

    def add_batch(self, topic: str, batch: pa.RecordBatch, now: Instant) -> None:
        """Readings have arrived together."""
        sources = batch.column("source").dictionary_encode()
        names = sources.dictionary.to_pylist()
        last = np.full(len(names), np.iinfo(np.int64).min)
        np.maximum.at(last, sources.indices.to_numpy(), times(batch))
        for name, at in zip(names, last.tolist(), strict=True):
            self.add(topic, name, now - at, now)

    def of(self, topics: Iterable[str], spread: Duration) -> Duration | None:
        """The lag of topics that are evaluated together: of the latest sources that which is the most among
        those that are behind the first by no more than a spread; nothing if no reading has come.  Others have
        a time of their own."""
        lags = [
            lag
            for topic in topics
            for some in (self._latest, self._before)
            for lag in some.get(topic, {}).values()
        ]
        most = min(lags, default=0) + spread
        return max((lag for lag in lags if lag <= most), default=None)


@dataclass
class WallTime:
    """What the wall clock makes of event time, given the readings in the order of the log."""

    idle: Duration
    """How long after an instant the wall clock alone says that it has passed."""
    lags: Lags = field(default_factory=Lags)
    known: dict[str, Duration] = field(default_factory=dict)
    """The lag of each topic that was found last, which holds until a reading comes."""
    _advanced: dict[str, Instant] = field(default_factory=dict)
    _resumed: dict[str, Duration] = field(default_factory=dict)

    def advance(
        self,
        read: Mapping[str, Instant],
        reached: Mapping[str, Instant],
        together: Iterable[Collection[str]],
        spread: Duration,
    ) -> dict[str, Instant]:
        """How far event time has come by the wall clock, for topics where that is a second more than before.

        ``read`` is up to when the feeds have brought all of a topic, ``reached`` how far its event time has
        come, ``together`` which topics are evaluated together, ``spread`` how much disorder is waited for.
        """
        found: dict[str, Instant] = {}
        for group in together:
            if not all(topic in read for topic in group):
                continue
            now = min(read[topic] for topic in group)
            lag = self.lags.of(group, self.idle + spread)
            if lag is None:  # as the service before this one found it
                lag = max((self.known[topic] for topic in group & self.known.keys()), default=None)
            else:
                self.known = self.known | dict.fromkeys(group, lag)
            if lag is None:  # time goes on from where it was when the service started
                for topic in group & reached.keys():
                    self._resumed.setdefault(topic, max(0, now - reached[topic]))
                lag = max((self._resumed[topic] for topic in group & reached.keys()), default=None)
            if lag is not None:
                at = now - self.idle - lag
                found |= {t: at for t in group if at - self._advanced.get(t, 0) >= SECOND}
        self._advanced |= found
        return found
