"""A whole overlay in one process: in order, repeatable, and breakable."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import (
    BundleUnsent,
    CbpsClient,
    ReceivedNotification,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from support.patience import PATIENCE

X = Filter((Constraint("x", "long", "any"),))


def star(**options):
    """Two publishers and a subscriber, each at a broker of its own around a hub."""
    net = Overlay(**options)
    net.broker("hub")
    for name in ("p", "q", "s"):
        net.broker(f"b{name}", to=["hub"])
        net.client(name, f"b{name}")
    net.ask("p", advertise("a", X))
    net.ask("q", advertise("a", X))
    net.ask("s", subscribe("s", X))
    net.settle()
    return net


def received_values(net):
    return [what.content["x"] for what in net.take("s") if isinstance(what, ReceivedNotification)]


def burst(net):
    for i in range(10):
        net.ask("p", publish({"x": i}))
        net.ask("q", publish({"x": 100 + i}))
    net.settle()
    return received_values(net)


def test_messages_move_only_when_the_network_is_stepped():
    net = star()
    net.ask("p", publish({"x": 1}))
    assert received_values(net) == []
    assert net.step()
    net.settle()
    assert received_values(net) == [1]
    assert not net.step()


def test_messages_are_delivered_in_the_order_sent_without_a_seed():
    assert burst(star()) == [x for i in range(10) for x in (i, 100 + i)]


def test_a_seed_mixes_links_but_never_the_messages_of_one_link():
    mixed = [burst(star(seed=seed)) for seed in (1, 1, 2)]
    assert mixed[0] == mixed[1] != mixed[2]
    for run in mixed:
        assert [x for x in run if x < 100] == list(range(10))
        assert [x - 100 for x in run if x >= 100] == list(range(10))


def test_messages_on_a_cut_link_are_lost_and_counted():
    net = star()
    net.ask("p", publish({"x": 1}))
    assert len(net.waiting("p", "bp")) == 1
    assert net.cut("p", "bp") == 1
    net.settle()
    assert received_values(net) == []
    net.ask("p", publish({"x": 2}))
    assert [type(what) for what in net.take("p")] == [BundleUnsent]


def test_a_killed_node_can_be_started_again():
    net = star()
    net.kill("bs")
    assert "bs" not in net.nodes
    net.broker("bs", to=["hub", "s"])
    net.settle()
    net.ask("p", publish({"x": 1}))
    net.settle()
    assert received_values(net) == [1]


def test_a_host_drops_notifications_and_nothing_else():
    net = star()
    net.ask("p", publish({"x": 1}))
    assert net.give_up("p", "bp")
    assert [type(what) for what in net.take("p")] == [BundleUnsent]
    net.ask("p", advertise("more", X))
    assert not net.give_up("p", "bp")
    net.settle()
    assert received_values(net) == []


def test_traffic_is_counted_by_link_and_cause():
    net = star()
    net.traffic.clear()
    burst(net)
    assert net.traffic["bp", "hub", "notification"] == net.traffic["bq", "hub", "notification"] == 10
    assert net.traffic["hub", "bs", "notification"] == 20
    assert ("hub", "bq", "notification") not in net.traffic


def test_advancing_the_clock_fires_due_timers():
    net = Overlay()
    net.broker("b")
    net.client("c", "b", machine=CbpsClient("c", compile_condition, lease=30 * SECOND))
    net.ask("c", advertise("a", X))
    net.settle()
    for _ in range(10):
        net.advance(10 * SECOND)
        net.settle()
    assert len(net.nodes["b"].state.routing) > 0  # renewed in time
    net.nodes["c"].timers.clear()  # it falls silent, though the connection stands
    net.advance(31 * SECOND)
    assert len(net.nodes["b"].state.routing) == 0


@pytest.mark.parametrize(
    ("mistake", "why"),
    [
        (lambda net: net.ask("pp", publish({"x": 1})), "Did you mean 'p'"),
        (lambda net: net.broker("hub"), "already"),
        (lambda net: net.connect("hub", "bp"), "connected already"),
        (lambda net: net.cut("p", "q"), "not connected"),
    ],
)
def test_usage_errors_are_named(mistake, why):
    with pytest.raises(UsageError, match=why):
        mistake(star())


SCRIPT = """
from holdfast.network.protocols.cbps.client import advertise, publish, subscribe
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.overlay.memory.brokers import Overlay

log = []
net = Overlay(seed=5, tap=lambda sender, to, message: log.append((sender, to, repr(message))))
x = Filter((Constraint("x", "long", "any"),))
net.broker("hub")
for i in range(20):
    net.broker(f"b{i}", to=["hub"])
    net.client(f"c{i}", f"b{i}")
    net.ask(f"c{i}", advertise("a", x))
    net.ask(f"c{i}", subscribe("s", x))
net.settle()
net.ask("c3", publish({"x": 1}))
net.settle()
for line in log:
    print(*line)
"""


def test_equal_seeds_give_equal_runs_in_every_process():
    def run(hash_seed):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return done.stdout

    first = run("1")
    assert first.count("\n") > 500
    assert first == run("2")
