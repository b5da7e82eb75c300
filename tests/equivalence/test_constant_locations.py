"""Events of a component have the location that the definition sets, on every runtime."""

from __future__ import annotations

import pytest

from holdfast import Event, check, parse
from holdfast.definition.show import show
from holdfast.kinds.component.thesis_tables import show_table
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import ConditionChange, advertise, publish, watch
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from support.runtimes import RUNTIMES, engine

pytest.importorskip("pyspark")
from support.live import live
from support.sharded import run_in_shards

SECOND = 1_000_000
LOCATIONS = {
    "(9, 9)": ((9.0, 9.0), None),
    "(9 m, -2.5, 1e3)": ((9.0, -2.5, 1000.0), None),
    "(-3)": ((-3.0,), None),
    '"lab"': (None, "lab"),
}
TEXT = """topic T (value float)
state Warm A = T each source
  enter A.value > 1 set location = {where}
  exit A.value < 0 set location = {where}
state There B = Warm each location
  enter B.status == "ingress" set location = (0, 0)
  exit B.status == "egress"
"""
NETWORK = """\
nodes: {{kind: grid, columns: 4, rows: 4, spacing: 10 m}}
links: {{kind: disk, range: 15 m}}
routing: {{kind: geographic}}
energy: {{rest: {{radio: sleep, mcu: sleep}}}}
definition: |
  {text}
protocol: {{kind: {protocol}}}
publishers:
  - {{topic: T, from: {{any: 4}}, every: 10 s, start: 60 s, stop: 160 s,
     readings: {{value: {{kind: uniform, low: -3, high: 4}}}}}}
subscribers:
  - {{node: 3, to: Warm, start: 20 s}}
  - {{node: 9, to: There, start: 30 s}}
duration: 200 s
"""
VALUES = [
    (0, "a", 5.0),
    (1, "b", 7.0),
    (2, "a", -1.0),
    (3, "a", 0.5),
    (4, "b", -1.0),
    (5, "a", 2.0),
    (9, "b", 0.5),
]
EVENTS = [
    Event("T", time * SECOND, source, {"value": value}, i, (float(i), 1.0))
    for i, (time, source, value) in enumerate(VALUES)
]


def visible_fields(notifications):
    return [
        (n.subscription, n.scope, n.status, n.event.time, n.since, n.event.location, n.event.place)
        for n in notifications
    ]


def test_overlay_subscribers_receive_the_location_that_a_state_sets():
    text, emitted = TEXT.format(where="(9, 9)").partition("state There")[0], []
    net = Overlay()
    net.broker("hub")
    net.broker("edge", to=("hub",))
    net.client("publisher", "edge")
    net.client("subscriber", "hub")
    net.ask("publisher", advertise("all", advertisement_for(check(parse(text)).topics[0])))
    net.ask("subscriber", watch("Warm", text))
    net.settle()
    for event in EVENTS:
        net.advance(event.time - net.now)
        net.ask("publisher", publish(to_content(event)))
        net.settle()
        emitted += [what.notification for what in net.take("subscriber") if isinstance(what, ConditionChange)]
    assert emitted
    assert visible_fields(emitted) == visible_fields(engine(parse(text), EVENTS))[: len(emitted)]


@pytest.mark.parametrize("where", LOCATIONS)
@pytest.mark.parametrize("runtime", [*RUNTIMES, "shards", "live"])
def test_every_runtime_emits_the_location_that_a_state_sets(runtime, where):
    app = parse(TEXT.format(where=where))
    expected = visible_fields(engine(app, EVENTS))
    warm = [row for row in expected if row[0] == "Warm"]
    assert [row[2] for row in warm] == ["ingress", "ingress", "egress", "egress", "ingress"]
    assert {row[5:] for row in warm} == {LOCATIONS[where]}
    assert [row[2] for row in expected if row[0] == "There"]
    found = {**RUNTIMES, "shards": run_in_shards, "live": live}[runtime](app, EVENTS)
    assert visible_fields(found) == expected


@pytest.mark.parametrize("where", LOCATIONS)
def test_a_state_that_sets_a_location_is_printed_as_it_is_parsed(where):
    app = parse(TEXT.format(where=where))
    assert parse(show(app)) == app


@pytest.mark.parametrize("where", LOCATIONS)
def test_a_state_that_sets_a_location_survives_the_tables_of_the_thesis(where):
    app = parse(
        "topic T (value float)\nstate Warm A = T each location "
        f"enter A.value > 1 set location = {where} exit A.value < 0 set location = {where}"
    )
    assert parse(f"topic T (value float)\n{show_table(app.statements[1])}") == app


@pytest.mark.parametrize("where", LOCATIONS)
@pytest.mark.parametrize("protocol", ["direct", "cbps", "qps"])
def test_subscribers_in_a_simulated_network_receive_the_location_that_a_state_sets(protocol, where):
    text = TEXT.format(where=where)
    network = NETWORK.format(protocol=protocol, text=text.replace("\n", "\n  "))
    run = SimulationRun(read_text(network).points[0].case, 1)
    rows = run.finish().subscriptions
    assert all(row["delivered"] == row["expected"] > 0 for row in rows)
    events = sorted(run.account.published, key=lambda event: event.order)
    emitted = [what for _, _, what in run.account.notifications]
    assert sorted(visible_fields(emitted), key=repr) == sorted(
        visible_fields(engine(parse(text), events)), key=repr
    )
    assert {row[5:] for row in visible_fields(emitted) if row[0] == "Warm"} == {LOCATIONS[where]}
