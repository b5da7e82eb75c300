"""How much one connection may take of a broker: messages, what it stores, what it has read."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.model.protocol import Undelivered
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps import definition_budget
from holdfast.network.protocols.cbps.broker import HEADROOM, CbpsBroker
from holdfast.network.protocols.cbps.client import (
    BundleUnsent,
    SubmissionRefused,
    WithdrawSubmission,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.definition_budget import BURST, RATE, DefinitionBudget
from holdfast.network.protocols.cbps.message import bytes_of

X = Filter((Constraint("x", "double", "any"),))


def wanting(size):
    """A subscription of about so many bytes, to what comes with an ``x``."""
    return Filter((*X.constraints, Constraint("k", "text", "!=", "a" * size)))


def line(*limits):
    """Brokers in a line that take messages so long, a publisher at the last and a subscriber at the first."""
    net = Overlay()
    for i, limit in enumerate(limits):
        machine = CbpsBroker(compile_condition, name=f"b{i}", limit=limit)
        net.broker(f"b{i}", to=[f"b{i - 1}"] if i else [], machine=machine)
    net.client("s", to="b0")
    net.client("p", to=f"b{len(limits) - 1}")
    net.ask("p", advertise("x", Filter((*X.constraints, Constraint("k", "text", "any")))))
    net.settle()
    return net


def test_a_subscription_refused_by_a_distant_broker_is_refused_by_the_first():
    net = line(1 << 16, 1 << 16, 1 << 12)
    net.ask("s", subscribe("small", wanting(100)))
    net.ask("s", subscribe("large", wanting(1 << 13)))
    net.settle()
    (refused,) = net.take("s")
    assert (type(refused), refused.name) == (SubmissionRefused, "large")
    assert "on the way at most 3,072 are taken" in refused.why
    net.ask("p", publish({"x": 1.0, "k": "b"}))
    net.settle()
    assert [one.subscription for one in net.take("s")] == ["small"]


def test_accepted_bundles_may_grow_on_their_way():
    """Whatever the first broker accepts, no broker after it sends a message that is too long for the next."""
    limit, longest = 1 << 12, 0

    def tap(sender, to, message):
        nonlocal longest
        if sender.startswith("b") and to.startswith("b"):
            longest = max(longest, bytes_of(message))

    net = line(limit, limit, limit)
    net._tap = tap
    refused = 0
    for size in range(limit - 2 * HEADROOM, limit, 16):
        net.ask("s", subscribe("it", wanting(size)))
        net.settle()
        if any(isinstance(one, SubmissionRefused) for one in net.take("s")):
            refused += 1
        else:
            net.ask("s", WithdrawSubmission("it"))
    assert refused
    assert limit - HEADROOM - 16 < longest <= limit


def test_a_notification_that_is_too_long_is_not_silently_lost():
    net = line(1 << 12)
    net.ask("s", subscribe("x", X))
    net.ask("p", publish({"x": 1.0, "k": "b" * 4_000}))
    net.settle()
    assert net.take("s") == []
    (unsent,) = net.take("p")
    assert isinstance(unsent, BundleUnsent)
    assert "bytes" in unsent.why


def test_a_late_refusal_of_a_neighbour_reaches_the_subscriber():
    """A host finds out that a message is too long for a peer whose limit was not known."""
    net = line(0, 0)
    net.ask("s", subscribe("x", X))
    net.settle()
    (stored,) = [one for one in net.nodes["b0"].state.routing.in_force.values() if one.bundle.subscriptions]
    net.nodes["b0"].tell(Undelivered, "b1", stored.bundle)
    net.settle()
    (refused,) = net.take("s")
    assert refused == SubmissionRefused("x", "'b1' takes no message as long as this")
    assert "b1" not in stored.sent


def test_the_bytes_stored_for_a_connection_are_bounded():
    net = Overlay()
    net.broker("hub", machine=CbpsBroker(compile_condition, name="hub", most_bytes=10_000))
    net.client("greedy", to="hub")
    net.client("modest", to="hub")
    for n in range(30):
        net.ask("greedy", subscribe(f"{n}", wanting(1_000)))
    net.ask("modest", subscribe("x", wanting(1_000)))
    net.settle()
    refused = [one for one in net.take("greedy") if isinstance(one, SubmissionRefused)]
    assert len(refused) == 30 - 10_000 // 1_150
    assert "10,000 bytes" in refused[0].why
    assert net.take("modest") == []
    routing = net.nodes["hub"].state.routing
    assert 0 < routing.sizes["greedy"] <= 10_000
    net.ask("greedy", WithdrawSubmission("0"))
    net.ask("greedy", subscribe("again", wanting(1_000)))
    net.settle()
    assert net.take("greedy") == []
    for name in ("greedy", "modest"):
        net.kill(name)
    net.settle()
    assert not routing.sizes


class Reader:
    def __init__(self):
        self.read = []

    def __call__(self, text):
        self.read.append(text)
        if "bad" in text:
            raise UsageError("it means nothing")


def test_a_refused_definition_is_not_read_again():
    reader, known = Reader(), DefinitionBudget()
    for now in range(3):
        assert known.refusal_reason("bad", reader, "c", now) == "it means nothing"
        assert known.refusal_reason("good", reader, "c", now) is None
    assert reader.read == ["bad", "good"]


def test_invalid_definitions_cost_more_of_a_clients_budget():
    reader, known = Reader(), DefinitionBudget()
    bad = [f"bad {n} ".ljust(1 << 16) for n in range(20)]
    for text in bad:
        known.refusal_reason(text, reader, "attacker", 0)
    assert len(reader.read) == 1
    assert known.refusal_reason("good", reader, "somebody else", 0) is None
    assert "are read each second" in known.refusal_reason("also good", reader, "attacker", 0)
    assert known.refusal_reason("also good", reader, "attacker", SECOND) is None
    for n in range(BURST // 1_000 + RATE // 1_000):
        assert known.refusal_reason(f"{n}".ljust(1_000), reader, "honest", n * SECOND // 4) is None


def test_definitions_from_brokers_are_always_compiled():
    reader, known = Reader(), DefinitionBudget()
    for n in range(20):
        assert known.refusal_reason(f"{n}".ljust(1 << 16), reader, None, 0) is None
    assert len(reader.read) == 20


def test_memory_for_definitions_and_clients_is_bounded(monkeypatch):
    monkeypatch.setattr(definition_budget, "MOST", 10)
    reader, known = Reader(), DefinitionBudget()
    for n in range(100):
        known.refusal_reason(f"{n}", reader, f"c{n}", 0)
    assert (len(known.results), len(known.remaining)) == (10, 10)
