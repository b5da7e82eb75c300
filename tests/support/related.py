"""Random relationships that run, histories for them, and what they mean, instant by instant."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations, groupby

from hypothesis import strategies as st

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.relation.condition import RelationCondition
from holdfast.model.event import Event
from holdfast.model.relation import Participant, Tie, apart
from support.histories import join_values

SECOND = 1_000_000
TOPICS = """topic User (accuracy float m, mood float)
topic Van (load float)
topic Loop (speed float m/s)
group Team of User ("u1", "u2", "u3")
route North on Loop.speed ("u1" 1 m, "u2" 2 m)
route South on Loop.speed ("u2" 1 m, "u3" 2 m)
"""
SOURCES = ("u1", "u2", "u3", "é,")

# --- definitions -------------------------------------------------------------------------------

_pairs = st.sampled_from(
    (
        "",
        'pairs ("u1", "u2")',
        'pairs ("u2", "u1"), ("u2", "u3")',
        'pairs ("u1", "u2"), ("u2", "u1"), ("u3", "é,")',
    )
)
_holds = st.sampled_from(("", "", "", "for 1 s", "for 2 s"))
_near = st.sampled_from(("<= 1 m", "< 1 m", "<= 2 m", "in [0.5 m, 2 m]", "<= 0 m"))
_far = st.sampled_from((">= 2 m", "> 2 m", ">= 3 m", "<= 1 m", ">= 0.5 m"))
_waits = ("", "", "ordered 2 s", "ordered 2 s late apply")


@st.composite
def relations(draw, deliveries=_waits):
    """Draw one relationship without its name."""
    delivery = draw(st.sampled_from(deliveries))
    kind = draw(st.sampled_from("dddddvssrrtba"))
    hold, leave = draw(_holds), draw(_holds)
    if kind in "dv":
        roles = "(a User, b User)" if kind == "d" else "(a User, b Van)"
        pairs = draw(_pairs)
        accuracy = draw(st.sampled_from(("", "", "accuracy accuracy"))) if kind == "d" else ""
        until = f"until distance(a, b) {draw(_far)} {leave}"
        if draw(st.integers(0, 3)) == 0:
            until, near = "", draw(st.sampled_from(("<= 1 m", "< 2 m")))
        else:
            near = draw(_near)
        return f"{roles} {pairs} when distance(a, b) {near} {hold} {until} {accuracy} {delivery}"
    if kind == "s":
        return f"all of Team within {draw(st.integers(1, 2))} m until {draw(st.integers(2, 3))} m {delivery}"
    if kind == "r":
        many = draw(st.sampled_from(("at least 2", "at least 3", "all")))
        members = 'of "u2"' if many == "all" else draw(st.sampled_from(("", 'of "u2"')))
        near, far = draw(st.integers(0, 2)), draw(st.integers(1, 3))
        accuracy = draw(st.sampled_from(("", "accuracy accuracy")))
        return f"{many} of Team within {near} m {members} until {far} m {accuracy} {delivery}"
    if kind == "t":
        until = draw(st.sampled_from(("", "until travel_time(South) < travel_time(North)")))
        return f"when travel_time(North) + 1 s < travel_time(South) {hold} {until} {delivery}"
    if kind == "b":
        return f"best of (North, South) by {draw(st.integers(0, 2))} s {delivery}"
    pairs = draw(_pairs.filter(bool))
    return (
        f"(a User, b User) {pairs} when a.mood - 2 * b.mood > 1 {hold} until b.mood >= a.mood / 2 {delivery}"
    )


@st.composite
def definitions(draw, **options):
    """Draw relationships, which may be equal except for their names."""
    some = draw(st.lists(relations(**options), min_size=1, max_size=2))
    return TOPICS + "\n".join(f"relate R{i} {one}" for i, one in enumerate(some))


# --- histories ---------------------------------------------------------------------------------

_sides = st.sampled_from((0.0, 0.0, 0.5, 1.0, 2.0, 3.0, -1.0))
_points = st.sampled_from((2, 2, 2, 2, 1, 3, 0)).flatmap(
    lambda axes: st.tuples(*[_sides] * axes).map(lambda point: point or None)
)
_numbers = st.sampled_from((0.0, 1.0, 1.0, 2.0, 4.0, -1.0, math.inf, math.nan, None))


@st.composite
def _events(draw):
    topic = draw(st.sampled_from(("User", "User", "User", "Van", "Loop")))
    values = {"User": ("accuracy", "mood"), "Van": ("load",), "Loop": ("speed",)}[topic]
    attributes = {name: draw(_numbers) for name in values}
    if topic == "User":
        attributes["accuracy"] = draw(st.sampled_from((0.0, 0.0, 0.5, 1.0, -1.0, None)))
    time = draw(st.integers(0, 10)) * SECOND // 2
    return Event(topic, time, draw(st.sampled_from(SOURCES)), attributes, 0, draw(_points))


histories = st.lists(_events(), min_size=8, max_size=20).map(
    lambda events: [
        Event(e.topic, e.time, e.source, e.attributes, i, e.location) for i, e in enumerate(events)
    ]
)


# --- what they mean ----------------------------------------------------------------------------


@lru_cache(maxsize=16)
def check_text(text):
    return check(parse(text)).of(RelationCondition)


def oracle(text, events):
    """The notifications of each relationship in turn."""
    return sorted(row for one in check_text(text) for row in run_relation(one, events))


def as_rows(text, events, notifications):
    """The notifications in the form of the oracle."""
    return sorted(
        (
            n.subscription,
            n.scope or "",
            n.event.time,
            n.status,
            -1 if n.since is None else n.since,
            *n.event.order[1:],
            *_who(n),
        )
        for n in notifications
    )


def _who(n):
    return [str(value) for value in n.event.attributes.values()]


def run_relation(one, events):
    """Evaluate one relationship instant by instant, tie by tie, without grid or arrays."""
    known = {}
    ties = _ties(one.relation, events)
    state = {i: RelationState() for i in range(len(ties))}
    rows = []
    ordered = sorted(events, key=lambda e: (e.time, e.sequence))
    last = max((e.time for e in events if e.topic in {t.name for t in one.listens}), default=0)
    for time, some in groupby(ordered, key=lambda e: e.time):
        moved = set()
        for event in some:
            for attribute in (None, "mood", "load", "speed"):
                member = Participant(event.topic, event.source, attribute)
                if (value := _read(one.relation, member, event)) is not None:
                    known[member] = (value, event)
                    moved.add(member)
        for i, tie in enumerate(ties):
            by = [member for member in tie.members if member in moved]
            if by:
                rows += _test(one, tie, state[i], known, time, known[by[-1]][1])
    for i, tie in enumerate(ties):
        rows += _held_long_enough(one, tie, state[i], last + 1)
    return [(one.name, *row) for row in rows]


class RelationState:
    """The state of a tie."""

    def __init__(self):
        self.bit, self.since, self.began, self.measured = 0, None, None, None


def _ties(relation, events):
    if relation.ties is not None:
        return relation.ties
    first, second = relation.roaming
    if first != second:
        named = [sorted({e.source for e in events if e.topic == t}) for t in (first, second)]
        pairs = [(a, b) for a in named[0] for b in named[1]]
    else:
        pairs = combinations(sorted({e.source for e in events if e.topic == first}), 2)
    return [
        Tie(join_values((a, b)), (Participant(first, a), Participant(second, b)), pair=(a, b))
        for a, b in pairs
    ]


def _read(relation, member, event):
    if member.attribute is not None:
        value = event.attributes.get(member.attribute)
        return None if value is None or value != value else value
    error = 0.0 if relation.accuracy is None else event.attributes.get(relation.accuracy)
    if event.location is None or error is None or error < 0:
        return None
    return (*event.location, 0.0, 0.0)[:3], error


def _measure(relation, tie, known, bit):
    """The measure and how far it may be off; ``None`` if it is not known."""
    if any(member not in known for member in tie.members):
        return None
    if relation.kind == "distance":
        (a, own), (b, other) = (known[member][0] for member in tie.members)
        return apart(a, b), own + other
    if relation.kind == "spread":
        points = [known[member][0] for member in tie.members]
        centre = [sum(axis) / len(points) for axis in zip(*(p for p, _ in points), strict=True)]
        errors = [error for _, error in points]
        return max(apart(p, centre) for p, _ in points), max(errors) + sum(errors) / len(errors)
    if relation.kind == "radius":
        points = {member.source: known[member][0] for member in tie.members}
        errors = sorted(error for _, error in points.values())
        rings = []
        for name, (middle, _) in points.items():
            if relation.around in (None, name):
                rings.append(
                    sorted(apart(middle, point) for point, _ in points.values())[relation.quorum - 1]
                )
        return min(rings), errors[-1] + errors[-2]
    sums = []
    for terms in tie.terms:
        values = [term.of(known[term.member][0]) for term in terms]
        sums.append(sum(values))
    return None if any(s != s for s in sums) else (sums, 0.0)


def _row(relation, tie, scope, status, time, since, event, value):
    who = list(tie.pair) if relation.names and relation.kind != "best" else []
    return (
        scope or "",
        time,
        status,
        -1 if since is None else since,
        event.source,
        event.sequence,
        *who,
        str(value),
    )


def _test(one, tie, held, known, time, event):
    relation = one.relation
    yield from _held_long_enough(one, tie, held, time)
    measure = _measure(relation, tie, known, held.bit)
    if relation.kind == "best":
        if measure is not None:
            yield from _choose(relation, tie, held, measure[0], time, event)
        return
    test = relation.exit if held.bit else relation.enter
    if measure is None:
        held.began, held.measured = None, math.nan
        return
    value, error = measure
    if relation.kind == "total":
        (value,) = value
    held.measured = value
    if not (test.within.low <= value - error and value + error <= test.within.high):
        held.began = None
        return
    if held.began is None:
        held.began = (time, event)
    yield from _held_long_enough(one, tie, held, time + 1)


def _held_long_enough(one, tie, held, before):
    relation = one.relation
    test = relation.exit if held.bit else relation.enter
    if held.began is None or held.began[0] + test.hold >= before:
        return
    time, event = held.began[0] + test.hold, held.began[1]
    status = "egress" if held.bit else "ingress"
    yield _row(relation, tie, tie.scope, status, time, held.since if held.bit else None, event, held.measured)
    held.bit, held.began = 1 - held.bit, None
    held.since = time


def _choose(relation, tie, held, sums, time, event):
    best = sums.index(min(sums))
    if held.since is None or (best != held.bit and sums[best] <= sums[held.bit] - relation.by):
        if held.since is not None:
            old = relation.names[held.bit]
            yield _row(relation, tie, old, "egress", time, held.since, event, sums[held.bit])
        yield _row(relation, tie, relation.names[best], "ingress", time, None, event, sums[best])
        held.bit, held.since = best, time
