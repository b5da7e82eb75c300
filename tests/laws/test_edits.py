"""A definition that changes, with the history that is there: it is as if it had always been the new one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Engine, Event, UsageError, check, parse
from holdfast.engine.standing import standings
from holdfast.model.batch import from_events

MINUTE = 60_000_000
TODAY = 1_700_000_000_000_000
HEAD = "topic T (v float, room text)\ntopic U (v float)\n"


def _state(name, topic, high, low, per, more):
    enter, leave = f"v > {high}{more[0]}", f"v < {low}{more[1]}"
    return f"state {name} on {topic} [{enter}; {leave}] per {per} {more[2]}\n"


_GUARDS = [
    ("", "", ""),
    ("", "", ""),
    (" for 2 min", "", ""),
    (" for 2 readings", " for 3 min", ""),
    ("", " || silent 4 min", "unknown after 6 min"),
    ("", "", "initially unknown"),
    (" for 1 min", "", "ordered 2 min"),
]
_warm = st.builds(
    _state,
    st.just("Warm"),
    st.just("T"),
    st.sampled_from((2, 3, 4)),
    st.sampled_from((1, 2)),
    st.sampled_from(("source", "source", "source", "room")),
    st.sampled_from(_GUARDS),
)
_others = st.sampled_from(
    [
        "",
        "state Many = at least 2 of Warm until fewer than 1\n",
        "state Many = at least 2 of Warm joined unknown spreads\n",
        "levels Heat on T: low [v > 1; v < 1], high [v > 3; v < 2] per source\n",
        "state Near on U [v > 2; v < 1]\nfilter Hot on T where v > 3\n",
        "state Both\n  A = avg T over 2 min each source\n  enter A.v > 2\n  exit A.v < 2\n",
    ]
)
_texts = st.builds(
    lambda warm, some: HEAD + warm + "".join(sorted(set(some))), _warm, st.lists(_others, max_size=2)
).filter(lambda text: text.count("state Many") < 2)
_rows = st.lists(
    st.tuples(
        st.sampled_from("TTTU"),
        st.integers(0, 3),
        st.sampled_from("abc"),
        st.sampled_from((0.0, 1.5, 2.5, 3.5, 5.0, None)),
        st.sampled_from("rs"),
    ),
    min_size=1,
    max_size=14,
)


def _events(rows, start=TODAY):
    out, at = [], start
    for i, (topic, step, source, v, room) in enumerate(rows):
        at += step * MINUTE
        attributes = {"v": v, "room": room} if topic == "T" else {"v": v}
        out.append(Event(topic, at, source, attributes, start + i))
    return out


def _push_all(engine, events):
    return [n for event in events for n in engine.push(event)]


def _rows_of(emitted):
    return sorted([(n.subscription, str(n.scope), n.status, n.since or -1, n.event.order) for n in emitted])


def _standing(engine):
    return engine.holding(), engine.unknown()


@given(old=_texts, new=_texts, first=_rows, second=_rows, late=st.integers(0, 9))
def test_a_revision_with_the_whole_history_equals_a_run_of_the_new_definition(old, new, first, second, late):
    engine, ideal = Engine(old), Engine(new)
    before = _events(first)
    end = before[-1].time + late * MINUTE
    for one in (engine, ideal):
        _push_all(one, before)
        one.advance(end)
    was = {(h.subscription, h.scope): h.known for h in engine.holding()}
    was |= dict.fromkeys(engine.unknown(), False)
    output = engine.revise(new, [*before, end])
    assert _standing(engine) == _standing(ideal)
    assert len({(n.subscription, n.scope) for n in output}) == len(output), "each scope is told once"
    becomes = {(n.subscription, n.scope): n for n in output}
    for key, known in {(h.subscription, h.scope): h.known for h in ideal.holding()}.items():
        if key not in was or known != was[key]:
            assert becomes[key].status == ("revised" if known else "unknown"), key
            assert becomes[key].since is not None
    for key in was.keys() - {key[:2] for key in ideal.holding()} - set(ideal.unknown()):
        if key[0] in ideal.subscriptions:
            assert becomes[key].since is None
    again = Engine.restore(new, engine.snapshot())
    after = _events(second, end)
    expected = _rows_of(_push_all(ideal, after))
    assert _rows_of(_push_all(engine, after)) == expected
    assert _rows_of(_push_all(again, after)) == expected


_plain = st.builds(
    lambda high, low, more: HEAD + _state("Warm", "T", max(high, low), min(high, low), "source", more),
    st.sampled_from((2, 3, 4)),
    st.sampled_from((1, 2, 3)),
    st.sampled_from(_GUARDS[:4]),
)


@given(old=_plain, new=_plain, first=_rows, cut=st.integers(0, 14))
def test_a_revision_with_part_of_the_history_decides_only_what_follows_from_it(old, new, first, cut):
    before = _events(first)
    engine, without, ideal = Engine(old), Engine(old), Engine(new)
    for one in (engine, without, ideal):
        _push_all(one, before)
    engine.revise(new, before[cut:], whole=False)
    without.revise(new)
    lost, held = set(engine.unknown()), {(h.subscription, h.scope) for h in ideal.holding()}
    now = {(h.subscription, h.scope) for h in engine.holding()}
    received = {("Warm", event.source) for event in before[cut:] if event.topic == "T"}
    assert now - lost <= held
    assert received & now - lost == received & held - lost
    assert {key for key in without.unknown() if key not in lost} <= received


_ladders = st.builds(
    lambda names, bands, per, more: (
        f"{HEAD}levels Heat on T: "
        + ", ".join(
            f"{name} [v > {max(band)}{more[0]}; v < {min(band)}{more[1]}]"
            for name, band in zip(names, bands, strict=False)
        )
        + f" per {per} {more[2]}\n"
    ),
    st.sampled_from((("low", "high"), ("low", "high"), ("high", "low"), ("low", "mid", "high"), ("high",))),
    st.lists(st.sampled_from(((1, 1), (2, 1), (3, 1), (3, 2), (4, 2), (4, 3))), min_size=3, max_size=3),
    st.sampled_from(("source", "source", "room")),
    st.sampled_from(
        [guards for guards in _GUARDS if "ordered" not in guards[2] and "initially" not in guards[2]]
    ),
)


def _levels_of(engine):
    """The level of each scope that is known, and the scopes of which it is not."""
    found = {}
    for operator, state in engine._running.operators:
        found |= standings(operator, state)
    return {key: one.level for key, one in found.items() if one.known}, set(engine.unknown())


@given(
    old=_ladders,
    new=_ladders,
    first=_rows,
    second=_rows,
    remember=st.booleans(),
    cut=st.none() | st.integers(0, 14),
)
def test_revised_levels_are_unknown_where_undecided_and_right_once_readings_decide(
    old, new, first, second, remember, cut
):
    before = [event for event in _events(first) if event.topic == "T"]
    engine, ideal = Engine(old, remember=remember), Engine(new)
    for one in (engine, ideal):
        _push_all(one, before)
    if old.split(" per ")[1].split()[0] != new.split(" per ")[1].split()[0]:
        with pytest.raises(UsageError, match="its scopes or its topic are others"):
            engine.revise(new)
        return
    were = _levels_of(engine)[0]
    output = engine.revise(new, None if cut is None else before[cut:], whole=False)
    assert len({n.scope for n in output}) == len(output), "each scope is told once"
    now, lost = _levels_of(engine)
    right, doubted = _levels_of(ideal)
    for key, level in now.items():
        if key not in doubted and key in were:
            assert right.get(key) == level, key
    emitted = {("Heat", n.scope): n for n in output}
    for key in now.keys() | were.keys():
        if key not in lost and now.get(key) != were.get(key):
            assert emitted[key].status == "revised"
            assert emitted[key].event.attributes["level"] == now.get(key)
    again = Engine.restore(new, engine.snapshot())
    after = [event for event in _events(second, before[-1].time if before else TODAY) if event.topic == "T"]
    assert _rows_of(_push_all(engine, after)) == _rows_of(_push_all(again, after))
    assert _levels_of(engine) == _levels_of(again)
    at = max((one.time for one in [*before, *after]), default=TODAY)
    for one in (engine, ideal):  # whatever waits, five readings decide
        for i, v in enumerate((5.0, 5.0, 5.0, 5.0, 0.0, 0.0, 0.0, 0.0)):
            for source in "abc":
                room = "rs"[i % 2]
                one.push(Event("T", at + (i + 1) * 2 * MINUTE, source, {"v": v, "room": room}, at + i))
    assert _levels_of(engine) == _levels_of(ideal)


_quotas = st.builds(
    lambda least, fewer, within, more: (
        f"{HEAD}state Warm on T [v > 2; v < 1] per source unknown after 6 min\n"
        f"state Many = at least {least} of Warm {within}until fewer than {min(least, fewer)} {more}\n"
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(("", "", "within room ")),
    st.sampled_from(("", "joined", "unknown kept", "unknown spreads")),
)


def _many(engine):
    """The scopes of the count that hold and those that do not for sure, as far as it has some."""
    lost = {scope for name, scope in engine.unknown() if name == "Many"}
    return {one.scope for one in engine.holding() if one.subscription == "Many"} - lost, lost


@given(old=_quotas, new=_quotas, first=_rows, second=_rows)
def test_a_revised_count_is_unknown_where_undecided_and_right_once_members_decide(old, new, first, second):
    before = [replace(event, attributes=event.attributes | {"room": "r"}) for event in _events(first)]
    before = [event for event in before if event.topic == "T"]
    engine, ideal = Engine(old), Engine(new)
    end = (before[-1].time if before else TODAY) + MINUTE
    for one in (engine, ideal):
        _push_all(one, before)
        one.advance(end)  # its last timestamp has passed
    held = {(one.subscription, one.scope): one.known for one in engine.holding()}
    if "within" not in old and "within" in new:
        with pytest.raises(UsageError, match="the groups of its members are not known"):
            engine.revise(new)
        return
    output = [n for n in engine.revise(new) if n.subscription == "Many"]
    assert len({n.scope for n in output}) == len(output), "each scope is told once"
    (now, lost), (right, doubted) = _many(engine), _many(ideal)
    assert now - doubted == right - lost
    for scope in lost | now:
        if held.get(("Many", scope)) is not (scope in now) and ("Many", scope) in held:
            assert scope in {n.scope for n in output}
    again = Engine.restore(new, engine.snapshot())
    after = [event for event in _events(second, end) if event.topic == "T"]
    after = [replace(event, attributes=event.attributes | {"room": "r"}) for event in after]
    assert _rows_of(_push_all(engine, after)) == _rows_of(_push_all(again, after))
    _push_all(ideal, after)
    at = max((one.time for one in after), default=end)
    for v in (5.0, 0.0):  # all of them or none
        at += MINUTE
        for one in (engine, ideal):
            for source in "abc":
                one.push(Event("T", at, source, {"v": v, "room": "r"}, at))
            one.advance(at + 1)
        assert _many(engine) == _many(ideal)
        assert not _many(engine)[1]


def _correlation(relation, within, guard):
    bound = f" within {within} min" if within else ""
    pair = "Damp, Warm overlapping" if relation == "overlapping" else f"Damp {relation} Warm"
    return (
        f"{HEAD}state Warm on T [v > 2{guard}; v < 1] per source\nstate Damp on U [v > 2; v < 1] per source\n"
        f"correlate Met = {pair}{bound}\n"
    )


_turns = st.lists(
    st.tuples(
        st.sampled_from("TU"),
        st.integers(0, 2),
        st.sampled_from("ab"),
        st.sampled_from((0.0, 5.0)),
        st.just("r"),
    ),
    min_size=4,
    max_size=14,
)


@given(
    relation=st.sampled_from(("before", "before", "ends", "overlaps", "during", "starts", "overlapping")),
    within=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    guard=st.sampled_from(("", " for 2 readings")),
    first=_turns,
    second=_turns,
    late=st.integers(0, 1),
)
def test_a_narrowed_correlation_of_states_continues_as_if_it_had_always_been_narrow(
    relation, within, guard, first, second, late
):
    old, new = (_correlation(relation, size, guard) for size in (max(within), min(within)))
    engine, ideal = Engine(old), Engine(new)
    before = _events(first)
    for one in (engine, ideal):
        _push_all(one, before)
        one.advance(before[-1].time + late)
    engine.revise(new)
    again = Engine.restore(new, engine.snapshot())
    after = _events(second, before[-1].time + late)
    expected = _rows_of(_push_all(ideal, after) + ideal.finish())
    assert _rows_of(_push_all(engine, after) + engine.finish()) == expected
    assert _rows_of(_push_all(again, after) + again.finish()) == expected
    assert _standing(engine) == _standing(ideal)


@settings(max_examples=20)
@given(old=_texts, new=_texts, first=_rows, size=st.integers(1, 5))
def test_a_history_in_batches_equals_the_same_history_in_events(old, new, first, size):
    before = [event for event in _events(first) if event.topic == "T"]
    if not before:
        return
    one, other = Engine(old), Engine(old)
    for engine in (one, other):
        _push_all(engine, before)
    topic = check(parse(HEAD)).topics[0]
    pieces = [("T", from_events(topic, before[i : i + size])) for i in range(0, len(before), size)]
    assert _rows_of(one.revise(new, before)) == _rows_of(other.revise(new, pieces))
    assert _standing(one) == _standing(other)


# --- tables that change ------------------------------------------------------------------------------

_TABLED = """topic T (v float, room text)
table L "" (source text, high float, low float, wait duration)
state Warm on T [v > L.high{0}; v < L.low{1}] per {2}
"""
_LEVELED = _TABLED.replace(
    "state Warm on T [v > L.high{0}; v < L.low{1}]",
    "levels Warm on T: low [v > L.low; v < 1], high [v > L.high{0}; v < L.low{1}]",
)
_tabled = st.builds(
    lambda text, *some: text.format(*some),
    st.sampled_from((_TABLED, _TABLED, _LEVELED)),
    st.sampled_from(("", " for L.wait", " for 2 readings")),
    st.sampled_from(("", " for L.wait", " || silent 4 min")),
    st.sampled_from(("source", "source", "source", "room")),
)


@st.composite
def _limits(draw):
    names = draw(st.lists(st.sampled_from(["a", "b", "c", "*"]), min_size=1, unique=True))
    high, low = st.sampled_from((2.0, 3.0, 4.0, None)), st.sampled_from((1.0, 2.0, None))
    columns = {
        name: pa.array([draw(one) for _ in names], pa.float64())
        for name, one in (("high", high), ("low", low))
    }
    waits = pa.array([draw(st.sampled_from(("1 min", "3 min", None))) for _ in names], pa.string())
    return pa.table({"source": pa.array(names), **columns, "wait": waits})


@given(text=_tabled, old=_limits(), new=_limits(), first=_rows, second=_rows)
def test_a_changed_table_with_the_whole_history_equals_a_run_with_that_table(text, old, new, first, second):
    before = [event for event in _events(first) if event.topic == "T"]
    engine, ideal = Engine(text, tables={"L": old}), Engine(text, tables={"L": new})
    for one in (engine, ideal):
        _push_all(one, before)
    output = engine.take_table("L", new, before)
    assert _standing(engine) == _standing(ideal)
    assert len({n.scope for n in output}) == len(output), "each scope is told once"
    after = [event for event in _events(second, before[-1].time if before else TODAY) if event.topic == "T"]
    assert _rows_of(_push_all(engine, after)) == _rows_of(_push_all(ideal, after))


@given(text=_tabled, old=_limits(), new=_limits(), first=_rows, remember=st.booleans())
def test_scopes_with_an_unchanged_table_row_keep_their_state_and_others_become_unknown(
    text, old, new, first, remember
):
    before = [event for event in _events(first) if event.topic == "T"]
    engine = Engine(text, tables={"L": old}, remember=remember)
    ideal = Engine(text, tables={"L": new})
    for one in (engine, ideal):
        _push_all(one, before)
    was = {h.scope: h for h in engine.holding()}
    output = {n.scope: n for n in engine.take_table("L", new)}
    lost, now = {scope for _, scope in engine.unknown()}, {h.scope: h for h in engine.holding()}
    assert now.keys() - lost <= {h.scope for h in ideal.holding()}
    assert now.keys() ^ was.keys() <= output.keys()


@given(text=_tabled, limits=_limits(), first=_rows, second=_rows)
def test_an_equal_table_changes_nothing(text, limits, first, second):
    engine, other = (Engine(text, tables={"L": limits}, remember=True) for _ in range(2))
    before = [event for event in _events(first) if event.topic == "T"]
    for one in (engine, other):
        _push_all(one, before)
    assert engine.take_table("L", limits.take(list(range(len(limits))))) == []
    after = [event for event in _events(second, before[-1].time if before else TODAY) if event.topic == "T"]
    assert _rows_of(_push_all(engine, after)) == _rows_of(_push_all(other, after))


@given(text=_tabled.filter(lambda text: "per source" in text), limits=_limits(), first=_rows, second=_rows)
def test_scopes_with_an_unchanged_table_row_continue_their_minimum_durations(text, limits, first, second):
    """The only new row is for a source without readings."""
    row = pa.table({"source": ["z"], "high": [1.0], "low": [0.0], "wait": ["1 min"]}, schema=limits.schema)
    engine, other = (Engine(text, tables={"L": limits}) for _ in range(2))
    before = [event for event in _events(first) if event.topic == "T"]
    for one in (engine, other):
        _push_all(one, before)
    assert engine.take_table("L", pa.concat_tables([limits, row])) == []
    after = [event for event in _events(second, before[-1].time if before else TODAY) if event.topic == "T"]
    assert _rows_of(_push_all(engine, after)) == _rows_of(_push_all(other, after))
