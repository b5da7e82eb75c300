"""What clients say of themselves changes nothing for others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.model.protocol import Received
from holdfast.protocols.cbps.border import inward, is_marked, mark, outward, returned
from holdfast.protocols.cbps.client import Client, Heard, advertise, publish, subscribe
from holdfast.protocols.cbps.content import Constraint, Filter
from holdfast.protocols.cbps.message import (
    KINDS,
    Bundle,
    Context,
    ExpressSlip,
    Handover,
    Interruption,
    Key,
    Neighbours,
    Notification,
    Part,
    Refusal,
    Registration,
    Unsubscribe,
    Use,
)
from holdfast.runtimes.overlay.conditions import condition
from holdfast.runtimes.overlay.memory.brokers import Overlay
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
        """Somebody who is connected writes a message himself."""
        self.net.nodes[at].tell(Received, sender, message)
        self.net.settle()

    def heard(self):
        return {
            name: [one.content["x"] for one in self.net.take(name) if isinstance(one, Heard)]
            for name in ("at west", "at east")
        }


def test_a_publisher_that_starts_again_with_its_clock_an_hour_back_is_heard():
    two = Two(now=10**10)
    two.say("victim", 1)
    two.net.kill("victim")
    two.net.now -= 3_600 * 10**6
    two.publisher("victim", "west")
    two.say("victim", 2)
    assert two.heard() == {"at west": [1.0, 2.0], "at east": [1.0, 2.0]}


def test_two_publishers_of_one_name_at_two_brokers_are_both_heard():
    two = Two()
    two.net.start("another", Client("victim", condition))
    two.net._roles["another"] = "client"
    two.net.connect("another", "east")
    two.net.ask("another", advertise("x", X))
    two.net.settle()
    for n in range(10):
        two.say("victim" if n % 2 else "another", n)
    assert two.heard() == {name: [float(n) for n in range(10)] for name in ("at west", "at east")}


def test_a_forged_key_silences_nobody():
    two = Two()
    two.publisher("attacker", "east")
    said = Bundle(Key("victim", 9 * 10**18), notifications=(Notification({"x": -1.0}),))
    two.forge("east", "attacker", said)
    two.heard()
    two.say("victim", 1)
    assert two.heard() == {"at west": [1.0], "at east": [1.0]}


def test_not_even_a_key_that_was_seen_on_a_bundle_can_be_used_by_another():
    """A subscriber sees the whole name of what it is sent, and publishes under it with a high number."""
    two = Two()
    two.publisher("attacker", "east")
    two.say("victim", 1)
    (seen,) = [one.bundle for one in two.net.take("at east") if isinstance(one, Heard)]
    said = Bundle(Key(seen.origin, 9 * 10**18), notifications=(Notification({"x": -1.0}),))
    two.forge("east", "attacker", said)
    two.heard()
    two.say("victim", 2)
    assert two.heard() == {"at west": [2.0], "at east": [2.0]}


def test_what_another_has_stored_cannot_be_withdrawn_by_a_forged_name():
    two = Two()
    two.publisher("attacker", "west")
    stored = [*two.net.nodes["west"].state.routing.in_force]
    for key in stored:
        two.forge("west", "attacker", Unsubscribe(key))
        two.forge("west", "attacker", Unsubscribe(Key(key.origin.partition("@")[0], key.sequence)))
    two.say("victim", 1)
    assert two.heard() == {"at west": [1.0], "at east": [1.0]}


def test_a_forged_express_slip_delivers_nothing_that_was_not_subscribed():
    two = Two()
    two.net.client("picky", to="east")
    two.net.ask("picky", subscribe("big", BIG))
    two.publisher("attacker", "west")
    slip = ExpressSlip("notification", BIG.digest)
    small = Bundle(Key("attacker", 10**15), notifications=(Notification({"x": 1.0}),), express=slip)
    two.forge("west", "attacker", small)
    assert two.net.take("picky") == []
    assert two.heard() == {"at west": [1.0], "at east": [1.0]}


def test_how_a_bundle_came_only_brokers_say():
    two = Two()
    two.publisher("attacker", "west")
    lie = Context("victim", "somebody", 60, 1, 10**12)
    said = Bundle(Key("a", 10**15), lie, notifications=(Notification({"x": 1.0}),))
    two.forge("west", "attacker", said)
    (heard,) = [one.context for one in two.net.take("at east") if isinstance(one, Heard)]
    assert (heard.origin, heard.hop_count) == ("attacker", 2)
    assert heard.travel_time < 10**12


def test_a_client_cannot_speak_as_a_broker():
    two = Two()
    two.publisher("attacker", "west")
    west = two.net.nodes["west"].state
    known = dict(west.connections.topology.known)
    two.forge("west", "attacker", Registration(KINDS))
    for key in list(west.routing.in_force):
        for message in (
            Use("attacker", 1, 1),
            Neighbours(west.connections.topology.me, 99),
            Neighbours("east~2", 99),
            Interruption(Part(key, 0), None),
            Handover(Part(key, 0), None),
            Refusal(key, "no"),
        ):
            two.forge("west", "attacker", message)
    assert west.connections.topology.known == known
    two.say("victim", 1)
    assert two.heard() == {"at west": [1.0], "at east": [1.0]}


@given(messages, texts, st.integers(1, 9))
def test_names_of_a_connection_are_its_own_and_come_back_as_they_were(message, node, number):
    ours = mark(node, number)
    taken = inward(message, ours)
    if isinstance(taken, Bundle):
        assert is_marked(taken.key, node)
        assert taken.key.origin.removesuffix(ours) == message.key.origin
        assert replace(taken, key=message.key) == replace(message, express=None)
    assert outward(returned(message, ours), ours) == message
