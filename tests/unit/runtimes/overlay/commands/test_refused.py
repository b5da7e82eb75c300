"""What a subscriber prints."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from holdfast.errors import UsageError
from holdfast.protocols.agents.following import Following
from holdfast.protocols.cbps.client import Heard, Refused, subscribe
from holdfast.protocols.cbps.content import Filter
from holdfast.protocols.cbps.message import Key
from holdfast.runtimes.overlay.commands.subscribe import subscribe as printing
from support.agents import related

MEET = related("""topic User ()
relate Meet (a User, b User) pairs ("ann", "bob") when distance(a, b) <= 10 m""")


def heard(name, **content):
    return Heard(name, Key("somebody", 1), content)


def printed(names, deliveries, capsysbinary, *, count):
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
            {"Meet": Following("Meet", MEET.relation)},
            count=count,
            subscribed=lambda _: None,
            complain=complaints.append,
        )
    )
    lines = capsysbinary.readouterr().out.splitlines()
    return [json.loads(line)["status"] for line in lines], complaints


def test_one_relationship_that_fails_ends_no_other_subscription(capsysbinary):
    """Its own start is told to be unknown from then on."""
    start = {"holdfast.relationship": "Meet", "status": "ingress", "scope": "ann,bob"}
    deliveries = [
        heard("Meet", **start, time=1, source="ann", sequence=1),
        Refused("Meet", "the agent 'ann' ended"),
        heard("Hot", topic="Temperature", value=41.0),
    ]
    statuses, complaints = printed(["Meet", "Hot"], deliveries, capsysbinary, count=3)
    assert statuses == ["ingress", "unknown", "atomic"]
    assert complaints == ["the broker refuses 'Meet': the agent 'ann' ended"]


def test_when_all_is_refused_a_subscriber_ends(capsysbinary):
    with pytest.raises(UsageError, match="refuses 'Meet': no"):
        printed(["Meet", "Hot"], [Refused("Hot", "no"), Refused("Meet", "no")], capsysbinary, count=None)
