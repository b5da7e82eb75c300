"""Claims of a client about itself change nothing for others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.model.protocol import Received
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.border import is_marked, mark, qualify_keys, restore_mark, strip_mark
from holdfast.network.protocols.cbps.client import (
    CbpsClient,
    ReceivedNotification,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    KINDS,
    Bundle,
    BundleContext,
    BundleKey,
    BundleRefusal,
    ExpressSlip,
    Interruption,
    LinkState,
    LinkUse,
    PublishedNotification,
    Registration,
    StateHandover,
    SubscriptionRef,
    UnsubscribeBundle,
)
from support.bundles import messages, texts

X = Filter((Constraint("x", "double", "any"),))
BIG = Filter((Constraint("x", "double", ">", 10.0),))


class Two:
    """Two brokers, each with a subscriber, and a publisher at the first."""

    def __init__(self, now=10**9):
        self.net = Overlay(now=now)
        self.net.broker("west")
        self.net.broker("east", to=["west"])
        for name, at in (("at west", "west"), ("at east", "east")):
            self.net.client(name, to=at)
            self.net.ask(name, subscribe("x", X))
        self.publisher("victim", "west")

    def publisher(self, name, at):
        self.net.client(name, to=at)
        self.net.ask(name, advertise("x", X))
        self.net.settle()

    def say(self, name, number):
        self.net.ask(name, publish({"x": float(number)}))
        self.net.settle()

    def forge(self, at, sender, message):
        """Let a connected client write a raw message."""
        self.net.nodes[at].tell(Received, sender, message)
        self.net.settle()

    def deliveries(self):
        return {
            name: [one.content["x"] for one in self.net.take(name) if isinstance(one, ReceivedNotification)]
            for name in ("at west", "at east")
        }


def test_events_of_a_publisher_restarted_with_its_clock_set_back_are_delivered():
    two = Two(now=10**10)
    two.say("victim", 1)
    two.net.kill("victim")
    two.net.now -= 3_600 * 10**6
    two.publisher("victim", "west")
    two.say("victim", 2)
    assert two.deliveries() == {"at west": [1.0, 2.0], "at east": [1.0, 2.0]}


def test_events_of_two_publishers_with_one_name_at_two_brokers_are_delivered():
    two = Two()
    two.net.start("another", CbpsClient("victim", compile_condition))
    two.net._roles["another"] = "client"
    two.net.connect("another", "east")
    two.net.ask("another", advertise("x", X))
    two.net.settle()
    for n in range(10):
        two.say("victim" if n % 2 else "another", n)
    assert two.deliveries() == {name: [float(n) for n in range(10)] for name in ("at west", "at east")}


def test_a_forged_key_suppresses_no_other_publisher():
    two = Two()
    two.publisher("attacker", "east")
    output = Bundle(BundleKey("victim", 9 * 10**18), notifications=(PublishedNotification({"x": -1.0}),))
    two.forge("east", "attacker", output)
    two.deliveries()
    two.say("victim", 1)
    assert two.deliveries() == {"at west": [1.0], "at east": [1.0]}


def test_a_key_seen_on_a_bundle_cannot_be_used_by_another_client():
    """A subscriber sees the whole name of what it is sent, and publishes under it with a high number."""
    two = Two()
    two.publisher("attacker", "east")
    two.say("victim", 1)
    (seen,) = [one.bundle for one in two.net.take("at east") if isinstance(one, ReceivedNotification)]
    output = Bundle(BundleKey(seen.origin, 9 * 10**18), notifications=(PublishedNotification({"x": -1.0}),))
    two.forge("east", "attacker", output)
    two.deliveries()
    two.say("victim", 2)
    assert two.deliveries() == {"at west": [2.0], "at east": [2.0]}


def test_a_forged_name_cannot_withdraw_bundles_of_another_client():
    two = Two()
    two.publisher("attacker", "west")
    stored = [*two.net.nodes["west"].state.routing.in_force]
    for key in stored:
        two.forge("west", "attacker", UnsubscribeBundle(key))
        two.forge(
            "west", "attacker", UnsubscribeBundle(BundleKey(key.origin.partition("@")[0], key.sequence))
        )
    two.say("victim", 1)
    assert two.deliveries() == {"at west": [1.0], "at east": [1.0]}


def test_a_forged_express_slip_delivers_nothing_that_was_not_subscribed():
    two = Two()
    two.net.client("picky", to="east")
    two.net.ask("picky", subscribe("big", BIG))
    two.publisher("attacker", "west")
    slip = ExpressSlip("notification", BIG.digest)
    small = Bundle(
        BundleKey("attacker", 10**15), notifications=(PublishedNotification({"x": 1.0}),), express=slip
    )
    two.forge("west", "attacker", small)
    assert two.net.take("picky") == []
    assert two.deliveries() == {"at west": [1.0], "at east": [1.0]}


def test_only_brokers_write_the_context_of_a_bundle():
    two = Two()
    two.publisher("attacker", "west")
    lie = BundleContext("victim", "somebody", 60, 1, 10**12)
    output = Bundle(BundleKey("a", 10**15), lie, notifications=(PublishedNotification({"x": 1.0}),))
    two.forge("west", "attacker", output)
    (received,) = [one.context for one in two.net.take("at east") if isinstance(one, ReceivedNotification)]
    assert (received.origin, received.hop_count) == ("attacker", 2)
    assert received.travel_time < 10**12


def test_a_client_cannot_act_as_a_broker():
    two = Two()
    two.publisher("attacker", "west")
    west = two.net.nodes["west"].state
    known = dict(west.connections.topology.known)
    two.forge("west", "attacker", Registration(KINDS))
    for key in list(west.routing.in_force):
        for message in (
            LinkUse("attacker", 1, 1),
            LinkState(west.connections.topology.me, 99),
            LinkState("east~2", 99),
            Interruption(SubscriptionRef(key, 0), None),
            StateHandover(SubscriptionRef(key, 0), None),
            BundleRefusal(key, "no"),
        ):
            two.forge("west", "attacker", message)
    assert west.connections.topology.known == known
    two.say("victim", 1)
    assert two.deliveries() == {"at west": [1.0], "at east": [1.0]}


@given(messages, texts, st.integers(1, 9))
def test_names_of_a_connection_are_its_own_and_come_back_unchanged(message, node, number):
    ours = mark(node, number)
    taken = qualify_keys(message, ours)
    if isinstance(taken, Bundle):
        assert is_marked(taken.key, node)
        assert taken.key.origin.removesuffix(ours) == message.key.origin
        assert replace(taken, key=message.key) == replace(message, express=None)
    assert strip_mark(restore_mark(message, ours), ours) == message
