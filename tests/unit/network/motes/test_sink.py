"""Conditions on the node of a subscriber emit as events arrive and as its clock fires timers."""

from __future__ import annotations

from pathlib import Path

from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.network.motes.account import NodeSubscription, RunAccount
from holdfast.network.motes.conditions import Evaluator, load_definition
from holdfast.network.motes.sink import Sinks
from holdfast.network.sim.network import Network, Setup

LASTS = """\
topic T (value float)
state Warm on T [value > 25; value < 22] per source
state Lasting
  A = T each source
  enter A.value > 25 for 5 s
  exit  A.value < 22
"""


class SinkHarness:
    """Two nodes; events arrive at the first at given times."""

    def __init__(self, *wishes: NodeSubscription, text: str = LASTS) -> None:
        self.network = Network(Setup(positions=[(0.0, 0.0), (1.0, 0.0)]))
        self.account = RunAccount(dict.fromkeys(wishes), lambda: self.network.now, 0, 2 * SECOND)
        self.sinks = Sinks(load_definition(text, Path()), wishes, self.account)
        self.network.boot(self.sinks.boot)

    def comes(self, at: float, value: float, after: float = 0.1, node: int = 0) -> None:
        """A reading of a time comes a little later."""
        event = Event("T", round(at * SECOND), "a", {"value": value})
        come = round((at + after) * SECOND)
        self.network.at(come, lambda: self.sinks.on_event(self.network.nodes[node], event))

    def notifications(self, until: float) -> list[tuple[float, str, str]]:
        self.network.run(round(until * SECOND))
        return [
            (round(at / SECOND, 1), wish.name, what.status) for at, wish, what in self.account.notifications
        ]


def test_a_state_without_durations_is_notified_at_once_and_only_by_events():
    motes = SinkHarness(NodeSubscription("Warm", 0, ("T",)))
    motes.comes(10, 26)
    motes.comes(12, 21)
    assert motes.notifications(60) == [(10.1, "Warm", "ingress"), (12.1, "Warm", "egress")]


def test_timers_fire_by_the_clock_after_the_allowance():
    motes = SinkHarness(NodeSubscription("Lasting", 0, ("T",)))
    motes.comes(10, 26)
    assert motes.notifications(60) == [(17.0, "Lasting", "ingress")], (
        "5 s later, and 2 s for what is on its way"
    )


def test_events_delayed_within_the_allowance_count():
    motes = SinkHarness(NodeSubscription("Lasting", 0, ("T",)))
    motes.comes(10, 26)
    motes.comes(14.5, 20, after=1.8)
    assert motes.notifications(60) == []


def test_every_event_of_a_topic_is_notified_to_its_subscribers():
    motes = SinkHarness(
        NodeSubscription("T", 0, ("T",), plain=True), NodeSubscription("T", 1, ("T",), plain=True)
    )
    motes.comes(10, 26)
    assert motes.notifications(60) == [(10.1, "T", "atomic")], "it came to one of the two"


def test_events_outside_the_time_of_a_subscription_are_not_notified():
    motes = SinkHarness(NodeSubscription("T", 0, ("T",), plain=True, start=11 * SECOND, stop=13 * SECOND))
    for second in (10, 12, 14):
        motes.comes(second, 26)
    assert motes.notifications(60) == [(12.1, "T", "atomic")]


def test_a_restarted_node_has_no_pending_timers():
    motes = SinkHarness(NodeSubscription("Lasting", 0, ("T",)))
    motes.comes(10, 26)
    motes.network.at(12 * SECOND, lambda: motes.network.kill(0))
    motes.network.at(13 * SECOND, lambda: motes.network.restart(0))
    motes.comes(30, 26)
    assert motes.notifications(60) == [(37.0, "Lasting", "ingress")]


def test_an_evaluator_is_woken_once_for_each_due_time(monkeypatch):
    """A reading that is to be looked at soon takes the place of an alarm for later: a timer costs energy."""
    woken, advance = [], Evaluator.advance
    monkeypatch.setattr(Evaluator, "advance", lambda self, until: woken.append(until) or advance(self, until))
    text = "topic T (value float)  state Mean  A = avg T over 20 s  enter A.value > 25  exit A.value < 22"
    motes = SinkHarness(NodeSubscription("Mean", 0, ("T",)), text=text)
    for second in range(10, 60, 5):
        motes.comes(second, 26 if second < 30 else 0)
    assert motes.notifications(90) == [(12.0, "Mean", "ingress"), (32.0, "Mean", "egress")]
    assert len(woken) == len(set(woken))
