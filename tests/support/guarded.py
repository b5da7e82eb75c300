"""States with minimum durations: random definitions, and a twin that examines every instant in turn."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from holdfast.definition.app import App
from holdfast.definition.check import check
from holdfast.kinds.state.condition import DurationCondition
from holdfast.kinds.state.duration.machine import LONGEST
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from holdfast.lang.rewrite import silences
from holdfast.model.event import Event
from holdfast.model.guard import Care, Hold
from holdfast.model.table import Column
from support import histories, naive

# --- definitions ---------------------------------------------------------------------------------------

_above = ops.Compare(">", ops.Name("a"), ops.Number(0.5))
_below = ops.Compare("<", ops.Name("a"), ops.Number(1))
_tests = st.sampled_from(
    (_above, _above, _below, ops.Name("flag"), ops.Compare(">", ops.Name("n"), ops.Number(1)))
)
_silent = st.integers(1, 6).map(ops.Silent)
predicates = st.one_of(
    _tests,
    _tests,
    _silent,
    _silent.map(ops.Not),
    st.builds(ops.And, _tests, _silent),
    st.builds(ops.Or, _silent, _tests),
    st.builds(ops.And, _tests, st.builds(ops.Or, _silent, _silent)),
)
TABLE = ops.DeclareTable("Waits", "waits.csv", (Column("source", "text"), Column("wait", "duration")))
WAITS = {"s1": 2, "z": 4}
_holds = st.one_of(
    st.just(Hold()),
    st.just(Hold(column="Waits.wait")),
    st.builds(Hold, st.integers(1, 5)),
    st.builds(lambda count: Hold(readings=count), st.integers(1, 3)),
)
_lengths = st.none() | st.integers(2, 8)
PERS = ((), (("source",),), (("k",),), (("n",),), (("flag", "k"),), (("place",),))
SCOPES = ((), (), (), (("hall",),), (("west", "shed"),))


_forgets = st.none() | st.none() | st.integers(3, 9)


@st.composite
def cares(draw, forget):
    unknown = draw(_lengths)
    if unknown is not None and forget is not None:
        unknown, forget = sorted((unknown, forget))
    beginning = draw(st.sampled_from(("off", "off", "on", "unknown")))
    return Care(
        draw(_holds), draw(_holds), unknown, forget, beginning, draw(st.sampled_from((False, False, True)))
    )


@st.composite
def definitions(draw, deliveries, rosters=True, plain=False):
    """Draw a few states with durations, which may share a machine, some with a roster. If ``plain``, all
    that they emit are starts and ends."""
    delivery, some = draw(deliveries), []
    per = draw(st.sampled_from(PERS))
    forget = draw(_forgets)
    for i in range(draw(st.sampled_from((1, 1, 2, 3)))):
        per = draw(st.sampled_from((per, per, *PERS)))
        scope = () if per else draw(st.sampled_from(SCOPES))
        exit = draw(st.one_of(predicates, st.just(ops.Truth(False))))
        care = draw(cares(draw(st.sampled_from((forget, forget, None)))))
        care = Care(care.enter, care.exit) if plain else care
        care = replace(care, enter=Hold(2)) if care == Care() else care
        some.append(
            DefineState(f"c{i}", histories.TOPIC.name, draw(predicates), exit, per, scope, delivery, care)
        )
    seconds = pa.table({"source": list(WAITS), "wait": [f"{length} µs" for length in WAITS.values()]})
    whole = check(
        App((ops.DeclareTopic(histories.TOPIC), *histories.REGIONS, TABLE, *some)), tables={"Waits": seconds}
    )
    oracle = {(("source",),): (("s1",), ("z",))}  # of which every reading is in a scope
    return replace(
        whole,
        conditions=tuple(
            replace(one, roster=oracle.get(one.keys, ()))
            if isinstance(one, DurationCondition) and rosters and draw(st.booleans())
            else one
            for one in whole.conditions
        ),
    )


def plain(condition):
    """A plain state, as one that has nothing to guard."""
    shared = {name: getattr(condition, name) for name in ("name", "topic", "enter", "exit", "keys", "forest")}
    return DurationCondition(**shared, delivery=condition.delivery, care=Care())


# --- the twin ------------------------------------------------------------------------------------------


@dataclass
class ScopeState:
    """A scope, as one would note it on paper."""

    on: bool
    known: bool
    decided: bool
    expected: bool = False
    reading: Event | None = None
    """The last one; a scope that is expected may have none."""
    last: int | None = None
    since: int | None = None
    held: tuple[int, Event | None] | None = None
    """Since when the watched predicate holds, and the reading with which that began."""
    count: int = 0
    pending: bool = False


@dataclass
class Twin:
    """One condition, evaluated instant by instant."""

    condition: Any
    scopes: dict[object, ScopeState] = field(default_factory=dict)
    outputs: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def care(self):
        return self.condition.care

    def new(self, **known):
        begins = self.care.initially
        return ScopeState(begins == "on", begins != "unknown", begins != "unknown", **known)

    def run(self, events):
        one = self.condition
        find = histories.chain(one.keys, tuple((r.name,) for r in one.forest.regions) if one.forest else ())
        label = {}
        for values in one.roster:
            self.scopes[values] = self.new(expected=True)
            label[values] = histories.join_values(values)
        by_time = defaultdict(list)
        for event in events:
            by_time[event.time].append(event)
        for now in range(min(by_time, default=0), max(by_time, default=-1) + 1):
            for watched in self.scopes.values():
                if watched.expected and watched.last is None:
                    watched.last = now
                    watched.since = now if watched.on else None
            for event in by_time[now]:
                if chain := find(event):
                    at = self.key(chain[-1])
                    label[at] = histories.label(one.keys, bool(one.forest), chain[-1])
                    self.scopes.setdefault(at, self.new())
                    self.read(self.scopes[at], label[at], event)
            for at, watched in list(self.scopes.items()):
                if watched.last is not None:
                    self.pass_by(watched, label[at], now, at)
        return self.outputs

    def key(self, outermost):
        if not self.condition.roster:
            return outermost
        (values,) = outermost
        return tuple(histories.text(value) for _, value in values)

    def holds(self, op, watched, now_silent):
        """Whether a predicate is true of the last reading, given how long it was ago."""
        match op:
            case ops.Silent(length):
                return now_silent >= length
            case ops.Not(ops.Silent(length)):
                return now_silent < length
            case ops.And(left, right):
                return self.holds(left, watched, now_silent) and self.holds(right, watched, now_silent)
            case ops.Or(left, right):
                return self.holds(left, watched, now_silent) or self.holds(right, watched, now_silent)
        return naive.truth(op, watched.reading or naive.NOTHING) is True

    def watching(self, watched):
        one = self.condition
        return (one.exit, self.care.exit) if watched.on else (one.enter, self.care.enter)

    def length(self, hold, watched):
        """The required duration by the table row of the last reading."""
        if hold.column is None:
            return hold.length
        return WAITS.get(watched.reading.source, LONGEST) if watched.reading else 0

    def tell(self, label, status, at, since, event):
        source = (event.source, event.sequence) if event else (label or "", -1)
        self.outputs.append((self.condition.name, label, status, since, (at, *source)))

    def turn(self, watched, label, at, event):
        _, hold = self.watching(watched)
        began = watched.held[0] if self.length(hold, watched) or hold.readings else None
        if not watched.pending:
            status, since = ("egress", watched.since) if watched.on else ("ingress", began)
            self.tell(label, status, at, since, event)
        watched.on, watched.since = not watched.on, None if watched.on else at
        if not watched.decided:
            watched.decided = True
            watched.known = self.care.unknown is None or at - watched.last <= self.care.unknown
        self.interrupt(watched)

    def interrupt(self, watched):
        watched.held, watched.count, watched.pending = None, 0, False

    def read(self, watched, label, event):
        first, now = watched.reading is None, event.time
        watched.reading, watched.last = event, now
        if watched.on and watched.since is None:
            watched.since = now
        predicate, hold = self.watching(watched)
        turned = False
        if self.holds(predicate, watched, -1):
            if watched.held is None:
                watched.held = (now, event)
                watched.pending = first and self.care.quietly
            watched.count += 1
            if hold.readings:
                turned = watched.count >= hold.readings
                teller = event
            else:
                turned = now - watched.held[0] >= self.length(hold, watched)
                teller = watched.held[1]
            known = watched.known
            if turned:
                self.turn(watched, label, now, teller)
                watched.known = True
                if known:
                    return
        else:
            self.interrupt(watched)
        if not turned and not watched.known:
            if not watched.decided and not self.holds(self.condition.exit, watched, -1):
                return
            watched.known = watched.decided = True
            if not (first and self.care.quietly):
                self.tell(label, "known", now, watched.since, event)

    def pass_by(self, watched, label, now, at):
        """Time has come beyond an instant."""
        silent = now - watched.last
        if silent in {*silences(self.condition.enter), *silences(self.condition.exit)}:
            predicate, hold = self.watching(watched)
            if not self.holds(predicate, watched, silent):
                self.interrupt(watched)
            elif watched.held is None:
                watched.held = (now, watched.reading)
                if not self.length(hold, watched) and not hold.readings:
                    self.turn(watched, label, now, watched.reading)
        _, hold = self.watching(watched)
        if watched.held and not hold.readings and now - watched.held[0] >= self.length(hold, watched):
            self.turn(watched, label, now, watched.held[1])
        if silent == self.care.unknown and watched.known:
            watched.known, watched.pending = False, False
            self.tell(label, "unknown", now, watched.since, watched.reading)
            if watched.held and watched.held[0] <= watched.last:
                self.interrupt(watched)
        if silent == self.care.forget and not watched.expected:
            if watched.on and watched.known:
                self.tell(label, "unknown", now, watched.since, watched.reading)
            del self.scopes[at]


def oracle(checked, events):
    """The expected notifications of a history."""
    rows = []
    for one in checked.of(DurationCondition):
        timely = one.delivery.wait is None
        taken = sorted(events, key=lambda e: e.time) if timely else naive.in_order(events)
        rows += Twin(one).run(taken)
    return sorted(rows, key=_order)


def as_rows(_checked, _events, emitted):
    """The notifications of each scope, in the order of emission."""
    return sorted(((n.subscription, n.scope, n.status, n.since, n.event.order) for n in emitted), key=_order)


def _order(row):
    subscription, scope, _, _, (time, *_) = row
    return (subscription, scope or "", time)
