"""The kind of condition that CONTRIBUTING.md works through runs, and keeps the laws."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import strategies as st

from holdfast import Engine, Event
from holdfast.compilers import explain, families, resume
from holdfast.compilers.families import in_words
from holdfast.files.find import find
from holdfast.files.reading import Reading
from holdfast.lang.condition import Checked
from holdfast.model.qos import TIMELY, Delivery
from holdfast.model.topic import Attribute, Topic
from holdfast.runtimes.local import engine
from holdfast.runtimes.local.replay import Replay
from laws import test_machines
from support.machines import Listed, condition_by_condition

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
DOOR = Topic("Door", (Attribute("open", "bool"), Attribute("angle", "float")))


@dataclass(frozen=True)
class Change:
    """What `check` would leave of ``changes Moved on Door of open``."""

    name: str
    attribute: str
    topic: Topic = DOOR
    delivery: Delivery = TIMELY

    @property
    def listens(self):
        return (self.topic,)


@dataclass(frozen=True)
class Definition(Checked):
    """A checked definition that has some."""

    topics: tuple[Topic, ...] = (DOOR,)
    conditions: tuple[()] = ()
    changes: tuple[Change, ...] = ()


MOVED = Definition(changes=(Change("Moved", "open"), Change("Turned", "angle")))


def one_by_one(definition, events):
    """What a loop over the events says."""
    rows = []
    for one in definition.changes:
        last = {}
        for event in events:
            value = event.attributes[one.attribute]
            if value is None or value != value:
                continue
            if last.get(event.source, value) != value:
                rows.append((one.name, event.source, "atomic", None, event.order))
            last[event.source] = value
    return rows


CHANGES = Listed(
    "changes",
    "changes",
    st.sampled_from((MOVED, Definition(changes=MOVED.changes[1:]))),
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
    one_by_one,
)


@pytest.fixture(autouse=True)
def _listed(monkeypatch):
    """The code of the page, with its line in the table."""
    page = SimpleNamespace()
    for block in re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8")):
        exec(compile(block, PAGE.name, "exec"), vars(page))
    table = (*families.FAMILIES, page.CHANGES)
    for module in (families, resume, explain):
        monkeypatch.setattr(module, "FAMILIES", table)


LAWS = [law for law in vars(test_machines).values() if hasattr(law, "hypothesis")]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_it_keeps_the_laws(law):
    law(kind=CHANGES)


def test_it_has_what_the_protocol_asks_for():
    test_machines.test_a_machine_has_all_that_the_protocol_asks_for(CHANGES)


def test_an_engine_runs_it(monkeypatch):
    monkeypatch.setattr(engine, "check", lambda *_of: MOVED)
    running = Engine()
    said = [
        (note.subscription, note.scope, note.status, note.event.time)
        for time, (source, is_open) in enumerate(
            [("a", False), ("b", True), ("a", True), ("a", True), ("b", False)]
        )
        for note in running.push(Event("Door", time, source, {"open": is_open, "angle": 9.0}))
    ]
    assert said == [("Moved", "a", "atomic", 2), ("Moved", "b", "atomic", 4)]
    again = Engine.restore("", running.snapshot())
    (note,) = again.push(Event("Door", 9, "a", {"open": False, "angle": 9.0}))
    assert (note.subscription, note.scope) == ("Moved", "a")


def test_a_replay_runs_it(tmp_path):
    rows = ["time,source,open,angle", "2026-01-01T00:00:05Z,a,true,9", "2026-01-01T00:00:00Z,a,false,9"]
    (tmp_path / "doors.csv").write_text("\n".join(rows))
    told = Replay(MOVED, find([str(tmp_path / "doors.csv")], ["Door"]), Reading(MOVED.topics))
    assert [(n.subscription, n.to_json()["time"]) for n in told] == [("Moved", "2026-01-01T00:00:05.000000Z")]


def test_its_plan_is_told_in_words():
    assert "changes of open: Moved" in explain.explain(MOVED)
    assert in_words(MOVED) == {"Moved": {"of": "open"}, "Turned": {"of": "angle"}}
