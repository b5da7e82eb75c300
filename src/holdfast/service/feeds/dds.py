"""Readings from a domain of DDS: the samples of every topic that is declared.

A sample is acknowledged by DDS when it is here, not when it is on disk: what must not be lost comes over
MQTT.  Nothing waits there for who is away.
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
from ...runtimes.local.admission import admitted
from ..dds import ALL, Membership, event_of, sample_of
from ..service import Service, Submission
from .arrival import arrived
from .submission import Given, Rejected, lag_of, rejection

log = logging.getLogger("holdfast.service")

_AT_ONCE = 2_000


class _Heard(NamedTuple):
    """A topic that is read; ``kind`` is the type of its samples."""

    topic: Topic
    kind: Any
    reader: DataReader[Any]


@dataclass
class DdsFeed:
    """A domain's samples as readings."""

    service: Service
    membership: Membership
    messages: int = 0
    connected: bool = False
    trouble: str | None = None
    lag: Duration | None = None
    _heard: dict[str, _Heard] = field(default_factory=dict)

    async def run(self) -> None:
        """Take samples until cancelled."""
        participant = self.membership.participant()
        while True:
            try:
                self._read(participant)
                self.connected, self.trouble = True, None
                if not await asyncio.to_thread(self._wait, participant):
                    continue
                for one in self._heard.values():
                    await self._take(one)
            except DDSException as error:
                log.warning("%s: %s", self.membership.name, error)
                self.connected, self.trouble = False, str(error)
                await asyncio.sleep(2)

    def _read(self, participant: DomainParticipant) -> None:
        """Readers for the topics that are declared now; a topic that has become another is read anew."""
        for name, topic in self.service.topics.items():
            known = self._heard.get(name)
            if known is None or known.topic != topic:
                kind = sample_of(topic)
                reader = DataReader(participant, DdsTopic(participant, name, kind), qos=ALL)
                self._heard[name] = _Heard(topic, kind, reader)

    def _wait(self, participant: DomainParticipant) -> int:
        """Until something has come, a second at most: a definition may have brought topics."""
        waiting = WaitSet(participant)
        anything = SampleState.NotRead | ViewState.Any | InstanceState.Any
        conditions = [ReadCondition(one.reader, anything) for one in self._heard.values()]
        for condition in conditions:
            waiting.attach(condition)
        come: int = waiting.wait(duration(seconds=1))
        for condition in conditions:
            waiting.detach(condition)
        return come

    async def _take(self, heard: _Heard) -> None:
        now, given, rejected = self.service.clock(), list[Given](), list[Rejected]()
        for sample in heard.reader.take(_AT_ONCE):
            if not isinstance(sample, heard.kind):  # a writer has gone
                continue
            self.messages += 1
            try:
                event = event_of(heard.topic, sample, now)
                if not event.source.strip():
                    raise InputError("it has no source")
                admitted(heard.topic, event.attributes)
                event, wrong = arrived(event, now)
            except Exception as error:  # whatever it is, the feed goes on
                said = repr(sample).encode(errors="replace")
                rejected.append(rejection("dds", heard.topic.name, error, said, now))
                continue
            self.service.counts.corrected += wrong
            given.append(Given(event))
        if given:
            await self.service.submit(Submission(given))
            self.lag = now - max(one.event.time for one in given)
        await self.service.reject(rejected)

    def serves(self, _topic: str) -> bool:
        return True

    def read_until(self) -> Instant | None:
        return self.service.clock() if self.connected else None

    def status(self) -> dict[str, Any]:
        """How it stands."""
        return {
            "name": self.membership.name, "kind": "dds", "connected": self.connected,
            "trouble": self.trouble, "caught_up": self.connected, "lag": lag_of(self.lag),
            "messages": self.messages, "waiting": 0, "dropped": 0,
        }  # fmt: skip
