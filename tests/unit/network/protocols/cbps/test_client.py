"""Publishers and subscribers: what they send, what they receive, and what they must not do."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.model.protocol import (
    Asked,
    CancelTimer,
    Deliver,
    Fired,
    Joined,
    Left,
    Received,
    Send,
    SetTimer,
    Started,
    Undelivered,
)
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.protocols.cbps.client import (
    NEW,
    RENEW,
    AddressedPayload,
    BundleUnsent,
    CbpsClient,
    ReceivedNotification,
    SubmissionRefused,
    Submit,
    WithdrawSubmission,
    advertise,
    publish,
    subscribe,
    watch,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.message import (
    Bundle,
    BundleKey,
    BundleRefusal,
    PublishedNotification,
    Registration,
    Renewal,
    ScopePlacement,
    StateAnswer,
    StateRequest,
    SubscriptionRef,
    UnadvertiseBundle,
    UnsubscribeBundle,
)
from holdfast.network.protocols.cbps.promises import fulfils

X = Filter((Constraint("x", "long", "any"),))
LOW = Filter((Constraint("x", "long", "<", 10),))
WARM = "topic T (value float)\nstate Warm on T [value > 25; value < 22] per source"


class ClientBench:
    def __init__(self, **options):
        self.machine = CbpsClient("me", compile_condition, **options)
        self.state = self.machine.initial()
        self.tell(Started(100, 0))

    def tell(self, given):
        self.state, effects = self.machine.handle(self.state, given)
        return effects

    def ask(self, request):
        return self.tell(Asked(0, request))

    def join(self):
        return self.tell(Joined(0, "broker"))

    def receive(self, message):
        return [e.what if isinstance(e, Deliver) else e for e in self.tell(Received(0, "broker", message))]


def notification_bundle(sequence, *contents, origin="them", **more):
    return Bundle(
        BundleKey(origin, sequence), notifications=tuple(map(PublishedNotification, contents)), **more
    )


def test_a_client_registers_before_it_sends_requests():
    bench = ClientBench()
    bench.ask(advertise("a", X))
    registration, advertisement = bench.join()
    assert registration == Send("broker", Registration(bench.machine.accepts, request=True))
    assert advertisement.message.key == BundleKey("me", 101)


def test_bundle_numbers_start_with_the_time_and_increase_over_restarts():
    bench = ClientBench()
    bench.join()
    (first,), (second,) = bench.ask(publish({"x": 1})), bench.ask(publish({"x": 2}))
    assert (first.message.key, second.message.key) == (BundleKey("me", 101), BundleKey("me", 102))


def test_after_a_reconnection_all_bundles_are_sent_again_under_the_same_names():
    bench = ClientBench()
    first = [*bench.join(), *bench.ask(advertise("a", X)), *bench.ask(watch("w", WARM))]
    bench.tell(Left(0, "broker", "cut"))
    assert bench.join() == first


def test_a_condition_is_sent_with_a_placement_for_its_bits():
    bench = ClientBench()
    bench.join()
    bundle, placement = bench.ask(watch("w", WARM))
    part = SubscriptionRef(bundle.message.key, 0)
    assert bundle.message.subscriptions[0].filter == Filter((Constraint("topic", "text", "=", "T"),))
    assert placement == Send("broker", ScopePlacement(part, ()))
    bench.receive(
        notification_bundle(1, {"topic": "T", "time": 1, "source": "s", "sequence": 1, "value": 26.0})
    )
    assert bench.receive(StateRequest(part, 7)) == [Send("broker", StateAnswer(part, 7, ("s",)))]


def test_each_matching_subscription_receives_a_notification_once():
    bench = ClientBench()
    bench.join()
    bench.ask(subscribe("all", X))
    bench.ask(subscribe("low", LOW))
    output = notification_bundle(1, {"x": 5}, {"y": 1}, {"x": 50})
    received = bench.receive(output)
    assert [(what.subscription, what.content) for what in received] == [
        ("all", {"x": 5}),
        ("low", {"x": 5}),
        ("all", {"x": 50}),
    ]
    assert bench.receive(output) == []
    assert bench.receive(notification_bundle(1, {"x": 5}, origin="others"))[0].bundle == BundleKey(
        "others", 1
    )


def test_a_payload_is_delivered_with_its_notification_or_alone():
    bench = ClientBench()
    bench.join()
    bench.ask(subscribe("low", LOW))
    assert bench.receive(notification_bundle(1, {"x": 5}, payloads=("p",)))[0].payloads == ("p",)
    assert bench.receive(notification_bundle(2, {"x": 50}, payloads=("p",))) == [
        AddressedPayload(BundleKey("them", 2), ("p",))
    ]


def test_withdrawn_bundles_are_neither_delivered_nor_sent_again():
    bench = ClientBench()
    bench.join()
    bench.ask(advertise("a", X))
    bench.ask(subscribe("s", X))
    assert bench.ask(WithdrawSubmission("a")) == [
        Send("broker", UnadvertiseBundle(BundleKey("me", 101)), "advertisement")
    ]
    assert bench.ask(WithdrawSubmission("s")) == [
        Send("broker", UnsubscribeBundle(BundleKey("me", 102)), "subscription")
    ]
    assert bench.receive(notification_bundle(1, {"x": 5})) == []
    bench.tell(Left(0, "broker"))
    assert len(bench.join()) == 1


def test_unsent_bundles_are_reported():
    bench = ClientBench()
    (unsent,) = bench.ask(publish({"x": 1}))
    assert isinstance(unsent.what, BundleUnsent)
    bench.join()
    (output,) = bench.ask(publish({"x": 2}))
    (unsent,) = bench.tell(Undelivered(0, "broker", output.message))
    assert unsent.what.bundle == output.message.key


def test_a_refusal_ends_a_subscription():
    bench = ClientBench()
    bench.join()
    bench.ask(subscribe("s", X))
    assert bench.receive(BundleRefusal(BundleKey("me", 101), "full"))[-1] == SubmissionRefused("s", "full")
    assert bench.receive(notification_bundle(1, {"x": 5})) == []


def test_leases_are_renewed_in_time_while_there_is_a_connection():
    bench = ClientBench(lease=30 * SECOND)
    bench.ask(advertise("a", X))
    effects = bench.join()
    assert effects[1].message.lease == 30 * SECOND
    assert effects[-1] == SetTimer(RENEW, 10 * SECOND)
    renewal, again = bench.tell(Fired(10 * SECOND, RENEW))
    assert renewal.message == Renewal((BundleKey("me", 101),))
    assert again == SetTimer(RENEW, 20 * SECOND)
    assert CancelTimer(RENEW) in bench.tell(Left(0, "broker"))
    assert bench.tell(Fired(20 * SECOND, RENEW)) == []


# --- promises ---


def test_a_publisher_must_fulfil_its_promises():
    bench = ClientBench()
    bench.join()
    bench.ask(advertise("low", LOW))
    assert bench.ask(publish({"x": 5, "more": "is allowed"}))
    with pytest.raises(UsageError, match="advertise it first"):
        bench.ask(publish({"x": 50}))


@pytest.mark.parametrize(
    ("content", "stored"),
    [
        ({"s": "a", "x": 1}, True),
        ({"s": "a"}, True),
        ({"x": 1}, False),
        ({"s": "b"}, False),
        ({"s": "a", "x": 50}, False),
    ],
)
def test_pinned_values_must_be_present_and_others_must_be_allowed(content, stored):
    promise = Filter((Constraint("s", "text", "=", "a"), *LOW.constraints))
    assert fulfils(content, promise) is stored


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (subscribe("taken", X), "'taken' is taken"),
        (WithdrawSubmission("take"), "Did you mean 'taken'"),
        (Submit(Bundle(NEW)), "empty"),
        (watch("w", "topic T (v float)"), "one condition"),
        ("dance", "cannot 'dance'"),
    ],
)
def test_impossible_requests_raise_an_error_and_change_nothing(request_, why):
    bench = ClientBench()
    bench.join()
    bench.ask(subscribe("taken", X))
    with pytest.raises(UsageError, match=why):
        bench.ask(request_)
    assert list(bench.state.bundles) == ["taken"]
    assert bench.receive(notification_bundle(1, {"x": 5})) == [
        ReceivedNotification("taken", BundleKey("them", 1), {"x": 5})
    ]
