"""Execution of the test cases (``given`` / ``expect``) that a definition file contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...definition.app import App
from ...definition.check import check
from ...definition.parse import as_app
from ...engine.graph import Graph, LocalStates, Step, Watermarks, notifications
from ...lang.condition import Checked
from ...lang.ops import Case, Expect, Given
from ...model.event import Event, Notification, Value
from ...model.instant import Duration, show_duration
from ...model.topic import Topic
from ...plan.compile import on_history, operators

_SOURCE = "test"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one expectation of a case: what was expected and what was found."""

    case: Case
    expect: Expect
    found: tuple[tuple[str, Duration], ...]

    @property
    def holds(self) -> bool:
        return self.found == self.expect.marks

    def __str__(self) -> str:
        scope = f' in "{self.expect.scope}"' if self.expect.scope is not None else ""
        return (
            f"{self.expect.subscription}{scope}\n"
            f"    expected: {_marks(self.expect.marks)}\n"
            f"    got:      {_marks(self.found)}"
        )


def cases(
    app: App | str, *, base: Path | None = None, lets: Mapping[str, float | int | str | bool] | None = None
) -> list[Outcome]:
    """Run all cases of a definition and return the outcomes of their expectations.

    >>> from holdfast import cases
    >>> [outcome] = cases('''
    ...     topic Door (open bool)
    ...     state Open on Door [open; !open] per source
    ...     case "a minute"  given Door from "gate" every 30 s: true, false
    ...       expect Open: ingress at 0 s, egress at 60 s
    ... ''')
    >>> outcome.holds, outcome.case.name
    (False, 'a minute')
    """
    return list(run_cases(check(as_app(app), base, lets)))


def run_cases(checked: Checked) -> Iterator[Outcome]:
    """Run every case of a definition as a history of its own, and yield the outcomes of all expectations."""
    return (outcome for case in checked.cases for outcome in outcomes(checked, case))


def outcomes(checked: Checked, case: Case) -> Iterator[Outcome]:
    """Run one case and yield the outcome of each of its expectations."""
    notifications = _notifications_of(checked, case)
    for expect in case.expect:
        own_notifications = (n for n in notifications if n.subscription == expect.subscription)
        if expect.scope is not None:
            own_notifications = (n for n in own_notifications if n.scope == expect.scope)
        yield Outcome(case, expect, tuple((n.status, n.event.time) for n in own_notifications))


def _notifications_of(checked: Checked, case: Case) -> list[Notification]:
    topics = {topic.name: topic for topic in checked.topics}
    events = [event for given in case.given for event in _events(topics[given.topic], given)]
    history = [replace(event, sequence=i) for i, event in enumerate(events)]
    history.sort(key=lambda event: event.order)
    graph = Graph(dict(enumerate(operators(on_history(checked)))))
    states, watermarks = LocalStates(graph), Watermarks()
    steps: list[Step] = []
    for event in history:
        watermarks.advance(event.topic, event.time)
        steps += graph.push(states, event, watermarks)
    if case.until is not None:
        for topic in topics:
            watermarks.advance(topic, case.until)
        steps += graph.advance(states, watermarks)
    steps += graph.run(states, {}, watermarks, final=True).steps
    return sorted(notifications(steps), key=lambda n: n.order)


def _events(topic: Topic, given: Given) -> Iterator[Event]:
    for i, row in enumerate(given.rows):
        values: dict[str, Value] = {
            a.name: None if cell is None else cell.value
            for a, cell in zip(topic.attributes, row, strict=True)
        }
        at = given.start + i * given.every
        yield Event(
            topic.name, at, given.source or _SOURCE, values, location=given.location, place=given.place
        )


def _marks(marks: tuple[tuple[str, Duration], ...]) -> str:
    shown = (f"{status} at {show_duration(at) if at else '0 s'}" for status, at in marks)
    return ", ".join(shown) or "nothing"
