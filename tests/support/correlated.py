"""Random correlations that run, histories for them, and what they mean by trying every combination."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.correlation.condition import CorrelationCondition
from holdfast.kinds.correlation.plan import operators
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.instant import show_instant
from support.naive_correlate import complex_events

SECOND = 1_000_000
TOPICS = """topic T (value float)
topic U (value float, place_ text)
topic W (speed float, gusts int)
region R = rectangle (0, 0) (3, 3)
"""
ATTRIBUTES = ("T", "U.value", "speed", "gusts")
SENSORS = ("s1", "s2", "s3")

# --- definitions -------------------------------------------------------------------------------

_ranges = st.sampled_from(("in [0, 2]", "in (0, 2]", "in [1, 3)", ">= 1", "> 0.5", "< 2", "== 1", "<= 3"))


@st.composite
def correlations(draw, emits=("events", "events", "events", "all", "latest", "first"), deliveries=("",)):
    """Draw one correlation without its name."""
    attributes = draw(st.lists(st.sampled_from(ATTRIBUTES), min_size=2, max_size=3, unique=True))
    identified = draw(st.integers(0, 3)) == 0
    filters = [
        f'{attribute} of "{draw(st.sampled_from(SENSORS))}" {draw(_ranges)}'
        if identified
        else f"{attribute} {draw(_ranges)}"
        for attribute in attributes
    ]
    near = "" if identified else draw(st.sampled_from(("", "", ", 2 m", ", 1.5 m", ", 4 m")))
    region = "" if identified else draw(st.sampled_from(("", "", " in region R", " in circle (0, 0) 2")))
    tell = f"tell {draw(st.sampled_from(emits))}"
    within = draw(st.sampled_from(("2 s", "3 s")))
    return f"within {within}{near}{region} {' '.join(filters)} {tell} {draw(st.sampled_from(deliveries))}"


@st.composite
def definitions(draw, **options):
    """Draw correlations, which may be equal except for their names."""
    some = draw(st.lists(correlations(**options), min_size=1, max_size=3))
    return TOPICS + "\n".join(f"correlate C{i} {one}" for i, one in enumerate(some))


# --- histories ---------------------------------------------------------------------------------

_values = st.sampled_from((1.0, 1.0, 1.0, 1.5, 1.5, 0.5, 0.0, 2.0, 3.0, -1.0, None, float("nan")))
_sides = st.sampled_from((1.0, 1.0, 0.0, 0.5, 2.0, 3.0, -1.0))
_places = st.sampled_from((2, 2, 2, 2, 2, 1, 0)).flatmap(
    lambda axes: st.tuples(*[_sides] * axes).map(lambda point: point or None)
)


@st.composite
def _events(draw):
    topic = draw(st.sampled_from("TUW"))
    values = {"T": ("value",), "U": ("value",), "W": ("speed", "gusts")}[topic]
    attributes = {name: draw(_values) for name in values}
    if topic == "W":
        attributes["gusts"] = draw(st.sampled_from((1, 1, 1, 2, 0, -1, 3, None)))
    time = draw(st.integers(0, 14)) * SECOND // 2
    return Event(topic, time, draw(st.sampled_from(SENSORS)), attributes, 0, draw(_places))


histories = st.lists(_events(), min_size=6, max_size=16, unique_by=lambda e: (e.topic, e.time, e.source)).map(
    lambda events: sorted(
        (Event(e.topic, e.time, e.source, e.attributes, i, e.location) for i, e in enumerate(events)),
        key=lambda event: event.order,
    )
)


# --- running -----------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def check_text(text):
    """The correlations of a definition, by name."""
    return {one.name: one for one in check(parse(text)).of(CorrelationCondition)}


@lru_cache(maxsize=16)
def running(text):
    """The operators of a definition."""
    return operators(check_text(text).values())


def batches(topics, events):
    found = {}
    for name, topic in topics.items():
        if mine := [event for event in events if event.topic == name]:
            found[name] = from_events(topic, mine)
    return found


# --- what they mean ----------------------------------------------------------------------------


def candidates(correlated, events):
    """The events that match each filter: (time, point, event)."""
    found = []
    for (topic, attribute), one in zip(correlated.measured, correlated.correlation.filters, strict=True):
        mine = []
        for event in events:
            value = event.attributes.get(attribute)
            if event.topic != topic.name or value is None or not one.low <= value <= one.high:
                continue
            if one.sensor not in (None, event.source) or not _lies_in(correlated, event):
                continue
            mine.append((event.time, event.location or (), event.sequence))
        found.append(mine)
    return found


def _lies_in(correlated, event):
    region = correlated.correlation.region
    if correlated.correlation.near < float("inf") and not event.location:
        return False
    if region is None:
        return True
    if event.location is None or len(event.location) < 2:
        return False
    x, y = event.location
    return 0 <= x <= 3 and 0 <= y <= 3 if region.name == "R" else x * x + y * y <= 4


def search(text, events):
    """For each correlation the complex events, as tuples of sequence numbers."""
    found = {}
    for one in check_text(text).values():
        c = one.correlation
        every = complex_events(candidates(one, events), c.within, c.near)
        found[one.name] = {tuple(sequence for _, _, sequence in members) for members in every}
    return found


def oracle(text, events):
    """How often each correlation matches, and with which simple events; for ``latest`` and ``first`` the
    choice."""
    order = {e.sequence: (*e.order, e.topic) for e in events}
    emitted = {}
    for name, every in search(text, events).items():
        by_last = {}
        for members in every:
            by_last.setdefault(max(members, key=order.get), []).append(members)
        tell = check_text(text)[name].tell
        choose = {"latest": max, "first": min}.get(tell)
        if tell == "events":
            emitted[name] = {sequence for members in every for sequence in members}
        elif choose is None:
            emitted[name] = every
        else:
            emitted[name] = {choose(mine, key=lambda m: [order[s] for s in m]) for mine in by_last.values()}
    return emitted


def as_counts(text, events, notifications):
    """The notifications in the form of the oracle."""
    found = {name: set() for name in check_text(text)}
    for n in notifications:
        one = check_text(text)[n.subscription]
        emitted = n.event.sequence if one.tell == "events" else _members(one, n.event, events)
        assert emitted not in found[n.subscription], "told twice"
        found[n.subscription].add(emitted)
    return found


def _members(correlated, event, events):
    """The sequence numbers of a complex event's members, by topic, source and time."""
    known = {(e.topic, e.source, show_instant(e.time)): e for e in events}
    found = []
    for (topic, attribute), label in zip(correlated.measured, correlated.topic.attributes[::3], strict=True):
        value, source, time = (event.attributes[f"{label.name}{end}"] for end in ("", "_source", "_time"))
        member = known[topic.name, source, time]
        assert member.attributes[attribute] == value
        found.append(member.sequence)
    return tuple(found)
