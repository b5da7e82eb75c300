"""A feed that reads the samples of every declared topic from a DDS domain.

DDS acknowledges a sample when it arrives, not when it is on disk. It stores no samples for a service that is
not running. Use MQTT for readings that must not be lost.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cyclonedds.core import DDSException, InstanceState, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic as DdsTopic
from cyclonedds.util import duration

from ...errors import InputError
from ...model.instant import Duration, Instant
from ...model.topic import Topic
from ...runtimes.local.admission import conform_attributes
from ..dds import ALL, Membership, event_of, sample_of
from ..intake import Submission
from ..service import Service
from .arrival import check_arrival
from .feed import FeedStatus
from .submission import IncomingEvent, Rejected, lag_of, rejection

log = logging.getLogger("holdfast.service")

_AT_ONCE = 2_000


class _TopicReader(NamedTuple):
    """A topic with the reader of its samples. ``kind`` is the type of the samples."""

    topic: Topic
    kind: Any
    reader: DataReader[Any]


@dataclass
class DdsFeed:
    """A feed that submits the samples of a DDS domain as readings."""

    service: Service
    membership: Membership
    messages: int = 0
    connected: bool = False
    trouble: str | None = None
    lag: Duration | None = None
    _readers: dict[str, _TopicReader] = field(default_factory=dict)

    async def run(self) -> None:
        """Read samples and submit them as readings, until cancelled."""
        participant = self.membership.participant()
        while True:
            try:
                self._read(participant)
                self.connected, self.trouble = True, None
                if not await asyncio.to_thread(self._wait, participant):
                    continue
                for topic_reader in self._readers.values():
                    await self._take(topic_reader)
            except DDSException as error:
                log.warning("%s: %s", self.membership.name, error)
                self.connected, self.trouble = False, str(error)
                await asyncio.sleep(2)

    def _read(self, participant: DomainParticipant) -> None:
        """Create readers for newly declared topics, and replace the readers of changed topics."""
        for name, topic in self.service.topics.items():
            known = self._readers.get(name)
            if known is None or known.topic != topic:
                kind = sample_of(topic)
                reader = DataReader(participant, DdsTopic(participant, name, kind), qos=ALL)
                self._readers[name] = _TopicReader(topic, kind, reader)

    def _wait(self, participant: DomainParticipant) -> int:
        """Wait in a thread for samples, and return how many readers have some.

        The wait takes at most one second, because a new definition may declare topics meanwhile.
        """
        waiting = WaitSet(participant)
        unread = SampleState.NotRead | ViewState.Any | InstanceState.Any
        conditions = [ReadCondition(topic_reader.reader, unread) for topic_reader in self._readers.values()]
        for condition in conditions:
            waiting.attach(condition)
        count: int = waiting.wait(duration(seconds=1))
        for condition in conditions:
            waiting.detach(condition)
        return count

    async def _take(self, topic_reader: _TopicReader) -> None:
        now, incoming, rejected = self.service.clock(), list[IncomingEvent](), list[Rejected]()
        for sample in topic_reader.reader.take(_AT_ONCE):
            if not isinstance(sample, topic_reader.kind):  # a writer has left
                continue
            self.messages += 1
            try:
                event = event_of(topic_reader.topic, sample, now)
                if not event.source.strip():
                    raise InputError("it has no source")
                conform_attributes(topic_reader.topic, event.attributes)
                event, wrong = check_arrival(event, now)
            except Exception as error:  # a bad message must not end the feed
                content = repr(sample).encode(errors="replace")
                rejected.append(rejection("dds", topic_reader.topic.name, error, content, now))
                continue
            self.service.counts.corrected += wrong
            incoming.append(IncomingEvent(event))
        if incoming:
            await self.service.submit(Submission(incoming))
            self.lag = now - max(topic_reader.event.time for topic_reader in incoming)
        await self.service.reject(rejected)

    def serves(self, _topic: str) -> bool:
        return True

    def read_until(self) -> Instant | None:
        return self.service.clock() if self.connected else None

    def status(self) -> FeedStatus:
        """Return the status of the feed."""
        return {
            "name": self.membership.name, "kind": "dds", "connected": self.connected,
            "trouble": self.trouble, "caught_up": self.connected, "lag": lag_of(self.lag),
            "messages": self.messages, "waiting": 0, "dropped": 0,
        }  # fmt: skip
