"""The limit up to which the wall clock advances event time.

Readings advance event time. The wall clock does so only for topics whose feeds are connected and have no
backlog. It stays behind by the time that readings take to arrive, and never passes what the feeds delivered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..model.batch import times
from ..model.instant import SECOND, Duration, Instant
from .feeds.feed import Feed

_RECENT = 60 * SECOND
"""A source is recent if it has reported within this time before the last reading, at least."""


def read_until(feeds: Iterable[Feed], topics: Iterable[str], now: Instant) -> dict[str, Instant]:
    """Return the instant up to which the log has all readings, for each topic without a backlog."""
    lags_known = [(feed, feed.read_until()) for feed in feeds]
    advanced: dict[str, Instant] = {}
    for topic in topics:
        instants = [until for feed, until in lags_known if feed.serves(topic)]
        if None not in instants:
            advanced[topic] = min((until for until in instants if until is not None), default=now)
    return advanced


@dataclass
class Lags:
    """The lag of each topic: how long readings take from their time to their arrival.

    It is computed from the last reading of each recent source.
    """

    _latest: dict[str, dict[str, Duration]] = field(default_factory=dict)
    _before: dict[str, dict[str, Duration]] = field(default_factory=dict)
    _period_start: dict[str, Instant] = field(default_factory=dict)
    _last: dict[str, Instant] = field(default_factory=dict)

    def add(self, topic: str, source: str, lag: Duration, now: Instant) -> None:
        """Record that a reading of a source arrived at ``now``, ``lag`` after it was taken."""
        if now - self._period_start.get(topic, now - _RECENT - 1) > _RECENT:
            is_recent = now - self._last.get(topic, now) <= _RECENT
            self._before[topic] = self._latest.get(topic, {}) if is_recent else {}
            self._latest[topic], self._period_start[topic] = {}, now
        self._last[topic] = now
        self._latest[topic][source] = max(0, lag)

    def add_batch(self, topic: str, batch: pa.RecordBatch, now: Instant) -> None:
        """Record that a batch of readings arrived at ``now``."""
        sources = batch.column("source").dictionary_encode()
        names = sources.dictionary.to_pylist()
        last = np.full(len(names), np.iinfo(np.int64).min)
        np.maximum.at(last, sources.indices.to_numpy(), times(batch))
        for name, at in zip(names, last.tolist(), strict=True):
            self.add(topic, name, now - at, now)

    def of(self, topics: Iterable[str], spread: Duration) -> Duration | None:
        """Return the lag of topics that are evaluated together, or ``None`` if they have no recent reading.

        The result is the largest lag among recent sources that are behind the fastest by at most ``spread``.
        Sources further behind have watermarks of their own.
        """
        lags = [
            lag
            for topic in topics
            for lags_of_sources in (self._latest, self._before)
            for lag in lags_of_sources.get(topic, {}).values()
        ]
        most = min(lags, default=0) + spread
        return max((lag for lag in lags if lag <= most), default=None)


@dataclass
class WallTime:
    """Converts the wall clock to event time, given the readings in the order of the log."""

    idle: Duration
    """How long after an instant the wall clock alone advances event time beyond it."""
    lags: Lags = field(default_factory=Lags)
    lags_known: dict[str, Duration] = field(default_factory=dict)
    """The latest lag of each topic, which is valid until a reading arrives."""
    _advanced: dict[str, Instant] = field(default_factory=dict)
    _lag_at_start: dict[str, Duration] = field(default_factory=dict)

    def advance(
        self,
        read: Mapping[str, Instant],
        watermarks: Mapping[str, Instant],
        together: Iterable[Collection[str]],
        spread: Duration,
    ) -> dict[str, Instant]:
        """Return the event times to which the wall clock advances topics.

        Only topics are returned that advance by at least a second. `read` has, for each topic, the time up to
        which its feeds have delivered everything. `watermarks` has the current watermark of each topic.
        `together` are the groups of topics that are evaluated together. `spread` is the longest delay of an
        ordered condition.
        """
        advanced: dict[str, Instant] = {}
        for group in together:
            if not all(topic in read for topic in group):
                continue
            now = min(read[topic] for topic in group)
            lag = self.lags.of(group, self.idle + spread)
            if lag is None:  # use the lag that the previous process stored
                lag = max((self.lags_known[topic] for topic in group & self.lags_known.keys()), default=None)
            else:
                self.lags_known = self.lags_known | dict.fromkeys(group, lag)
            if lag is None:  # time continues from where it was when the service started
                for topic in group & watermarks.keys():
                    self._lag_at_start.setdefault(topic, max(0, now - watermarks[topic]))
                lag = max((self._lag_at_start[topic] for topic in group & watermarks.keys()), default=None)
            if lag is not None:
                at = now - self.idle - lag
                advanced |= {t: at for t in group if at - self._advanced.get(t, 0) >= SECOND}
        self._advanced |= advanced
        return advanced
