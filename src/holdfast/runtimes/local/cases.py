"""``given`` / ``expect`` cases that stand beside a definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...compilers.families import on_history, operators
from ...compilers.operator import Operator, in_turn
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked
from ...lang.ops import Case, Expect, Given
from ...lang.parse import as_app
from ...machines.machine import Told
from ...model.batch import to_events
from ...model.event import Event, Notification, Transition, Value
from ...model.instant import BEGINNING, NEVER, Duration, show_duration
from ...model.topic import Topic
from .running import Heard, Running, gathered

_SOURCE = "test"


@dataclass(frozen=True)
class Outcome:
    """What one expectation of a case came to."""

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
    """What the expectations of all cases of a definition came to.

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
    """Run every case as a small history of its own, in order of time."""
    return (outcome for case in checked.cases for outcome in outcomes(checked, case))


def outcomes(checked: Checked, case: Case) -> Iterator[Outcome]:
    """What the expectations of a case come to."""
    said = _said(checked, case)
    for expect in case.expect:
        mine = (n for n in said if n.subscription == expect.subscription)
        if expect.scope is not None:
            mine = (n for n in mine if n.scope == expect.scope)
        yield Outcome(case, expect, tuple((n.status, n.event.time) for n in mine))


def _said(checked: Checked, case: Case) -> list[Notification]:
    topics = {topic.name: topic for topic in checked.topics}
    events = [event for given in case.given for event in _events(topics[given.topic], given)]
    history = [replace(event, sequence=i) for i, event in enumerate(events)]
    history.sort(key=lambda event: event.order)
    out: list[Notification] = []
    heard: Heard = {}
    for operator in operators(on_history(checked)):
        one, said = Running(operator, operator.machine.initial()), list[Transition]()
        for event in _audible(operator, history, heard):
            one.state, told = operator.machine.react(one.state, event)
            said += told
        if operator.heard:
            said += one.advance(
                max((e.time for e in history if e.topic in operator.clock), default=BEGINNING)
            )
        if case.until is not None:
            said += one.advance(case.until)
        said += one.advance(NEVER)  # its time ends with its last reading, or there
        out += operator.addressed(said)
        gathered(heard, operator.retold(Told({}, said)))
    return sorted(out, key=lambda n: n.order)


def _audible(operator: Operator, history: Sequence[Event], heard: Heard) -> list[Event]:
    """The readings of a history, and what has been said of it, that an operator hears: of each scope in the
    order in which it was said."""
    topics = operator.topics
    mine = [event for event in history if event.topic in topics]
    for name in sorted(operator.heard & heard.keys()):
        mine += to_events(topics[name], in_turn(heard[name]))
    return sorted(mine, key=lambda event: event.time)


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
