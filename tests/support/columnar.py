"""Random components that have columnar plans, histories that are hard on them, and both ways to run."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.engine.machine import compact_part, transitions
from holdfast.errors import DefinitionError
from holdfast.kinds.component.compile import component_group
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.model.event import Event
from support.fused import SECOND, batches, visible

TOPICS = (
    "topic T (value float, n int, road text, wet bool)\ntopic U (value float, n int, road text, wet bool)\n"
)
KEYS = ("location", "source", "road", "road, n", "place", "location, road", "x", "y, road", None)
FUNCTIONS = ("avg", "max", "min", "sum", "count", "stddev", "(max value, avg n)", "(stddev n, min value)")

_limits = st.sampled_from((-1, 0, 0.5, 1, 2, 3))
_folds = st.sampled_from(FUNCTIONS)
_guards = st.sampled_from(("", "", "", " for 1 s", " for 2500 ms"))


@st.composite
def queries(draw, topic, key):
    function = draw(st.sampled_from(FUNCTIONS))
    words = draw(
        st.sampled_from(
            (
                topic,
                topic,
                f"{topic} at -{draw(st.integers(1, 3))} s",
                f"{function} {topic} over {draw(st.integers(0, 4))} s",
                f"{function} {topic} over {draw(st.integers(0, 4))} s",
                f"{function} {topic} over [-4 s, -{draw(st.integers(1, 3))} s]",
                f"{function} {topic} ever",
            )
        )
    )
    places = ("", "", "", " within [0, 1]", ' among ("north", 0)')
    together = draw(st.sampled_from(("",) * 6 + (" whatever status", f" {draw(_folds)} status")))
    if key is not None and "location" in key:
        rest = key.removeprefix("location, ")
        where = f" each location{draw(st.sampled_from(places))}"
        return words + where + (f" each {rest}" if rest != key else "") + together
    several = (" any location", " one location", " all locations", ' all locations of ("north", 0)')
    several += (" closest to (1)", ' closest to "north"', " closest to (1, 2)", " closest to here")
    folded = (
        f" {draw(_folds)} location",
        f" {draw(_folds)} location",
        f" {draw(_folds)} location within [0, 1]",
    )
    where = draw(st.sampled_from(places + several + folded))
    return words + where + (f" each {key}" if key else "") + together


def is_merged(query):
    """Whether a query makes one of several readings, so that it shows no texts."""
    return re.search(r" over | ever\b|(max|min|avg|sum|count|stddev|\)) (location|status)", query) is not None


@st.composite
def tests(draw, name, *, merged):
    """Draw a comparison that the attributes of a query allow, perhaps with a default for missing values."""
    number, whole, word, truth = (
        draw(st.sampled_from(("", "", *(f" else {default}" for default in some))))
        for some in ((0.5, 2), (0, 3), ('"r1"', '"r2"'), ("true", "false"))
    )
    plain = [
        f"{name}.value{number} {draw(st.sampled_from(('>', '>=', '<', '!=')))} {draw(_limits)}",
        f"{name}.n{whole} > {draw(st.integers(-1, 3))}",
        f"{name}.value{number} * 2 - {name}.n{whole} < {draw(_limits)}",
        f"|{name}.value{number} - 1| <= {draw(_limits)}",
        f"{name}.count{whole} >= {draw(st.integers(1, 3))}",
    ]
    single = [
        f'{name}.road{word} == "r1"',
        f"!({name}.wet{truth})",
        f"{name}.valid{truth}",
        f"{name}.n * {name}.n - 1 > 2",
        f"{name}.value / {name}.n > 1",
        f"{name}.valid",
        f"{name}.time <= now - 1 s",
        f'{name}.source == "s1"',
    ]
    return draw(st.sampled_from(plain if merged else plain + single))


@st.composite
def predicates(draw, inputs, names):
    """A predicate over some of the queries, maybe with a guard."""
    some = [name for name in names for _ in range(draw(st.integers(0, 2)))] or [draw(st.sampled_from(names))]
    parts = [f"({draw(tests(name, merged=is_merged(inputs[name])))})" for name in some]
    text = draw(st.sampled_from((" || ", " || ", " && "))).join(parts)
    memory = draw(st.sampled_from(("",) * 6 + (" && last.time <= now - 1 s", ' && last.source == "s1"')))
    whole = f"({text}){memory}"
    return whole + draw(_guards)


@st.composite
def definitions(draw, keys=KEYS):
    """A component over one to three queries."""
    key = draw(st.sampled_from(keys))
    names = draw(st.sampled_from(("A", "A", "AB", "ABC")))
    inputs = {name: draw(queries(draw(st.sampled_from("TTU")), key)) for name in names}
    enter = draw(predicates(inputs, names))
    leave = draw(st.sampled_from(("true", "false", "", "", "", "", "")))
    leave = leave or draw(predicates(inputs, draw(st.sampled_from((names, names[-1:])))))
    sets = draw(
        st.sampled_from(
            (
                "",
                "",
                " set level = A.value",
                f" set level = 2 * {names[-1]}.value else 1",
                f" set seen = {names[-1]}.count else 0",
                *([] if is_merged(inputs[names[-1]]) else [f' set street = {names[-1]}.road else "r0"']),
                " set time = now + 1 s",
                " set spot = A.x, seen = A.count",
            )
        )
    )
    tick = draw(st.sampled_from(("", "", "", "  tick 1 s\n", "  tick 700 ms\n")))
    delivery = draw(st.sampled_from(("", "", "  ordered 1 s\n", "  ordered 1 s late apply\n")))
    collide = draw(st.sampled_from(("", "", "", "collide max\n", "collide sum\n", "collide count\n")))
    lines = "".join(f"  {name} = {query}\n" for name, query in inputs.items())
    here = "  here (1, 2)\n" if "here" in lines else ""
    rules = f"  enter {enter}{sets}\n  exit {leave}\n"
    return f"{TOPICS}{collide}state First\n{lines}{rules}{tick}{delivery}{here}"


@st.composite
def emitting_components(draw):
    """Draw a component whose events are computed in columns: nothing waits, and no term needs missing
    values."""
    key = draw(st.sampled_from((*KEYS, None)))
    names = draw(st.sampled_from(("A", "A", "AB")))
    lines = "".join(f"  {name} = {draw(queries(draw(st.sampled_from('TTU')), key))}\n" for name in names)
    default = st.sampled_from(("", "", " else 0.5", " else 2"))
    some = [f"{n}.value{draw(default)} {sign} {draw(_limits)}" for n in names for sign in ("<", ">", "!=")]
    some += [f"{n}.count{draw(st.sampled_from(('', ' else 0')))} >= 1" for n in names]
    predicates = st.lists(st.sampled_from(some), min_size=1, max_size=2)
    enter, leave = (draw(st.sampled_from((" && ", " || "))).join(draw(predicates)) for _ in range(2))
    leave = draw(st.sampled_from((leave, leave, "true", "false")))
    sets = (f" set level = 2 * {names[-1]}.value{draw(default)}", f" set seen = {names[-1]}.count else 0")
    sets = draw(st.sampled_from(("", *sets)))
    collide = draw(st.sampled_from(("", "", "collide max\n", "collide count\n")))
    here = "  here (1, 2)\n" if "here" in lines else ""
    return f"{TOPICS}{collide}state First\n{lines}  enter {enter}{sets}\n  exit {leave}\n{here}"


@st.composite
def beside(draw):
    """A component over queries of which some keep nothing apart; not all of its rules look at all of them."""
    key = draw(st.sampled_from([key for key in KEYS if key]))
    names = draw(st.sampled_from(("AB", "AB", "ABC")))
    keys = dict(zip(names, (key, None, draw(st.sampled_from((key, None)))), strict=False))
    inputs = {}
    for name, topic in zip(names, draw(st.permutations("TUT")), strict=False):
        apart = f" each {keys[name]}" if keys[name] else ""
        plain = st.sampled_from((f"{topic}{apart}", f"{topic}{apart}", f"max {topic} over 1 s{apart}"))
        inputs[name] = draw(plain | plain | queries(topic, keys[name]))
    default = st.sampled_from(("",) * 6 + (" else 0.5",))
    some = [f"{n}.value{draw(default)} {sign} {draw(_limits)}" for n in names for sign in ("<", ">", "!=")]
    some += [f"{n}.count >= {draw(st.integers(1, 2))}" for n in names]
    some += ["A.value < B.value", "A.valid", "A.value < 1 && B.value > 0", "A.value > 1 || B.value > 1"]
    some = [text for text in some if "valid" not in text or not is_merged(inputs["A"])]
    predicates = st.lists(st.sampled_from(some), min_size=1, max_size=3)
    enter, leave = (draw(st.sampled_from((" && ", " || "))).join(draw(predicates)) for _ in range(2))
    leave = draw(st.sampled_from((leave, leave, leave, "true", "false")))
    sets = draw(st.sampled_from(("", "", f" set level = 2 * {names[-1]}.value", " set time = now + 1 s")))
    lines = "".join(f"  {name} = {query}\n" for name, query in inputs.items())
    here = "  here (1, 2)\n" if "here" in lines else ""
    return f"{TOPICS}state First\n{lines}  enter {enter}{sets}\n  exit {leave}\n{here}"


@st.composite
def several(draw):
    """A component over several topics, each by itself or as one; it may look at one of them, too."""
    key = draw(st.sampled_from(("location", "source", "road", None, None)))
    apart = f" each {key}" if key else ""
    function = draw(_folds)
    times = ("", "", "", " at -1 s", " over 2 s", " over [-4 s, -1 s]")
    inputs = {}
    for name in draw(st.sampled_from(("A", "A", "AB"))):
        time = draw(st.sampled_from(times))
        over = f"{draw(_folds)} " if "over" in time else ""
        topics = draw(
            st.sampled_from(("any of (T, U)", "one of (T, U)", "all of (U, T)", f"{function} of (T, U)", "T"))
        )
        inputs[name] = f"{over}{topics}{time}{apart}"
    default = st.sampled_from(("", "", "", " else 0.5", " else 2"))
    some = [f"{n}.value{draw(default)} {sign} {draw(_limits)}" for n in inputs for sign in ("<", ">", "!=")]
    some += [f"{n}.count >= {draw(st.integers(1, 3))}" for n in inputs]
    some += [f"{n}.n > 0" for n in inputs]
    some += [f"{n}.{what}" for n in inputs for what in ("valid", 'source == "s1"', 'topic == "T"')]
    predicates = st.lists(st.sampled_from(some), min_size=1, max_size=3)
    enter, leave = (draw(st.sampled_from((" && ", " || "))).join(draw(predicates)) for _ in range(2))
    leave = draw(st.sampled_from((leave, leave, leave, "true", "false")))
    sets = draw(st.sampled_from(("", "", " set level = 2 * A.value", " set seen = A.count else 0")))
    tick = draw(st.sampled_from(("", "", "", "  tick 1 s\n")))
    delivery = draw(st.sampled_from(("", "", "  ordered 1 s\n", "  ordered 1 s late apply\n")))
    lines = "".join(f"  {name} = {query}\n" for name, query in inputs.items())
    collide = draw(st.sampled_from(("", "", "collide max\n", "collide count\n")))
    rules = f"  enter ({enter}){draw(_guards)}{sets}\n  exit {leave}\n"
    return f"{TOPICS}{collide}state First\n{lines}{rules}{tick}{delivery}"


@st.composite
def levels(draw):
    """A component above another; it may look at readings, too."""
    below = draw(definitions() | emitting_components())
    key = draw(st.sampled_from(("location", "location", "source", "place", "road", None)))
    places = ("", "", " any location", " closest to (1)", " sum location", f" {draw(_folds)} location")
    apart = f" each {key}" if key else draw(st.sampled_from(places))
    time = draw(st.sampled_from(("", "", "", "", " at -1 s", " over 2 s", " over [-4 s, -1 s]", " ever")))
    function = draw(st.sampled_from(("count ", "avg ", "max "))) if time[1:2] in "oe" and time else ""
    status = draw(st.sampled_from(("", "", "", "ingress ", "egress ")))
    together = "" if status else draw(st.sampled_from(("", " whatever status", f" {draw(_folds)} status")))
    inputs = {"D": f"{function}{status}First{time}{apart}{together}"}
    if draw(st.booleans()):
        inputs["E"] = draw(queries("T", key))
    tests = ["D.status == ingress", "D.value > 0.5", "D.n <= 1", "D.value != 1", "D.count >= 1"]
    tests += ["D.value else 2 > 1", "D.status else egress == egress"]
    tests += [] if function else ["D.valid", "D.valid && D.status == egress", "!D.valid", "D.valid else true"]
    tests += ["E.value > 0", "E.value < 2", "E.value else 1 < 2"] if "E" in inputs else []
    some = st.lists(st.sampled_from(tests), min_size=1, max_size=3)
    enter, leave = (draw(st.sampled_from((" && ", " || "))).join(draw(some)) for _ in range(2))
    leave = draw(st.sampled_from((leave, leave, leave, "true", "false")))
    sets = (
        " set level = D.value",
        " set seen = D.count, twice = 2 * D.value - 1",
        " set far = |1 - D.value|",
    )
    sets = draw(st.sampled_from(("", "", *sets)))
    lines = "".join(f"  {name} = {query}\n" for name, query in inputs.items())
    return f"{below}state Second\n{lines}  enter ({enter}){draw(_guards)}{sets}\n  exit {leave}\n"


@st.composite
def carried_components(draw):
    """A component that sources of a topic carry with them."""
    place = draw(
        st.sampled_from(
            (
                " within 1 m of here",
                " any location within 1 m of here",
                " all locations within 1 m of here",
                " one location within 1 m of here",
                " any location within 1 m of here + (1)",
                " closest to here",
                "",
                " each location",
                " any location",
                " each road",
            )
        )
    )
    time = "" if "here" in place else draw(st.sampled_from(("", "", " at -1 s", " over 2 s")))
    function = "avg " if time == " over 2 s" else ""
    apart = draw(st.sampled_from(("", "", " each road"))) if "here" in place else ""
    inputs = {"A": f"{function}T{time}{place}{apart}"}
    if draw(st.booleans()):
        inputs["B"] = f"U{place}" if place.startswith(" each") else f"U{apart}"
    names = "".join(inputs)
    some = [f"{name}.value {sign} {limit}" for name in names for sign in "<>" for limit in (0, 1)]
    if not function:
        some += ["|A.location - here| <= 1", "|A.location - here| > 1", "A.valid", 'A.source == "s1"']
    predicates = st.lists(st.sampled_from(some), min_size=1, max_size=2)
    enter, leave = (draw(st.sampled_from((" && ", " || "))).join(draw(predicates)) for _ in range(2))
    leave = draw(st.sampled_from((leave, leave, "true", "false")))
    guard = draw(st.sampled_from(("", "", " for 1 s")))
    sets = draw(st.sampled_from(("", "", " set level = 2 * A.value")))
    tick = draw(st.sampled_from(("", "", "", "  tick 1 s\n")))
    lines = "".join(f"  {name} = {query}\n" for name, query in inputs.items())
    host = draw(st.sampled_from("VVVU"))
    topics = TOPICS + "topic V ()\n"
    return (
        f"{topics}state First\n{lines}  enter ({enter}){guard}{sets}\n  exit {leave}\n{tick}  here {host}\n"
    )


def mostly(*common, rare):
    return st.sampled_from(common * 4 + rare)


events = st.builds(
    lambda topic, time, source, value, n, road, wet, spot: Event(
        topic,
        time * SECOND // 2,
        source,
        {"value": value, "n": n, "road": road, "wet": wet},
        0,
        spot if isinstance(spot, tuple) else None,
        spot if isinstance(spot, str) else None,
    ),
    st.sampled_from("TTU"),
    st.integers(0, 16),
    st.sampled_from(("s1", "s1", "s2")),
    mostly(-2.0, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, rare=(1e16, -0.0, math.inf, -math.inf, 1e308, None, None)),
    mostly(0, 1, 2, 3, -1, rare=(2**53 + 1, -(2**63), None, None)),
    mostly("r1", "r1", "r2", rare=(None,)),
    st.sampled_from((True, False, None)),
    mostly((0.0,), (0.0,), (1.0,), "north", rare=((-0.0,), (1.0, 2.0), "0.0", None)),
)
moves = st.builds(
    lambda time, source, spot: Event(
        "V",
        time * SECOND // 2,
        source,
        {},
        0,
        spot if isinstance(spot, tuple) else None,
        spot if isinstance(spot, str) else None,
    ),
    st.integers(0, 16),
    st.sampled_from(("v1", "v1", "v2")),
    mostly((0.0,), (1.0,), (2.0,), "north", rare=((1.0, 2.0), None)),
)
journeys = st.lists(events | moves, max_size=18) | st.lists(events | moves | moves, min_size=8, max_size=18)
histories = st.lists(events, max_size=18) | st.lists(events, min_size=8, max_size=18)


def signless(event):
    """The event with 0 in place of -0, because it is not defined which of the two represents a place."""
    return (
        event if event.location is None else replace(event, location=tuple(c + 0.0 for c in event.location))
    )


def both(text):
    """The machine as it runs, in columns where it can, and the reference machine."""
    checked = check(parse(text))
    it = component_group(checked.of(ComponentCondition), checked.topics)
    return it, it.without_plans()


def is_planned(text):
    """Whether the last component of a definition, if it is one, runs in columns."""
    try:
        return both(text)[0].plans[-1] is not None
    except DefinitionError:
        return False


def step_visibly(it, state, some, until, *, reduced=False):
    """The state after a batch of events, and the visible part of its output."""
    whole = batches(it, some)
    state, out = it.step(state, compact_part(it, whole) if reduced else whole, until)
    return state, visible(transitions(it.topics, out))


def instances(it, state):
    """The stored latest values and the active instances of every key."""
    known = [
        {id: (one.since, one.pending, repr(one.last)) for id, one in own.instances.items()}
        for own in state.components
    ]
    return known, sorted(it.active(state), key=repr)
