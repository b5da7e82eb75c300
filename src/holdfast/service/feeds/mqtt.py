"""A feed that reads from an MQTT broker and acknowledges messages after the log has them.

A message of quality 1 stays with the broker until it is acknowledged. If the service was killed in between,
the broker sends the message again, and its number and content identify the repetition.

A broker does not report where its backlog ends. So the feed publishes a heartbeat every second to a channel
of its own, which queues behind all messages published before. When a heartbeat returns, the log has
everything that was published before it was sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from uuid import uuid4

from paho.mqtt.reasoncodes import ReasonCode

from ...errors import InputError
from ...model.event import Event
from ...model.instant import SECOND, Duration, Instant
from ..intake import Submission
from ..mqtt.broker import MqttBroker
from ..mqtt.packets import Message, MqttSubscription
from ..mqtt.subscriber import MqttSubscriber
from ..service import Service
from .feed import FeedStatus
from .mapping import Found, Metrics, Route, finder, read
from .quick import QuickReader
from .sparkplug import Nodes
from .submission import NOWHERE, IncomingEvent, Rejected, lag_of, origin, rejection

log = logging.getLogger("holdfast.service")

BEAT = 1.0
"""Seconds between heartbeats."""
QUIET = 2.0
"""Seconds without a message after which a feed without heartbeats is assumed to have read its backlog."""
OVERDUE = 10.0
"""Seconds after which a heartbeat that the broker has acknowledged but not delivered will not come,
because the client may not read the channel."""
UNACKNOWLEDGED = 100_000
"""How many messages may wait before messages of quality 0 are dropped, and counted."""
_AT_ONCE = 5_000
_PAUSE, _LONGEST = 0.002, 0.008
"""Seconds that more messages are waited for, and altogether: a group costs, however little is in it."""


@dataclass
class Beats:
    """The heartbeats of one connection: when they were sent, and which have returned."""

    connection: int = 0
    sent: dict[bytes, Instant] = field(default_factory=dict)
    """Heartbeats that have not returned, each with when it was sent. Others on the channel are ignored."""
    returned: Instant | None = None
    """When the last heartbeat that has returned was sent, by the service's clock. The log has everything
    published before."""
    acknowledged: float | None = None
    """When the broker first acknowledged a heartbeat."""
    started: float = field(default_factory=time.monotonic)
    last_message: float = 0.0
    """When the last message arrived."""
    behind: float = 0.0
    """When the last reading arrived that was not new: there may be a backlog."""
    is_current: bool = False
    """Whether the messages suggest that there is no backlog, where the broker delivers no heartbeats."""

    def will_return(self, now: float) -> bool:
        """Whether heartbeats can be expected to return.

        Some brokers do not let a client publish or read them.
        """
        if self.returned is not None or self.acknowledged is None:
            return True
        return now - max(self.acknowledged, self.behind) < OVERDUE


@dataclass
class MqttFeed:
    """A feed that submits the messages of a broker as readings.

    It is the listener of its ``MqttSubscriber``.
    """

    service: Service
    broker: MqttBroker
    routes: Sequence[Route]
    messages: int = 0
    dropped: int = 0
    connected: bool = False
    """Whether messages that are published from now on arrive."""
    trouble: str | None = None
    lag: Duration | None = None
    """How long the latest reading took from its time to its arrival."""
    _beats: Beats = field(default_factory=Beats)
    _inbox: deque[Message] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._find = finder(self.routes)
        self._quick = QuickReader(self._find)
        self._wake = asyncio.Event()
        self._beat_channel = self.broker.heartbeat.replace("{client}", self.broker.client)
        self._mapped = self._subscriptions()
        beats = [MqttSubscription(self._beat_channel, 1)] if self._beat_channel else []
        self._subscriber = MqttSubscriber(self.broker, [*self._mapped, *beats], self)
        self._nodes = Nodes(self._subscriber.publish)
        self._run = uuid4().hex[:8]

    def _subscriptions(self) -> list[MqttSubscription]:
        """Return one subscription for each filter of the routes.

        Its quality is the highest that a route requests, but at most 1. With quality 2 a broker forgets a
        message before it is on disk, and a service that is killed then loses it. With quality 1 it stays with
        the broker, and the log recognizes repetitions.
        """
        by_quality = sorted(self.routes, key=lambda route: route.qos)
        highest = {route.pattern.filter: min(route.qos, 1) for route in by_quality}
        share = "" if self.broker.share is None else f"$share/{self.broker.share}/"
        return [MqttSubscription(share + filter, qos, only_new=True) for filter, qos in highest.items()]

    # --- called by the subscriber ---

    def on_connect(self, connection: int, result: ReasonCode) -> None:
        """Start new heartbeats, and publish that the service is connected."""
        self._beats = Beats(connection)
        if result.is_failure:
            self._report(f"refused: {result}")
        elif (will := self.broker.will) is not None:
            self._subscriber.publish(will.channel, will.here.encode(), qos=1, retain=True)

    def on_subscribe(self, results: Sequence[ReasonCode]) -> None:
        """Record whether the broker has granted a subscription."""
        granted = results[: len(self._mapped)]
        refused = [str(result) for result in granted if result.is_failure]
        self.connected = len(refused) < len(granted)
        self._report(f"the broker refuses a subscription: {refused[0]}" if refused else None)

    def on_disconnect(self, reason: str) -> None:
        self.connected = False
        self._report(reason)

    def on_publish(self, result: ReasonCode) -> None:
        """Stop heartbeats if the broker refuses them, and record the first acknowledgement."""
        if result.is_failure and self._beat_channel:  # some brokers close the connection for each of them
            log.warning("%s: heartbeats on %s: %s", self.broker.name, self._beat_channel, result)
            self._beat_channel = ""
        if self._beats.acknowledged is None:
            self._beats.acknowledged = time.monotonic()

    def on_message(self, message: Message) -> None:
        """Queue a message. A message of quality 0 is dropped while the queue is full."""
        if not message.qos and len(self._inbox) > UNACKNOWLEDGED:
            self.dropped += 1
            return
        self._inbox.append(message)
        self._wake.set()

    def _report(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            log.warning("%s: %s", self.broker.name, trouble or "connected")
            self.trouble = trouble

    async def run(self) -> None:
        """Submit messages until cancelled, then disconnect from the broker."""
        tasks = [asyncio.create_task(self._subscriber.run()), asyncio.create_task(self._beat())]
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._inbox:
                    await self._wait_for_more()
                    await self._take([self._inbox.popleft() for _ in range(min(len(self._inbox), _AT_ONCE))])
        finally:
            await self._leave()
            for task in tasks:
                task.cancel()

    async def _beat(self) -> None:
        """Publish a heartbeat every second while connected."""
        while True:
            beats = self._beats
            if self.connected and self._beat_channel and beats.will_return(time.monotonic()):
                at = self.service.clock()
                content = f"{self._run} {beats.connection} {at}".encode()
                beats.sent[content] = at
                self._subscriber.publish(self._beat_channel, content, qos=1)
            await asyncio.sleep(BEAT)

    async def _wait_for_more(self) -> None:
        """Wait until no more messages arrive, or enough have. Larger groups are cheaper per message."""
        known, last = 0, time.monotonic() + _LONGEST
        while known < len(self._inbox) < _AT_ONCE and time.monotonic() < last:
            known = len(self._inbox)
            await asyncio.sleep(_PAUSE)

    async def _leave(self) -> None:
        """Disconnect after publishing the ``gone`` message.

        The broker itself publishes that message only when a connection is lost.
        """
        if (will := self.broker.will) is not None and self.connected:
            self._subscriber.publish(will.channel, will.gone.encode(), qos=1, retain=True)
        await self._subscriber.disconnect()

    async def _take(self, messages: list[Message]) -> None:
        """Submit messages to the log, and acknowledge them after it has them."""
        now = self.service.clock()
        rejected: list[Rejected] = []
        beats = [one.payload for one in messages if one.channel == self._beat_channel]
        readings = [one for one in messages if one.channel != self._beat_channel]
        for is_repetition, parts in groupby(readings, key=lambda message: message.again):
            incoming = [one for message in parts for one in self._to_events(message, now, rejected)]
            if incoming:
                await self.service.submit(Submission(incoming, again=is_repetition))
                self.lag = now - max(one.event.time for one in incoming)
                if not self._is_new:
                    self._beats.behind = time.monotonic()
        await self.service.reject(rejected)
        self.messages += len(readings)
        self._note_beats(beats, len(readings))
        self._subscriber.acknowledge(messages)

    def _note_beats(self, beats: Sequence[bytes], readings: int) -> None:
        """Record returned heartbeats: all messages published before them are in the log."""
        known = self._beats
        if readings:
            known.last_message = time.monotonic()
        for beat in beats:
            if (sent := known.sent.get(beat)) is not None:  # others may publish to this channel
                known.returned = max(sent, known.returned or sent)
                known.sent = {one: at for one, at in known.sent.items() if at > sent}

    def serves(self, topic: str) -> bool:
        return any(route.topic in (topic, None) for route in self.routes)

    def read_until(self) -> Instant | None:
        """Return when the last returned heartbeat was sent.

        If heartbeats do not work, return the current time when the messages suggest that there is no backlog.
        Return ``None`` while there may be a backlog.
        """
        if not self.connected:
            return None
        now, beats = self.service.clock(), self._beats
        if not self._beat_channel or not beats.will_return(time.monotonic()):
            return now if self._seems_current() else None
        if beats.returned is None or now - beats.returned > self._overdue:
            return None
        return beats.returned

    def _seems_current(self) -> bool:
        """Whether the messages suggest that there is no backlog.

        That is so if the latest ones are new, or if none has arrived for a while.
        """
        beats = self._beats
        is_quiet = time.monotonic() - max(beats.started, beats.last_message) >= QUIET
        beats.is_current |= is_quiet or (beats.last_message > 0 and self._is_new)
        return beats.is_current and not self._inbox

    @property
    def _is_new(self) -> bool:
        """Whether the latest reading was new when it arrived."""
        return self.lag is not None and self.lag <= self.service.settings.idle

    @property
    def _overdue(self) -> Duration:
        """The age of a heartbeat from which the feed counts as having a backlog."""
        return int(max(3 * BEAT * SECOND, self.service.settings.idle))

    def _to_events(self, message: Message, now: int, rejected: list[Rejected]) -> list[IncomingEvent]:
        events: list[tuple[Event, bool]] = []
        metrics = cache(partial(self._nodes.rows, message.channel, message.payload))
        for found in self._find(message.channel) or (None,):
            try:
                events += self._events(found, message, metrics, now)
            except Exception as error:  # a bad message must not end the feed
                rejected.append(rejection("mqtt", message.channel, error, message.payload, now))
        self.service.counts.corrected += sum(wrong for _, wrong in events)
        first = _origin(message)
        return [IncomingEvent(event, first + i if first else NOWHERE) for i, (event, _) in enumerate(events)]

    def _events(
        self, found: Found | None, message: Message, metrics: Callable[[], Metrics], now: int
    ) -> list[tuple[Event, bool]]:
        """Convert a message by one route to events, each with whether its time was corrected."""
        if found is None:
            raise InputError("no mapping takes this channel")
        quick = self._quick.read(message.channel, self.service.topics, message.payload, now)
        if quick is not None:
            return [quick]
        content = metrics() if found[0].payload == "sparkplug" else message.payload
        return read(found, self.service.topics, content, now)

    def status(self) -> FeedStatus:
        """Return the status of the feed."""
        return {
            "name": self.broker.name,
            "kind": "mqtt",
            "connected": self.connected,
            "trouble": self.trouble,
            "caught_up": self.read_until() is not None,
            "lag": lag_of(self.lag),
            "messages": self.messages,
            "waiting": len(self._inbox),
            "dropped": self.dropped,
        }


def _origin(message: Message) -> int:
    """Return a digest of a message's number and content, which are equal when a broker sends it again.

    Messages of quality 0 have no number and are never repeated.
    """
    if not message.qos:
        return NOWHERE
    return origin(str(message.number).encode(), message.channel.encode(), message.payload)
