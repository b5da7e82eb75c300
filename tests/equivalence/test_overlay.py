"""A condition on an overlay gives the notifications of the engine in this process.

The overlay is quiet between two events, so every broker and subscriber receives them in the order of
publication.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from holdfast import App, Attribute, Engine, Event, Topic, parse
from holdfast.lang import ops
from holdfast.model.event import Notification
from holdfast.model.qos import TIMELY
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.overlay.requests import requests_of
from holdfast.network.protocols.cbps.client import (
    PUBLISHER_KINDS,
    SUBSCRIBER_KINDS,
    CbpsClient,
    ConditionChange,
    ConditionUnknown,
    WithdrawSubmission,
    advertise,
    publish,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.network.protocols.cbps.message import BundleKey, SubscriptionRef
from holdfast.network.protocols.cbps.scopes import NO_SCOPES, contains, union
from support.histories import REGIONS, TOPIC, histories, ordered, subscriptions
from support.overlays import often

PINS = [
    {},
    {"source": "s1"},
    {"source": "s2"},
    {"source": "s1", "k": "x"},
    {"source": "s2", "k": "x"},
    {"source": "s2", "k": "y", "n": 1},
    {"source": "s1", "k": "x", "flag": True, "n": 1},
    {"place": "nook", "source": "s1"},
    {"place": "nook", "source": "s2"},
    {"place": "hall"},
]
"""What publishers promise to have always; the engine knows nothing of it."""


def pin(event, pins):
    """The event as a publisher with an advertisement would publish it."""
    fixed = {name: value for name, value in pins.items() if name in ("source", "place")}
    attributes = event.attributes | {name: value for name, value in pins.items() if name not in fixed}
    return replace(event, **fixed, attributes=attributes)


@dataclass
class OverlayScenario:
    """A tree of brokers with publishers and subscribers, and an engine beside each subscription."""

    parents: list[int]
    publishers: list[tuple[int, dict]]
    subscribers: list[int]
    apps: list[App]
    topic: Topic
    seed: int | None
    accepts: tuple[str, ...] = SUBSCRIBER_KINDS
    engines: dict[tuple[int, str], Engine] = field(default_factory=dict)

    def __post_init__(self):
        self.overlay = Overlay(seed=self.seed)
        self.overlay.broker("b0")
        for i, parent in enumerate(self.parents, 1):
            self.overlay.broker(f"b{i}", to=[f"b{parent}"])
        for i, (home, _) in enumerate(self.publishers):
            publisher = CbpsClient(f"p{i}", compile_condition, self.accepts)
            self.overlay.client(f"p{i}", f"b{home}", machine=publisher)
        for i, home in enumerate(self.subscribers):
            self.overlay.client(f"s{i}", f"b{home}")
        self.overlay.settle()
        self.advertising, self.watching, self.serial = set(), {}, 0

    def promise(self, which):
        """Start or stop to advertise."""
        i = which % len(self.publishers)
        if i in self.advertising:
            self.overlay.ask(f"p{i}", WithdrawSubmission("it"))
        else:
            self.overlay.ask(f"p{i}", advertise("it", advertisement_for(self.topic, **self.pins(i))))
        self.advertising ^= {i}

    def watch(self, who, what):
        """Start to watch a condition, or stop if it is watched already."""
        i, k = who % len(self.subscribers), what % len(self.apps)
        ((_, request),) = requests_of(self.apps[k]).items()
        if (i, k) in self.watching:
            name = self.watching.pop((i, k))
            del self.engines[i, name]
            self.overlay.ask(f"s{i}", WithdrawSubmission(name))
        else:
            self.serial += 1
            name = self.watching[i, k] = f"watch {self.serial}"
            self.engines[i, name] = Engine(self.apps[k])
            self.overlay.ask(f"s{i}", msgspec.structs.replace(request, name=name))

    def say(self, which, event):
        """Publish a row by one of the advertising publishers. Return the event, or nothing without such a
        publisher."""
        speakers = sorted(self.advertising)
        if not speakers:
            return None
        i = speakers[which % len(speakers)]
        event = pin(event, self.pins(i))
        self.overlay.ask(f"p{i}", publish(to_content(event)))
        return event

    def pins(self, which):
        return self.publishers[which % len(self.publishers)][1]

    def publish(self, which, event):
        """Publish a row on a quiet overlay. Return what subscribers received and what engines emit."""
        self.overlay.settle()
        event = self.say(which, event)
        self.overlay.settle()
        emitted = [
            visible(s, what.subscription, what.notification)
            for s in range(len(self.subscribers))
            for what in self.overlay.take(f"s{s}")
            if isinstance(what, ConditionChange) and what.notification.status != "late"
        ]
        output = [
            visible(*key, notification)
            for key, engine in self.engines.items()
            for notification in (engine.push(event) if event else ())
        ]
        return sorted(emitted, key=repr), sorted(output, key=repr)

    def cut_and_join(self, which):
        """Cut a link, with all that is under way on it, and connect the two parts again: where they were
        or elsewhere, when the loss has been noticed everywhere or at once."""
        links = sorted((a, b) for a in self.overlay.nodes for b in self.overlay.neighbours(a) if a < b)
        a, b = links[which % len(links)]
        self.overlay.cut(a, b)
        if which % 2:
            self.overlay.settle()
        if which % 3:
            one, other = self.reachable(a), self.reachable(b)
            a = a if a[0] != "b" else one[which % len(one)]
            b = b if b[0] != "b" else other[which % len(other)]
        self.overlay.connect(a, b)

    def reachable(self, start):
        """The brokers that a node is connected with."""
        found = [start]
        for node in found:
            found += [other for other in self.overlay.neighbours(node) if other not in found]
        return [node for node in found if node.startswith("b")]

    def step(self, how_many):
        """Let some messages through."""
        for _ in range(how_many):
            self.overlay.step()

    def give_up(self, which):
        """Let the host of some node drop something that its peer is too slow for."""
        links = sorted((a, b) for a in self.overlay.nodes for b in self.overlay.neighbours(a))
        self.overlay.give_up(*links[which % len(links)])


def visible(subscriber, subscription, notification):
    n = notification
    return subscriber, subscription, n.id, n.scope, n.status, n.since, n.event.order


@st.composite
def scenarios(draw, topic, apps, pins):
    brokers = draw(st.integers(1, 5))
    homes = st.integers(0, brokers - 1)
    parents = [draw(st.integers(0, i)) for i in range(brokers - 1)]
    publishers = draw(st.lists(st.tuples(homes, pins), min_size=1, max_size=4))
    subscribers = draw(st.lists(homes, min_size=1, max_size=2))
    chosen = draw(st.lists(apps, min_size=1, max_size=2))
    accepts = draw(st.sampled_from([SUBSCRIBER_KINDS, PUBLISHER_KINDS]))
    return OverlayScenario(
        parents, publishers, subscribers, chosen, topic, draw(st.none() | st.integers(0, 99)), accepts
    )


numbers = st.integers(0, 11)
others = st.one_of(
    st.tuples(st.just("promise"), st.tuples(numbers)),
    st.tuples(st.just("watch"), st.tuples(numbers, numbers)),
)


@st.composite
def scripts(draw, events):
    """Draw a script: publishers and a subscription first, then events mixed with changes."""
    script = [("promise", (i,)) for i in range(draw(st.integers(1, 3)))] + [("watch", (0, 0))]
    for event in draw(events):
        script += draw(st.sampled_from([0, 0, 1]).flatmap(lambda n: st.lists(others, min_size=n, max_size=n)))
        script.append(("publish", (draw(numbers), event)))
    return script


def play(world, script):
    """Run a script. Require the notifications of engines and the expected state of brokers."""
    for deed, arguments in script:
        outcome = getattr(world, deed)(*arguments)
        if deed == "publish":
            emitted, output = outcome
            assert emitted == output
            assert_replicas_agree(world.overlay)


def assert_replicas_agree(overlay):
    """Every bit that a broker keeps of a scope that publishers reach from there is the subscriber's."""
    for name, node in overlay.nodes.items():
        for run in node.state.watching.all() if name.startswith("b") else ():
            key, place = run.part
            origin = key.origin.partition("@")[0]
            watched = overlay.nodes[origin].state.local_conditions[
                SubscriptionRef(BundleKey(origin, key.sequence), place)
            ]
            bits = set(watched.condition.bits(watched.runner.state))
            doubted = set(watched.condition.uncertain_bits(watched.runner.state))
            covered = NO_SCOPES
            for peer in node.state.routing.links:
                covered = union(covered, run.reach.through(peer))
            stored = {key for key in bits | run.replica.bits if contains(covered, key)}
            stored = {key for key in stored if not contains(run.replica.shared, key)}
            if run.condition.ends is None:
                assert run.replica.bits & stored == bits & stored
                assert run.replica.uncertain_bits & stored == doubted & stored
            else:  # a gate is open where something holds, and may be elsewhere
                assert run.replica.bits >= bits & stored


# --- a small topic, in which something always starts or ends ---

ROOMS = Topic("Reading", (Attribute("v", "int"), Attribute("room", "text")))
PER_SOURCE = "topic Reading (v int, room text)\nstate C on Reading [v >= 2; v <= 0] per source"
CONDITIONS = [
    "state C on Reading [v >= 2; v <= 0] per source",
    "state C on Reading [v >= 2; v <= 0]",
    "state C on Reading [v >= 2; v <= 1] per room",
    "state C on Reading [v >= 1; v <= 2] per room",
    "state C on Reading [v == 1; v == 1]",
    "state C on Reading [v >= 2; v <= 1] per source within room",
    "state C on Reading [v >= 2; v <= 1] per source scope room1, room2 within floor",
    "state C on Reading [v >= 2; v <= 0] scope room1, room2",
    "state C on Reading [v >= 2; false] per source",
    "filter C on Reading where v == 3 per room",
]
REGIONS_OF_ROOMS = "region floor\nregion room1 in floor\nregion room2 in floor\n"
small_apps = st.sampled_from(CONDITIONS).map(
    lambda condition: parse(f"topic Reading (v int, room text)\n{REGIONS_OF_ROOMS}{condition}\n")
)

# --- tables: publishers and brokers have a gate, the subscriber the rows ---

TABLED = [
    "state C on Reading [v >= L.high; v <= L.low] per source",
    "state C on Reading [v >= L.high; v <= L.low] per room",
    "state C on Reading [v >= L.high; v <= L.low]",
    "state C on Reading [v > L.high - 1; v < L.low + 1] per source within room",
    "state C on Reading [v >= L.high; v <= L.low] per source scope room1, room2 within floor",
    "state C on Reading [v >= L.high && v != 2; v <= L.low || v == L.low + 1] scope room1, room2",
    "state C on Reading [v >= L.high; v <= L.low] per source ordered 2 µs",
    "state C on Reading [v >= L.high for 2 readings; v <= L.low] per source",
    "levels C on Reading: low [v >= L.low; v < L.low], high [v >= L.high; v <= L.low] per source",
    "filter C on Reading where v == L.high per room",
]


@st.composite
def apps_with_tables(draw):
    """Conditions with a table that has a row for some sources, and perhaps one for the others."""
    cells = st.integers(0, 3) | st.none()
    keys = draw(st.sampled_from([["s1"], ["s1", "s2"], ["s1", "*"], ["s1", "s2", "*"], ["*"]]))
    columns = {name: pa.array([draw(cells) for _ in keys], pa.int64()) for name in ("high", "low")}
    text = f"""topic Reading (v int, room text)
{REGIONS_OF_ROOMS}
table L "" (source text, high int, low int)
{draw(st.sampled_from(TABLED))}
"""
    data = pa.table({"source": keys, **columns})
    tables = {
        s.name: replace(s, data=data) for s in parse(text).statements if isinstance(s, ops.DeclareTable)
    }
    return App([tables.get(getattr(s, "name", ""), s) for s in parse(text).statements])


promises = st.fixed_dictionaries(
    {},
    optional={
        "source": st.sampled_from(["s1", "s2"]),
        "room": st.sampled_from(["r1", "r2"]),
        "place": st.sampled_from(["room1", "room2"]),
    },
)


@st.composite
def readings(draw):
    rows = draw(st.lists(st.tuples(*[st.integers(0, 3), *[st.integers(0, 1)] * 3]), min_size=8, max_size=30))
    return [
        Event("Reading", i, f"s{s + 1}", {"v": v, "room": f"r{r + 1}"}, i, None, f"room{p + 1}")
        for i, (v, s, r, p) in enumerate(rows)
    ]


@often
@given(world=scenarios(ROOMS, small_apps, promises), script=scripts(readings()))
def test_a_condition_on_an_overlay_gives_the_results_of_the_engine(world, script):
    play(world, script)


@often
@given(world=scenarios(ROOMS, apps_with_tables(), promises), script=scripts(readings()))
def test_a_condition_with_tables_of_the_subscriber_gives_the_results_of_the_engine(world, script):
    play(world, script)


# --- every awkward definition and value there is ---


def apps(delivery):
    return delivery.flatmap(lambda d: subscriptions(d, most=1)).map(
        lambda subs: App((ops.DeclareTopic(TOPIC), *REGIONS, *subs))
    )


@often
@given(
    world=scenarios(TOPIC, apps(st.just(TIMELY)), st.sampled_from(PINS)), script=scripts(histories(most=14))
)
def test_awkward_definitions_and_values_give_the_results_of_the_engine(world, script):
    play(world, script)


@often
@given(world=scenarios(TOPIC, apps(ordered), st.sampled_from(PINS)), script=scripts(histories(most=14)))
def test_a_condition_that_waits_for_event_time_order_gives_the_results_of_the_engine(world, script):
    play(world, script)


# --- messages under way ---


@often
@given(world=scenarios(ROOMS, small_apps, promises), script=scripts(readings()))
def test_brokers_end_up_with_the_bits_of_the_subscriber_after_any_interleaving(world, script):
    for deed, arguments in script:
        if deed == "publish":
            world.say(*arguments)
        else:
            getattr(world, deed)(*arguments)
    world.overlay.settle()
    assert_replicas_agree(world.overlay)
    assert_starts_and_ends_alternate(world)


@often
@given(
    world=scenarios(ROOMS, st.just(parse(PER_SOURCE)), st.just({})), rows=readings(), seed=st.integers(0, 99)
)
def test_one_publisher_for_each_scope_needs_no_quiet_between_events(world, rows, seed):
    """A scope's events come one way, in order, so it makes no difference what else is under way."""
    for i in range(len(world.publishers)):
        world.publishers[i] = (world.publishers[i][0], {"source": f"s{i}"})
        world.promise(i)
    world.watch(0, 0)
    world.overlay.settle()
    for i, row in enumerate(rows):
        world.say(i % len(world.publishers), row)
    world.overlay.settle()
    ((_, engine),) = world.engines.items()
    output = [n for i, row in enumerate(rows) for n in engine.push(pin(row, world.pins(i)))]
    emitted = [what.notification for what in world.overlay.take("s0")]
    for source in {n.event.source for n in output + emitted}:
        assert [n.id for n in emitted if n.scope == source] == [n.id for n in output if n.scope == source]


faults = st.lists(st.tuples(st.sampled_from(["cut_and_join", "give_up", "step"]), numbers), max_size=8)


@often
@given(world=scenarios(ROOMS, small_apps, promises), script=scripts(readings()), faults=faults)
def test_after_a_loss_every_start_has_its_end_or_an_unknown_and_replicas_agree_again(world, script, faults):
    for i, (deed, arguments) in enumerate(script):
        getattr(world, "say" if deed == "publish" else deed)(*arguments)
        if faults and i % 3 == 1:
            fault, which = faults.pop()
            getattr(world, fault)(which)
    world.overlay.settle()
    assert_replicas_agree(world.overlay)
    assert_starts_and_ends_alternate(world)


NEXT = {"": {"ingress"}, "egress": {"ingress"}, "unknown": {"known", "egress"}}
NEXT |= {one: {"unknown", "egress"} for one in ("ingress", "known")}


def assert_starts_and_ends_alternate(world):
    """Require for each subscription and scope that starts and ends alternate. In between the status may be
    unknown; the transition after that is notified."""
    for name in (f"s{i}" for i in range(len(world.subscribers))):
        last, since = {}, {}
        for what in world.overlay.take(name):
            match what:
                case ConditionUnknown(subscription, _, scope):
                    key, status, began = (subscription, scope), "unknown", what.since
                case ConditionChange(subscription, notification) if notification.status != "atomic":
                    key, status, began = (subscription, notification.scope), *notification[2::2]
                case _:
                    continue
            assert status in NEXT[last.get(key, "")]
            if status == "ingress":
                since[key] = what.notification.event.time
            else:
                assert began == since[key]
            last[key] = status


# --- notifications after a loss ---

FLAT = [text for text in CONDITIONS if "within" not in text]


def reachable_from(overlay, start):
    """All nodes that a node can reach."""
    found = [start]
    for node in found:
        found += [other for other in overlay.neighbours(node) if other not in found]
    return found


@st.composite
def lossy(draw):
    """A world of one subscription, and readings with cuts between them that some of them fall into."""
    text = f"topic Reading (v int, room text)\n{REGIONS_OF_ROOMS}{draw(st.sampled_from(FLAT))}\n"
    world = draw(scenarios(ROOMS, st.just(parse(text)), promises))
    rows = draw(readings())
    cuts = draw(st.lists(st.tuples(numbers, st.integers(0, 2)), min_size=len(rows), max_size=len(rows)))
    return world, list(zip(rows, cuts, draw(st.permutations(range(len(rows)))), strict=True))


@often
@given(lossy())
def test_after_a_loss_notifications_equal_those_of_the_engine_on_delivered_events(given):
    world, story = given
    for i in range(len(world.publishers)):
        world.promise(i)
    world.watch(0, 0)
    world.overlay.settle()
    ((_, engine),) = world.engines.items()
    (meaning,) = {one.condition for one in world.overlay.nodes["s0"].state.local_conditions.values()}
    unknown, cut = set(), None
    for row, (which, deed), speaker in story:
        if deed == 1 and cut is None:
            links = sorted((a, b) for a in world.overlay.nodes for b in world.overlay.neighbours(a) if a < b)
            cut = links[which % len(links)]
            world.overlay.cut(*cut)
        elif deed == 2 and cut is not None:
            world.overlay.connect(*cut)
            cut = None
        world.overlay.settle()
        unknown |= {one.scope for one in world.overlay.take("s0") if isinstance(one, ConditionUnknown)}
        is_received = "s0" in reachable_from(world.overlay, f"p{speaker % len(world.publishers)}")
        event = world.say(speaker, row)
        world.overlay.settle()
        expected = engine.push(event) if is_received else []
        chain, holds = meaning.chain(event), {one.scope: one.since for one in engine.holding()}
        scope = None if chain is None else meaning.machine.filters.readable_scope(chain[-1])
        if is_received and chain and scope in unknown and not expected and meaning.enter(event):
            expected = [Notification("C", event, "known", scope, holds[scope])]
        emitted = [one.notification for one in world.overlay.take("s0")]
        assert emitted == expected
        unknown -= {one.scope for one in emitted}
        assert_replicas_agree(world.overlay)
