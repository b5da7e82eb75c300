"""A condition that one broker of an overlay runs gives the notifications of the engine in this process.

This is tried for any placement and change of publishers, and for any broker that holds the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Engine, Event, check, parse
from holdfast.model.instant import SECOND
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import (
    ConditionChange,
    ConditionUnknown,
    WithdrawSubmission,
    advertise,
    publish,
    watch,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from support import correlated, fused
from support.overlays import definitions, often


@dataclass
class HostedScenario:
    """A tree of brokers; publishers, each of one topic and perhaps of one source; subscribers; and an engine
    beside each subscription."""

    parents: list[int]
    publishers: list[tuple[int, str, str | None]]
    subscribers: list[int]
    app: str
    seed: int | None
    engines: dict[tuple[int, str], tuple[str, Engine]] = field(default_factory=dict)

    def __post_init__(self):
        self.overlay = Overlay(seed=self.seed)
        self.overlay.broker("b0")
        for i, parent in enumerate(self.parents, 1):
            self.overlay.broker(f"b{i}", to=[f"b{parent}"])
        for i, (home, *_) in enumerate(self.publishers):
            self.overlay.client(f"p{i}", f"b{home}")
        for i, home in enumerate(self.subscribers):
            self.overlay.client(f"s{i}", f"b{home}")
        self.overlay.settle()
        self.topics = {topic.name: topic for topic in check(parse(self.app)).topics}
        self.texts = definitions(parse(self.app))
        self.advertising, self.serial = set(), 0

    def promise(self, which):
        """Start or stop to advertise."""
        i = which % len(self.publishers)
        _, topic, source = self.publishers[i]
        if i in self.advertising:
            self.overlay.ask(f"p{i}", WithdrawSubmission("it"))
        else:
            pinned = {} if source is None else {"source": source}
            self.overlay.ask(f"p{i}", advertise("it", advertisement_for(self.topics[topic], **pinned)))
        self.advertising ^= {i}

    def watch(self, who, what):
        """Start to watch a condition, or stop if it is watched already."""
        i = who % len(self.subscribers)
        name = sorted(self.texts)[what % len(self.texts)]
        if found := next(
            (key for key, (meant, _) in self.engines.items() if (key[0], meant) == (i, name)), None
        ):
            del self.engines[found]
            self.overlay.ask(f"s{i}", WithdrawSubmission(found[1]))
        else:
            self.serial += 1
            self.engines[i, f"watch {self.serial}"] = (name, Engine(self.texts[name]))
            self.overlay.ask(f"s{i}", watch(f"watch {self.serial}", self.texts[name]))

    def say(self, which, event):
        """Publish a row by a publisher that advertises its topic. Return the event, or nothing without
        one."""
        speakers = [i for i in sorted(self.advertising) if self.publishers[i][1] == event.topic]
        if not speakers:
            return None
        i = speakers[which % len(speakers)]
        event = replace(event, source=self.publishers[i][2] or event.source)
        self.overlay.ask(f"p{i}", publish(to_content(event)))
        return event

    def publish(self, which, event):
        """Publish a row on a quiet overlay. Return what subscribers received and what engines emit."""
        self.overlay.settle()
        event = self.say(which, event)
        self.overlay.settle()
        return sorted(self.emissions(), key=repr), sorted(self.outputs(event), key=repr)

    def emissions(self):
        return [
            visible(s, what.subscription, what.notification)
            for s in range(len(self.subscribers))
            for what in self.overlay.take(f"s{s}")
            if isinstance(what, ConditionChange) and what.notification.status != "late"
        ]

    def outputs(self, event):
        return [
            visible(*key, notification)
            for key, (name, engine) in self.engines.items()
            for notification in (
                engine.push(event) if event and event.topic in engine._running.topics else ()
            )
            if notification.subscription == name
        ]

    def step(self, how_many):
        """Let some messages through."""
        for _ in range(how_many):
            self.overlay.step()

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

    def give_up(self, which):
        """Let the host of some node drop something that its peer is too slow for."""
        links = sorted((a, b) for a in self.overlay.nodes for b in self.overlay.neighbours(a))
        self.overlay.give_up(*links[which % len(links)])


def visible(subscriber, subscription, notification):
    """The fields of a notification that are compared. NaN is missing and is not transmitted."""
    n = notification
    attributes = {name: value if value == value else None for name, value in n.event.attributes.items()}
    return subscriber, subscription, n.id, n.scope, n.status, n.since, n.event.order, attributes


@st.composite
def scenarios(draw, apps, topics, sources):
    brokers = draw(st.integers(1, 5))
    homes = st.integers(0, brokers - 1)
    parents = [draw(st.integers(0, i)) for i in range(brokers - 1)]
    some = st.tuples(homes, st.sampled_from(topics), st.sampled_from((None, None, *sources)))
    publishers = [(draw(homes), topic, None) for topic in topics] + draw(st.lists(some, max_size=3))
    subscribers = draw(st.lists(homes, min_size=1, max_size=2))
    return HostedScenario(parents, publishers, subscribers, draw(apps), draw(st.none() | st.integers(0, 99)))


numbers = st.integers(0, 11)
others = st.one_of(
    st.tuples(st.just("promise"), st.tuples(numbers)),
    st.tuples(st.just("watch"), st.tuples(numbers, numbers)),
)


@st.composite
def scripts(draw, histories):
    """Draw a script: publishers and a subscription first, then events mixed with changes."""
    script = [("promise", (i,)) for i in range(draw(st.integers(2, 4)))] + [("watch", (0, draw(numbers)))]
    for event in draw(histories):
        script += draw(st.sampled_from([0, 0, 1]).flatmap(lambda n: st.lists(others, min_size=n, max_size=n)))
        script.append(("publish", (draw(numbers), event)))
    return script


def play(world, script):
    """Run a script and require the notifications of engines."""
    for deed, arguments in script:
        outcome = getattr(world, deed)(*arguments)
        if deed == "publish":
            emitted, output = outcome
            assert emitted == output
            assert_one_place(world)


def assert_one_place(world):
    """Every subscription is run by one broker, through which all comes that it looks at."""
    brokers = {name: node.state for name, node in world.overlay.nodes.items() if name.startswith("b")}
    hosts = [(name, host) for name, state in brokers.items() for host in state.watching.hosts.values()]
    for part in {host.part for _, host in hosts}:
        mine = {name: host for name, host in hosts if host.part == part}
        (place,) = (name for name, host in mine.items() if host.where == "here")
        above = [peer for peer in mine[place].advertisement_counts if peer.startswith("b")]
        assert not (len(mine[place].advertisement_counts) == len(above) == 1), "it could be farther up"


# --- small conditions, of which something always starts or ends ---

TOPICS = "topic T (value float)\ntopic U (value float)\n"
CONDITIONS = [
    "state C  A = T  enter A.value >= 2  exit A.value <= 1",
    "state C  A = T each source  enter A.value >= 2  exit A.value <= 0",
    "state C  A = T  B = U  enter A.value >= 2 && B.value >= 1  exit A.value <= 1 || B.value <= 0",
    "state C  A = avg T over 2 s each source  enter A.value > 1.5  exit A.value < 1.5",
    "state C  A = sum T over 2 s  B = count U over 1 s  enter A.value > B.count  exit A.value < 2",
    "state C  A = T  enter A.value >= 1 for 1 s  exit A.value < 2 for 500 ms",
    "state C  A = T  B = U  enter A.value > B.value  set level = A.value  exit true",
    "state C  A = T each source  enter A.value >= 2  exit A.value <= 1  ordered 1 s",
    "state C  A = max T over 2 s  enter A.value > 2  exit A.value < 2  tick 1 s",
    "state B  A = T each source  enter A.value >= 2  exit A.value <= 1\n"
    "state C  D = B each source  enter D.valid && D.status == ingress  exit D.valid && D.status == egress",
    "correlate C within 1 s  T >= 2  U >= 1",
    "correlate C within 1 s  T >= 1  U >= 1  tell latest",
    "correlate C within 2 s  T >= 2  U >= 1  tell all  ordered 1 s",
    'correlate C within 3 s  T of "s1" >= 1  U of "s2" >= 1',
    'correlate C within 3 s  T of "s1" >= 2  U of "s1" >= 2  tell first',
]
small_apps = st.sampled_from(CONDITIONS).map(lambda condition: f"{TOPICS}{condition}\n")


@st.composite
def readings(draw, least=8, most=30):
    rows = st.lists(st.tuples(st.integers(0, 3), *[st.integers(0, 1)] * 2), min_size=least, max_size=most)
    return [
        Event("TU"[t], i * SECOND // 2, f"s{s + 1}", {"value": float(v)}, i)
        for i, (v, s, t) in enumerate(draw(rows))
    ]


small_scenarios = scenarios(small_apps, ("T", "U"), ("s1", "s2"))


@often
@given(world=small_scenarios, script=scripts(readings()))
def test_a_condition_on_an_overlay_gives_the_results_of_the_engine(world, script):
    play(world, script)


# --- every awkward definition and value there is ---

DELIVERIES = ("", "", "ordered 1 s", "ordered 1 s late apply")
components = scenarios(fused.definitions(), ("T", "U"), ("s1", "s2"))
correlations = scenarios(correlated.definitions(deliveries=DELIVERIES), ("T", "U", "W"), correlated.SENSORS)


@often
@given(world=components, script=scripts(fused.histories))
def test_components_with_awkward_definitions_and_values_give_the_results_of_the_engine(world, script):
    play(world, script)


@often
@given(world=correlations, script=scripts(correlated.histories))
def test_correlations_with_awkward_definitions_and_values_give_the_results_of_the_engine(world, script):
    play(world, script)


# --- messages under way ---

LIVELY = [
    "state C  A = T  enter A.value >= 0  exit true",
    "state C  A = sum T over 2 s  B = U  enter A.value > 3  exit A.value < 3",
    "correlate C within 1 s  T >= 1  U >= 0  tell all",
]
WHATEVER_THE_ORDER = ["correlate C within 100 s  T >= 0  U >= 0  tell all"]


@st.composite
def talks(draw, conditions, *faults):
    """Brokers in a row, a subscriber at the near end, a speaker of everything at the far end and a publisher
    of each topic at every broker, who come and go; what happens, message by message; and readings."""
    brokers = draw(st.integers(2, 4))
    publishers = [(i, topic, None) for topic in "TU" for i in range(brokers)]
    app = f"{TOPICS}{draw(st.sampled_from(conditions))}\n"
    world = HostedScenario(
        list(range(brokers - 1)), publishers, [0], app, draw(st.none() | st.integers(0, 99))
    )
    world.overlay.client("speaker", f"b{brokers - 1}")
    for topic in world.topics.values():
        world.overlay.ask("speaker", advertise(topic.name, advertisement_for(topic)))
    world.watch(0, 0)
    world.overlay.settle()
    deed = st.one_of(
        st.tuples(st.just("say"), numbers),
        st.tuples(st.just("promise"), numbers),
        st.tuples(st.just("step"), st.integers(1, 4)),
        *(st.tuples(st.just(fault), numbers) for fault in faults),
    )
    return world, draw(st.lists(deed, min_size=30, max_size=80)), draw(readings(least=30, most=30))


def talk(world, script, rows, *, all_of_them):
    """Run a script with messages under way and yield the published events."""
    rest, published = iter(rows), []
    for deed, argument in script:
        if deed != "say":
            getattr(world, deed)(argument)
        elif row := next(rest, None):
            published.append(row)
            if not (all_of_them and argument % 3 and world.say(argument, row)):
                world.overlay.ask("speaker", publish(to_content(row)))
    world.overlay.settle()
    return published


@often
@given(talks(LIVELY))
def test_a_state_that_moves_while_one_publisher_sends_loses_and_repeats_nothing(given):
    world, script, rows = given
    output = [one for row in talk(world, script, rows, all_of_them=False) for one in world.outputs(row)]
    assert sorted(world.emissions(), key=repr) == sorted(output, key=repr)
    assert_one_place(world)


@often
@given(talks(WHATEVER_THE_ORDER))
def test_a_state_that_moves_while_all_publishers_send_loses_and_repeats_nothing(given):
    world, script, rows = given
    output = [one for row in talk(world, script, rows, all_of_them=True) for one in world.outputs(row)]
    assert sorted(world.emissions(), key=repr) == sorted(output, key=repr)
    assert_one_place(world)


HOLDING = [
    "state C  A = T  enter A.value >= 2  exit A.value <= 1",
    "state C  A = T each source  enter A.value >= 2  exit A.value <= 0",
    "state C  A = sum T over 2 s  B = U  enter A.value > 3  exit A.value < 3",
]


@often
@given(talks(HOLDING, "cut_and_join", "give_up"))
def test_after_a_loss_every_start_has_its_end_or_an_unknown_and_one_broker_continues(given):
    world, script, rows = given
    talk(world, script, rows, all_of_them=True)
    assert_one_place(world)
    holds = set()
    for what in world.overlay.take("s0"):
        match what:
            case ConditionUnknown(_, _, scope):
                holds.remove(scope)
            case ConditionChange(_, notification) if notification.status in ("ingress", "egress"):
                assert (notification.scope in holds) is (notification.status == "egress")
                holds ^= {notification.scope}
