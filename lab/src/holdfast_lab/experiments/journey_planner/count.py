"""The counts of a run, line by line as in Tables 5.17 to 5.21 of the thesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.detector.component import CARRIER, Published
from holdfast.kinds.component.detector.knowledge import of_event
from holdfast.kinds.component.group import readable_scope
from holdfast.model.event import Event, Value
from holdfast.runtimes.local.engine import Engine

from . import network
from .central import Notice, notifications_of
from .definition import (
    COMPONENTS,
    CONGESTION,
    HIGH,
    LOOP,
    NEAR,
    READINGS,
    SLOW,
    SPEED,
    USER,
    Limits,
    components,
    definition,
)
from .deployment import Host, in_one_piece, place_components
from .network import Account
from .roads import HOURS
from .scene import JourneyScene, user_name

Counts = Mapping[str, Any]
"""Counts by the names of `LINES`; ``None`` is not measured."""


class Entry(NamedTuple):
    """A line of a table: the thesis' figures for both experiments, and how we count."""

    table: str
    called: str
    paper: tuple[int | None, int | None]
    how: str


GIVEN = "Table 5.17: parameters"
SETUP = "Table 5.18: operation"
WORK = "Table 5.19: processing"
STORED = "Table 5.20: storage"
SENT = "Table 5.21: communication"
OURS = "Beyond the tables"

LINES: Mapping[str, Entry] = {
    "roads": Entry(GIVEN, "roads", (60, 60), "that are watched; each has a loop and a camera"),
    "hours": Entry(GIVEN, "hours", (20, 20), "from 1 AM to 9 PM"),
    "users": Entry(GIVEN, "applications", (500, 500), "one with each user, who has a location sensor"),
    "insertions": Entry(GIVEN, "SMC insertions", (4, 4), "components of the definition"),
    LOOP: Entry(GIVEN, "loop publications", (4_320_000, 4_320_000), "readings of roads"),
    SPEED: Entry(GIVEN, "speed publications", (330_736, 494_682), "readings in which a vehicle came"),
    USER: Entry(GIVEN, "user publications", (36_000_000, 36_000_000), "positions, one every 5 min"),
    "smcs": Entry(SETUP, "decomposed SMCs", (876, 876), "hosts"),
    f"smcs {NEAR}": Entry(SETUP, f"{NEAR} SMCs", (500, 500), "one with each user"),
    f"smcs {CONGESTION}": Entry(SETUP, f"{CONGESTION} SMCs", (256, 256), "16 segments of each query"),
    f"smcs {SLOW}": Entry(SETUP, f"{SLOW} SMCs", (60, 60), "one with each camera"),
    f"smcs {HIGH}": Entry(SETUP, f"{HIGH} SMCs", (60, 60), "one with each loop"),
    "subscribers": Entry(SETUP, "subscribers", (1376, 1376), "applications and information spaces"),
    "subscriptions": Entry(SETUP, "subscriptions", (2132, 2132), "of both"),
    "subscriptions InfoS": Entry(SETUP, "subscriptions by InfoSs", (1632, 1632), "topics of hosts"),
    f"received {HIGH}": Entry(WORK, f"most events, {HIGH}", (72_000, 72_000), "at one information space"),
    f"received {SLOW}": Entry(WORK, f"most events, {SLOW}", (11_548, 17_940), "at one information space"),
    f"received {CONGESTION}": Entry(
        WORK, f"most events, {CONGESTION}", (236, 701), "at one information space"
    ),
    f"received {NEAR}": Entry(WORK, f"most events, {NEAR}", (72_168, 72_296), "at one information space"),
    f"combinations {HIGH}": Entry(WORK, f"most evaluations, {HIGH}", (1, 1), "combinations with an event"),
    f"combinations {SLOW}": Entry(WORK, f"most evaluations, {SLOW}", (1, 1), "combinations with an event"),
    f"combinations {CONGESTION}": Entry(
        WORK, f"most evaluations, {CONGESTION}", (10, 14), "an event times what the other query holds"
    ),
    "whole": Entry(WORK, "the same, in one piece", (74, 90), "as if it were not decomposed"),
    f"combinations {NEAR}": Entry(WORK, f"most evaluations, {NEAR}", (1, 1), "combinations with an event"),
    HIGH: Entry(WORK, f"{HIGH} publications", (842, 2540), "starts and ends"),
    SLOW: Entry(WORK, f"{SLOW} publications", (774, 1048), "starts and ends"),
    CONGESTION: Entry(WORK, f"{CONGESTION} publications", (168, 296), "starts and ends"),
    NEAR: Entry(WORK, f"{NEAR} publications", (4032, 7104), "reports to users"),
    "placed": Entry(STORED, "most SMCs placed on a node", (1, 1), "hosts of a node"),
    "spawned": Entry(STORED, "most SMCs observed on a node", (4, 6), "conditions at once at one part"),
    f"points {HIGH}": Entry(STORED, f"most KPs, {HIGH}", (30, 30), "after an evaluation"),
    f"points {SLOW}": Entry(STORED, f"most KPs, {SLOW}", (37, 30), "after an evaluation"),
    f"points {CONGESTION}": Entry(STORED, f"most KPs, {CONGESTION}", (14, 21), "after an evaluation"),
    f"points {NEAR}": Entry(STORED, f"most KPs, {NEAR}", (2, 2), "the user's position is one"),
    "latest": Entry(STORED, "events stored at Pub/Sub", (620, 620), "the latest of each sensor"),
    "subscriptions most": Entry(SENT, "most subscriptions of an InfoS", (2, 2), "topics of a host"),
    "published": Entry(SENT, "publications", (40_656_552, 40_825_670), "of sensors and components"),
    "external": Entry(SENT, "external publications", (40_650_736, 40_814_682), "of sensors"),
    "internal": Entry(SENT, "internal publications", (5816, 10_988), "of components"),
    "disseminated": Entry(SENT, "disseminated", (1784, 3884), "wanted on another node than the publisher's"),
    "delivered": Entry(SENT, "delivered in the network", (109_856, 205_408), "to each host on another node"),
    "local": Entry(SENT, "delivered locally", (40_654_768, 40_821_786), "on the publisher's node"),
    "local clients": Entry(SENT, "locally, to clients", (4032, 7104), "reports to the user's application"),
    "local InfoS": Entry(SENT, "locally, to InfoSs", (40_650_736, 40_814_682), "to hosts"),
    "effective": Entry(OURS, f"{CONGESTION} parts that detect", (16, 16), "have published something"),
    "examined": Entry(
        OURS, f"our machine's evaluations, {CONGESTION}", (None, None), "most in one evaluation"
    ),
    "shared for twice": Entry(
        OURS, "shared SMCs for twice the users", (None, None), "all but those of users"
    ),
    "differ nodes": Entry(
        OURS, "nodes and pandas differ in", (None, None), "notifications that only one has"
    ),
    "differ process": Entry(OURS, "one process and pandas differ in", (None, None), "the same"),
}


def measure(
    scene: JourneyScene, limits: Limits, segments: Sequence[Sequence[str]], *, in_process: bool
) -> Counts:
    """Run a scene on nodes, with pandas and, if ``in_process``, in one process; return the counts."""
    smcs = {name: smc(component) for name, component in components(limits).items()}
    roads = [scene.map.roads[i].name for i in scene.roads]
    users = [user_name(user) for user in range(len(scene.users))]
    hosts = place_components(smcs, roads, segments, users)
    twice = place_components(smcs, roads, segments, [*users, *(f"{user}b" for user in users)])
    events = list(scene.events())
    until = scene.last + 1
    account = network.run(hosts, map(of_event, events), until)
    below = [published.event for published in account.notifications if published.event.topic in (HIGH, SLOW)]
    whole = network.run([in_one_piece(smcs[CONGESTION])], below, until)
    expected = notifications_of(scene, limits)
    return {
        "roads": len(roads),
        "hours": HOURS,
        "insertions": len(smcs),
        "latest": len({event.source for event in events}),
        "whole": whole.combinations[CONGESTION],
        "shared for twice": sum(host.smc.topic != NEAR for host in twice),
        "differ nodes": differing(map(to_compared, account.notifications), expected),
        "differ process": differing(_in_process(limits, events), expected) if in_process else None,
        **_of_hosts(hosts, len(users)),
        **_of_account(account),
    }


def _in_process(limits: Limits, events: Sequence[Event]) -> Iterator[Notice]:
    """Yield the notifications of the components in one process."""
    engine = Engine(definition(limits))
    for note in (*engine.run(events), *engine.finish()):
        value = _value(note.event.attributes)
        yield Notice(note.subscription, note.scope, note.status, note.event.time, note.since, value)


def _of_hosts(hosts: Sequence[Host], users: int) -> dict[str, int]:
    smcs = Counter(host.smc.topic for host in hosts)
    subscriptions = [len(host.subscriptions) for host in hosts]
    return {
        "users": users,
        "smcs": len(hosts),
        **{f"smcs {name}": smcs[name] for name in COMPONENTS},
        "subscribers": users + len(hosts),
        "subscriptions": users + sum(subscriptions),
        "subscriptions InfoS": sum(subscriptions),
        "subscriptions most": max(subscriptions),
        "placed": max(Counter(host.node for host in hosts).values()),
    }


def _of_account(account: Account) -> dict[str, int]:
    external, internal = (sum(account.published[t] for t in topics) for topics in (READINGS, COMPONENTS))
    peaks = ("received", "combinations", "points")
    return {
        **{topic: account.published[topic] for topic in (*READINGS, *COMPONENTS)},
        **{f"{peak} {name}": getattr(account, peak)[name] for peak in peaks for name in COMPONENTS},
        "spawned": account.spawned[CONGESTION],
        "effective": account.detecting[CONGESTION],
        "examined": account.examined[CONGESTION],
        "published": external + internal,
        "external": external,
        "internal": internal,
        "disseminated": account.disseminated.total(),
        "delivered": account.delivered.total(),
        "local": account.local.total(),
        "local clients": account.local[NEAR],
        "local InfoS": account.local.total() - account.local[NEAR],
    }


# --- what was said -----------------------------------------------------------------------------


def differing(ours: Iterable[Notice], theirs: Iterable[Notice]) -> int:
    """Return the number of notifications that only one of two computations has."""
    a, b = Counter(ours), Counter(theirs)
    return ((a - b) + (b - a)).total()


def to_compared(published: Published) -> Notice:
    """Convert a published event to a notice that can be compared."""
    known, scope = published.event, readable_scope(CARRIER.join(published.id))
    return Notice(known.topic, scope, known.status, known.time, published.since, _value(known.attributes))


def _value(attributes: Mapping[str, Value]) -> float | None:
    found = attributes.get("value", attributes.get("level"))
    assert found is None or isinstance(found, float)
    return found
