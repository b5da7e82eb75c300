"""``subscribe --pairs``: a subscriber asked to stop prints no more starts, and stays until all have ended."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from holdfast.model.event import Event, Notification
from holdfast.network.overlay.commands.subscribe import subscribe
from holdfast.network.protocols.cbps.client import (
    ConditionChange,
    ReleaseSubscription,
    SubscriptionClosed,
    watch,
)

WARM = watch("Warm", "topic T (value float)\nstate Warm on T [value > 25; value < 22]")


class FakeNode:
    """A client whose broker is the test."""

    now = 0

    def __init__(self, deliver):
        self.deliver, self.asked = deliver, []

    def ask(self, request):
        self.asked.append(request)

    async def inquire(self):
        return {"name": "hub"}

    async def unless_failed(self, awaited):
        return await awaited

    def tell(self, status, time):
        event = Event("T", time, "s", {"value": 30.0}, 0)
        self.deliver(ConditionChange("Warm", Notification("Warm", event, status, None, None)))


async def until(is_so):
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0)


def story(scenario, **options):
    """Run the command; what it asked of its client."""
    nodes = []

    @asynccontextmanager
    async def connect(deliver):
        nodes.append(FakeNode(deliver))
        yield nodes[0]

    async def run():
        task = asyncio.create_task(subscribe(connect, [WARM], {}, subscribed=lambda _: None, **options))
        await until(lambda: nodes and nodes[0].asked)
        await scenario(nodes[0], task)
        await task

    asyncio.run(run())
    return nodes[0].asked


def test_a_subscriber_asked_to_stop_waits_for_ends(capfdbinary):
    async def scenario(node, task):
        node.tell("ingress", 1)
        await asyncio.sleep(0)
        task.cancel()
        await until(lambda: ReleaseSubscription("Warm") in node.asked)
        node.tell("egress", 2)
        node.deliver(SubscriptionClosed("Warm"))

    assert story(scenario, count=None, pairs=True) == [WARM, ReleaseSubscription("Warm")]
    assert capfdbinary.readouterr().out.count(b'"status"') == 2


def test_a_subscriber_asked_to_stop_twice_stops_at_once():
    async def scenario(node, task):
        task.cancel()
        await until(lambda: ReleaseSubscription("Warm") in node.asked)
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        story(scenario, count=None, pairs=True)


def test_a_subscriber_with_a_count_waits_for_ends_unless_pairs_are_off():
    async def scenario(node, _task):
        node.tell("ingress", 1)
        await until(lambda: ReleaseSubscription("Warm") in node.asked)
        node.tell("egress", 2)
        node.deliver(SubscriptionClosed("Warm"))

    async def one(node, _task):
        node.tell("ingress", 1)

    assert story(scenario, count=1, pairs=True) == [WARM, ReleaseSubscription("Warm")]
    assert story(one, count=1) == [WARM]
