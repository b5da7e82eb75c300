"""The table of machines that the laws of `tests/laws/test_machines.py` are tried on.

A new kind of machine gets all of them by a line in ``MACHINES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from operator import gt, lt
from typing import Any

from hypothesis import strategies as st

from holdfast.definition.app import App
from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.component.compile import component_group
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.levels.syntax import DefineLevels
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from holdfast.lang.condition import Checked
from holdfast.model.event import Event, Notification, Transition
from holdfast.model.instant import NEVER
from holdfast.model.qos import TIMELY
from support import (
    aligned,
    columnar,
    corrected,
    correlated,
    counted,
    folded,
    fused,
    guarded,
    histories,
    leveled,
    muted,
    naive,
    related,
)

Definition = str | App | Checked
Twin = Callable[[Any, Sequence[Event]], Any]
ToRows = Callable[[Any, Sequence[Event], Sequence[Notification]], Any]


def as_rows(definition: Definition, events: Sequence[Event], emitted: Sequence[Notification]) -> list[Any]:
    """The notifications of each subscription, in the order of arrival."""
    rows = [(n.subscription, n.scope, n.status, n.since, n.event.order) for n in emitted]
    return sorted(rows, key=lambda row: row[0])


@dataclass(frozen=True, repr=False)
class Listed:
    """A kind of machine, with everything that the laws need to try it.

    ``definitions`` are of one family, ``histories`` lists of events in the order of arrival. ``order``
    sorts transitions by the part of their order that is not guaranteed: not at all if it is guaranteed
    completely. ``twin`` computes the expected notifications of a history slowly and obviously, and
    ``rows_of`` converts notifications to the same form. ``tuned`` are constants that choose between
    implementations, by their full names, each with the values to try.
    """

    name: str
    family: str
    definitions: st.SearchStrategy[Any]
    histories: st.SearchStrategy[list[Event]]
    order: Callable[[Transition], Any]
    twin: Twin | None = None
    rows_of: ToRows = as_rows
    as_it_comes: bool = False
    """Whether readings count when they come, though the machine minds time."""
    merges: bool = False
    """Whether it takes events of several topics, which come together, by how far time had come in each."""
    consumes_conditions: bool = False
    """Whether it hears conditions, each of which speaks in turn of each of its scopes."""
    corrects: bool = False
    """Whether it takes back what it has told: then what counts is what stands."""
    tuned: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.name)  # hypothesis would print all fields


def to_checked(definition: Definition) -> Checked:
    """The definition, as compilers want it."""
    if isinstance(definition, str):
        return _parse(definition)
    return check(definition) if isinstance(definition, App) else definition


@lru_cache(maxsize=16)
def _parse(text: str) -> Checked:
    return check(parse(text))


def _one_of_each(*choices: Sequence[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw one element of each of several choices at once."""

    def choose_row(number: int) -> tuple[Any, ...]:
        row = []
        for some in choices:
            number, at = divmod(number, len(some))
            row.append(some[at])
        return tuple(row)

    return st.integers(0, prod(map(len, choices)) - 1).map(choose_row)


def _many(events: st.SearchStrategy[Event]) -> st.SearchStrategy[list[Event]]:
    """Histories in which something happens."""
    return st.lists(events, min_size=8, max_size=18)


# --- filters: predicates that often hold, over every scope and every awkward key -----------------------

_tests = st.sampled_from(
    [
        ops.Compare(sign, ops.Name(name), ops.Number(bound))
        for sign, name, bound in product((">", "<"), "an", (0.5, 1))
    ]
    + [ops.Name("flag"), ops.Compare("==", ops.Name("k"), ops.Text("x"))]
)
_exits = st.one_of(_tests, _tests, _tests, st.sampled_from([ops.Truth(True), ops.Truth(False)]))


@st.composite
def _filters(draw, deliveries):
    """Filters that share their scopes; sometimes more than a byte has bits."""
    per, scope, delivery = draw(histories.pers), draw(histories.scopes), draw(deliveries)
    count = draw(st.sampled_from((1, 2, 3, 3, 9)))
    some = [
        DefineState(f"c{i}", histories.TOPIC.name, draw(_tests), draw(_exits), per, scope, delivery)
        for i in range(count)
    ]
    return App((ops.DeclareTopic(histories.TOPIC), *histories.REGIONS, *some))


_arrivals = st.lists(
    _one_of_each(
        range(13),
        ("s1", "s1", "é"),
        (0.0, 0.0, 1.0, 2.0, 2.0, -0.0, float("inf"), float("nan"), None),
        (0, 0, 1, 2, 2, None),
        ("x", "x", "x", "y", "\x1f", "\x1e0", None),
        (True, True, False, False, None),
        (0.0, 0.0, 3.0, 6.0, 9.0, 10.5, None, "east", "nook", "nowhere"),
    ),
    min_size=8,
    max_size=18,
).map(
    lambda rows: [
        Event(
            histories.TOPIC.name,
            time,
            source,
            {"a": a, "b": None, "n": n, "k": k, "flag": flag},
            i,
            (spot,) if isinstance(spot, float) else None,
            spot if isinstance(spot, str) else None,
        )
        for i, (time, source, a, n, k, flag, spot) in enumerate(rows)
    ]
)


def _bit_by_bit(app, events):
    """The output by the definition of the papers; ordered filters process events in order of time."""
    rows = []
    for one in app.statements:
        if isinstance(one, DefineState):
            taken = events if one.delivery.wait is None else naive.in_order(events)
            for status, at, since, event in naive.run(one, histories.chain(one.per, one.scope), taken):
                scope = histories.label(one.per, one.scope, at)
                rows.append((one.name, scope, status, since, _not_before(since, event)))
    return rows


def _not_before(since, event):
    """The order of an event, which counts as if it had come with the start that it ends if it is older."""
    at, *rest = event.order
    return (at if since is None else max(at, since), *rest)


# --- levels: the same filters, of which the highest active one is emitted ------------------------------


@st.composite
def _levels(draw):
    """Draw one or two ladders over every scope."""
    some = []
    for name in draw(st.sampled_from(("L", "LM"))):
        per, scope = draw(histories.pers), draw(histories.scopes)
        delivery = draw(st.just(TIMELY) | histories.ordered)
        leave = _exits.filter(lambda op: op != ops.Truth(True))
        rungs = [
            DefineState(f"r{i}", histories.TOPIC.name, draw(_tests), draw(leave), per, scope, delivery)
            for i in range(draw(st.integers(1, 4)))
        ]
        some.append(DefineLevels(name, tuple(rungs)))
    return App((ops.DeclareTopic(histories.TOPIC), *histories.REGIONS, *some))


def _rung_by_rung(app, events):
    """After every event the highest level whose bit is set, of each scope."""
    rows = []
    for ladder in (one for one in app.statements if isinstance(one, DefineLevels)):
        first = ladder.rungs[0]
        taken = events if first.delivery.wait is None else naive.in_order(events)
        turned = {}
        for i, rung in enumerate(ladder.rungs):
            for _, at, _, event in naive.run(rung, histories.chain(rung.per, rung.scope), taken):
                scope = histories.label(rung.per, rung.scope, at)
                turned.setdefault(event.sequence, {}).setdefault(scope, []).append(i)
        held, began, since = {}, {}, {}
        for event in taken:
            for scope, rungs in turned.get(event.sequence, {}).items():
                before = held.get(scope, frozenset())
                after = before ^ frozenset(rungs)
                held[scope] = after
                low, high = (max(bits, default=-1) for bits in (before, after))
                if low == high:
                    continue
                if low < 0:
                    status, since_then = "ingress", None
                    began[scope] = event.time
                elif high < 0:
                    status, since_then = "egress", began[scope]
                else:
                    status, since_then = "raised" if high > low else "lowered", since[scope]
                since[scope] = event.time
                rows.append((ladder.name, scope, status, since_then, _not_before(since_then, event)))
    return rows


# --- components ----------------------------------------------------------------------------------------


@st.composite
def _components(draw):
    """Draw one or two components, perhaps with others above them."""
    first, second = draw(fused.definitions()), draw(st.none() | fused.definitions())
    delivery = draw(st.sampled_from(("", "", "  ordered 1 s\n", "  ordered 1 s late apply\n")))
    if second is not None:
        first += second.removeprefix(fused.TOPICS).replace("First", "Third").replace("Second", "Fourth")
    return re.sub(r"(\n  exit [^\n]*\n(?:  tick 1 s\n)?)", rf"\1{delivery}", first)


def _instant_after_instant(text, events):
    """The output of the machine that evaluates one instant after another."""
    made = to_checked(text)
    components = made.of(ComponentCondition)
    it = component_group(components, made.topics).without_plans()
    state = it.initial()
    for event in (event for event in events if event.topic in it.topics):
        state, _ = it.react(state, event)
    _, output = it.advance(state, NEVER)
    names = [one.name for one in components]
    emitted = [(names[t.condition], t.scope, t.status, t.since, t.event.order) for t in output]
    return sorted(emitted, key=lambda row: row[0])


_COLUMNS = {"holdfast.kinds.component.machine.FEW": (0, 64)}
_WINDOW = """state {name}
  A = {function} T over {width} s each location
  enter A.value {enter}
  exit A.value {leave}
"""
_WORDS = re.compile(_WINDOW.format(name="(.*)", function="(.*)", width="(.)", enter="(.*)", leave="(.*)"))
_bounds = st.sampled_from([f"{sign} {bound}" for sign in "><" for bound in (0.0, 0.5, 1.0, 2.0)])
_windows = st.lists(
    st.tuples(st.sampled_from(sorted(fused.FUNCTION)), st.integers(0, 6), _bounds, _bounds),
    min_size=1,
    max_size=3,
).map(
    lambda some: (
        "topic T (value float)\n"
        + "".join(
            _WINDOW.format(name=f"S{i}", function=function, width=width, enter=enter, leave=leave)
            for i, (function, width, enter, leave) in enumerate(some)
        )
    )
)
_in_places = st.dictionaries(
    st.tuples(st.integers(0, 24), st.sampled_from("ab")),
    st.sampled_from((-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, None)),
    min_size=8,
    max_size=18,
).map(
    lambda found: [
        Event("T", time * fused.SECOND // 2, "s", {"value": value}, i, None, place)
        for i, ((time, place), value) in enumerate(sorted(found.items()))
    ]
)


def _rolling(text, events):
    """The output of a plain rolling computation."""
    rows = [(event.time, event.place, event.attributes["value"]) for event in events]
    return [
        (name, *row)
        for name, function, width, enter, leave in _WORDS.findall(text)
        for row in fused.rolling(rows, function, int(width) * fused.SECOND, _than(enter), _than(leave))
    ]


def _than(words):
    sign, bound = words.split()
    return lambda value: {">": gt, "<": lt}[sign](value, float(bound))


def _moments(text, events, emitted):
    """The part of notifications that a rolling computation can reproduce."""
    rows = [(n.subscription, n.scope, n.status, n.event.time) for n in emitted]
    return sorted(rows, key=lambda row: row[0])


# --- correlations --------------------------------------------------------------------------------------

_WAITING = ("ordered 2 s", "ordered 2 s late apply")


@st.composite
def _correlations(draw, deliveries):
    """Correlations that share a machine, or do not."""
    delivery = draw(st.sampled_from(deliveries))
    some = draw(st.lists(correlated.correlations(deliveries=(delivery,)), min_size=1, max_size=4))
    text = correlated.TOPICS + "\n".join(f"correlate C{i} {one}" for i, one in enumerate(some))
    return text.replace("within 3 s", draw(st.sampled_from(("within 2 s", "within 3 s"))))


_agreeing = st.lists(
    _one_of_each(
        range(11),
        correlated.SENSORS,
        "TUW",
        (1.0, 1.0, 1.0, 1.0, 1.5, 2.0, -1.0, float("nan")),
        (1, 1, 1, 2, 3, None),
        ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (0.0, 1.5), (2.0,), (3.0, 3.0), None),
    ),
    min_size=12,
    max_size=20,
    unique_by=lambda row: row[:3],
).map(
    lambda rows: [
        Event(
            topic,
            time * correlated.SECOND // 2,
            source,
            {"speed": value, "gusts": gusts} if topic == "W" else {"value": value},
            i,
            at,
        )
        for i, (time, source, topic, value, gusts, at) in enumerate(sorted(rows, key=lambda row: row[:2]))
    ]
)
_PAIRS = {"holdfast.kinds.correlation.machine.FEW": (0, 2, 16)}


# --- guarded states ------------------------------------------------------------------------------------

_SINGLY = {"holdfast.kinds.state.duration.machine.FEW": (0, 2048)}


# --- corrections ---------------------------------------------------------------------------------------

_SOON = {"holdfast.engine.corrected._FEW": (0, 1024)}


# --- the table -----------------------------------------------------------------------------------------


def condition_by_condition(emitted: Transition) -> Any:
    """Sort by condition only: the order of different conditions is not guaranteed."""
    return emitted.condition


def order_of_emission(emitted: Transition) -> Any:
    """Keep the guaranteed order of one time, condition and scope, except for late events."""
    if emitted.status == "late":
        return (0, emitted.condition, emitted.event.order, emitted.event.topic)
    return (1, emitted.event.time, emitted.condition, emitted.scope or "")


def in_any_order(emitted: Transition) -> Any:
    """None of the order is promised."""
    return (emitted.condition, emitted.status, emitted.event.topic, emitted.event.order, repr(emitted.event))


MACHINES = (
    Listed("filters", "state", _filters(st.just(TIMELY)), _arrivals, condition_by_condition, _bit_by_bit),
    Listed(
        "ordered filters",
        "state",
        _filters(histories.ordered),
        _arrivals,
        condition_by_condition,
        _bit_by_bit,
    ),
    Listed(
        "corrected filters",
        "state",
        _filters(corrected.deliveries),
        _arrivals,
        condition_by_condition,
        corrected.at_last(_bit_by_bit),
        corrected.as_rows,
        corrects=True,
        tuned=_SOON,
    ),
    Listed("levels", "levels", _levels(), _arrivals, condition_by_condition, _rung_by_rung),
    Listed(
        "guarded levels",
        "levels",
        leveled.definitions(),
        _arrivals,
        order_of_emission,
        leveled.oracle,
        guarded.as_rows,
        as_it_comes=True,
        tuned=_SINGLY,
    ),
    *(
        Listed(
            name,
            "count",
            counted.definitions(per),
            counted.histories(per),
            condition_by_condition,
            counted.oracle,
            consumes_conditions=True,
        )
        for name, per in (("counts", "source"), ("counts that stay", "room, source"))
    ),
    *(
        Listed(
            name,
            "overlap",
            aligned.definitions(per),
            aligned.histories(per),
            order_of_emission,
            aligned.oracle,
            aligned.as_rows,
            merges=True,
            consumes_conditions=True,
        )
        for name, per in (("intervals", "source"), ("intervals that stay", "room, source"))
    ),
    Listed(
        "folds",
        "fold",
        folded.definitions(),
        folded.histories(),
        condition_by_condition,
        folded.oracle,
        folded.as_rows,
        consumes_conditions=True,
    ),
    Listed(
        "mutes",
        "mute",
        muted.definitions(),
        muted.histories(),
        order_of_emission,
        muted.oracle,
        muted.as_rows,
        consumes_conditions=True,
    ),
    Listed(
        "guarded states",
        "state",
        guarded.definitions(st.just(TIMELY)),
        _arrivals,
        order_of_emission,
        guarded.oracle,
        guarded.as_rows,
        as_it_comes=True,
        tuned=_SINGLY,
    ),
    Listed(
        "ordered guarded states",
        "state",
        guarded.definitions(histories.ordered, rosters=False),
        _arrivals,
        order_of_emission,
        guarded.oracle,
        guarded.as_rows,
        tuned=_SINGLY,
    ),
    Listed(
        "corrected guarded states",
        "state",
        guarded.definitions(corrected.deliveries, rosters=False, plain=True),
        _arrivals,
        order_of_emission,
        corrected.at_last(guarded.oracle),
        corrected.as_rows,
        corrects=True,
        tuned=_SINGLY | _SOON,
    ),
    Listed("components", "component", _components(), _many(fused.events), order_of_emission),
    Listed(
        "windows", "component", _windows, _in_places, order_of_emission, _rolling, _moments, tuned=_COLUMNS
    ),
    Listed(
        "components in columns",
        "component",
        columnar.definitions().filter(columnar.is_planned),
        _many(columnar.events.map(columnar.signless)),
        order_of_emission,
        _instant_after_instant,
        tuned={"holdfast.kinds.component.machine.FEW": (0,)},
    ),
    Listed(
        "components on components in columns",
        "component",
        columnar.levels().filter(columnar.is_planned),
        _many(columnar.events.map(columnar.signless)),
        order_of_emission,
        _instant_after_instant,
        tuned={"holdfast.kinds.component.machine.FEW": (0,)},
    ),
    Listed(
        "components that hosts carry in columns",
        "component",
        columnar.carried_components().filter(columnar.is_planned),
        _many((columnar.events | columnar.moves).map(columnar.signless)),
        order_of_emission,
        _instant_after_instant,
        tuned={"holdfast.kinds.component.machine.FEW": (0,)},
    ),
    Listed(
        "correlations",
        "correlation",
        _correlations(("",)),
        _agreeing,
        in_any_order,
        correlated.oracle,
        correlated.as_counts,
        tuned=_PAIRS,
    ),
    Listed(
        "ordered correlations",
        "correlation",
        _correlations(_WAITING),
        _agreeing,
        in_any_order,
        correlated.oracle,
        correlated.as_counts,
        tuned=_PAIRS,
    ),
    Listed(
        "relations",
        "relation",
        related.definitions(deliveries=("",)),
        related.histories,
        order_of_emission,
        related.oracle,
        related.as_rows,
    ),
    Listed(
        "ordered relations",
        "relation",
        related.definitions(deliveries=("ordered 2 s", "ordered 2 s late apply")),
        related.histories,
        order_of_emission,
        related.oracle,
        related.as_rows,
    ),
)
