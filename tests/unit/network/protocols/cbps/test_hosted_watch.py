"""Conditions that one broker runs: which, how their state moves, what the clock does, and what is lost."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Engine, Event, check, parse
from holdfast.errors import UsageError
from holdfast.model.instant import MINUTE, SECOND
from holdfast.model.protocol import Joined, Received, Send, Undelivered
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps import hosted_watch
from holdfast.network.protocols.cbps.broker import CbpsBroker
from holdfast.network.protocols.cbps.client import (
    ConditionChange,
    ConditionUnknown,
    SubmissionRefused,
    WithdrawSubmission,
    advertise,
    publish,
    watch,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.network.protocols.cbps.message import (
    KINDS,
    Advertisement,
    Bundle,
    BundleContext,
    BundleKey,
    CbpsSubscription,
    ConditionText,
    HostedNotification,
    Interruption,
    PublishedNotification,
    Registration,
    ScopePlacement,
    StateHandover,
    StateRequest,
    SubscriptionRef,
    UnadvertiseBundle,
)
from holdfast.network.protocols.cbps.runner import ConditionRunner

TOPICS = "topic T (value float)\ntopic U (value float)\n"
TOPIC = {topic.name: topic for topic in check(parse(TOPICS)).topics}
BOTH = f"{TOPICS}state Both  A = T  B = U  enter A.value > 2 && B.value > 2  exit A.value < 1"
HIGH = f"{TOPICS}state High  A = T each source  enter A.value > 2  exit A.value < 1"
WINDOW = f"{TOPICS}state Busy  A = count T over 10 s  enter A.count >= 2  exit A.count < 2"
AGREE = f"{TOPICS}correlate Agree within 10 s  T > 2  U > 2"
NAMED = f'{TOPICS}correlate Agree within 10 s  T of "s1" > 2  U of "s2" > 2'


class HostedFloor:
    """Brokers ``east`` and ``west`` at a ``hub``; a subscriber beyond it, at the ``office``.

    Each publisher is a client that publishes one topic; readings come a second after one another.
    """

    def __init__(self, **publishers):
        self.overlay = Overlay()
        self.overlay.broker("hub")
        for broker in ("east", "west", "office"):
            self.overlay.broker(broker, to=["hub"])
        self.overlay.client("subscriber", "office")
        self.topics = {}
        for name, where in publishers.items():
            self.add(name, *where)
        self.time = 0

    def add(self, name, topic, home):
        self.topics[name] = topic
        self.overlay.client(name, home)
        self.overlay.ask(name, advertise("it", advertisement_for(TOPIC[topic], source=name)))
        self.overlay.settle()

    def withdraw(self, name):
        self.overlay.ask(name, WithdrawSubmission("it"))
        self.overlay.settle()

    def watch(self, definition):
        self.overlay.ask("subscriber", watch("it", definition))
        self.overlay.settle()

    def read(self, name, *values, settle=True):
        for value in values:
            self.time += SECOND
            event = Event(self.topics[name], self.time, name, {"value": float(value)}, self.time)
            self.overlay.ask(name, publish(to_content(event)))
            if settle:
                self.overlay.settle()

    def pass_(self, length):
        """Let time pass on the clock."""
        self.overlay.advance(length)
        self.overlay.settle()

    def emissions(self):
        """(status, seconds) of the notifications to the subscriber; ``unknown`` has the time of its start."""
        return [
            ("unknown", what.since / SECOND)
            if isinstance(what, ConditionUnknown)
            else (what.notification.status, what.notification.event.time / SECOND)
            for what in self.overlay.take("subscriber")
            if isinstance(what, ConditionChange | ConditionUnknown)
        ]

    def host(self, broker):
        """The part of a broker that belongs to the condition."""
        (found,) = self.overlay.nodes[broker].state.watching.hosts.values()
        return found

    def place(self):
        """The broker that runs it."""
        (found,) = [
            name
            for name in {"hub", "east", "west", "office"} & self.overlay.nodes.keys()
            for host in self.overlay.nodes[name].state.watching.hosts.values()
            if host.where == "here"
        ]
        return found

    def carried(self, a, b, cause="notification"):
        """How many messages have gone over a link since the last look."""
        return self.overlay.traffic.pop((a, b, cause), 0)


# --- which broker runs it ---


@pytest.mark.parametrize(
    ("publishers", "place"),
    [
        ({}, "office"),
        ({"a": ("T", "office")}, "office"),
        ({"a": ("T", "hub")}, "hub"),
        ({"a": ("T", "east")}, "east"),
        ({"a": ("T", "east"), "b": ("U", "east")}, "east"),
        ({"a": ("T", "east"), "b": ("U", "west")}, "hub"),
        ({"a": ("T", "east"), "b": ("U", "hub")}, "hub"),
        ({"a": ("T", "east"), "b": ("U", "office")}, "office"),
    ],
)
@pytest.mark.parametrize("first", ["publishers", "subscriber"])
def test_a_condition_runs_at_the_nearest_broker_that_all_its_inputs_reach(publishers, place, first):
    floor = HostedFloor(**(publishers if first == "publishers" else {}))
    floor.watch(BOTH)
    if first == "subscriber":
        for name, where in publishers.items():
            floor.add(name, *where)
    assert floor.place() == place


def test_from_the_hosting_broker_only_notifications_travel():
    floor = HostedFloor(a=("T", "east"), b=("U", "east"))
    floor.watch(BOTH)
    floor.read("a", 3)
    floor.read("b", 3, 4, 5, 6)
    floor.read("a", 2, 0, 3)
    assert floor.emissions() == [("ingress", 2.0), ("egress", 7.0)]
    for link in (("east", "hub"), ("hub", "office")):
        assert (floor.carried(*link), floor.carried(*link, "said")) == (0, 2)


def test_events_that_advance_the_watermark_travel_to_the_hosting_broker():
    floor = HostedFloor(a=("T", "east"), b=("U", "west"))
    floor.watch(BOTH)
    floor.read("a", 0, 0, 3)
    floor.read("b", 0, 3)
    assert (floor.carried("east", "hub"), floor.carried("west", "hub")) == (3, 2)
    assert floor.carried("hub", "office") == 0


def test_without_timers_only_relevant_events_travel():
    floor = HostedFloor(a=("T", "east"), b=("U", "west"))
    floor.watch(AGREE)
    floor.read("a", 0, 3, 1)
    floor.read("b", 1, 2, 3)
    assert (floor.carried("east", "hub"), floor.carried("west", "hub")) == (1, 1)
    assert floor.emissions() == [("atomic", 2.0), ("atomic", 6.0)]


def test_only_named_sensors_decide_where_a_condition_runs():
    floor = HostedFloor(s1=("T", "east"), s2=("U", "east"), s3=("T", "west"), s4=("U", "office"))
    floor.watch(NAMED)
    assert floor.place() == "east"
    floor.read("s3", 3)
    floor.read("s4", 3)
    floor.read("s1", 3)
    floor.read("s2", 3)
    assert floor.emissions() == [("atomic", 3.0), ("atomic", 4.0)]
    assert floor.carried("west", "hub") == 0


# --- how the state moves ---


def test_a_publisher_on_another_path_moves_the_condition_down_and_its_leaving_moves_it_up():
    floor = HostedFloor(a=("T", "east"))
    floor.watch(WINDOW)
    floor.read("a", 1, 1)
    floor.add("b", "T", "west")
    assert floor.place() == "hub"
    floor.read("b", 1)
    assert floor.emissions() == [("ingress", 2.0)]
    floor.add("c", "T", "office")
    assert floor.place() == "office"
    floor.withdraw("c")
    floor.withdraw("a")
    assert floor.place() == "west"
    floor.pass_(5 * SECOND)
    floor.time += 20 * SECOND
    floor.read("b", 1)
    assert floor.emissions() == [("egress", 12.000001)]


def test_events_of_a_publisher_that_left_are_not_forgotten():
    floor = HostedFloor(a=("T", "east"))
    floor.watch(AGREE)
    floor.read("a", 3)
    floor.withdraw("a")
    assert floor.place() == "office"
    floor.add("b", "U", "west")
    floor.read("b", 3)
    assert floor.emissions() == [("atomic", 1.0), ("atomic", 2.0)]
    assert floor.place() == "west"


def test_a_large_state_is_sent_in_pieces(monkeypatch):
    monkeypatch.setattr(hosted_watch, "PIECE", 1_000)
    floor = HostedFloor(a=("T", "east"))
    floor.watch(AGREE)
    pieces = []
    floor.overlay._tap = lambda *sent: pieces.extend([sent[2]] if isinstance(sent[2], StateHandover) else [])
    floor.read("a", *[3] * 20)
    floor.add("b", "U", "west")
    assert floor.place() == "hub"
    assert len(pieces) > 1
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    floor.read("b", 3)
    assert [seconds for _, seconds in floor.emissions()] == [*range(12, 22)]


def test_without_subscribers_no_state_is_left():
    floor = HostedFloor(a=("T", "east"), b=("T", "west"))
    floor.watch(WINDOW)
    floor.read("a", 1, 1)
    floor.read("b", 1)
    floor.withdraw("a")
    floor.overlay.ask("subscriber", WithdrawSubmission("it"))
    floor.overlay.settle()
    for name in ("hub", "east", "west", "office"):
        node = floor.overlay.nodes[name]
        assert (len(node.state.watching), node.state.watching.hosts, node.timers) == (0, {}, {})


# --- by the clock ---


def test_a_window_empties_by_the_clock():
    floor = HostedFloor(a=("T", "east"))
    floor.watch(WINDOW)
    for _ in range(2):
        floor.overlay.advance(SECOND)
        floor.read("a", 1)
    floor.pass_(1)
    assert floor.emissions() == [("ingress", 2.0)]
    floor.pass_(9 * SECOND)
    assert floor.emissions() == []
    floor.pass_(1)
    assert floor.emissions() == [("egress", 11.000001)]


def test_a_minimum_duration_elapses_by_the_clock_minus_the_delay_of_events():
    floor = HostedFloor(a=("T", "east"))
    floor.overlay.advance(3 * SECOND)
    floor.watch(f"{TOPICS}state High  A = T  enter A.value > 2 for 5 min  exit A.value < 1")
    floor.read("a", 3)  # of the first second, when it is three
    floor.pass_(5 * MINUTE)
    assert floor.emissions() == []
    floor.pass_(1)
    assert floor.emissions() == [("ingress", 301.0)]


def test_ticks_continue_by_the_clock():
    floor = HostedFloor(a=("T", "east"))
    floor.watch(f"{TOPICS}state Old  A = T  enter A.time < now - 3 s  exit A.time >= now - 3 s  tick 2 s")
    floor.overlay.advance(SECOND)
    floor.read("a", 3)
    floor.pass_(5 * SECOND)
    assert floor.emissions() == []
    floor.pass_(1)
    assert floor.emissions() == [("ingress", 6.0)]


@pytest.mark.parametrize("home", ["east", "office"])
@pytest.mark.parametrize(
    ("definition", "seconds"),
    [
        ("state High on T [value > 2; value < 1] per source ordered 30 s", [1.0]),
        ("state High  A = T  enter A.value > 2  exit A.value < 1  ordered 30 s", [1.0]),
        ("correlate Agree within 10 s  T > 2  U > 2  ordered 30 s", [1.0, 2.0]),
    ],
)
def test_the_clock_releases_events_that_wait_for_their_order(home, definition, seconds):
    floor = HostedFloor(a=("T", home), b=("U", home))
    floor.watch(TOPICS + definition)
    floor.overlay.advance(2 * SECOND)
    floor.read("a", 3)  # a second late
    floor.read("b", 3)
    floor.pass_(30 * SECOND)
    assert floor.emissions() == []
    floor.pass_(SECOND + 1)
    assert [second for _, second in floor.emissions()] == seconds


def test_old_readings_played_fast_are_not_disturbed_by_the_clock():
    floor = HostedFloor(a=("T", "east"))
    floor.overlay.advance(1_000_000 * SECOND)
    floor.watch(WINDOW)
    floor.read("a", 1, 1)
    floor.overlay.advance(SECOND)
    floor.time += 4 * SECOND
    floor.read("a", 1)
    floor.pass_(6 * SECOND)  # the clock is at eight seconds of their time, and they are at seven
    assert floor.emissions() == [("ingress", 2.0)]


def test_the_clock_moves_with_the_state():
    floor = HostedFloor(a=("T", "east"))
    floor.watch(WINDOW)
    floor.overlay.advance(5 * SECOND)
    floor.read("a", 1, 1)  # of the first two seconds
    floor.add("b", "T", "west")
    assert floor.place() == "hub"
    floor.pass_(10 * SECOND)
    assert floor.emissions() == [("ingress", 2.0)]
    floor.pass_(SECOND)
    assert floor.emissions() == [("egress", 11.000001)]


# --- what is lost ---


def start_floor(**publishers):
    """A floor on which High holds of sensor ``a``."""
    floor = HostedFloor(**{"a": ("T", "east"), **publishers})
    floor.watch(HIGH)
    floor.read("a", 3, 3)
    assert floor.emissions() == [("ingress", 1.0)]
    return floor


@pytest.mark.parametrize("publishers", [{}, {"b": ("T", "west")}])
def test_after_a_cut_a_condition_is_unknown_and_restarts_at_the_right_broker(publishers):
    floor = start_floor(**publishers)
    place = floor.place()
    floor.overlay.cut("east", "hub")
    floor.overlay.settle()
    assert floor.emissions() == [("unknown", 1.0)]
    assert floor.place() == ("west" if publishers else "office")
    floor.overlay.connect("east", "hub")
    floor.overlay.settle()
    assert floor.place() == place
    floor.read("a", 3, 0, 0)
    assert floor.emissions() == [("ingress", 3.0), ("egress", 4.0)]


def test_a_condition_is_unknown_after_its_broker_dies():
    floor = start_floor()
    floor.overlay.kill("east")
    floor.overlay.settle()
    assert floor.emissions() == [("unknown", 1.0)]
    assert floor.place() == "office"


def test_a_subscriber_without_connection_reports_unknown_itself():
    floor = start_floor()
    floor.overlay.cut("subscriber", "office")
    assert floor.emissions() == [("unknown", 1.0)]
    floor.overlay.connect("subscriber", "office")
    floor.overlay.settle()
    floor.read("a", 3, 3)
    assert floor.emissions() == [("ingress", 3.0)]


def test_a_state_lost_during_recall_restarts():
    floor = start_floor()
    floor.overlay.client("c", "office")
    floor.overlay.ask("c", advertise("it", advertisement_for(TOPIC["T"], source="c")))
    floor.topics["c"] = "T"
    while floor.host("hub").where != "called back":
        floor.overlay.step()
    floor.read("c", 3, settle=False)
    floor.overlay.cut("east", "hub")
    floor.overlay.settle()
    assert floor.place() == "office"
    floor.read("c", 3)
    assert floor.emissions() == [("unknown", 1.0), ("ingress", 3.0)]


@pytest.mark.parametrize("link", [("office", "subscriber"), ("hub", "office"), ("east", "hub")])
def test_events_dropped_for_a_slow_peer_make_the_condition_unknown(link):
    floor = start_floor()
    floor.read("a", 0, 3, settle=False)  # an end that will be notified with the next reading
    while not floor.overlay.give_up(*link):
        floor.overlay.step()
    floor.overlay.settle()
    assert floor.emissions() == [("unknown", 1.0)]
    assert floor.place() == "east"
    floor.read("a", 3, 3, 0, 0)
    assert floor.emissions() == [("ingress", 5.0), ("egress", 7.0)]


def test_a_reading_dropped_before_the_hosting_broker_makes_the_condition_unknown():
    floor = start_floor(b=("T", "west"))
    floor.read("b", 3, settle=False)
    while not floor.overlay.give_up("west", "hub"):
        floor.overlay.step()
    floor.overlay.settle()
    assert floor.emissions() == [("unknown", 1.0)]
    floor.read("a", 3, 3)
    assert floor.emissions() == [("ingress", 4.0)]


def test_a_publisher_that_vanishes_makes_a_condition_unknown_but_a_goodbye_does_not():
    floor = start_floor(b=("T", "east"))
    floor.withdraw("b")
    floor.overlay.kill("b")
    floor.overlay.settle()
    assert floor.emissions() == []
    floor.overlay.kill("a")
    floor.overlay.settle()
    assert floor.emissions() == [("unknown", 1.0)]


# --- one broker, message by message ---

PART = SubscriptionRef(BundleKey("them", 1), 0)
RAW = ConditionRunner.start(compile_condition(HIGH)).to_bytes()
READINGS = [Event("T", i * SECOND, "a", {"value": float(v)}, i) for i, v in enumerate([3, 3, 0, 0, 3, 3])]


class WatchBench:
    """A broker with another ``below``, who has subscribed to High, and one ``above``, who publishes."""

    def __init__(self):
        self.machine = CbpsBroker(compile_condition)
        self.state = self.machine.initial()
        for peer in ("below", "above"):
            self.tell(Joined(0, peer))
            self.receive(peer, Registration(KINDS))
        self.receive(
            "above", Bundle(BundleKey("p", 1), advertisements=(Advertisement(advertisement_for(TOPIC["T"])),))
        )
        wanted = CbpsSubscription(compile_condition(HIGH).inputs[0], state=ConditionText(HIGH))
        self.receive("below", Bundle(PART.bundle, BundleContext(hop_count=3), subscriptions=(wanted,)))

    def tell(self, given):
        self.state, effects = self.machine.handle(self.state, given)
        return [
            (e.to, e.message) for e in effects if isinstance(e, Send) and not isinstance(e.message, Bundle)
        ]

    def receive(self, sender, message):
        return self.tell(Received(0, sender, message))

    def host(self):
        (found,) = self.state.watching.hosts.values()
        return found


def test_an_offered_state_is_taken_by_a_request_and_forwarded():
    bench = WatchBench()
    assert bench.receive("below", ScopePlacement(PART, (), 7)) == [("below", StateRequest(PART, 7))]
    assert bench.receive("below", StateHandover(PART, RAW)) == [("above", ScopePlacement(PART, (), 1))]
    assert bench.receive("above", StateRequest(PART, 1)) == [("above", StateHandover(PART, RAW))]
    assert bench.receive("below", ScopePlacement(PART, None, 8)) == [("above", ScopePlacement(PART, None, 2))]
    assert bench.receive("above", StateHandover(PART, RAW)) == [("below", StateHandover(PART, RAW))]


def test_a_withdrawn_offer_is_not_taken():
    bench = WatchBench()
    bench.receive("below", ScopePlacement(PART, (), 7))
    bench.receive("below", StateHandover(PART, RAW))
    assert bench.receive("below", ScopePlacement(PART, None, 8))[0] == (
        "above",
        ScopePlacement(PART, None, 2),
    )
    assert bench.receive("above", StateRequest(PART, 1)) == []
    assert bench.receive("below", ScopePlacement(PART, (), 9)) == [("below", StateRequest(PART, 9))]
    assert bench.receive("below", ScopePlacement(PART, None, 10)) == []
    assert bench.host().where == "below"


def test_a_state_that_could_not_be_sent_is_lost_for_both_brokers():
    bench = WatchBench()
    lost = StateHandover(PART, None)
    assert bench.tell(Undelivered(0, "above", StateHandover(PART, b"large"))) == [("above", lost)]
    bench.receive("below", ScopePlacement(PART, (), 7))
    assert bench.receive("below", lost)[0] == ("below", Interruption(PART, None))
    assert bench.host().where == "here"


@pytest.mark.parametrize("raw", [b"", b"nonsense", b"\x93\xc4\x00\x00\x00"])
def test_a_damaged_state_is_a_fault_of_its_sender(raw):
    bench = WatchBench()
    bench.receive("below", ScopePlacement(PART, (), 7))
    with pytest.raises(UsageError, match="the state of 'High' is damaged"):
        bench.receive("below", StateHandover(PART, raw))


@pytest.mark.parametrize(
    ("sender", "message"),
    [
        ("below", ScopePlacement(PART, None)),
        ("below", StateHandover(PART, b"x")),
        ("below", StateRequest(PART, 0)),
        ("above", ScopePlacement(PART, ())),
        ("above", StateHandover(PART, b"x")),
        ("above", StateRequest(PART, 0)),
        ("nobody", ScopePlacement(PART, ())),
        ("nobody", Interruption(PART, None)),
        ("below", ScopePlacement(SubscriptionRef(BundleKey("unheard of", 1), 0), ())),
    ],
)
def test_unexpected_messages_are_ignored(sender, message):
    bench = WatchBench()
    assert bench.receive(sender, message) == []
    assert bench.host().where == "below"


words = st.one_of(
    st.builds(ScopePlacement, st.just(PART), st.sampled_from([(), None]), st.integers(0, 3)),
    st.builds(StateRequest, st.just(PART), st.integers(0, 3)),
    st.builds(StateHandover, st.just(PART), st.sampled_from([None, b"", RAW, RAW[:9]]), st.booleans()),
    st.just(Interruption(PART, None)),
    st.builds(
        lambda notification: HostedNotification(PART, notification),
        st.sampled_from([*Engine(HIGH).run(READINGS)]),
    ),
    st.builds(
        lambda event, key: Bundle(
            BundleKey("p", key), notifications=(PublishedNotification(to_content(event)),)
        ),
        st.sampled_from(READINGS),
        st.integers(2, 99),
    ),
    st.just(UnadvertiseBundle(BundleKey("p", 1))),
    st.just(Bundle(BundleKey("p", 1), advertisements=(Advertisement(advertisement_for(TOPIC["T"])),))),
)


@given(st.lists(st.tuples(st.sampled_from(["above", "below", "lost"]), words), max_size=25))
def test_after_any_sequence_of_messages_a_broker_has_the_state_or_knows_its_holder(script):
    bench = WatchBench()
    for sender, message in script:
        with suppress(UsageError):
            if sender == "lost":
                bench.tell(Undelivered(0, "below", message))
            else:
                bench.receive(sender, message)
        host = bench.host()
        assert (host.runner is not None) is (host.where == "here")
        assert (host.peer_above is not None) or host.where not in ("above", "called back")
        assert not host.record or host.where in ("asked for", "called back")


def test_a_broker_that_cannot_evaluate_a_condition_informs_the_subscriber():
    floor = HostedFloor(a=("T", "east"))
    floor.overlay.nodes["east"].machine = CbpsBroker(refuse)
    floor.watch(HIGH)
    (emitted,) = floor.overlay.take("subscriber")
    assert emitted == SubmissionRefused("it", "not here")


def refuse(definition):
    raise UsageError("not here")


def test_states_and_notifications_equal_those_of_the_engine():
    """The ids are compared too, because a sink recognises a repetition by them."""
    floor = HostedFloor(a=("T", "east"), b=("T", "west"))
    floor.watch(HIGH)
    engine = Engine(HIGH)
    for name, value in [("a", 3), ("b", 3), ("a", 0), ("b", 0), ("a", 3), ("a", 3)]:
        floor.read(name, value)
    output = [
        note
        for i, (name, value) in enumerate([("a", 3), ("b", 3), ("a", 0), ("b", 0), ("a", 3), ("a", 3)], 1)
        for note in engine.push(Event("T", i * SECOND, name, {"value": float(value)}, i * SECOND))
    ]
    emitted = [what.notification for what in floor.overlay.take("subscriber")]
    assert emitted == output
    assert [note.id for note in emitted] == [note.id for note in output]
