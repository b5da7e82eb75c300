"""One definition gives the same notifications on every runtime."""

from __future__ import annotations

import pytest

from holdfast import Event, parse
from support.overlays import run_on_overlay
from support.runtimes import RUNTIMES, Runtime


@pytest.fixture(params=RUNTIMES)
def runtime(request) -> Runtime:
    return RUNTIMES[request.param]


TWO_TOPICS = """
topic Temperature (value float)
topic Door (open bool)
state  Warm on Temperature [value > 25; value < 22] per source
state  Open on Door [open; !open] per source ordered 5 s
filter Hot  on Temperature where value > 40
"""


def test_notifications_of_several_topics_come_out_in_one_order(runtime):
    events = [
        Event("Temperature", 1, "t1", {"value": 26.0}, 1),
        Event("Door", 1, "d1", {"open": True}, 2),
        Event("Temperature", 3, "t1", {"value": 41.0}, 3),
        Event("Door", 2, "d1", {"open": None}, 4),
        Event("Door", 3, "d1", {"open": False}, 5),
        Event("Temperature", 2, "t1", {"value": None}, 6),
        Event("Temperature", 4, "t1", {"value": 20.0}, 7),
    ]
    out = [(n.event.time, n.subscription, n.status, n.since) for n in runtime(parse(TWO_TOPICS), events)]
    assert out == [
        (1, "Open", "ingress", None),
        (1, "Warm", "ingress", None),
        (3, "Hot", "atomic", None),
        (3, "Open", "egress", 1),
        (4, "Warm", "egress", 1),
    ]


COMMAS = """
topic Reading (v float, room text, rack text)
state  Warm on Reading [v > 25; v < 22] per room, rack
state  Long on Reading [v > 25 for 1 s; v < 22] per room, rack
levels Heat on Reading: low [v > 25; v < 22], high [v > 30; v < 27] per room, rack
state  Two  = at least 2 of Warm
state  Room = at least 1 of Warm within room, rack
"""
ROOMS = (("a,b", "c"), ("a", "b,c"), ('"a', "\\"), ("a", "b"))
SHOWN = ('"a,b",c', 'a,"b,c"', '"\\"a",\\', "a,b")


def test_scopes_of_several_keys_are_distinguished_and_counted_apart(runtime):
    stay_apart(runtime)


def test_scopes_of_several_keys_are_distinguished_by_live_queries():
    stay_apart(pytest.importorskip("support.live").live)


def test_scopes_of_several_keys_are_distinguished_on_an_overlay():
    stay_apart(run_on_overlay)


def stay_apart(runtime):
    events = [
        Event("Reading", at * 1_000_000, "s", {"v": v, "room": room, "rack": rack}, at)
        for at, (v, (room, rack)) in enumerate([(31.0, pair) for pair in ROOMS] + [(20.0, ROOMS[0])] * 2)
    ]
    out = list(runtime(parse(COMMAS), events))
    for name in ("Warm", "Long", "Heat", "Room"):
        output = [(n.scope, n.status) for n in out if n.subscription == name]
        assert sorted(output) == sorted([*((scope, "ingress") for scope in SHOWN), (SHOWN[0], "egress")]), (
            name
        )
    two = [(n.status, n.event.attributes["members"]) for n in out if n.subscription == "Two"]
    assert two == [("ingress", 2)]
