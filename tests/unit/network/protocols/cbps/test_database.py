"""The forwarding database against brute force: insertions, deletions, searches, covering."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from holdfast.network.protocols.cbps import columns, database
from holdfast.network.protocols.cbps.content import (
    MATCHES,
    BoxRelation,
    Constraint,
    Filter,
    box_of,
    covers,
    is_related,
    satisfies,
)
from holdfast.network.protocols.cbps.database import ForwardingDatabase, Item, ItemTable
from support import naive_match as naive

RELATIONS = [
    BoxRelation(f, c) for f in ("subset", "superset") for c in ("subset", "superset", "intersection")
]


def range_of(name, low, high):
    return Filter((Constraint(name, "double", ">", low), Constraint(name, "double", "<", high)))


WIDE, MIDDLE, NARROW = range_of("A", 0, 100), range_of("A", 10, 50), range_of("A", 20, 30)


def table(**filters):
    made = ItemTable("subscription")
    for key, filter_ in filters.items():
        made.insert(Item(key, filter_))
    return made


def keys(items):
    return sorted(item.key for item in items)


def test_a_covered_subscription_is_inactive():
    stored = table(wide=WIDE)
    inserted = stored.insert(Item("narrow", NARROW))
    assert inserted.covered_by.key == "wide"
    assert keys(stored.active()) == ["wide"]
    assert keys(stored.items()) == ["narrow", "wide"]


def test_a_wider_subscription_deactivates_those_that_it_covers():
    stored = table(narrow=NARROW, middle=range_of("A", -5, 5))
    inserted = stored.insert(Item("wide", range_of("A", -10, 100)))
    assert inserted.covered_by is None
    assert keys(inserted.covered) == ["middle", "narrow"]
    assert keys(stored.active()) == ["wide"]


def test_removal_activates_items_covered_only_by_the_removed_one():
    stored = table(wide=WIDE, middle=MIDDLE, narrow=NARROW)
    deleted = stored.delete("wide")
    assert deleted.was_active
    assert keys(deleted.restored) == ["middle"]
    assert keys(stored.items()) == ["middle", "narrow"]
    assert keys(stored.delete("middle").restored) == ["narrow"]


def test_an_item_covered_twice_stays_covered_when_one_coverer_goes():
    stored = table(wide=WIDE, wider=range_of("B", 0, 1), narrow=NARROW)
    stored.insert(Item("widest", range_of("A", -1, 200)))
    stored.insert(Item("other", range_of("A", 5, 60)))
    assert keys(stored.delete("wide").restored) == []
    assert keys(stored.delete("widest").restored) == ["other"]


def test_removing_a_covered_subscription_does_not_change_the_active_ones():
    stored = table(wide=WIDE, narrow=NARROW)
    deleted = stored.delete("narrow")
    assert (deleted.item.key, deleted.was_active, deleted.restored) == ("narrow", False, ())
    assert stored.delete("narrow") is None
    assert keys(stored.delete("wide").restored) == []
    assert not stored


def test_the_first_of_two_equal_subscriptions_stays_active():
    stored = table(first=WIDE, second=WIDE)
    assert keys(stored.active()) == ["first"]
    assert keys(stored.delete("first").restored) == ["second"]


def test_an_item_that_does_not_aggregate_neither_covers_nor_is_covered():
    stored = table(wide=WIDE)
    assert stored.insert(Item("alone", NARROW, group=None)).covered_by is None
    stored.insert(Item("near", range_of("A", 20, 31), group="within 3 hops"))
    assert stored.insert(Item("nearer", NARROW, group="within 3 hops")).covered_by.key == "near"
    assert keys(stored.active()) == ["alone", "near", "wide"]


def test_covering_is_limited_to_one_connection():
    stored = ForwardingDatabase()
    stored.insert("east", "subscription", Item(1, WIDE))
    assert stored.insert("west", "subscription", Item(1, NARROW)).covered_by is None
    assert len(stored) == 2


def test_t6_a_search_ends_at_the_first_match_that_satisfies_the_callback():
    stored = ForwardingDatabase()
    for peer in ("east", "west", "north"):
        for i in range(5):
            stored.insert(peer, "subscription", Item(i, range_of("A", i, 100 + i)))
    called = []

    def callback(peer, item):
        called.append((peer, item.key))
        return peer == "east" or (peer == "west" and len(called) == 3)

    satisfied_with = stored.find_matches(
        "notification", box_of({"A": 50.0}), "subscription", ("east", "west", "north"), callback
    )
    assert satisfied_with == ["east", "west"]
    assert [sum(peer == p for p, _ in called) for peer in ("east", "west", "north")] == [1, 2, 5]


def test_pairs_outside_the_tables_never_match():
    stored = ForwardingDatabase()
    stored.insert("east", "notification slip", Item(1, Filter()))
    assert stored.find_matches("notification", {}, "notification slip", ["east"], lambda *_: True) == []


def test_closing_a_connection_removes_its_items():
    stored = ForwardingDatabase()
    stored.insert("east", "subscription", Item(1, WIDE))
    stored.insert("east", "subscription", Item(2, NARROW))
    stored.insert("east", "advertisement", Item(1, WIDE))
    stored.insert("west", "subscription", Item(1, NARROW))
    gone = stored.forget("east")
    assert {kind: keys(items) for kind, items in gone.items()} == {
        "subscription": [1, 2],
        "advertisement": [1],
    }
    assert stored.peers("subscription") == ("west",)
    assert stored.forget("east") == {}
    stored.delete("west", "subscription", 1)
    assert stored == ForwardingDatabase()


def test_an_item_is_found_by_identity_without_examining_the_others(monkeypatch):
    """The common case: each client watches one thing of its own, by equality."""
    tested = []
    monkeypatch.setattr(database, "is_related", lambda *three: tested.append(1) or is_related(*three))
    stored = ItemTable("subscription")
    for i in range(1000):
        stored.insert(
            Item(i, Filter((Constraint("uid", "text", "=", f"u{i}"), Constraint("x", "long", "any"))))
        )
    wanted = MATCHES["notification", "subscription"]
    assert keys(stored.search(box_of({"uid": "u77", "x": 3}), wanted)) == [77]
    assert keys(stored.search(box_of({"uid": "u77"}), wanted)) == []
    assert len(tested) == 1


class AgainstBruteForce(RuleBasedStateMachine):
    """Random insertions and deletions; every search is the relation tested item by item."""

    kind = "subscription"
    stored = Bundle("stored")

    def __init__(self):
        super().__init__()
        self.table = ItemTable(self.kind)
        self.items = {}

    @rule(
        target=stored,
        filter_=naive.numeric_filters | naive.filters(),
        group=st.sampled_from([(), (), "g", None]),
        pinned=st.sampled_from([frozenset(), frozenset(), frozenset("A"), frozenset("AB")]),
    )
    def insert(self, filter_, group, pinned):
        key = len(self.items) + 1000 * len(self.table)
        while key in self.items:
            key += 1
        before = set(keys(self.table.active()))
        self.items[key] = item = Item(key, filter_, group=group, pinned=pinned)
        inserted = self.table.insert(item)
        if inserted.covered_by is not None:
            assert covers(self.kind, inserted.covered_by.filter, filter_)
            assert inserted.covered_by.pinned <= pinned
            assert set(keys(self.table.active())) == before
        else:
            assert set(keys(self.table.active())) == before - set(keys(inserted.covered)) | {key}
        return key

    @rule(key=consumes(stored))
    def delete(self, key):
        before = set(keys(self.table.active()))
        deleted = self.table.delete(key)
        assert deleted.item == self.items.pop(key)
        assert deleted.was_active is (key in before)
        assert set(keys(self.table.active())) == before - {key} | set(keys(deleted.restored))

    @rule(asked=naive.numeric_filters | naive.filters(), relation=st.sampled_from(RELATIONS))
    def search(self, asked, relation):
        found = keys(self.table.search(asked.box, relation))
        assert found == keys(i for i in self.table.active() if is_related(asked.box, i.filter.box, relation))

    @rule(content=naive.contents())
    def notify(self, content):
        """A covered subscription is served by its coverer: the connection receives what any of its items
        matches."""
        found = list(self.table.search(box_of(content), MATCHES["notification", "subscription"]))
        assert bool(found) is any(satisfies(item.filter, content) for item in self.items.values())

    @invariant()
    def nothing_is_lost_and_nothing_in_sight_is_covered(self):
        active = list(self.table.active())
        assert keys(self.table.items()) == sorted(self.items)
        for item in self.items.values():
            coverers = [
                other
                for other in active
                if item.group == other.group is not None
                and other.pinned <= item.pinned
                and covers(self.kind, other.filter, item.filter)
            ]
            assert (
                coverers == [item]
                if item in active and item.group is not None
                else item in active or coverers
            )

    def teardown(self):
        for key in list(self.items):
            self.table.delete(key)
        assert self.table == ItemTable(self.kind, _next=self.table._next)


class ByColumnsAgainstBruteForce(AgainstBruteForce):
    """The state machine with every possible search done by columns."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(database, "MANY", 0)
        self.patch.setattr(database, "FEW", 0)
        self.patch.setattr(columns, "MOST_ATTRIBUTES", 4)

    def teardown(self):
        super().teardown()
        self.patch.undo()


few = settings(max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 100) // 3)
TestSubscriptionsAgainstBruteForce = AgainstBruteForce.TestCase
TestColumnsAgainstBruteForce = ByColumnsAgainstBruteForce.TestCase
TestSubscriptionsAgainstBruteForce.settings = TestColumnsAgainstBruteForce.settings = few


@given(st.lists(naive.numeric_filters, max_size=8), st.data())
def test_advertisements_are_covered_in_the_other_direction(filters, data):
    stored = ItemTable("advertisement")
    for i, filter_ in enumerate(filters):
        stored.insert(Item(i, filter_))
    active = list(stored.active())
    for item in stored.items():
        assert any(covers("advertisement", other.filter, item.filter) for other in active)
    for a in active:
        assert not any(a is not b and covers("advertisement", b.filter, a.filter) for b in active)
