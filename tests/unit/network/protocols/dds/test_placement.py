"""State filters on the publisher's node: only transitions travel, and they arrive."""

from __future__ import annotations

import pytest

from holdfast.definition.parse import parse
from holdfast.errors import Unsupported
from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.network.motes.conditions import mote_machines
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.deployment import MODES
from holdfast.network.protocols.dds.message import DataMessage
from support.motes import HEAT, MoteRadio, Motes, deployment, publishing, subscribe

WARM = mote_machines(
    parse("topic heat (value float)\nstate Warm on heat [value > 25; value < 22] per source").check()
)
READINGS = [20, 24, 26, 27, 24, 23, 21, 20, 30, 31, 29, 24, 10, 11, 26]
CHANGES = [(26, "ingress"), (21, "egress"), (30, "ingress"), (10, "egress"), (26, "ingress")]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def values_at(motes: Motes, node: str) -> list[tuple[float, str]]:
    return [(notice.values["value"], notice.status) for notice in motes.notified(node)]


def test_only_the_starts_and_ends_of_a_condition_travel(mode):
    motes = Motes(deployment(mode=mode, conditions=WARM), ("p", "r", "s"))
    subscribe(motes, "s", condition="Warm")
    motes.run(publishing(motes, READINGS) + SECOND)
    assert values_at(motes, "s") == CHANGES
    assert len(motes.sent(DataMessage, "p")) == len(CHANGES)


def test_transitions_equal_those_of_the_condition_in_process(mode):
    """The same machine with the same history gives the same times and starts."""
    motes = Motes(deployment(mode=mode, conditions=WARM), ("p", "r", "s"))
    subscribe(motes, "s", condition="Warm")
    motes.run(publishing(motes, READINGS) + SECOND)
    machine, found = WARM["Warm"], []
    state = machine.initial()
    for i, value in enumerate(READINGS):
        state, out = machine.react(state, Event(HEAT, (20 + i) * SECOND, "p", {"value": float(value)}, i))
        found += [(change.event.time, change.status, change.since) for change in out]
    assert [(notice.time, notice.status, notice.since) for notice in motes.notified("s")] == found


def test_transitions_are_sent_reliably_on_a_best_effort_topic(mode):
    """Quality of service follows meaning: samples are best effort, transitions arrive through any air."""
    motes = Motes(deployment(mode=mode, conditions=WARM), ("p", "r", "s", "t"))
    subscribe(motes, "s", condition="Warm")
    subscribe(motes, "t")
    motes.at(19 * SECOND, lambda: setattr(motes, "air", MoteRadio(5, 0.5, 0.2, 500)))
    motes.run(publishing(motes, READINGS) + 60 * SECOND)
    assert values_at(motes, "s") == CHANGES
    assert len(motes.readings("t")) < len(READINGS)


def test_without_condition_subscribers_the_node_sends_samples_again(mode):
    motes = Motes(deployment(mode=mode, conditions=WARM), ("p", "r", "s", "t"))
    subscribe(motes, "s", condition="Warm")
    last = publishing(motes, READINGS)
    motes.at(25_500_000, lambda: motes.ask("s", request.DdsUnsubscribeRequest("all")))
    motes.at(25_500_000, lambda: subscribe(motes, "t"))
    motes.run(last + SECOND)
    assert values_at(motes, "s") == CHANGES[:1]
    assert motes.readings("t") == READINGS[6:]
    assert not motes.states["p"].placed_conditions.states


def test_conditions_are_evaluated_for_each_publisher_separately():
    motes = Motes(deployment(mode="HyTDDS", conditions=WARM, publishers=("p", "q")), ("p", "q", "r", "s"))
    for node in ("p", "q"):
        motes.ask(node, request.DdsAdvertiseRequest(HEAT))
    subscribe(motes, "s", condition="Warm")
    motes.run(20 * SECOND)
    for node, value in (("p", 30), ("q", 20), ("q", 30), ("p", 20)):
        motes.ask(node, request.DdsPublishRequest(HEAT, {"value": value}))
        motes.run(motes.now + SECOND)
    assert [(notice.origin, notice.status) for notice in motes.notified("s")] == [
        ("p", "ingress"),
        ("q", "ingress"),
        ("p", "egress"),
    ]
    assert not motes.sent(message.Demand)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("state Warm on heat [value > 25; value < 22]", "write 'per source'"),
        ("state Warm on heat [value > 25; value < 22] per source ordered 30 s", "leave it out"),
    ],
)
def test_a_condition_that_no_single_mote_can_evaluate_is_refused(definition, message):
    with pytest.raises(Unsupported, match=message):
        mote_machines(parse(f"topic heat (value float)\n{definition}").check())


def test_a_filter_needs_no_scope():
    assert list(
        mote_machines(parse("topic heat (value float)\nfilter Hot on heat where value > 40").check())
    ) == ["Hot"]
