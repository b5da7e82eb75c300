"""Messages that almost mean something: true ones, with values exchanged, left out or out of range, and then
bytes turned, cut and doubled."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import msgspec

from holdfast.model.event import Event, Notification
from holdfast.model.relation import Participant, ReadingRange, Relation, Test, Tie
from holdfast.network.protocols.agents.code_store import digest_of
from holdfast.network.protocols.agents.library import active_bundle
from holdfast.network.protocols.agents.shipped import STARLARK
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    KINDS,
    ActiveSubscription,
    Advertisement,
    AgentStrategy,
    Bundle,
    BundleContext,
    BundleKey,
    BundleRefusal,
    CbpsMessage,
    CbpsSubscription,
    CodeRequest,
    CodeText,
    ConditionText,
    ExpressSlip,
    HostedNotification,
    Interruption,
    LinkState,
    LinkUse,
    Registration,
    Renewal,
    RoutingSlip,
    ScopePlacement,
    StateAnswer,
    StateHandover,
    StateRequest,
    SubscriptionRef,
    UnadvertiseBundle,
    UnsubscribeBundle,
)
from holdfast.network.protocols.cbps.message import PublishedNotification as Content

DEFINITIONS = (
    "topic T (value float) state Warm on T [value > 25; value < 22] per source",
    "topic T (value float) filter Hot on T where value > 40",
    "topic T (value float) state High  A = avg T over 3 s each source  enter A.value > 25  exit A.value < 22",
    "topic T (value float) topic U (value float) correlate Both within 3 s  T.value > 1  U.value > 0",
    "topic T (value float) state Warm on T [value >",
)
CODE = "def start(me, others, relation):\n    return {}\n"
PAIR = tuple(Participant("T", source) for source in ("s1", "s2"))
NEAR = Relation(
    "distance",
    Test(ReadingRange(high=10.0)),
    Test(ReadingRange(low=30.0)),
    (Tie("s1,s2", PAIR, pair=("s1", "s2")),),
)
AGENTS = {
    using: active_bundle("Near", NEAR, using, code=CODE if using == STARLARK else "").active
    for using in ("range_ring", "parallel_line", STARLARK)
}
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 7, 2**31, 2**63 - 1, -(2**63), 2**64 - 1),
    *(0.5, -0.0, 1e308, float("inf"), float("nan")),
    *("", "T", "value", "source", "s1", "=", "<", "any", "long", "double", "text", "\0", "ä€😀", "x" * 300),
    *(b"", b"\0" * 40, [], {}, ["p", 1], [["p", 1], 0], [None], {"a": {"b": []}}),
)  # fmt: skip


def filters(random: Random) -> Filter:
    some = [
        Constraint("topic", "text", "=", random.choice("TU")),
        Constraint("source", "text", random.choice(("=", "!=", "prefix")), random.choice(("s1", "s2", ""))),
        Constraint("value", "double", random.choice(("<", ">=", "=", "!=")), random.uniform(-50, 50)),
        Constraint("value", "double", "any"),
        Constraint("sequence", "long", random.choice(("<", ">")), random.randrange(9)),
    ]
    return Filter(tuple(random.sample(some, random.randrange(4))))


def message(random: Random) -> CbpsMessage:
    """A message that a broker or a client can send."""
    key = BundleKey(random.choice(("p", "q", "p@~1.1", "q@hub~1.2", "x@far~9.1")), random.randrange(6))
    part = SubscriptionRef(key, random.randrange(2))
    content = {"topic": random.choice("TU"), "time": random.randrange(99), "sequence": 1,
               "source": random.choice(("s1", "s2")), "value": random.uniform(0, 50),
               "x": random.uniform(0, 50), "y": 0.0}  # fmt: skip
    event = Event("T", 1, "s1", {"value": 26.0}, 1)
    state = ConditionText(random.choice(DEFINITIONS)) if random.random() < 0.5 else None
    slip = RoutingSlip(
        random.choice(("subscription", "notification")), filters(random), random.random() < 0.5
    )
    node = random.choice(("a~1", "b~2", "hub~1"))
    scopes = random.choice((None, (), ("s1",), ("s1", "s2")))
    bundles: list[CbpsMessage] = [
        Bundle(key, advertisements=(Advertisement(filters(random)),)),
        Bundle(
            key,
            subscriptions=(CbpsSubscription(filters(random), state=state),),
            lease=random.choice((None, 5)),
        ),
        Bundle(key, BundleContext("p", "q", 3, 4, 5), notifications=(Content(content),), payloads=("hello",)),
        Bundle(key, notifications=(Content(content, True),), express=ExpressSlip("notification", "abc")),
        Bundle(key, slips=(slip,), payloads=("hello",), outgoing=(filters(random),)),
        Bundle(
            key,
            incoming=(filters(random),),
            active=(ActiveSubscription((AgentStrategy(filters(random), "a"),)),),
        ),
        Bundle(key, active=AGENTS[random.choice([*AGENTS])]),
    ]
    others: list[CbpsMessage] = [
        Registration(tuple(random.sample(KINDS, random.randrange(8))), random.random() < 0.5),
        UnadvertiseBundle(key), UnsubscribeBundle(key), Renewal((key,)), BundleRefusal(key, "no"),
        ScopePlacement(part, scopes, random.randrange(4)), StateRequest(part, random.randrange(4)),
        StateAnswer(part, random.randrange(4), scopes or ()), Interruption(part, scopes),
        StateHandover(part, random.choice((None, b"", b"\x93\xc4\x01a\x01\x02")), random.random() < 0.8),
        HostedNotification(
            part, Notification("Warm", event, random.choice(("ingress", "egress", "atomic")), "s1", 1)
        ),
        LinkState(node, random.randrange(9), (("hub~1", 1), ("a~1", 2)), 4096),
        LinkUse(node, random.randrange(3), random.randrange(3)),
        CodeRequest(random.choice((digest_of(CODE), "12ab", ""))),
        CodeText(random.choice((digest_of(CODE), "12ab")), random.choice((CODE, "", "x" * 70_000))),
    ]  # fmt: skip
    return random.choice(bundles if random.random() < 0.6 else others)


def frame(random: Random) -> bytes:
    """The bytes of a message, of which about a half are as they should be."""
    tree = msgspec.msgpack.decode(msgspec.msgpack.encode(message(random)))
    for _ in range(random.choice((0, 0, 0, 0, 1, 1, 2, 5))):
        _change(random, tree)
    raw = bytearray(b"\x01" + msgspec.msgpack.encode(tree))
    for _ in range(random.choice((0, 0, 0, 0, 0, 0, 1, 3))):
        at = random.randrange(len(raw))
        match random.randrange(4):
            case 0:
                raw[at] ^= 1 << random.randrange(8)
            case 1:
                del raw[at : at + random.randrange(1, 9)]
            case 2:
                raw[at:at] = raw[at : at + random.randrange(1, 20)]
            case 3:
                raw[at] = random.randrange(256)
        if not raw:
            break
    return bytes(raw)


def _change(random: Random, tree: Any) -> None:
    """Exchange one value somewhere in nested lists and maps."""
    while isinstance(tree, list | dict) and tree:
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        key = random.choice(keys)
        if not isinstance(tree[key], list | dict) or random.random() < 0.3:
            if random.random() < 0.2:
                del tree[key]
            else:
                tree[key] = deepcopy(random.choice(VALUES))
            return
        tree = tree[key]
