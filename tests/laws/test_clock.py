"""The clock of a live system: what was not read counts for nothing, and ``ordered`` equals a replay.

Devices of two brokers measure every two seconds.  Their clocks are wrong, their messages take some time, some
of them store what they measure and send it later.  Brokers are away and come back, the service is killed and
started again, and reads what waits in pieces.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.definition.parse import parse
from holdfast.model.event import Event
from holdfast.model.instant import SECOND, instant, show_instant
from holdfast.runtimes.local.engine import Engine
from holdfast.service.feeds.submission import IncomingEvent
from holdfast.service.intake import Submission
from holdfast.service.service import Service, Settings

APP = """
topic Climate (temperature float)
state Warm on Climate [temperature > 30; temperature < 25] per source {delivery}
state Hot  on Climate [temperature > 30 for 20 s; temperature < 25] per source {delivery}
state Mute on Climate [silent 20 s; !silent 20 s] per source {delivery}
state Lost on Climate [temperature > 30; temperature < 25] per source {delivery} unknown after 20 s
"""
WAIT, PERIOD, START = 12 * SECOND, 2 * SECOND, 1_750_000_000 * SECOND


@dataclass
class Device:
    """A device that measures at a fixed interval, and may store its measurements for a while."""

    name: str
    skew: int
    delays: list[int]
    values: list[float]
    stores: bool = False
    measured: int = 0
    stored: list[Event] = field(default_factory=list)

    def measure(self, now: int) -> list[tuple[int, Event]]:
        """The measurements since the last call, with the time of their arrival at the broker."""
        found = []
        while (at := START + self.measured * PERIOD) <= now:
            i = self.measured
            event = Event(
                "Climate",
                at + self.skew,
                self.name,
                {"temperature": self.values[i % len(self.values)]},
                i,
            )
            found.append((at + self.delays[i % len(self.delays)], event))
            self.measured += 1
        return found


@dataclass
class Broker:
    """A feed and what waits for it."""

    devices: list[Device]
    world: ClockScenario
    connected: bool = True
    travelling: list[tuple[int, Event]] = field(default_factory=list)
    waiting: list[Event] = field(default_factory=list)
    read: int | None = None

    def serves(self, _topic):
        return True

    def read_until(self):
        """The time that a feed has read, as for MQTT: a heartbeat older than five seconds does not count."""
        is_new = self.read is not None and self.world.now - self.read <= 5 * SECOND
        return self.read if self.connected and is_new else None

    def publish(self, at, event):
        self.waiting.append(event)
        self.world.published.append((at, event))

    def pass_on(self, now):
        """Let devices measure, and messages arrive."""
        for one in self.devices:
            if one.stores:
                one.stored += [event for _, event in one.measure(now)]
            else:
                self.travelling += one.measure(now)
        self.travelling.sort(key=lambda message: message[0])
        while self.travelling and self.travelling[0][0] <= now:
            self.publish(*self.travelling.pop(0))

    async def take(self, service, most):
        """Read some of what waits; where that is all, the service has all that was published."""
        if not self.connected:
            return
        some, self.waiting = self.waiting[:most], self.waiting[most:]
        if some:
            await service.submit(Submission([IncomingEvent(event) for event in some]))
        if not self.waiting:
            self.read = self.world.now


class ClockScenario:
    """The devices, the brokers and the service, as a story moves them."""

    def __init__(self, devices, folder, app):
        self.now = START
        self.published = []
        self.app, self.folder, self.lives = app, folder, 0
        self.brokers = [Broker(some, self) for some in devices]
        self.emissions = {}

    @asynccontextmanager
    async def life(self):
        """The service from a start to its kill: what is left is what a crash leaves."""
        folder = self.folder / str(self.lives)
        service = Service(folder, folder, Settings(), lambda: self.now)
        async with service.running():
            if service.core.definition != self.app:
                await service.define(self.app)
            for one in self.brokers:
                one.read = None
            await service.attach_feeds(self.brokers)
            yield service
            await service.wait_until_evaluated()
            self.note(service)
            self.lives += 1
            skip = shutil.ignore_patterns("lock", "*.db-shm")
            shutil.copytree(folder, self.folder / str(self.lives), ignore=skip)

    def note(self, service):
        """Record the notifications, and how many readings were published by then."""
        for one in service.store.notifications(0, 1 << 20):
            self.emissions.setdefault(one.id, (len(self.published), json.loads(one.line)))

    async def run(self, story):
        story = [*story, ("connect", 0), ("connect", 1), ("send", 0), ("pass", 8)]
        story += [("pass", 2), ("read", 99)] * 30
        while story:
            async with self.life() as service:
                while story:
                    what, how = story.pop(0)
                    if what == "kill":
                        self.now += how * SECOND
                        break
                    await self.step(service, what, how)
                    await service.advance_clock()
                    await service.wait_until_evaluated()
                    self.note(service)

    async def step(self, service, what, how):
        one = self.brokers[how % 2]
        devices = [device for broker in self.brokers for device in broker.devices]
        match what:
            case "pass":
                self.now += how * SECOND
            case "read":
                for broker in self.brokers:
                    broker.pass_on(self.now)
                    await broker.take(service, how)
            case "connect":
                one.connected, one.read = True, None
            case "disconnect":
                one.connected = False
            case "store":
                devices[how % len(devices)].stores = True
            case "send":
                for broker in self.brokers:
                    broker.pass_on(self.now)
                    for device in broker.devices:
                        for event in device.stored:
                            broker.publish(self.now, event)
                        device.stored, device.stores = [], False


VALUES = st.lists(st.sampled_from((20.0, 20.0, 27.0, 35.0, 35.0, 35.0)), min_size=1, max_size=30)


def devices(name, delay):
    """Devices with skewed clocks, and where messages take time, a disorder of ``WAIT`` in all."""
    skews = st.integers(-WAIT // 4, WAIT // 4) if delay else st.integers(-30 * SECOND, 30 * SECOND)
    delays = st.lists(st.integers(0, WAIT // 2), min_size=1, max_size=4) if delay else st.just([0])
    return st.builds(Device, st.just(name), skews, delays, VALUES)


def stories(*more):
    steps = st.one_of(
        st.tuples(st.just("pass"), st.integers(1, 40)),
        st.tuples(st.just("read"), st.sampled_from((1, 3, 10, 99, 99, 99))),
        st.tuples(st.just("read"), st.sampled_from((1, 3, 10, 99, 99, 99))),
        *(st.tuples(st.just(word), st.integers(0, 90)) for word in more),
    )
    return st.lists(steps, min_size=5, max_size=40)


def live(story, some, delivery):
    """The world after a story."""
    with TemporaryDirectory() as folder:
        world = ClockScenario(some, Path(folder), APP.format(delivery=delivery))
        asyncio.run(world.run(list(story)))
        return world


KEYS = ("time", "subscription", "scope", "status", "since")


@settings(deadline=None)
@given(stories("kill", "disconnect", "connect"), st.tuples(devices("a", True), devices("b", True)))
def test_ordered_states_emit_live_what_a_replay_of_the_readings_emits(story, some):
    world = live(story, [list(some), []], f"ordered {WAIT // SECOND} s")
    events = sorted((event for _, event in world.published), key=lambda event: event.order)
    cut = show_instant(events[-1].time - 2 * WAIT)
    engine = Engine(parse(APP.format(delivery="")))
    replayed = [
        (show_instant(n.event.time), n.subscription, n.scope, n.status, n.since and show_instant(n.since))
        for n in engine.run(events)
    ]
    found = [tuple(one[key] for key in KEYS) for _, one in world.emissions.values()]
    assert before(cut, found) == before(cut, replayed)


def before(cut, rows):
    return sorted((row for row in rows if row[0] < cut), key=repr)


@settings(deadline=None)
@given(
    stories("kill", "disconnect", "connect", "store", "send"),
    st.tuples(devices("a", False), devices("b", False)),
    st.tuples(devices("c", False), devices("d", False)),
)
def test_timely_states_do_not_end_durations_over_readings_that_are_not_yet_read(story, some, others):
    world = live(story, [list(some), list(others)], "")
    for known, one in world.emissions.values():
        at, since = instant(one["time"]), one["since"] and instant(one["since"])
        assert since is None or since <= at, one
        mine = [event for _, event in world.published[:known] if event.source == one["scope"]]
        match one["subscription"], one["status"]:
            case "Hot", "ingress":
                during = [event for event in mine if since <= event.time <= at]
                assert all(event.attributes["temperature"] > 30 for event in during), one
            case ("Mute", "ingress") | ("Lost", "unknown"):
                assert [event for event in mine if at - 20 * SECOND < event.time <= at] == [], one
