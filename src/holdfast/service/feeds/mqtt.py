"""Readings from an MQTT broker, acknowledged when the log has them.

Paho's network thread only puts messages into a list; everything else happens in the event loop.  A
message of quality 1 stays with the broker until it is acknowledged; one that the broker sends
again, because we died in between, is known by its number and content.

A broker does not say where its backlog ends.  So the feed publishes a heartbeat every second to a channel of
its own, which queues behind all messages that were published before: what comes back was sent when the log
had not yet all of these, and has it now.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from typing import Any, NamedTuple
from uuid import uuid4

import paho.mqtt.client as paho
from paho.mqtt.subscribeoptions import SubscribeOptions

from ...errors import InputError
from ...model.event import Event
from ...model.instant import SECOND, Duration, Instant
from ..broker import Broker, client_of, connect
from ..service import Service, Submission
from .hearing import Hearing, Plain
from .mapping import Found, Metrics, Route, finder, read
from .quick import Quick
from .sparkplug import Nodes
from .submission import NOWHERE, Given, Rejected, lag_of, origin, rejection

log = logging.getLogger("holdfast.service")

BEAT = 1.0
"""Seconds between heartbeats."""
QUIET = 2.0
"""Seconds without a message after which a feed without heartbeats seems to have read its backlog."""
OVERDUE = 10.0
"""Seconds after which a heartbeat that the broker has acknowledged and not delivered will not come: it has no
right to."""
UNACKNOWLEDGED = 100_000
"""Messages of quality 0 beyond so many that wait are dropped, and counted."""
_AT_ONCE = 5_000
_PAUSE, _LONGEST = 0.002, 0.008
"""Seconds that more messages are waited for, and altogether: a group costs, however little is in it."""


class Message(NamedTuple):
    """What came, over which connection, and what is needed to acknowledge it."""

    connection: int
    number: int
    qos: int
    again: bool
    channel: str
    payload: bytes

    @property
    def origin(self) -> int:
        if not self.qos:
            return NOWHERE
        return origin(str(self.number).encode(), self.channel.encode(), self.payload)


@dataclass
class Beats:
    """What heartbeats say of one connection."""

    connection: int = 0
    sent: dict[bytes, Instant] = field(default_factory=dict)
    """Those that have not come back, each with when it was sent; others are not ours."""
    returned: Instant | None = None
    """When the last that has come back was sent, by the service's clock: the log has all that was published
    before."""
    acknowledged: float | None = None
    """When the broker first acknowledged one, if none has come back."""
    begun: float = field(default_factory=time.monotonic)
    heard: float = 0.0
    """When a message came last."""
    behind: float = 0.0
    """When a reading came last that was not new: there may be a backlog."""
    is_current: bool = False
    """Whether it has caught up as far as its messages say, where the broker delivers no heartbeats."""

    def will_return(self, now: float) -> bool:
        """Whether the broker can be expected to deliver them."""
        if self.returned is not None or self.acknowledged is None:
            return True
        return now - max(self.acknowledged, self.behind) < OVERDUE


@dataclass
class MqttFeed:
    """A broker's messages as readings."""

    service: Service
    broker: Broker
    routes: Sequence[Route]
    messages: int = 0
    dropped: int = 0
    connected: bool = False
    """What is published from now on comes here."""
    trouble: str | None = None
    lag: Duration | None = None
    """How long the latest reading took from its time to its arrival."""
    _beats: Beats = field(default_factory=Beats)
    _inbox: deque[Message] = field(default_factory=deque)
    _connection: int = 0
    _admitted: bool = False

    def __post_init__(self) -> None:
        self._find = finder(self.routes)
        self._quick = Quick(self._find)
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._client = client_of(Hearing, self.broker, "", manual_ack=True)
        self._nodes = Nodes(self._client.publish)
        self._client.on_connect = self._on_connect
        self._client.on_connect_fail = self._on_connect_fail
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message
        self._client.hear = self._hear
        self._client.on_subscribe = self._on_subscribe
        self._client.on_publish = self._on_publish
        self._run = uuid4().hex[:8]
        self._beat_channel = self.broker.heartbeat.replace("{client}", self.broker.client)
        if (will := self.broker.will) is not None:
            self._client.will_set(will.channel, will.gone, qos=1, retain=True)

    # --- in paho's thread ---

    def _on_connect(self, client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._connection += 1
        self._beats = Beats(self._connection)
        self._admitted = not reason.is_failure
        if not self._admitted:
            self._say(f"refused: {reason}")
            return
        wanted = list(map(self._wanted, self._asked))
        if self._beat_channel:
            wanted.append((self._beat_channel, SubscribeOptions(1) if self.broker.version == 5 else 1))
        client.subscribe(wanted)
        if (will := self.broker.will) is not None:
            client.publish(will.channel, will.here, qos=1, retain=True)

    @property
    def _asked(self) -> list[Route]:
        """The mappings by what they ask the broker for, each with the highest quality."""
        by_quality = sorted(self.routes, key=lambda route: route.qos)
        return list({route.pattern.filter: route for route in by_quality}.values())

    def _wanted(self, route: Route) -> tuple[str, Any]:
        """What to ask for.  Quality 2 hands a message over before it is on disk, and a client that dies then
        has lost it; with 1 it stays with the broker, and the log knows what comes again."""
        qos = min(route.qos, 1)
        share = "" if self.broker.share is None else f"$share/{self.broker.share}/"
        if self.broker.version == 5:  # what is retained comes once, not at every connection
            retained = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
            return share + route.pattern.filter, SubscribeOptions(qos, retainHandling=retained)
        return share + route.pattern.filter, qos

    def _on_subscribe(self, _client: Any, _data: Any, _mid: Any, reasons: Any, _properties: Any) -> None:
        mine = reasons[: len(self._asked)]
        refused = [str(reason) for reason in mine if reason.is_failure]
        self.connected = len(refused) < len(mine)
        self._say(f"the broker refuses a subscription: {refused[0]}" if refused else None)

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._connection += 1
        if self._admitted:  # who was refused is told why, not that the connection is gone
            self._say(f"not connected: {reason}")
        self.connected = self._admitted = False

    def _on_publish(self, _client: Any, _data: Any, _mid: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure and self._beat_channel:  # some brokers end a connection for each
            log.warning("%s: heartbeats on %s: %s", self.broker.name, self._beat_channel, reason)
            self._beat_channel = ""
        if self._beats.acknowledged is None:
            self._beats.acknowledged = time.monotonic()

    def _on_connect_fail(self, _client: Any, _data: Any) -> None:
        self._say("the broker cannot be reached")

    def _on_message(self, _client: Any, _data: Any, it: paho.MQTTMessage) -> None:
        self._hear(Plain(it.mid, it.qos, it.dup, it.topic, bytes(it.payload)))

    def _hear(self, message: Plain) -> None:
        if not message.qos and len(self._inbox) > UNACKNOWLEDGED:
            self.dropped += 1
            return
        was_empty = not self._inbox
        self._inbox.append(Message(self._connection, *message))
        if was_empty:
            self._loop.call_soon_threadsafe(self._wake.set)

    def _say(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            log.warning("%s: %s", self.broker.name, trouble or "connected")
            self.trouble = trouble

    # --- in the event loop ---

    async def run(self) -> None:
        """Take messages until cancelled."""
        connect(self._client, self.broker)
        beating = asyncio.create_task(self._beat())
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._inbox:
                    await self._gathered()
                    await self._take([self._inbox.popleft() for _ in range(min(len(self._inbox), _AT_ONCE))])
        finally:
            beating.cancel()
            await asyncio.to_thread(self._leave)

    async def _beat(self) -> None:
        """Publish a heartbeat every second while the broker is there."""
        while True:
            beats = self._beats
            if self.connected and self._beat_channel and beats.will_return(time.monotonic()):
                at = self.service.clock()
                said = f"{self._run} {beats.connection} {at}".encode()
                beats.sent[said] = at
                self._client.publish(self._beat_channel, said, qos=1)
            await asyncio.sleep(BEAT)

    async def _gathered(self) -> None:
        """Comes back when no more messages come, or enough have."""
        known, last = 0, time.monotonic() + _LONGEST
        while known < len(self._inbox) < _AT_ONCE and time.monotonic() < last:
            known = len(self._inbox)
            await asyncio.sleep(_PAUSE)

    def _leave(self) -> None:
        """Go in order; the broker says what the will would have said."""
        if (will := self.broker.will) is not None and self.connected:
            with suppress(RuntimeError, ValueError):  # the connection was lost meanwhile
                self._client.publish(will.channel, will.gone, qos=1, retain=True).wait_for_publish(2)
        self._client.disconnect()
        self._client.loop_stop()

    async def _take(self, messages: list[Message]) -> None:
        """Messages into the log; then, and only then, the broker may forget them."""
        now = self.service.clock()
        rejected: list[Rejected] = []
        beats = [one.payload for one in messages if one.channel == self._beat_channel]
        readings = [one for one in messages if one.channel != self._beat_channel]
        for again, some in groupby(readings, key=lambda message: message.again):
            given = [one for message in some for one in self._given(message, now, rejected)]
            if given:
                await self.service.submit(Submission(given, again=again))
                self.lag = now - max(one.event.time for one in given)
                if not self._is_new:
                    self._beats.behind = time.monotonic()
        await self.service.reject(rejected)
        self.messages += len(readings)
        self._heard_beats(beats, len(readings))
        mine = [message for message in messages if message.qos and message.connection == self._connection]
        self._client.acknowledge([message.number for message in mine if message.qos == 1])
        for message in mine:
            if message.qos > 1:  # nobody asks for it, but a broker may send it
                self._client.ack(message.number, message.qos)

    def _heard_beats(self, beats: Sequence[bytes], readings: int) -> None:
        """All messages before these heartbeats are in the log."""
        known = self._beats
        if readings:
            known.heard = time.monotonic()
        for beat in beats:
            if (sent := known.sent.get(beat)) is not None:  # anybody may publish there
                known.returned = max(sent, known.returned or sent)
                known.sent = {one: at for one, at in known.sent.items() if at > sent}

    def serves(self, topic: str) -> bool:
        return any(route.topic in (topic, None) for route in self.routes)

    def read_until(self) -> Instant | None:
        """As far as the last heartbeat says; if the broker delivers none, up to now once messages are new."""
        if not self.connected:
            return None
        now, beats = self.service.clock(), self._beats
        if not self._beat_channel or not beats.will_return(time.monotonic()):
            return now if self._seems_current() else None
        if beats.returned is None or now - beats.returned > self._overdue:
            return None
        return beats.returned

    def _seems_current(self) -> bool:
        """Whether nothing came for a while since the connection began, or what comes is new."""
        beats = self._beats
        is_quiet = time.monotonic() - max(beats.begun, beats.heard) >= QUIET
        beats.is_current |= is_quiet or (beats.heard > 0 and self._is_new)
        return beats.is_current and not self._inbox

    @property
    def _is_new(self) -> bool:
        """Whether the latest reading is one of now."""
        return self.lag is not None and self.lag <= self.service.settings.idle

    @property
    def _overdue(self) -> Duration:
        """How old a heartbeat may be of a feed that has caught up."""
        return int(max(3 * BEAT * SECOND, self.service.settings.idle))

    def _given(self, message: Message, now: int, rejected: list[Rejected]) -> list[Given]:
        events: list[tuple[Event, bool]] = []
        metrics = cache(partial(self._nodes.rows, message.channel, message.payload))
        for found in self._find(message.channel) or (None,):
            try:
                events += self._events(found, message, metrics, now)
            except Exception as error:  # whatever a message does to its mapping, the feed goes on
                rejected.append(rejection("mqtt", message.channel, error, message.payload, now))
        self.service.counts.corrected += sum(wrong for _, wrong in events)
        first = message.origin
        return [Given(event, first + i if first else NOWHERE) for i, (event, _) in enumerate(events)]

    def _events(
        self, found: Found | None, message: Message, metrics: Callable[[], Metrics], now: int
    ) -> list[tuple[Event, bool]]:
        """What a mapping makes of a message, each event with whether its clock was wrong."""
        if found is None:
            raise InputError("no mapping takes this channel")
        quick = self._quick.read(message.channel, self.service.topics, message.payload, now)
        if quick is not None:
            return [quick]
        said = metrics() if found[0].payload == "sparkplug" else message.payload
        return read(found, self.service.topics, said, now)

    def status(self) -> dict[str, Any]:
        """How it stands."""
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
