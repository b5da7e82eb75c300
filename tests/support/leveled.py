"""Levels with durations, silence and rosters: random definitions, and a twin that computes rung by rung."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from hypothesis import assume
from hypothesis import strategies as st

from holdfast.definition.app import App
from holdfast.definition.check import check
from holdfast.kinds.levels.condition import LevelsCondition
from holdfast.kinds.levels.syntax import DefineLevels
from holdfast.kinds.state.condition import DurationCondition
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang import ops
from holdfast.model.guard import Care, Hold
from support import guarded, histories

_holds = st.one_of(
    st.just(Hold()),
    st.builds(Hold, st.integers(1, 4)),
    st.builds(lambda count: Hold(readings=count), st.integers(1, 3)),
)
_ends = st.sampled_from(((None, None), (4, None), (7, None), (None, 5)))


@st.composite
def definitions(draw):
    """Levels of up to three rungs, which may be unknown or forgotten, some of scopes that are expected."""
    per = draw(st.sampled_from(guarded.PERS))
    scope = () if per else draw(st.sampled_from(guarded.SCOPES))
    unknown, forget = draw(_ends)
    rungs = [
        DefineState(
            f"r{i}",
            histories.TOPIC.name,
            draw(guarded.predicates),
            draw(guarded.predicates),
            per,
            scope,
            care=Care(draw(_holds), draw(_holds), unknown, forget),
        )
        for i in range(draw(st.integers(1, 3)))
    ]
    app = App((ops.DeclareTopic(histories.TOPIC), *histories.REGIONS, DefineLevels("L", tuple(rungs))))
    whole = check(app)
    (one,) = whole.of(LevelsCondition)
    assume(any(isinstance(rung, DurationCondition) for rung in one.rungs))  # else events count as they come
    if per == (("source",),) and unknown is not None and draw(st.booleans()):
        one = replace(one, rungs=tuple(replace(rung, roster=(("s1",), ("z",))) for rung in one.rungs))
    return replace(whole, conditions=(one,))


def oracle(checked, events):
    """The expected notifications of a history: the highest level of each scope that is certainly on,
    unless a higher one may be."""
    (one,) = checked.of(LevelsCondition)
    taken = sorted(events, key=lambda e: e.time)
    output = [
        (cause, order, scope or "", i, scope, status)
        for i, rung in enumerate(one.rungs)
        for cause, (_, scope, status, _, order) in Caused(as_guarded(rung)).run(taken)
    ]
    forgets = any(as_guarded(rung).care.forget is not None for rung in one.rungs)
    rows, scopes = [], {}
    for (scope, order, _), some in groupby(
        _number_groups(sorted(output, key=lambda row: row[:4])), lambda row: row[0]
    ):
        words = [row[1] for row in some]
        on, unsure, level, began, since = scopes.get(scope, (frozenset(), frozenset(), 0, None, None))
        if forgets and any(status == "unknown" for _, status in words):
            scopes.pop(scope, None)
            rows += [("L", scope, "unknown", began, order)] if level else []
            continue
        was_open = _is_open(on, unsure)
        for i, status in words:
            on = on | {i} if status == "ingress" else on - {i} if status == "egress" else on
            unsure = unsure | {i} if status == "unknown" else unsure - {i}
        is_open = _is_open(on, unsure)
        now = level if is_open else max(on, default=-1) + 1
        if now != level:
            way = "ingress" if not level else "egress" if not now else "raised" if now > level else "lowered"
            rows.append(("L", scope, way, None if not level else since if now else began, order))
            began, since = began if level else order[0], order[0]
        elif is_open != was_open:
            rows.append(("L", scope, "unknown" if is_open else "known", began if level else None, order))
        scopes[scope] = (on, unsure, now, began, since)
    return sorted(rows, key=lambda row: (row[0], row[1] or "", row[4][0]))


class Caused(guarded.Twin):
    """A rung with the cause of its output: a reading, or the end of an instant."""

    cause = (0, 0, 0)

    def read(self, watched, label, event):
        self.cause = (event.time, 0, event.sequence)
        super().read(watched, label, event)

    def pass_by(self, watched, label, now, at):
        self.cause = (now, 1, 0)
        super().pass_by(watched, label, now, at)

    def tell(self, *output):
        super().tell(*output)
        self.outputs[-1] = (self.cause, self.outputs[-1])


def as_guarded(rung):
    """A rung as the twin of guarded states knows it."""
    return rung if hasattr(rung, "care") else guarded.plain(rung)


def _number_groups(output):
    """Number the groups of an output: one event and scope, from a lower rung to higher ones."""
    number, last = 0, None
    for _, order, _, i, scope, status in output:
        if last is None or last[:2] != (order, scope) or i <= last[2]:
            number += 1
        last = (order, scope, i)
        yield (scope, order, number), (i, status)


def _is_open(on, unsure):
    """Whether a level may hold above all that do for sure."""
    return bool(unsure) and max(unsure) > max(on - unsure, default=-1)
