"""The broker as a machine: what it answers, keeps, and lets go."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.model.instant import SECOND
from holdfast.model.protocol import Fired, Joined, Left, Received, Send, SetTimer
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.protocols.cbps.broker import MOST_HOPS, CbpsBroker
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.database import ItemTable
from holdfast.network.protocols.cbps.leases import LEASES
from holdfast.network.protocols.cbps.message import (
    KINDS,
    Advertisement,
    Bundle,
    BundleContext,
    BundleKey,
    BundleRefusal,
    CbpsSubscription,
    ConditionText,
    PublishedNotification,
    Registration,
    Renewal,
    UnadvertiseBundle,
    UnsubscribeBundle,
)
from holdfast.network.protocols.cbps.shared_index import AllExcept

X = Filter((Constraint("x", "long", "any"),))
GOOD = "topic T (v float)\nstate S on T [v > 1; v < 0]"


class BrokerBench:
    """A single broker with peers that accept everything."""

    def __init__(self, *peers, **options):
        self.machine = CbpsBroker(compile_condition, **options)
        self.state = self.machine.initial()
        for peer in peers:
            self.tell(Joined(0, peer))
            self.receive(peer, Registration(KINDS))

    def tell(self, given):
        self.state, effects = self.machine.handle(self.state, given)
        return effects

    def receive(self, peer, message, now=0):
        return self.tell(Received(now, peer, message))

    def holds(self):
        return len(self.state.routing) + len(self.state.watching)


def sent(effects, to=None):
    return [effect.message for effect in effects if isinstance(effect, Send) and to in (None, effect.to)]


def test_a_connection_starts_with_the_handshake():
    bench = BrokerBench()
    assert bench.tell(Joined(0, "a")) == [Send("a", Registration(KINDS, request=True))]
    assert bench.receive("a", Registration(("notification",), request=True)) == [
        Send("a", Registration(KINDS, reply=True))
    ]
    assert bench.receive("a", Registration(KINDS, reply=True)) == []


def test_a_new_neighbour_receives_all_advertisements_and_flooded_subscriptions_only():
    bench = BrokerBench("a")
    bench.receive("a", Bundle(BundleKey("a", 1), advertisements=(Advertisement(X),)))
    bench.receive("a", Bundle(BundleKey("a", 2), subscriptions=(CbpsSubscription(X, flood_forward=True),)))
    bench.receive("a", Bundle(BundleKey("a", 3), subscriptions=(CbpsSubscription(X),)))
    bench.tell(Joined(0, "late"))
    given = sent(bench.receive("late", Registration(KINDS)), "late")
    assert [bundle.key.sequence for bundle in given] == [1, 2]


def test_a_lost_connection_removes_everything_that_it_stored():
    bench = BrokerBench("a", "b")
    bench.receive("a", Bundle(BundleKey("a", 1), advertisements=(Advertisement(X),)))
    bench.receive("b", Bundle(BundleKey("b", 1), subscriptions=(CbpsSubscription(X),)))
    bench.receive(
        "a", Bundle(BundleKey("a", 2), subscriptions=(CbpsSubscription(X, state=ConditionText(GOOD)),))
    )
    assert sent(bench.tell(Left(0, "a")), "b") == [UnadvertiseBundle(BundleKey("a", 1))]
    assert sent(bench.tell(Left(0, "b"))) == []
    assert bench.holds() == 0


def test_with_many_connections_a_message_visits_only_those_concerned(monkeypatch):
    crowd = [f"c{i}" for i in range(40)]
    bench = BrokerBench(*crowd)
    for i, peer in enumerate(crowd):
        mine = Filter((Constraint("x", "long", "=", i),))
        bench.receive(peer, Bundle(BundleKey(peer, 1), subscriptions=(CbpsSubscription(mine),)))
    looked_at = []
    monkeypatch.setattr(AllExcept, "__iter__", lambda _: looked_at.append("all connections") or iter(()))
    monkeypatch.setattr(ItemTable, "search", _counting(looked_at, ItemTable.search))
    emitted = bench.receive(
        "c3", Bundle(BundleKey("c3", 2), notifications=(PublishedNotification({"x": 7}),))
    )
    assert [effect.to for effect in emitted] == ["c7"]
    assert looked_at == ["c7"]


def _counting(looked_at, search):
    def counting(table, *about):
        for item in search(table, *about):
            looked_at.append(item.bundle[0])
            yield item

    return counting


def test_a_subscription_is_withdrawn_from_a_neighbour_without_matching_advertisements():
    bench = BrokerBench("a", "b")
    bench.receive("a", Bundle(BundleKey("p", 1), advertisements=(Advertisement(X),)))
    bench.receive("a", Bundle(BundleKey("p", 2), advertisements=(Advertisement(X),)))
    bench.receive("b", Bundle(BundleKey("s", 1), subscriptions=(CbpsSubscription(X),)))
    assert sent(bench.receive("a", UnadvertiseBundle(BundleKey("p", 1))), "a") == []
    assert sent(bench.receive("a", UnadvertiseBundle(BundleKey("p", 2))), "a") == [
        UnsubscribeBundle(BundleKey("s", 1))
    ]


def test_subscriptions_covered_by_a_withdrawn_one_are_sent_before_the_withdrawal():
    bench = BrokerBench("a", "b")
    bench.receive("a", Bundle(BundleKey("p", 1), advertisements=(Advertisement(X),)))
    narrow = Filter((Constraint("x", "long", ">", 5),))
    bench.receive("b", Bundle(BundleKey("s", 1), subscriptions=(CbpsSubscription(X),)))
    assert (
        sent(bench.receive("b", Bundle(BundleKey("s", 2), subscriptions=(CbpsSubscription(narrow),)))) == []
    )
    restored, withdrawn = sent(bench.receive("b", UnsubscribeBundle(BundleKey("s", 1))), "a")
    assert restored.key == BundleKey("s", 2)
    assert withdrawn == UnsubscribeBundle(BundleKey("s", 1))


def test_a_bundle_that_advertises_and_subscribes_can_be_withdrawn_in_two_parts():
    bench = BrokerBench("a", "b", "c")
    y = Filter((Constraint("y", "long", "any"),))
    bench.receive("a", Bundle(BundleKey("p", 1), advertisements=(Advertisement(y),)))
    both = Bundle(BundleKey("s", 1), advertisements=(Advertisement(X),), subscriptions=(CbpsSubscription(y),))
    bench.receive("b", both)
    assert sent(bench.receive("b", UnsubscribeBundle(BundleKey("s", 1))), "a") == [
        UnsubscribeBundle(BundleKey("s", 1))
    ]
    (stored,) = bench.state.routing.bundles["b"].values()
    assert (stored.bundle.advertisements, stored.bundle.subscriptions) == (both.advertisements, ())
    assert sent(bench.receive("b", UnadvertiseBundle(BundleKey("s", 1))), "c") == [
        UnadvertiseBundle(BundleKey("s", 1))
    ]


def test_a_repeated_bundle_changes_nothing_and_a_new_one_of_its_name_replaces_it():
    bench = BrokerBench("a", "b")
    first = Bundle(BundleKey("p", 1), advertisements=(Advertisement(X),))
    bench.receive("a", first)
    assert bench.receive("a", first) == []
    other = Filter((Constraint("y", "long", "any"),))
    old, new = sent(bench.receive("a", replace(first, advertisements=(Advertisement(other),))), "b")
    assert old == UnadvertiseBundle(BundleKey("p", 1))
    assert new.advertisements == (Advertisement(other),)


def test_a_bundle_that_arrives_on_a_second_path_waits_and_leaves_without_a_trace():
    """This happens when a network is joined elsewhere before all brokers know that it was cut."""
    bench = BrokerBench("a", "b", "c")
    bundle = Bundle(BundleKey("p", 1), advertisements=(Advertisement(X),))
    bench.receive("a", bundle)
    assert bench.receive("b", bundle) == []
    assert bench.receive("b", UnadvertiseBundle(BundleKey("p", 1))) == []
    assert len(bench.state.routing.database.table("a", "advertisement")) == 1


def test_a_waiting_bundle_replaces_the_first_one_when_that_is_withdrawn():
    bench = BrokerBench("a", "b", "c")
    bundle = Bundle(BundleKey("p", 1), advertisements=(Advertisement(X),))
    bench.receive("a", bundle)
    bench.receive("b", bundle)
    effects = bench.tell(Left(0, "a"))
    assert [type(message) for message in sent(effects, "c")] == [UnadvertiseBundle, Bundle]
    assert sent(effects, "b") == [UnadvertiseBundle(BundleKey("p", 1))]
    bench.tell(Left(0, "b"))
    assert bench.holds() == 0


# --- leases ---


def bundle_with_lease(lease):
    return Bundle(BundleKey("a", 1), advertisements=(Advertisement(X),), lease=lease)


def test_bundles_that_are_not_renewed_expire():
    bench = BrokerBench("a", "b")
    assert SetTimer(LEASES, 30 * SECOND) in bench.receive("a", bundle_with_lease(30 * SECOND))
    assert sent(bench.tell(Fired(30 * SECOND, LEASES)), "b") == [UnadvertiseBundle(BundleKey("a", 1))]
    assert bench.holds() == 0


def test_a_renewal_restarts_leases_at_all_brokers_with_the_bundle():
    bench = BrokerBench("a", "b")
    bench.receive("a", bundle_with_lease(30 * SECOND))
    renewal = Renewal((BundleKey("a", 1), BundleKey("nobody", 9)))
    assert sent(bench.receive("a", renewal, 20 * SECOND)) == [Renewal((BundleKey("a", 1),))]
    assert bench.tell(Fired(30 * SECOND, LEASES)) == [SetTimer(LEASES, 50 * SECOND)]
    assert bench.holds() > 0
    bench.tell(Fired(50 * SECOND, LEASES))
    assert bench.holds() == 0


def test_a_bundle_without_a_lease_does_not_expire():
    bench = BrokerBench("a")
    assert not [e for e in bench.receive("a", bundle_with_lease(None)) if isinstance(e, SetTimer)]


# --- what it does not take ---


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("topic T (v float)\nstate S on T [v > 1; v < w]", "'w'"),
        ("topic T (v float)", "one condition"),
        ('topic T (v float)\ngazetteer "/etc/passwd"\nstate S on T [v > 1; v < 0]', "a file here"),
        (GOOD + "\n# " + "x" * 70_000, "65536 characters"),
    ],
)
def test_a_definition_that_a_broker_does_not_understand_is_refused_with_the_reason(definition, why):
    bench = BrokerBench("a")
    subscription = CbpsSubscription(Filter(), state=ConditionText(definition))
    (refusal,) = sent(bench.receive("a", Bundle(BundleKey("a", 1), subscriptions=(subscription,))))
    assert refusal.bundle == BundleKey("a", 1)
    assert why in refusal.why
    assert bench.holds() == 0


def test_the_bundles_stored_for_a_connection_are_bounded():
    bench = BrokerBench("a", "b", most=1)
    bench.receive("a", Bundle(BundleKey("a", 1), subscriptions=(CbpsSubscription(X),)))
    (refusal,) = sent(bench.receive("a", Bundle(BundleKey("a", 2), subscriptions=(CbpsSubscription(X),))))
    assert isinstance(refusal, BundleRefusal)
    assert "1 bundles" in refusal.why
    assert sent(bench.receive("b", Bundle(BundleKey("b", 1), subscriptions=(CbpsSubscription(X),)))) == []


def test_a_refusal_is_forwarded_to_the_source_of_the_bundle():
    bench = BrokerBench("a", "b")
    bench.receive("a", Bundle(BundleKey("p", 1), advertisements=(Advertisement(X),)))
    bench.receive("b", Bundle(BundleKey("s", 1), subscriptions=(CbpsSubscription(X),)))
    refusal = BundleRefusal(BundleKey("s", 1), "full")
    assert bench.receive("a", refusal) == [Send("b", refusal)]
    assert bench.receive("a", refusal) == []


def test_bundles_that_travel_in_a_cycle_are_discarded():
    bench = BrokerBench("a", "b")
    bench.receive("b", Bundle(BundleKey("s", 1), subscriptions=(CbpsSubscription(X),)))
    output = Bundle(BundleKey("p", 1), notifications=(PublishedNotification({"x": 1}),))
    assert (
        len(sent(bench.receive("a", replace(output, context=BundleContext(hop_count=MOST_HOPS - 1))), "b"))
        == 1
    )
    assert bench.receive("a", replace(output, context=BundleContext(hop_count=MOST_HOPS))) == []


def test_messages_about_withdrawn_bundles_are_ignored():
    bench = BrokerBench("a")
    for message in (
        UnsubscribeBundle(BundleKey("x", 1)),
        UnadvertiseBundle(BundleKey("x", 1)),
        Renewal((BundleKey("x", 1),)),
    ):
        assert bench.receive("a", message) == []


def test_no_slips_are_written_or_read_without_memoization():
    bench = BrokerBench("a", "b", memoize=False)
    bench.receive("b", Bundle(BundleKey("s", 1), subscriptions=(CbpsSubscription(X),)))
    (bundle,) = sent(
        bench.receive("a", Bundle(BundleKey("p", 1), notifications=(PublishedNotification({"x": 1}),))), "b"
    )
    assert bundle.express is None
