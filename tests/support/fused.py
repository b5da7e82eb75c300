"""Random components that run, histories for them, and a slow obvious twin for windows."""

from __future__ import annotations

import math
from collections import defaultdict

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.component.compile import component_group
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.plan import operators
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.instant import NEVER

SECOND = 1_000_000
TOPICS = "topic T (value float, road text)\ntopic U (value float, road text)\n"
KEYS = ("location", "source", "road")

# --- definitions -------------------------------------------------------------------------------

_functions = st.sampled_from(("avg", "max", "min", "sum", "count", "stddev"))
_signs = st.sampled_from((">", ">=", "<"))
_limits = st.sampled_from((0, 0.5, 1, 2))


@st.composite
def queries(draw, topic, key):
    """A query of a topic that keeps a key apart, or nothing."""
    window = draw(st.sampled_from(("", "", "window", "lagging", "ago", "ever")))
    words = {
        "": topic,
        "window": f"{draw(_functions)} {topic} over {draw(st.integers(0, 4))} s",
        "lagging": f"{draw(_functions)} {topic} over [-4 s, -{draw(st.integers(1, 3))} s]",
        "ever": f"{draw(_functions)} {topic} ever",
        "ago": f"{topic} at -{draw(st.integers(1, 3))} s",
    }[window]
    if key == "location":
        return f"{words} each location" + draw(st.sampled_from(("", "", " within [0, 1]")))
    place = draw(
        st.sampled_from(
            (
                "",
                "",
                "",
                "any location",
                "all locations",
                "one location",
                "within [0, 1]",
                "closest to (1)",
                "max location",
            )
        )
    )
    return " ".join(filter(None, (words, place, f"each {key}" if key else "")))


@st.composite
def predicates(draw, names):
    """A predicate over some of the queries."""
    default = st.sampled_from(("", "", "", " else 0.5", " else 2"))
    tests = [f"{name}.value{draw(default)} {draw(_signs)} {draw(_limits)}" for name in names]
    return draw(st.sampled_from((" || ", " && ", " || "))).join(tests)


@st.composite
def definitions(draw, key=None, keyed=False):
    """A component over one or two topics, perhaps with another above it."""
    key = (
        draw(st.sampled_from(KEYS)) if keyed else draw(st.sampled_from((None, *KEYS))) if key is None else key
    )
    names = draw(st.sampled_from((("A",), ("A",), ("A", "B"))))
    topics = draw(st.sampled_from(("TT", "TU", "UT")))
    inputs = [f"  {n} = {draw(queries(t, key))}" for n, t in zip(names, topics, strict=False)]
    guard = draw(st.sampled_from(("", "", "", " for 1 s", " for 2 s")))
    sets = draw(st.sampled_from(("", " set level = A.value")))
    momentary = draw(st.sampled_from((False, False, True)))
    exit = "true" if momentary else draw(predicates(draw(st.sampled_from((names, names[-1:])))))
    memory = draw(st.sampled_from(("", "", " && last.time <= now - 1 s")))
    tick = draw(st.sampled_from(("", "", "  tick 1 s\n")))
    text = TOPICS + "state First\n" + "\n".join(inputs)
    text += f"\n  enter ({draw(predicates(names))}){memory}{guard}{sets}\n  exit {exit}\n{tick}"
    if draw(st.booleans()):
        apart = f" each {key}" if key else ""
        test = "true" if momentary else "D.status == ingress"
        leave = "true" if momentary else "D.valid && D.status == egress"
        whatever = draw(st.sampled_from(("", "", " whatever status")))
        text += f"state Second\n  D = First{apart}{whatever}\n  enter D.valid && {test}\n  exit {leave}\n"
    return text


# --- histories ---------------------------------------------------------------------------------

values = st.sampled_from((-2.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, None))
events = st.builds(
    lambda topic, time, source, value, road, x: Event(
        topic, time * SECOND // 2, source, {"value": value, "road": road}, 0, None if x is None else (x,)
    ),
    st.sampled_from("TTU"),
    st.integers(0, 20),
    st.sampled_from(("s1", "s1", "s2")),
    values,
    st.sampled_from(("r1", "r1", "r2", None)),
    st.sampled_from((0.0, 0.0, 1.0, 2.0, None)),
)
histories = st.lists(events, max_size=14) | st.lists(events, min_size=6, max_size=16)


def machine(text):
    checked = check(parse(text))
    return component_group(checked.of(ComponentCondition), checked.topics)


def batches(machine, some):
    """One batch for each input topic of the machine."""
    return {
        name: from_events(topic, [event for event in some if event.topic == name])
        for name, topic in machine.topics.items()
    }


def visible(transitions):
    """The visible part of transitions."""
    return [(t.condition, t.scope, t.status, t.since, repr(t.event)) for t in transitions]


def relevant_events(machine, some):
    """The events that the machine listens to."""
    return [event for event in some if event.topic in machine.topics]


# --- a slow obvious twin -----------------------------------------------------------------------

FUNCTION = {
    "avg": lambda v: math.fsum(v) / len(v),
    "max": max,
    "min": min,
    "sum": math.fsum,
    "count": len,
    "stddev": lambda v: (
        math.sqrt(math.fsum((x - math.fsum(v) / len(v)) ** 2 for x in v) / (len(v) - 1))
        if len(v) > 1
        else None
    ),
}


def rolling(readings, function, width, enter, leave):
    """(key, status, time) of a window of one topic: ``readings`` are (time, key, value), one for each time
    and key, evaluated when one arrives and just after it has left."""
    by_key = defaultdict(list)
    for time, key, value in readings:
        by_key[key].append((time, value))
    out = []
    for key, mine in by_key.items():
        holds = False
        end = max(time for time, _, _ in readings)
        instants = sorted({t for t, _ in mine} | {t + width + 1 for t, _ in mine if t + width + 1 <= end})
        for now in instants:
            inside = [value for time, value in mine if now - width <= time <= now]
            known = [value for value in inside if value is not None]
            found = FUNCTION[function](known) if known or (function == "count" and inside) else None
            if found is not None and (leave if holds else enter)(found):
                holds = not holds
                out.append((key, "ingress" if holds else "egress", now))
    return sorted(out, key=lambda row: (row[2], row[0]))


# --- stories -----------------------------------------------------------------------------------


def reading(seconds, topic, where=None, value=None, source="s", **attributes):
    """An event at so many seconds, at a coordinate, a point or a place."""
    at = (float(where),) if isinstance(where, (int, float)) else where if isinstance(where, tuple) else None
    known = {**({} if value is None else {"value": value}), **attributes}
    place = where if isinstance(where, str) else None
    return Event(topic, round(seconds * SECOND), source, known, 0, at, place)


def run_components(text, readings, until=NEVER):
    """The output of the components of a definition for readings: (name, scope, status, seconds)."""
    checked = check(parse(text))
    (it,) = operators(checked.of(ComponentCondition), checked.topics)
    state = it.machine.initial()
    for event in readings:
        state, _ = it.machine.react(state, event)
    _, out = it.machine.advance(state, until)
    return [(n.subscription, n.scope, n.status, n.event.time / SECOND) for n in it.address(out)]


def marks(text, readings, name=None, until=NEVER):
    """The output of one component, as (status, seconds)."""
    return [(status, at) for n, _, status, at in run_components(text, readings, until) if name in (None, n)]
