"""Counting every variant of a state at once equals a replay of each changed definition."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import check, parse, replay
from holdfast.definition.tune import tunable, tune
from holdfast.files.from_table import in_memory
from holdfast.files.read import read
from holdfast.files.reading import Reading
from holdfast.files.tally import Rejects, Tally
from holdfast.kernels.vary import DELAY, FLAPS, HOLDING, OPEN, REACHED, RIGHT, SHARED, STARTS, vary
from holdfast.model.instant import SECOND
from holdfast.plan.advise.judge import Trial, VariantGrid, as_it_stands, judge, labels_of, within
from holdfast.plan.advise.rows import Measure
from holdfast.plan.advise.rows import collect_rows as rows_of
from holdfast.plan.advise.variants import Variant, best, with_front

ENTERS = (
    "value > 2",
    "value >= 2",
    "ok && value > 2",
    "value > 2 || ok",
    "!(value <= 2)",
    "6 - value < 4",
    "ok",
)
EXITS = ("value < 2", "value <= 2 && ok", "n < 2", "!ok || value < 2", "ok == false", "value > 2")
SCOPES = ("per source", "per n", "")


@st.composite
def states(draw) -> str:
    """A state with one threshold in its entrance, its exit, or both, with guards or without."""
    enter, exit = draw(st.sampled_from(ENTERS)), draw(st.sampled_from(EXITS))
    if "value" not in enter and not any(name in exit for name in ("value", "n <")):
        exit = "value < 2"
    guard, hold = (draw(st.sampled_from(["", "for 10 s", "for 15 s"])) for _ in range(2))
    return (
        "topic T (value float, n int, ok bool)\n"
        f"state W on T [{enter} {guard}; {exit} {hold}] {draw(st.sampled_from(SCOPES))}"
    )


rows = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from("abc"),
        st.sampled_from([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, math.nan]),
        st.sampled_from([0, 1, 2, 3, None]),
        st.sampled_from([True, False, None]),
    ),
    min_size=1,
    max_size=30,
)
grids = st.builds(
    VariantGrid,
    st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0]), min_size=1, max_size=2, unique=True).map(tuple),
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0]), min_size=1, max_size=2, unique=True).map(tuple),
    st.lists(
        st.sampled_from([0, 5, 10, 20]).map(lambda s: s * SECOND), min_size=1, max_size=2, unique=True
    ).map(tuple),
)
labels = st.dictionaries(
    st.sampled_from(["a", "b", "1", "nobody", None]),
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 4)).map(
            lambda p: (p[0] * 5 * SECOND, (p[0] + p[1]) * 5 * SECOND)
        ),
        max_size=3,
    ),
)


def table_of(history) -> pa.Table:
    when, source, value, n, ok = (list(column) for column in zip(*history, strict=True))
    return pa.table(
        {
            "time": pa.array([5 * SECOND * t for t in when]).cast(pa.timestamp("us", "UTC")),
            "source": source,
            "value": value,
            "n": pa.array(n, pa.int64()),
            "ok": pa.array(ok, pa.bool_()),
        }
    )


def measure_all(found, table, pieces=1):
    size = -(-len(table) // pieces)
    batches = read(
        in_memory(table, 0), Reading((found.condition.topic,)), Tally(), Rejects(), chunk_rows=size
    )
    return rows_of(map(Measure(found), (batch for _, batch in batches)))


def naive(intervals, until, known):
    """The counts of a variant, from its intervals (scope, start, end or None)."""
    closed = [(scope, start, until if end is None else end) for scope, start, end in intervals]
    counts = dict.fromkeys((STARTS, OPEN, HOLDING, FLAPS, RIGHT, REACHED, DELAY, SHARED), 0)
    counts[STARTS] = len(closed)
    counts[OPEN] = sum(end is None for _, _, end in intervals)
    counts[HOLDING] = sum(end - start for _, start, end in closed)
    last: dict[str | None, int] = {}
    for scope, start, end in intervals:  # those of a scope are in order
        counts[FLAPS] += scope in last and start - last[scope] < 12 * SECOND
        if end is not None:
            last[scope] = end
    for scope, start, end in closed:
        counts[RIGHT] += any(s == scope and a <= end and start <= b for s, a, b in known)
    for scope, start, end in known:
        meeting = [a for s, a, b in closed if s == scope and a <= end and start <= b]
        counts[REACHED] += bool(meeting)
        counts[DELAY] += max(0, min(meeting) - start) - (end - start) if meeting else 0
        counts[SHARED] += sum(max(0, min(b, end) - max(a, start)) for s, a, b in closed if s == scope)
    return [counts[i] for i in range(8)]


def intervals_of(app, table):
    """The intervals of a replay in order. An end names its start; a start without an end is open."""
    output = list(replay(app, table))
    ended = [(one.scope, one.since, one.event.time) for one in output if one.status == "egress"]
    started = Counter((one.scope, one.event.time) for one in output if one.status == "ingress")
    started.subtract((scope, start) for scope, start, _ in ended)
    assert all(count >= 0 for count in started.values())
    return [*sorted(ended, key=lambda one: one[1:]), *((*key, None) for key in started.elements())]


@pytest.fixture(params=["python", "compiled"], scope="module")
def kernel_modes(request):
    """The kernel as Python has it, and as machine code."""
    was, vary._compiled = vary._compiled, None
    if request.param == "compiled":
        vary.compiled  # noqa: B018
    yield
    vary._compiled = was


@given(states(), rows, grids, labels | st.none(), st.integers(1, 3))
def test_variants_are_plain_replays(kernel_modes, text, history, grid, named, pieces):
    require_equal(text, history, grid, named, pieces)


@pytest.mark.parametrize("guard", ["", "for 10 s"])
@pytest.mark.parametrize("hold", ["", "for 10 s"])
@pytest.mark.parametrize("exit", ["value < 1", "n < 2 && value < 1"])
def test_variants_of_readings_that_wander(exit, guard, hold):
    """Values that rise and fall by little, some of them at one time, meet every order of thresholds."""
    draw = np.random.default_rng(len(exit + guard + hold))
    value = np.abs(np.cumsum(draw.choice([-0.5, 0, 0.5], 150))) % 4
    moments, sources = np.cumsum(draw.integers(0, 2, 150)), draw.choice(["a", "b"], 150)
    history = [
        (int(t), str(s), float(v), int(n), True)
        for t, s, v, n in zip(moments, sources, value, draw.integers(0, 4, 150), strict=True)
    ]
    text = (
        f"topic T (value float, n int, ok bool)\nstate W on T [value > 2 {guard}; {exit} {hold}] per source"
    )
    more = tuple(-1.0 - i for i in range(70)) if not guard + hold else ()  # more than a word has bits
    grid = VariantGrid((2.5, 1.5, 2.0), (0.5, 1.5, 1.0, 0.0, *more), (0, 5 * SECOND, 15 * SECOND))
    require_equal(text, history, grid, None, 3, of="value")


def require_equal(text, history, grid, named, pieces, of=None):
    app, table = parse(text), table_of(history)
    found = tunable(check(app), "W", of)
    if found.enter is None:
        grid = grid._replace(enters=(None,))
    if found.exit is None:
        grid = grid._replace(exits=(None,))
    own = measure_all(found, table, pieces)
    until = max(time for time, *_ in history) * 5 * SECOND
    if named is None:
        known = as_it_stands(own, found, until)
        meant = [
            (scope, start, until if end is None else end) for scope, start, end in intervals_of(app, table)
        ]
    else:
        inside = within(named, *own.span())
        known = labels_of(own, inside)
        meant = [(scope, *pair) for scope, some in clip(named, own).items() for pair in some]
        assert {k: [tuple(p) for p in v] for k, v in inside.items()} == clip(named, own)
        meant = [one for one in meant if one[0] in {key or None for key in own.keys.all().to_pylist()}]
    assert known.count == len(meant)
    assert known.length == sum(end - start for _, start, end in meant)
    counts = judge(Trial(own, found, known, until, 12 * SECOND), grid)
    for (e, x, g), _ in np.ndenumerate(counts[:, :4, :, 0]):  # the rest differ in nothing
        changed = tune(app, found, (grid.enters[e], grid.exits[x], grid.guards[g]))
        assert counts[e, x, g].tolist() == naive(intervals_of(changed, table), until, meant)


def clip(named, own):
    """Labels within the history, those that meet made one."""
    first, last = own.span()
    found = {}
    for scope, intervals in named.items():
        inside = sorted((max(a, first), min(b, last)) for a, b in intervals)
        merged = found.setdefault(scope, [])
        for a, b in (pair for pair in inside if pair[0] <= pair[1]):
            if merged and a <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
            else:
                merged.append((a, b))
    return found


@given(states(), rows, st.integers(1, 12))
def test_weeks_that_were_held_out_are_a_history_of_their_own(text, history, cut):
    app, table = parse(text), table_of(history)
    found = tunable(check(app), "W")
    later = [row for row in history if row[0] >= cut]
    if not later:
        return
    held_out = measure_all(found, table).slice(cut * 5 * SECOND, 2**62)
    until = max(row[0] for row in later) * 5 * SECOND
    meant = [(s, a, until if b is None else b) for s, a, b in intervals_of(app, table_of(later))]
    known = as_it_stands(held_out, found, until)
    assert sorted(zip(known.start.tolist(), known.end.tolist(), strict=True)) == sorted(
        (a, b) for _, a, b in meant
    )


costs = st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=12)


@given(costs)
def test_the_front_contains_exactly_the_variants_that_no_other_dominates(some):
    found = with_front([Variant(0, 0, 0, 0, 0, 0, a, b, c, None, None) for a, b, c in some])

    def better(a, b):
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    for one, cost in zip(found, some, strict=True):
        assert one.front == (not any(better(other, cost) for other in some))
    assert best(found).front
