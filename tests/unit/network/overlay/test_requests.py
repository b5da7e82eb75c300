"""Conditions that look something up in a file run at their subscriber, behind gates."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event
from holdfast.definition.parse import load
from holdfast.errors import Unsupported
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.overlay.requests import requests_of
from holdfast.network.protocols.cbps.client import (
    PUBLISHER_KINDS,
    CbpsClient,
    ConditionChange,
    ConditionUnknown,
    advertise,
    publish,
)
from holdfast.network.protocols.cbps.event import advertisement_for, to_content

TEXT = """topic T (value float, room text)
table Limits "limits.csv" (source text, high float, low float)
state Over on T [value > Limits.high; value < Limits.low] per source
state Long on T [value > Limits.high for 2 readings; value < Limits.low] per source
levels Heat on T:
  warm [value > Limits.low; value <= Limits.low], hot [value > Limits.high; value < 2] per source
state Both = at least 2 of Over
state All = all of Over roster "limits.csv"
state Heard on T [value > 2 for 1 readings; value < 1] per source roster "limits.csv"
filter Plain on T where value > 7
"""
ROWS = [("a", 3), ("b", 3), ("a", 6), ("b", 6), ("a", 6), ("c", 9), ("b", 9), ("a", 1), ("b", 0), ("a", 0)]


class RequestScenario:
    """A publisher that drops irrelevant events itself, two brokers, a subscriber."""

    def __init__(self, folder):
        (folder / "limits.csv").write_text("source,high,low\na,5,2\nb,8,4\n")
        (folder / "app.hf").write_text(TEXT)
        self.app = load(folder / "app.hf")
        self.overlay, self.sent = Overlay(tap=self.tap), []
        self.overlay.broker("b0")
        self.overlay.broker("b1", to=["b0"])
        self.overlay.client("s", "b0")
        self.overlay.client("p", "b1", machine=CbpsClient("p", compile_condition, PUBLISHER_KINDS))
        self.overlay.settle()
        self.ask("p", advertise("T", advertisement_for(self.app.check().topics[0])))

    def tap(self, sender, _to, message):
        if sender == "p" and getattr(message, "notifications", ()):
            self.sent.append(message)

    def ask(self, who, what):
        self.overlay.ask(who, what)
        self.overlay.settle()

    def say(self, time, source, value):
        event = Event("T", time, source, {"value": float(value), "room": "r"}, time)
        self.ask("p", publish(to_content(event)))
        return event

    def emissions(self):
        return [one for one in self.overlay.take("s") if isinstance(one, ConditionChange | ConditionUnknown)]


@pytest.mark.parametrize("name", ["Over", "Long", "Heat", "Both", "All", "Heard", "Plain"])
def test_requested_states_give_the_results_of_the_engine(name, tmp_path):
    world = RequestScenario(tmp_path)
    world.ask("s", requests_of(world.app)[name])
    engine, output = Engine(world.app), []
    for time, (source, value) in enumerate(ROWS):
        output += [n for n in engine.push(world.say(time, source, value)) if n.subscription == name]
    assert [one.notification.id for one in world.emissions()] == [n.id for n in output] != []


def test_events_relevant_to_no_row_do_not_leave_their_publisher(tmp_path):
    world = RequestScenario(tmp_path)
    world.ask("s", requests_of(world.app)["Over"])
    for time, value in enumerate([1, 4, 5, 3, 6, 4.5, 3, 1, 4]):
        world.say(time, "b", value)
    values = [message.notifications[0].content["value"] for message in world.sent]
    assert values == [6.0, 3.0, 1.0]  # from the first that may start some row to the one that ends all
    assert world.emissions() == []


def test_a_lost_connection_makes_conditions_unknown_until_the_next_event_decides(tmp_path):
    world = RequestScenario(tmp_path)
    for name in ("Over", "Long"):
        world.ask("s", requests_of(world.app)[name])
    for time, value in enumerate([6, 6, 3]):
        world.say(time, "a", value)
    assert [type(one).__name__ for one in world.emissions()] == ["ConditionChange", "ConditionChange"]
    world.overlay.cut("b0", "b1")
    world.overlay.settle()
    assert {one.condition for one in world.emissions()} == {"Over", "Long"}
    world.overlay.connect("b0", "b1")
    world.overlay.settle()
    world.say(9, "a", 6)
    assert [(one.notification.subscription, one.notification.status) for one in world.emissions()] == [
        ("Over", "known")
    ]


@pytest.mark.parametrize(
    "statement",
    [
        'state S on T [silent 1 min; !silent 1 min] per source roster "{}"',
        'state W on T [v > 1; v < 0] per source  state S = all of W roster "{}"',
        'levels S on T: a [v > 1 for 1 s; v < 0] per source roster "{}"',
        'table L "{}" (source text, high float)  state S on T [v > L.high; v < 0] per source',
    ],
)
def test_a_broker_reads_no_file_that_a_subscriber_names(statement, tmp_path):
    """The error must not show the contents of the file."""
    (tmp_path / "secret").write_text("the secret\n")
    with pytest.raises(Unsupported, match="cannot be read here") as caught:
        compile_condition("topic T (v float)\n" + statement.format(tmp_path / "secret"))
    assert "the secret" not in str(caught.value)
