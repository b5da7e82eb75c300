"""A service that has stored readings in a folder, in several segments."""

from __future__ import annotations

import asyncio

from holdfast.model.event import Event
from holdfast.model.instant import SECOND, instant
from holdfast.service.feeds.submission import IncomingEvent
from holdfast.service.intake import Submission
from holdfast.service.service import Service, Settings

APP = """\
topic Climate (temperature float)
topic Door (open bool)
state  Warm on Climate [temperature > 25; temperature < 22] per source
filter Ajar on Door where open
"""
START = instant("2026-06-21T12:00:00Z")


def store_readings(folder, first, number):
    """Let a service store so many seconds of readings. Return the ids of its notifications."""

    async def story():
        service = Service(folder, folder.parent, Settings(segment_bytes=4_000, snapshot_every=0.0))
        async with service.running():
            if service.core.definition != APP:
                await service.define(APP)
            for i in range(first, first + number):
                door = Event("Door", START + i * SECOND, f"{folder.name}-door", {"open": i % 9 == 0})
                room = Event(
                    "Climate",
                    START + i * SECOND,
                    f"{folder.name}-{i % 3}",
                    {"temperature": 20.0 + (i * 7) % 11},
                )
                await service.submit(Submission([IncomingEvent(door), IncomingEvent(room)]))
            await service.wait_until_evaluated()
            return [one.id for one in service.store.notifications(0, 1 << 30)]

    return asyncio.run(story())
