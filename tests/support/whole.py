"""Random definitions with conditions of every kind on the same topics, and readings for them.

Keys are of every type (text, int, bool, float, places), several conditions share a topic, and readings
share timestamps, are repeated, and lack keys.
"""

from __future__ import annotations

import atexit
import json
import math
import tempfile
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from hypothesis import reject
from hypothesis import strategies as st

from holdfast import DefinitionError, Event, check, parse

SECOND = 1_000_000
TOPICS = """topic T (value float, depth float, n int, road text, wet bool)
topic U (value float, depth float, n int, road text, wet bool)
region hall = rectangle (0) (2)
region nook = rectangle (0) (1) in hall
"""
KEYS = ("source", "road", "n", "wet", "depth", "road, n", "wet, depth")

_topics = st.sampled_from("TTU")
_limits = st.sampled_from((0, 0.5, 1, 2))

# --- filters -----------------------------------------------------------------------------------------

_scopes = st.sampled_from(
    (
        "",
        *(f"per {key}" for key in KEYS),
        "per road within source",
        "per depth within n",
        "per wet within road within source",
        "scope nook within hall",
        "per n scope hall",
    )
)
_turns = st.sampled_from(
    (
        "[value > 1; value < 1]",
        "[value >= 1; depth < 1]",
        "[wet; !wet]",
        "[n >= 2; n < 1]",
        "[depth > value; depth <= value]",
        '[road == "r1"; road != "r1"]',
        "[value > 2; true]",
        "[wet && value > 0; false]",
        "[n == 1; n == 1]",
    )
)


@st.composite
def filters(draw, name, delivery=""):
    return f"state {name} on {draw(_topics)} {draw(_turns)} {draw(_scopes)} {delivery}\n"


# --- guarded states ----------------------------------------------------------------------------------

_guarded = st.sampled_from(
    (
        "[value > 1 for 1 s; value < 1]",
        "[value >= 1; value < 1 for 2 s]",
        "[wet for 2 readings; !wet || silent 2 s]",
        "[silent 1 s; !silent 1 s]",
        "[value > 0 && silent 1 s for 1 s; value < 0]",
        "[n >= 2 for 2 s; false]",
        "[value > 1; value < 1]",
    )
)
_cared = st.sampled_from(
    (
        "",
        "unknown after 2 s",
        "unknown after 1 s forget after 3 s",
        "forget after 2 s",
        "initially unknown",
        "initially on unknown after 3 s",
        "initially off quietly",
    )
)


@st.composite
def states_with_duration(draw, name, delivery=""):
    scope = draw(st.sampled_from(("", *(f"per {key}" for key in KEYS), "scope hall")))
    return f"state {name} on {draw(_topics)} {draw(_guarded)} {scope} {draw(_cared)} {delivery}\n"


# --- tables ------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def limits() -> str:
    """A table of limits on disk that lacks some rows; it is deleted when the tests end."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "limits.csv"
    path.write_text("source,high,low,wait\ns1,1,1,1 s\ns2,2,0.5,2 s\n")
    return str(path)


@st.composite
def states_with_table(draw, name, delivery=""):
    """A state whose limits, and perhaps guards, are in a table."""
    columns = "(source text, high float, low float, wait duration)"
    guard = draw(st.sampled_from(("", f" for L{name}.wait", " for 1 s")))
    turn = f"[value > L{name}.high{guard}; value < L{name}.low]"
    scope = draw(st.sampled_from(("", "per source", "per road", "per n")))
    return (
        f'table L{name} "{limits()}" {columns}\nstate {name} on {draw(_topics)} {turn} {scope} {delivery}\n'
    )


# --- components --------------------------------------------------------------------------------------

_functions = st.sampled_from(("avg", "max", "min", "sum", "count", "stddev"))


@st.composite
def queries(draw, key):
    topic = draw(_topics)
    words = draw(
        st.sampled_from(
            (
                topic,
                topic,
                f"{draw(_functions)} {topic} over {draw(st.integers(0, 4))} s",
                f"{draw(_functions)} {topic} over [-4 s, -{draw(st.integers(1, 3))} s]",
                f"{topic} at -{draw(st.integers(1, 3))} s",
            )
        )
    )
    if key == "location":
        return f"{words} each location"
    place = draw(st.sampled_from(("", "", "", "any location", "all locations", "within [0, 1]")))
    return " ".join(filter(None, (words, place, f"each {key}" if key else "")))


@st.composite
def components(draw, name, delivery=""):
    """A component, perhaps with one above it under the same key or under none."""
    key = draw(st.sampled_from((None, "location", *KEYS)))
    inputs = {own: draw(queries(key)) for own in draw(st.sampled_from(("A", "A", "AB")))}
    attribute = draw(st.sampled_from(("value", "value", "depth", "n")))
    otherwise = draw(st.sampled_from(("", "", f" else {draw(_limits)}")))
    tests = [
        f"{own}.{attribute}{otherwise} {draw(st.sampled_from(('>', '>=')))} {draw(_limits)}" for own in inputs
    ]
    guard = draw(st.sampled_from(("", "", "", " for 1 s")))
    sets = draw(st.sampled_from(("", "", " set depth = A.value", " set n = A.n")))
    leave = draw(st.sampled_from((f"A.{attribute} < {draw(_limits)}", f"A.{attribute} < 1", "true")))
    tick = draw(st.sampled_from(("", "", "  tick 1 s\n")))
    text = f"state {name}\n" + "".join(f"  {own} = {query}\n" for own, query in inputs.items())
    text += f"  enter {draw(st.sampled_from((' && ', ' || '))).join(tests)}{guard}{sets}\n"
    text += f"  exit {leave}\n{tick}  {delivery}\n"
    if draw(st.booleans()):
        apart = f" each {key}" if key and draw(st.booleans()) else ""
        starts, ends = ("atomic", "atomic") if leave == "true" else ("ingress", "egress")
        text += f"state {name}Above\n  D = {name}{apart}\n  enter D.valid && D.status == {starts}\n"
        text += f"  exit D.valid && D.status == {ends}\n  {delivery}\n"
    return text


# --- correlations ------------------------------------------------------------------------------------

_ranges = st.sampled_from(("in [0, 2]", "in (0, 2]", ">= 1", "> 0.5", "< 2", "== 1"))


@st.composite
def correlations(draw, name, delivery=""):
    measured = draw(
        st.sampled_from((("T.value", "U.value"), ("T.depth", "U.n"), ("T.value", "T.n"), ("T.n", "U.depth")))
    )
    named = draw(st.sampled_from(("", "", ' of "s1"')))
    near = "" if named else draw(st.sampled_from(("", "", ", 1 m", ", 2 m")))
    wanted = " ".join(f"{attribute}{named} {draw(_ranges)}" for attribute in measured)
    tell = draw(st.sampled_from(("events", "all", "latest", "first")))
    return f"correlate {name} within {draw(st.integers(1, 2))} s{near} {wanted} tell {tell} {delivery}\n"


# --- levels and counts -------------------------------------------------------------------------------

_ladders = st.sampled_from(
    (
        "low [value > 0; value < 0], high [value > 1; value <= 1]",
        "high [n >= 2; n < 2], low [wet; !wet]",
        "low [value > 0.5; depth < 1], high [value > 1; false], top [n == 1; n == 1]",
    )
)


@st.composite
def levels(draw, name, delivery=""):
    return f"levels {name} on {draw(_topics)}: {draw(_ladders)} {draw(_scopes)} {delivery}\n"


@st.composite
def counts(draw, name, delivery=""):
    """A count over a state, with or without guards, or over levels, perhaps with one above it."""
    below = draw(draw(st.sampled_from((filters, states_with_duration, levels)))(f"{name}Below", delivery))
    least = draw(st.integers(1, 3))
    within = draw(st.sampled_from(("", "within road", "within n", "within road, wet", "scope hall")))
    fewer = draw(st.sampled_from(("", "until fewer than 1")))
    joined = draw(st.sampled_from(("", "joined")))
    text = f"{below}state {name} = at least {least} of {name}Below {within} {fewer} {joined}\n"
    return text + (f"state {name}Above = any of {name} within road\n" if draw(st.booleans()) else "")


@st.composite
def mutes(draw, name, delivery=""):
    """A state that is muted by the clock, while another one holds, or in a storm."""
    below = draw(draw(st.sampled_from((filters, states_with_duration, counts)))(name, delivery))
    parent = draw(draw(st.sampled_from((filters, states_with_duration)))(f"{name}Parent", delivery))
    causes = (
        f'mute {name} during "00:00 – 24:00"',
        f'mute {name} during "1970-01-01 00:00 – 1970-01-01 00:01"',
        f"mute {name} while {name}Parent",
        f"mute {name} beyond 1",
        f"mute {name} beyond 1 within road",
    )
    some = draw(st.sets(st.sampled_from(causes), min_size=1, max_size=2))
    return below + parent + "\n".join(sorted(some)) + "\n"


@st.composite
def intervals(draw, name, delivery=""):
    """Conditions of several kinds that hold at once or after one another, perhaps with a count above them."""
    lasting = st.sampled_from((filters, states_with_duration, levels, counts))
    some = [draw(draw(lasting)(f"{name}{c}", delivery)) for c in "AB"]
    instant = f"filter {name}F on {draw(_topics)} where value > 0 {delivery}\n"
    a, b, f = (f"{name}{c}" for c in "ABF")
    related = draw(
        st.sampled_from(
            (
                f"{a}, {b} overlapping",
                f"{a}, {b} overlapping",
                f"{a} overlaps {b}",
                f"{a} during {b}",
                f"{f} during {b}",
                f"{a} before {b}",
                f"{f} before {a}",
                f"{a} starts {b}",
                f"{a} ends {b}",
            )
        )
    )
    within = draw(st.sampled_from(("1 s", "3 s") if "before" in related else ("", "", "2 s")))
    extents = ", ".join(filter(None, (within, draw(st.sampled_from(("", "", "2 m"))))))
    per = draw(st.sampled_from(("", "", "per road", "per n")))
    text = f"{''.join(some)}{instant}correlate {name} = {related} {extents and 'within ' + extents} {per}\n"
    return text + (f"state {name}Above = any of {name}\n" if "overlapping" in related else "")


@st.composite
def folds(draw, name, delivery=""):
    """A storm of a state, with or without guards, perhaps with a count above it."""
    below = draw(draw(st.sampled_from((filters, states_with_duration, levels)))(f"{name}Below", delivery))
    cells = draw(st.sampled_from(("scope hall", "scope nook within hall", "cells 1 m within 4 m")))
    most = draw(st.integers(1, 2))
    fewer = draw(st.sampled_from(("", "until fewer than 1")))
    text = f"{below}fold {name} = {name}Below {cells} beyond {most} {fewer}\n"
    return text + (f"state {name}Above = any of {name}\n" if draw(st.booleans()) else "")


# --- definitions -------------------------------------------------------------------------------------

KINDS = {
    "Filter": filters,
    "Guarded": states_with_duration,
    "Component": components,
    "Correlation": correlations,
    "Levels": levels,
    "Count": counts,
    "Mute": mutes,
    "Intervals": intervals,
    "Fold": folds,
}
WITH_TABLES = KINDS | {"Tabled": states_with_table}
"""An overlay has no tables: they are files elsewhere."""
DELIVERIES = ("", "", "ordered 1 s", "ordered 1 s late apply")


@st.composite
def definitions(draw, least=1, most=4, kinds=KINDS, deliveries=DELIVERIES):
    """Draw so many conditions of the given kinds."""
    text = TOPICS
    for number in range(draw(st.integers(least, most))):
        kind = draw(st.sampled_from(sorted(kinds)))
        statement = draw(kinds[kind](f"{kind}{number}", draw(st.sampled_from(deliveries))))
        text += statement if _is_right(TOPICS + statement) else ""
    if text == TOPICS:
        reject()
    return text


def _is_right(text) -> bool:
    """Whether a definition can run: not every query has every attribute."""
    try:
        check(parse(text))
    except DefinitionError:
        return False
    return True


# --- readings ----------------------------------------------------------------------------------------


def mostly(*common, rare):
    return st.sampled_from(common * 3 + rare)


_readings = st.builds(
    lambda topic, time, source, x, **attributes: Event(
        topic, time * SECOND // 2, source, attributes, 0, None if x is None else (x,)
    ),
    _topics,
    st.integers(0, 20),
    st.sampled_from(("s1", "s1", "s2", "é")),
    mostly(0.0, 1.0, 2.0, rare=(None, -0.0)),
    value=mostly(-2.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, rare=(None, math.nan, math.inf, 1e16)),
    depth=mostly(0.0, 0.5, 1.0, rare=(None, math.nan, -0.0)),
    n=mostly(0, 1, 2, 3, rare=(None, 2**53 + 1, -(2**63))),
    road=mostly("r1", "r2", rare=(None, "", "a,b")),
    wet=st.sampled_from((True, False, None)),
)


@st.composite
def histories(draw, least=0, most=20):
    """Readings in no order, numbered as they come; some come twice."""
    events = draw(st.lists(_readings, min_size=least, max_size=most))
    again = draw(st.lists(st.sampled_from(events), max_size=3)) if events else []
    return [replace(event, sequence=i) for i, event in enumerate([*events, *again])]


@st.composite
def cut(draw, events, parts=3):
    """The events in so many consecutive parts that split no timestamp."""
    moments = sorted({event.time for event in events})
    ends = sorted(draw(st.lists(st.sampled_from(moments), min_size=parts - 1, max_size=parts - 1)))
    bounds = [-math.inf, *ends, math.inf]
    return [[e for e in events if low < e.time <= high] for low, high in pairwise(bounds)]


# --- what can be seen --------------------------------------------------------------------------------


def visible(notifications):
    """All printed fields of notifications, and the numbers of their events."""
    return [json.dumps([n.to_json(), n.event.sequence], ensure_ascii=False) for n in notifications]
