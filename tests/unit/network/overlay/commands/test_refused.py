"""The output of a subscriber."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from holdfast.errors import UsageError
from holdfast.network.overlay.commands.subscribe import subscribe as printing
from holdfast.network.protocols.agents.follower import ReportFollower
from holdfast.network.protocols.cbps.client import ReceivedNotification, SubmissionRefused, subscribe
from holdfast.network.protocols.cbps.content import Filter
from holdfast.network.protocols.cbps.message import BundleKey
from support.agents import relationship_of

MEET = relationship_of("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob") when distance(a, b) <= 10 m""")


def notification(name, **content):
    return ReceivedNotification(name, BundleKey("somebody", 1), content)


def print_all(names, deliveries, capsysbinary, *, count):
    """The lines on standard output for what a broker delivers, and the complaints."""
    complaints = []

    async def inquire():
        return {"name": "hub"}

    async def unless_failed(awaited):
        return await awaited

    @asynccontextmanager
    async def connect(deliver):
        for what in deliveries:
            deliver(what)
        yield SimpleNamespace(ask=lambda _: None, inquire=inquire, unless_failed=unless_failed, now=0)

    asyncio.run(
        printing(
            connect,
            [subscribe(name, Filter()) for name in names],
            {"Meet": ReportFollower("Meet", MEET.relation)},
            count=count,
            subscribed=lambda _: None,
            complain=complaints.append,
        )
    )
    lines = capsysbinary.readouterr().out.splitlines()
    return [json.loads(line)["status"] for line in lines], complaints


def test_a_failing_relationship_ends_no_other_subscription(capsysbinary):
    """Its own active scope becomes unknown."""
    start = {"holdfast.relationship": "Meet", "status": "ingress", "scope": "ann,bob"}
    deliveries = [
        notification("Meet", **start, time=1, source="ann", sequence=1),
        SubmissionRefused("Meet", "the agent 'ann' ended"),
        notification("Hot", topic="Temperature", value=41.0),
    ]
    statuses, complaints = print_all(["Meet", "Hot"], deliveries, capsysbinary, count=3)
    assert statuses == ["ingress", "unknown", "atomic"]
    assert complaints == ["the broker refuses 'Meet': the agent 'ann' ended"]


def test_a_subscriber_ends_when_all_its_subscriptions_are_refused(capsysbinary):
    with pytest.raises(UsageError, match="refuses 'Meet': no"):
        print_all(
            ["Meet", "Hot"],
            [SubmissionRefused("Hot", "no"), SubmissionRefused("Meet", "no")],
            capsysbinary,
            count=None,
        )
