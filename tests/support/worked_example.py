"""Drive the kind of condition that CONTRIBUTING.md works through; print as JSON what happened.

`tests/laws/test_worked_example.py` runs it as a program, in front of a copy of the package to which it has
added the kind: so Spark's workers, too, import the copy. The arguments name the parts to run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import structs

import holdfast as hf
from holdfast import Engine, Event, cli
from holdfast.definition.check import check
from holdfast.model.event import Notification
from holdfast.model.instant import MINUTE, SECOND, show_instant
from holdfast.network.motes.case import resolve_files
from holdfast.network.motes.cbps import Cbps
from holdfast.network.motes.nodes import Grid
from holdfast.network.motes.readings import Constant, RandomWalk
from holdfast.network.motes.routing import OnDemand
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.scenario import Publisher, Scenario, Subscriber
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.overlay.requests import requests_of
from holdfast.network.protocols.cbps.client import ConditionChange, advertise, publish
from holdfast.network.protocols.cbps.event import advertisement_for, to_content
from holdfast.network.sim.propagation import UnitDisk
from support.machines import Listed, condition_by_condition, to_checked

TEXT = "topic Door (open bool, angle float)\nchanges Moved on Door of open\n"
REVISED = TEXT.replace("of open", "of angle")
CASE = """\
case "a door opens and closes"
  given Door from "a" every 1 min: (false, 0), (true, 80), (true, 90), (false, 0)
  expect Moved in "a": atomic at 1 min, atomic at 3 min
"""
ROWS = [("a", False, 9.0), ("b", True, 9.0), ("a", True, 9.0), ("a", True, 8.0), ("b", False, 9.0)]
EVENTS = [
    Event("Door", second * SECOND, source, {"open": is_open, "angle": angle}, sequence=second)
    for second, (source, is_open, angle) in enumerate(ROWS)
]
FILE = Path("inbox/doors.jsonl")


def visible(notes: Iterable[Notification]) -> list[Any]:
    """Notifications as values of JSON."""
    return [[n.subscription, n.scope, n.status, n.event.time // SECOND, n.id] for n in notes]


def write(path: Path, events: Iterable[Event]) -> Path:
    """The events as JSON lines."""
    path.parent.mkdir(exist_ok=True)
    rows = (
        {"time": show_instant(e.time), "source": e.source, "sequence": e.sequence, **e.attributes}
        for e in events
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# --- the parts -----------------------------------------------------------------------------------------


def language() -> Any:
    """The text is parsed, printed and checked; a wrong name is an error with a suggestion."""
    app = hf.parse(TEXT)
    try:
        check(hf.parse(TEXT.replace("of open", "of opn")))
    except hf.DefinitionError as error:
        message = str(error)
    return {
        "shown": hf.show(app),
        "equal": hf.parse(hf.show(app)).statements == app.statements,
        "error": message,
    }


def commands() -> Any:
    """Cases and the plan, as people ask for them."""
    Path("moved.hf").write_text(TEXT + CASE, encoding="utf-8")
    statuses = []
    for command in ("test", "explain", "check"):
        sys.argv = ["holdfast", command, "moved.hf"]
        try:
            cli.main()
        except SystemExit as end:
            statuses.append(int(end.code or 0))
    return statuses


def engine() -> Any:
    """Events one by one, a snapshot in the middle."""
    first = Engine(TEXT)
    notes = [note for event in EVENTS[:3] for note in first.push(event)]
    second = Engine.restore(TEXT, first.snapshot())
    return visible(notes + [note for event in EVENTS[3:] for note in second.push(event)])


def replay() -> Any:
    return visible(hf.replay(hf.parse(TEXT), write(FILE, EVENTS)))


def revision() -> Any:
    """Another attribute: without a history it restarts, with one it is as if it had always run."""
    found = []
    for history in (None, EVENTS[:3]):
        running = Engine(TEXT)
        for event in EVENTS[:3]:
            running.push(event)
        notes = running.revise(REVISED, history)
        found.append(visible(notes + [note for event in EVENTS[3:] for note in running.push(event)]))
    return found


def overlay() -> Any:
    """A publisher, two brokers, a subscriber."""
    brokers = Overlay(seed=1)
    brokers.broker("near")
    brokers.broker("far", to=["near"])
    brokers.client("publisher", "near")
    brokers.client("subscriber", "far")
    brokers.settle()
    app = hf.parse(TEXT)
    brokers.ask("publisher", advertise("doors", advertisement_for(check(app).topics[0])))
    ((name, request),) = requests_of(app).items()
    brokers.ask("subscriber", structs.replace(request, name=name))
    brokers.settle()
    for event in EVENTS:
        brokers.ask("publisher", publish(to_content(event)))
        brokers.settle()
    return visible(
        note.notification for note in brokers.take("subscriber") if isinstance(note, ConditionChange)
    )


def mote() -> Any:
    """The notifications of a loss-free simulated network of four nodes, and those of the engine."""
    angles = {"open": Constant(value=True), "angle": RandomWalk(start=21, step=1.0, low=20, high=22)}
    publisher = Publisher(topic="Door", from_=1, every=5 * SECOND, readings=angles, start=20 * SECOND)
    scenario = Scenario(
        nodes=Grid(2, 2, 10.0),
        links=UnitDisk(15.0),
        routing=OnDemand(),
        protocol=Cbps(),
        definition=REVISED,
        publishers=(publisher,),
        subscribers=(Subscriber(node=3),),
        duration=100 * SECOND,
    )
    run = SimulationRun(resolve_files(scenario, Path()), 1)
    run.finish()
    local = Engine(REVISED)
    expected = [note for event in run.account.published for note in local.push(event)]
    return {"told": visible(note for _, _, note in run.account.notifications), "engine": visible(expected)}


def spark_batch() -> Any:
    return visible(hf.spark.replay_files(hf.parse(TEXT), str(write(FILE, EVENTS))))


def spark_streaming() -> Any:
    """Two runs on one checkpoint; the second with another definition."""
    found: dict[str, list[Notification]] = {TEXT: [], REVISED: []}
    for minute, (text, notes) in enumerate(found.items()):
        later = [replace(event, time=event.time + minute * MINUTE) for event in EVENTS]
        write(Path(f"live/{minute}.jsonl"), later)
        query = hf.spark.live(
            text, "live", checkpoint="checkpoint", sink=notes.append, every=None, settle=0, shards=1
        )
        hf.spark.run(query)
    return [visible(notes) for notes in found.values()]


def laws() -> Any:
    """The laws of every machine."""
    settings.register_profile("worked", deadline=None, max_examples=25, derandomize=True)
    settings.load_profile("worked")
    from laws import test_machines

    tried = []
    for name, law in vars(test_machines).items():
        if hasattr(law, "hypothesis"):
            with suppress(pytest.skip.Exception):  # laws of machines that can do more
                law(kind=CHANGES)
                tried.append(name)
    return tried


def slow_twin(definition: Any, events: Iterable[Event]) -> list[Any]:
    """The output of a loop over the events."""
    rows = []
    for condition in to_checked(definition).conditions:
        last: dict[str, Any] = {}
        for event in events:
            value = event.attributes[condition.attribute]
            if value is None or value != value:
                continue
            if last.get(event.source, value) != value:
                rows.append((condition.name, event.source, "atomic", None, event.order))
            last[event.source] = value
    return rows


CHANGES = Listed(
    "changes",
    "changes",
    st.sampled_from((TEXT, REVISED, TEXT + "changes Turned on Door of angle\n")),
    st.lists(
        st.builds(
            lambda time, source, is_open, angle: Event(
                "Door", time, source, {"open": is_open, "angle": angle}
            ),
            st.integers(0, 9),
            st.sampled_from("ab"),
            st.sampled_from((True, False, None)),
            st.sampled_from((0.0, 90.0, float("nan"), None)),
        ),
        max_size=16,
    ),
    condition_by_condition,
    slow_twin,
)

PARTS: dict[str, Callable[[], Any]] = {
    part.__name__: part
    for part in (
        language,
        commands,
        engine,
        replay,
        revision,
        overlay,
        mote,
        spark_batch,
        spark_streaming,
        laws,
    )
}

if __name__ == "__main__":
    Path("results.json").write_text(json.dumps({name: PARTS[name]() for name in sys.argv[1:]}), "utf-8")
