"""The matrix of kinds of conditions and runtimes: its rows, its columns, and the cells that cannot run.

A row is a kind: random definitions, random histories, and a naive twin where there is one.  A column is a
runtime: a function from an app and events to notifications in the order of an output.  The history is a
replay: every runtime processes it in the order (time, source, sequence).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from hypothesis import strategies as st

from holdfast import App, Engine, Event, Notification, check, parse
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from holdfast.network.motes.conditions import Evaluator, ScenarioDefinition
from support import correlated, fused, histories, machines, overlays, related, runtimes, whole
from support.runtimes import Runtime, engine, in_order, output
from support.sharded import run_in_shards, towers

Text = str | App


@dataclass(frozen=True)
class KindRow:
    """A kind.  ``expected`` is its naive twin; ``rows`` brings notifications into the form of the twin."""

    definitions: st.SearchStrategy[Text]
    histories: st.SearchStrategy[list[Event]]
    expected: Callable[[Any, Sequence[Event]], Any] | None = None
    rows: Callable[[Any, Sequence[Event], Sequence[Notification]], Any] | None = None


@dataclass(frozen=True)
class Column:
    """A runtime.  ``reference`` finds the notifications that it must give."""

    run: Runtime
    reference: Runtime = engine


# --- rows --------------------------------------------------------------------------------------------


def _row_of(name: str) -> KindRow:
    """A kind with the generators and the twin that the laws use."""
    (kind,) = (kind for kind in machines.MACHINES if kind.name == name)
    assert kind.twin is not None
    twin = kind.twin
    return KindRow(
        kind.definitions,
        kind.histories,
        lambda definition, events: sorted(twin(definition, in_order(events)), key=repr),
        lambda definition, events, found: sorted(kind.rows_of(definition, events, found), key=repr),
    )


def _some(kind: str) -> KindRow:
    """Up to two conditions of a kind, with the conditions that they build on, under keys of every type."""
    kinds = {kind: whole.WITH_TABLES[kind]}
    return KindRow(whole.definitions(most=2, kinds=kinds), whole.histories())


def _with_topic(states: Sequence[DefineState]) -> App:
    return App((ops.DeclareTopic(histories.TOPIC), *histories.REGIONS, *states))


def _number(events: Sequence[Event]) -> list[Event]:
    return [replace(event, sequence=number) for number, event in enumerate(events)]


ROWS = {
    "state": KindRow(
        histories.subscriptions(most=3).map(_with_topic),
        histories.histories(),
        _row_of("filters").expected,
        _row_of("filters").rows,
    ),
    "state, ordered": _row_of("ordered filters"),
    "state with durations": _some("Guarded"),
    "state with a table": _some("Tabled"),
    "levels": _row_of("levels"),
    "levels, all keys": _some("Levels"),
    "window": _row_of("windows"),
    "component": KindRow(fused.definitions() | towers(), fused.histories.map(_number)),
    "component, all keys": _some("Component"),
    "correlation": KindRow(
        correlated.definitions(deliveries=("", "ordered 9 s")),
        correlated.histories,
        correlated.oracle,
        correlated.as_counts,
    ),
    "relation": KindRow(
        related.definitions(deliveries=("", "ordered 9 s")),
        related.histories,
        related.oracle,
        related.as_rows,
    ),
    "count": _some("Count"),
    "overlap": _some("Intervals"),
    "fold": _some("Fold"),
    "mute": _some("Mute"),
    "several kinds": KindRow(whole.definitions(), whole.histories()),
}
"""A row without a twin is compared with the engine, whose machines the laws compare with theirs."""


# --- columns -----------------------------------------------------------------------------------------


def run_restored(app: App, events: Sequence[Event]) -> list[Notification]:
    """An engine that is stored and restored before every third event."""
    running, found = Engine(app), list[Notification]()
    for part in runtimes.in_batches_of(in_order(events), 3):
        running = Engine.restore(app, running.snapshot())
        found += [n for event in part for n in running.push(event)]
    return output(found + running.finish())


OTHER = parse("topic Unrelated (v float)\nstate Added on Unrelated [v > 1; v < 1]\n")


def run_revised(app: App, events: Sequence[Event]) -> list[Notification]:
    """An engine that gets another definition, of the same meaning, before every fifth event."""
    running, found = Engine(app), list[Notification]()
    definitions = (App((*app.statements, *OTHER.statements)), app)
    for number, part in enumerate(runtimes.in_batches_of(in_order(events), 5)):
        found += running.revise(definitions[number % 2])
        found += [n for event in part for n in running.push(event)]
    return output(found + running.finish())


def mote(app: App, events: Sequence[Event]) -> list[Notification]:
    """The subscriber's node of a network: for each condition the readings that it needs, and their time."""
    found: list[Notification] = []
    for name, operator in ScenarioDefinition(app, check(app)).operators().items():
        watch = Evaluator(operator, name)
        for event in overlays.relevant(overlays.definitions(app)[name], events):
            found += [*watch.react(event), *watch.advance(event.time)]
    return output(found)


def streaming(app: App, events: Sequence[Event]) -> list[Notification]:
    """The notifications of a query that is stopped and started between files, none of which splits a
    timestamp."""
    from support.live import Stream, in_parts

    def run(here: Any, app: App, **settings: Any) -> None:
        Stream(here.live(app, shards=3, **settings), readers=2).run()

    parts: list[list[Event]] = [[]]
    for _, instant in groupby(in_order(events), key=lambda event: event.time):
        if len(parts[-1]) > len(events) // 3:
            parts.append([])
        parts[-1] += instant
    return in_parts(app, parts, run)


COLUMNS = {
    "engine in batches": Column(runtimes.engine_in_batches),
    "snapshot and restore": Column(run_restored),
    "revision": Column(run_revised),
    "replay of files": Column(runtimes.replay),
    "Spark batch": Column(run_in_shards),
    "Spark streaming": Column(streaming),
    "overlay": Column(overlays.run_on_overlay, overlays.each_alone),
    "mote": Column(mote, overlays.each_alone),
}
"""Spark's readers and shards are called as functions, in the order in which Spark calls them."""

_TABLES = "is a file elsewhere, and cannot be read here"
NOT_SUPPORTED = {("state with a table", "overlay"): _TABLES, ("state with a table", "mote"): _TABLES}
"""The cells that cannot run, with the message that the user gets: a definition travels as text, without the
files that it names.  (A scenario of motes reads tables from its own folder: see test_motes.)"""
