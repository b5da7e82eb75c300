"""Random overlays, random actions on them, and a central oracle of the expected deliveries.

A scenario runs an overlay in memory and records beside it the links, advertisements and subscriptions. The
oracle decides with the naive twin of matching and a walk over the links.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st

from holdfast import App, Engine, Event, Notification, check
from holdfast.definition.show import show
from holdfast.network.overlay.conditions import compile_condition, split_app
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import (
    ConditionChange,
    ReceivedNotification,
    Submit,
    WithdrawSubmission,
    advertise,
    publish,
    subscribe,
    watch,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.context import within_hops
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from support import naive_match
from support.runtimes import in_order, output

often = settings(max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 15))
"""How many overlays a test tries: each takes some time."""

# --- filters and what satisfies them ---

NAMES = {"x": "double", "n": "long", "k": "text"}
SOME = {"x": [0.0, 1.0, 1.5, 2.0, 3.0], "n": [0, 1, 2, 3], "k": ["a", "ab", "b"]}


WIDE = st.sampled_from([("n", "x"), ("k", "n", "x"), ("k", "n", "x"), ("k", "n")])
NARROW = st.sampled_from([("n",), ("x",), ("n",), ("k",), ("n", "x"), ("k", "n", "x")])
OPS = {"n": [">=", "<=", "!=", ">", "<", "="], "k": ["!=", "prefix", "="]}


@st.composite
def filters(draw, names):
    """A filter on some attributes; two constraints on one attribute are rare."""
    constraints = []
    for name in draw(names):
        for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
            op = draw(st.just("any") | st.sampled_from(OPS.get(name, OPS["n"])))
            value = None if op == "any" else draw(st.sampled_from(SOME[name]))
            constraints.append(Constraint(name, NAMES[name], op, value))
    return Filter(tuple(constraints))


def on(**constraints):
    """``on(n=(">=", 1), x=None)`` wants n to be 1 at least, and x to be there."""
    return Filter(
        tuple(Constraint(n, NAMES[n], *(c or ("any", None))) for n, c in sorted(constraints.items()))
    )


NESTED = [
    on(n=None),
    on(n=(">=", 1)),
    on(n=(">=", 2)),
    on(n=(">=", 2), x=None),
    on(n=(">=", 2), x=(">", 1.0)),
]
"""Subscriptions of which each covers those after it."""

PROMISES = [
    on(n=None, x=None),
    on(n=(">=", 1), x=None),
    on(n=(">=", 1), x=(">", 0.5)),
    on(n=(">=", 2), x=(">", 0.5)),
]
"""Advertisements of which each covers those after it."""


def contents(filter_):
    """Every notification that has just the fields of a filter and satisfies it."""
    found = [{}]
    for name in sorted({c.name for c in filter_.constraints}):
        found = [{**content, name: value} for content in found for value in SOME[name]]
    return [content for content in found if naive_match.satisfies(filter_, content)]


# --- the world ---


@dataclass
class Subscribed:
    filter: Filter
    hops: int | None


def _without_mark(key):
    """The origin without the mark of the connection by which it arrived, and its number."""
    return key.origin.partition("@")[0], key.sequence


def _key_of(what):
    return _without_mark(what.bundle)


def _request_of(item):
    bundle, *which = item
    return _without_mark(bundle), *which


@dataclass
class OverlayNetwork:
    """``parents[i]`` is the broker that broker i+1 was first joined to; clients live at brokers."""

    parents: list[int]
    homes: list[int]
    seed: int | None
    memoize: bool = True
    advertised: dict[tuple[str, str], Filter] = field(default_factory=dict)
    subscribed: dict[tuple[str, str], Subscribed] = field(default_factory=dict)

    def __post_init__(self):
        self.overlay = Overlay(seed=self.seed)
        self.brokers = [f"b{i}" for i in range(len(self.parents) + 1)]
        self.clients = [f"c{i}" for i in range(len(self.homes))]
        self.serial = 0
        for broker in self.brokers:
            self.overlay.broker(broker, machine=CbpsBroker(compile_condition, memoize=self.memoize))
        for child, parent in enumerate(self.parents, 1):
            self.overlay.connect(self.brokers[child], self.brokers[parent])
        for client, home in zip(self.clients, self.homes, strict=True):
            self.overlay.client(client, self.brokers[home])
        self.overlay.settle()

    def number(self):
        self.serial += 1
        return str(self.serial)

    # --- the oracle ---

    def paths(self, start):
        """How many brokers lie on the way from a node to each node that it is connected with."""
        visited, edge = {start: 0}, [start]
        while edge:
            here = edge.pop()
            for other in self.overlay.neighbours(here):
                if other not in visited:
                    visited[other] = visited[here] + (other in self.brokers)
                    edge.append(other)
        return visited

    def audience(self, publisher, content):
        """The expected receivers of a notification, with the subscription: each once."""
        paths = self.paths(publisher)
        return [
            (client, name)
            for (client, name), subscribed in self.subscribed.items()
            if client in paths and client != publisher
            if naive_match.satisfies(subscribed.filter, content)
            if subscribed.hops is None or paths[client] <= subscribed.hops
        ]

    # --- what people do ---

    def advertise(self, who, filter_, aggregation=True):
        client, name = self.clients[who % len(self.clients)], self.number()
        self.advertised[client, name] = filter_
        self.overlay.ask(client, advertise(name, filter_, aggregation=aggregation))

    def subscribe(self, who, filter_, hops=None, aggregation=True, flood=False):
        client, name = self.clients[who % len(self.clients)], self.number()
        self.subscribed[client, name] = Subscribed(filter_, hops)
        incoming = () if hops is None else (within_hops(hops),)
        request = subscribe(name, filter_, incoming=incoming, aggregation=aggregation, flood_forward=flood)
        self.overlay.ask(client, request)

    def withdraw(self, which):
        everything = [*self.advertised, *self.subscribed]
        if everything:
            client, name = everything[which % len(everything)]
            self.advertised.pop((client, name), None)
            self.subscribed.pop((client, name), None)
            self.overlay.ask(client, WithdrawSubmission(name))

    def cut(self, which):
        links = sorted((a, b) for a in self.brokers for b in self.overlay.neighbours(a) if a < b)
        if links:
            self.overlay.cut(*links[which % len(links)])

    def join(self, one, other):
        """Connect two nodes that are not connected by any way; a client has one broker at most."""
        nodes = self.brokers + self.clients
        a, b = nodes[one % len(nodes)], self.brokers[other % len(self.brokers)]
        if b not in self.paths(a) and not (a in self.clients and self.overlay.neighbours(a)):
            self.overlay.connect(a, b)

    def publish(self, *picks):
        """Publish advertised contents at once. Return the actual and the expected receivers."""
        self.overlay.settle()
        promises = [(client, f) for (client, _), f in self.advertised.items() if contents(f)]
        expected = Counter()
        for which, value in picks if promises else ():
            client, filter_ = promises[which % len(promises)]
            possible = contents(filter_)
            content = possible[value % len(possible)]
            self.overlay.ask(client, publish(content))
            key = (client, self.overlay.nodes[client].state.sequence)
            if self.overlay.neighbours(client):
                expected.update((key, *hearer) for hearer in self.audience(client, content))
        self.overlay.settle()
        received = [(client, what) for client in self.clients for what in self.overlay.take(client)]
        run_on_overlay = Counter(
            (_key_of(what), c, what.subscription)
            for c, what in received
            if isinstance(what, ReceivedNotification)
        )
        return run_on_overlay, expected

    def withdraw_everything(self):
        while self.advertised or self.subscribed:
            self.withdraw(0)
        self.overlay.settle()

    def left_over(self):
        """How much each broker still holds."""
        states = {name: self.overlay.nodes[name].state for name in self.brokers}
        return {name: len(s.routing) + len(s.watching) for name, s in states.items() if len(s.routing)}

    def in_sight(self):
        """The active items of each broker: the advertisements and subscriptions that no other covers. Of
        equal ones any may represent the others."""
        return {
            (broker, peer, kind): {
                (frozenset(item.filter.box.items()), item.group, item.group is None and _request_of(item.key))
                for item in state.routing.database.table(peer, kind).active()
            }
            for broker in self.brokers
            if (state := self.overlay.nodes[broker].state)
            for peer in state.routing.links
            for kind in ("advertisement", "subscription")
        }

    def rebuild(self):
        """A world in which all that lives now is there from the start."""
        twin = OverlayNetwork([], [], None)
        twin.brokers, twin.clients = self.brokers, self.clients
        twin.overlay = Overlay()
        for broker in self.brokers:
            twin.overlay.broker(broker)
        for client in self.clients:
            twin.overlay.client(client)
        for a in self.overlay.nodes:
            for b in self.overlay.neighbours(a):
                if b not in twin.overlay.neighbours(a):
                    twin.overlay.connect(a, b)
        for client in self.clients:
            state = self.overlay.nodes[client].state
            for name, bundle in state.bundles.items():
                twin.overlay.nodes[client].state.sequence = bundle.key.sequence - 1
                twin.overlay.ask(client, Submit(bundle, name))
        twin.overlay.settle()
        return twin


numbers = st.integers(0, 30)
hops = st.sampled_from([None] * 6 + [1, 2, 3])


def mostly(value):
    return st.sampled_from([value] * 4 + [not value])


DEEDS = {
    "advertise": st.tuples(numbers, st.sampled_from(PROMISES) | filters(WIDE), mostly(True)),
    "subscribe": st.tuples(
        numbers, st.sampled_from(NESTED) | filters(NARROW), hops, mostly(True), mostly(False)
    ),
    "withdraw": st.tuples(numbers),
    "publish": st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3),
    "cut": st.tuples(numbers),
    "join": st.tuples(numbers, numbers),
}


def deeds(*kinds):
    """Draw actions as (name of the method, arguments): first advertisements and subscriptions, then all
    sorts."""

    def some(kinds, least, most):
        each = [st.tuples(st.just(kind), DEEDS[kind]) for kind in kinds]
        return st.lists(st.one_of(each), min_size=least, max_size=most)

    first = st.tuples(some(["advertise"], 1, 3), some(["subscribe"], 2, 5), some(kinds, 4, 20))
    return first.map(lambda parts: [deed for part in parts for deed in part])


@st.composite
def scenarios(draw, most_brokers=6, most_clients=4):
    """A random tree of brokers, clients at random brokers, and a random order of messages."""
    brokers = draw(st.integers(1, most_brokers))
    parents = [draw(st.integers(0, i)) for i in range(brokers - 1)]
    homes = draw(st.lists(st.integers(0, brokers - 1), min_size=2, max_size=most_clients))
    return OverlayNetwork(parents, homes, draw(st.none() | st.integers(0, 2**16)), draw(st.booleans()))


# --- conditions --------------------------------------------------------------------------------------


def run_on_overlay(app: App, events: Sequence[Event]) -> list[Notification]:
    """A replay on a line of three brokers: a publisher for each source and a subscriber for each condition,
    so that only what a condition needs reaches it."""
    overlay, topics = Overlay(), check(app).topics
    for i in range(3):
        overlay.broker(f"b{i}", to=[f"b{i - 1}"] if i else [])
    subscribers = definitions(app)
    for i, (name, text) in enumerate(subscribers.items()):
        overlay.client(name, f"b{i % 3}")
        overlay.ask(name, watch(name, text))
    for event in in_order(events):
        publisher = f"of {event.source}"
        if publisher not in overlay.nodes:
            overlay.client(publisher, f"b{len(overlay.nodes) % 3}")
            for topic in topics:
                overlay.ask(publisher, advertise(topic.name, advertisement_for(topic, source=event.source)))
        overlay.settle()
        overlay.ask(publisher, publish(to_content(event)))
    overlay.settle()
    received = [what for name in subscribers for what in overlay.take(name)]
    return output([what.notification for what in received if isinstance(what, ConditionChange)])


def each_alone(app: App, events: Sequence[Event]) -> list[Notification]:
    """The notifications of an engine for each condition alone, up to the last event that it consumes: that
    advances the watermark of all its topics, like the clock of an overlay."""
    found: list[Notification] = []
    for name, text in definitions(app).items():
        engine = Engine(text)
        emitted = (n for e in relevant(text, events) for n in (*engine.push(e), *engine.advance(e.time)))
        found += [n for n in emitted if n.subscription == name]
    return output(found)


def relevant(text: str, events: Sequence[Event]) -> list[Event]:
    """The events that a condition needs, in order."""
    inputs = compile_condition(text).inputs
    return [e for e in in_order(events) if any(naive_match.satisfies(f, to_content(e)) for f in inputs)]


def definitions(app: App) -> dict[str, str]:
    """Each subscription of an app as the text that travels."""
    return {name: show(one) for name, one in split_app(app).items()}
