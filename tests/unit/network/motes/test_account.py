"""Expected and actual deliveries, and the share of each subscription in the energy."""

from __future__ import annotations

import pytest

from holdfast.definition.parse import parse
from holdfast.model.event import Event, Notification
from holdfast.network.motes.account import LOST, ON_THE_WAY, NodeSubscription, RunAccount
from holdfast.network.motes.conditions import Evaluator
from holdfast.plan.compile import operators

CHECKED = parse("topic T (value float)\nstate Warm on T [value > 25; value < 22] per source").check()
(OPERATOR,) = operators(CHECKED)
MS = 1_000


def samples(name: str, node: int, **more: int) -> NodeSubscription:
    return NodeSubscription(name, node, ("T",), plain=True, **more)


def event(time: int, value: float, source: str = "a") -> Event:
    return Event("T", time * MS, source, {"value": value})


class Books:
    """An account whose clock is set by hand."""

    def __init__(self, *wishes: NodeSubscription, since: int = 0) -> None:
        self.now = 0
        watched = {wish: None if wish.plain else Evaluator(OPERATOR, wish.name) for wish in wishes}
        self.account = RunAccount(watched, lambda: self.now, since * MS)

    def publish(self, *events: Event) -> None:
        for each in events:
            self.account.publish(each)

    def notify(self, wish: NodeSubscription, what: Event, at: int, status: str = "atomic") -> None:
        self.now = at * MS
        scope = None if wish.plain else what.source
        self.account.notify(wish, Notification(wish.name, what, status, scope, None))

    def rows(self, fate=lambda wish, event: LOST, **millijoules: float) -> list[dict]:
        self.account.close()
        return self.account.rows(fate, millijoules)


def test_every_reading_of_a_topic_and_every_start_and_end_of_a_condition_is_expected():
    plain, states = samples("T", 0), NodeSubscription("Warm", 0, ("T",))
    books = Books(plain, states)
    books.publish(*(event(i, value) for i, value in enumerate((20, 26, 27, 21, 20))), event(9, 30, "b"))
    whole, warm = books.rows()
    assert (whole["readings"], whole["expected"], whole["lost"]) == (6, 6, {LOST: 6})
    assert (warm["readings"], warm["expected"], warm["loss"]) == (6, 3, 1.0)


def test_a_notification_is_delivered_once_with_its_delay():
    wish = NodeSubscription("Warm", 0, ("T",))
    books = Books(wish)
    starts, ends = event(1, 26), event(2, 21)
    books.publish(starts, ends)
    books.notify(wish, starts, 5, "ingress")
    books.notify(wish, starts, 50, "ingress")
    (row,) = books.rows()
    assert (row["delivered"], row["delay_ms"], row["unexpected"]) == (1, 4.0, 0)
    assert row["lost"] == {LOST: 1}


def test_a_wrong_notification_is_unexpected():
    wish = NodeSubscription("Warm", 0, ("T",))
    books = Books(wish)
    books.publish(event(1, 26))
    books.notify(wish, event(1, 26), 5, "egress")
    (row,) = books.rows()
    assert (row["delivered"], row["unexpected"]) == (0, 1)


def test_notifications_in_flight_are_not_lost():
    books = Books(samples("T", 0))
    books.publish(event(1, 20), event(2, 20))
    (row,) = books.rows(lambda wish, what: ON_THE_WAY if what.time == 2 * MS else LOST)
    assert (row["in_flight"], row["lost"], row["loss"]) == (1, {LOST: 1}, 0.5)


def test_a_subscription_counts_from_its_start_to_its_stop():
    wish = samples("T", 0, start=2 * MS, stop=4 * MS)
    books = Books(wish)
    books.publish(*(event(i, 20) for i in range(6)))
    books.notify(wish, event(1, 20), 3)
    (row,) = books.rows()
    assert (row["readings"], row["expected"], row["unexpected"]) == (2, 2, 0)


def test_the_warm_up_is_not_counted_but_its_state_is_used():
    wish = NodeSubscription("Warm", 0, ("T",))
    books = Books(wish, since=5)
    books.publish(event(1, 26), event(6, 27), event(7, 20))
    books.notify(wish, event(7, 20), 8, "egress")
    (row,) = books.rows()
    assert (row["readings"], row["expected"], row["delivered"]) == (2, 1, 1), "it held already"


def test_shared_messages_are_charged_in_equal_parts():
    books = Books(samples("A", 0), samples("B", 0), samples("B", 1), since=1)
    books.now = 5 * MS
    assert books.account.charge(["A"], "Data", "data") == "A data"
    assert books.account.charge(["A", "B", "B"], "Data", "data") == "A+B data"
    books.now = 0
    books.account.charge(["A"], "Data", "data")
    a, b = books.rows(**{"A data": 10.0, "A+B data": 4.0, "rest": 99.0})
    assert (a["energy_mj"], a["messages"]) == (12.0, 1.5), "what was sent in the warm-up does not count"
    assert (b["energy_mj"], b["messages"], b["subscribers"]) == (2.0, 0.5, 2)
    assert books.account.messages == {"Data": 3}
    assert a["energy_per_delivery_mj"] is None


@pytest.mark.parametrize("names", [[], ["all"]])
def test_a_message_without_subscription_is_charged_to_all(names):
    assert Books(samples("A", 0)).account.charge(names, "Role", "role") == "all role"
