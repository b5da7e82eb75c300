"""Covering: what it promises, for items in tables and for states over sequences of events."""

from collections import deque
from itertools import product

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from holdfast.network.protocols.cbps import states
from holdfast.network.protocols.cbps.content import Constraint, Filter, covers, satisfies
from holdfast.network.protocols.cbps.database import Item, ItemTable
from holdfast.network.protocols.cbps.states import EnterLeave, truth_classes
from support import naive_match as naive

TRUE = (Filter(),)


def when(op, value, name="v"):
    return (Filter((Constraint(name, "double", op, value),)),)


def region(numbers_only):
    some = (
        naive.filters(("x", "y"), ("long", "double"), 3)
        if numbers_only
        else naive.filters(("x", "y"), most=3)
    )
    return st.lists(some, max_size=2).map(tuple)


def definitions():
    """States over one or two attributes; true and false exits are common."""
    exits = region(True) | region(False) | st.just(TRUE) | st.just(())
    return st.builds(EnterLeave, region(True) | region(False), exits) | opposite()


@st.composite
def opposite(draw):
    """``[x > high; x < low]``, for which something is covered more often."""
    high, low = draw(st.sampled_from(naive.NUMBERS)), draw(st.sampled_from(naive.NUMBERS))
    over, under = draw(st.sampled_from([(">", "<"), (">=", "<="), (">", "<=")]))
    return EnterLeave(when(over, high, "x"), when(under, low, "x"))


VALUES = [v for v in naive.SAMPLES if not isinstance(v, str) or len(v) < 3]


def events():
    return st.lists(
        st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(VALUES), max_size=2), max_size=12
    )


def holds(predicate, event):
    return any(naive.satisfies(filter_, event) for filter_ in predicate)


def momentary(state):
    return Filter() in state.leave


def run(state, sequence):
    """The filter as the paper describes it: for each event, whether it passes and whether the state holds."""
    bit, emitted = False, []
    for event in sequence:
        passes = holds(state.leave if bit else state.enter, event)
        bit ^= passes and not momentary(state)
        emitted.append((passes, bit or (passes and momentary(state))))
    return emitted


def output(state, sequence):
    return [event for event, (passes, _) in zip(sequence, run(state, sequence), strict=True) if passes]


def every_step(some, tried):
    """Yield the result of every event in every reachable combination of bits: the passed events and active
    states."""
    start = (False,) * len(some)
    seen, ahead = {start}, deque([start])
    while ahead:
        bits = ahead.popleft()
        for event in tried:
            passes = [holds(s.leave if bit else s.enter, event) for s, bit in zip(some, bits, strict=True)]
            after = tuple(
                bit ^ (p and not momentary(s)) for s, bit, p in zip(some, bits, passes, strict=True)
            )
            held = [bit or (p and momentary(s)) for s, bit, p in zip(some, after, passes, strict=True)]
            yield passes, held
            if after not in seen:
                seen.add(after)
                ahead.append(after)


WARM = EnterLeave(when(">", 25), when("<", 20))
HOT = EnterLeave(when(">", 30), when("<", 22))


def test_warm_covers_hot():
    """Whenever it is hot it is warm; not the other way round."""
    assert states.covers_state(WARM, HOT)
    assert not states.covers_state(HOT, WARM)


def test_the_first_two_clauses_of_covering_alone_are_wrong():
    """eB ⇒ eA and xA ⇒ xB, but B can start with the event that ends A: then B holds and A does not."""
    a = EnterLeave((*when(">", 25), *when("<", 10)), when("<", 15))
    b = EnterLeave(when("<", 10), when("<", 18))
    together = truth_classes((a.enter, a.leave, b.enter, b.leave))
    assert all(enters_a for enters_a, _, enters_b, _ in together if enters_b)
    assert all(leaves_b for _, leaves_a, _, leaves_b in together if leaves_a)
    assert any(enters_b and leaves_a for _, leaves_a, enters_b, _ in together)
    warm_then_cold = [{"v": 26.0}, {"v": 5.0}]
    assert run(a, warm_then_cold)[-1][1] is False
    assert run(b, warm_then_cold)[-1][1] is True
    assert not states.covers_state(a, b)


def test_covering_does_not_allow_computing_one_output_from_the_other():
    """Warm drops what comes while it is warm, and so the event that starts hot."""
    sequence = [{"v": v} for v in (26.0, 31.0, 21.0, 19.0)]
    assert output(HOT, sequence) == [{"v": 31.0}, {"v": 21.0}]
    assert output(WARM, sequence) == [{"v": 26.0}, {"v": 19.0}]
    assert states.covers_state(WARM, HOT)


def test_a_toggle_covers_itself_though_its_start_can_be_its_end():
    same = EnterLeave(when(">", 3), when(">", 3))
    assert states.covers_state(same, same)


def test_covering_is_denied_when_deciding_it_takes_too_many_pieces(monkeypatch):
    assert states.covers_state(WARM, HOT)
    monkeypatch.setattr(states, "MOST_PIECES", 2)
    assert not states.covers_state(WARM, HOT)


def test_covering_with_too_many_boxes_is_denied_without_computing_them():
    """The complement of these two hundred boxes is a number of boxes with forty digits."""
    enter = tuple(
        Filter((Constraint(f"a{i}", "long", "!=", j), Constraint(f"b{j}", "long", "!=", i)))
        for i in range(40)
        for j in range(5)
    )
    assert len(truth_classes((enter, (), enter[:1], ()))) == 16
    assert not states.covers_state(EnterLeave(enter, ()), EnterLeave(enter[:1], ()))


@given(definitions(), definitions(), events())
@example(WARM, HOT, [{"v": 26.0}, {"v": 31.0}, {"v": 21.0}])
def test_a_covered_state_is_active_only_while_the_coverer_is(a, b, sequence):
    assume(states.covers_state(a, b))
    emitted_a, emitted_b = run(a, sequence), run(b, sequence)
    assert all(on_a or not on_b for (_, on_a), (_, on_b) in zip(emitted_a, emitted_b, strict=True))
    intervals = [e for e, (passes, on) in zip(sequence, emitted_a, strict=True) if passes or on]
    assert output(b, intervals) == output(b, sequence)


@given(definitions(), definitions())
def test_covering_of_two_states_is_decided_exactly(a, b):
    """Covering is reported exactly if no sequence of events contradicts it."""
    found = list(every_step((a, b), events_for(a, b)))
    assert states.covers_state(a, b) is all(held_a or not held_b for _, (held_a, held_b) in found)


@given(definitions(), definitions(), definitions())
@example(
    EnterLeave(when(">", 10, "x"), when("<", 5, "x")),
    EnterLeave(when("<", 20, "x"), when(">", 25, "x")),
    EnterLeave(when(">", -1, "x"), when("<", -5, "x")),
)
def test_covering_by_several_states_is_decided_exactly(a, b, c):
    found = list(every_step((a, b, c), events_for(a, b, c)))
    assert states.covers_state((a, b), c) is all(any(held[:2]) or not held[2] for _, held in found)
    if states.covers_state(a, c):
        assert states.covers_state((a, b), c)


def test_two_states_may_cover_one_that_neither_covers_alone():
    """Above 10, or not above 20: whatever the value is, one of the two holds."""
    above, below = EnterLeave(when(">", 10), when("<=", 10)), EnterLeave(when("<=", 20), when(">", 20))
    whole = EnterLeave(when(">", 0), when("<=", -5))
    assert not states.covers_state(above, whole)
    assert not states.covers_state(below, whole)
    assert states.covers_state((above, below), whole)
    assert not states.covers_state((above, EnterLeave(when("<=", 5), when(">", 5))), whole)


def test_too_many_states_cover_only_states_that_one_of_them_covers(monkeypatch):
    monkeypatch.setattr(states, "MOST_TOGETHER", 1)
    assert states.covers_state((HOT, WARM), HOT)
    assert not states.covers_state((HOT, HOT), WARM)


def events_for(*these):
    """An event for each way in which all constraints can judge one."""
    names = sorted({c.name for s in these for f in (*s.enter, *s.leave) for c in f.constraints})
    domains = [[None, *some_of_each(name, *these)] for name in names]
    return [
        {name: v for name, v in zip(names, values, strict=True) if v is not None}
        for values in product(*domains)
    ]


def some_of_each(name, *these):
    """One sample for each way in which the constraints on an attribute can decide."""
    constraints = [c for s in these for f in (*s.enter, *s.leave) for c in f.constraints if c.name == name]
    return {tuple(naive.holds(c, v) for c in constraints): v for v in naive.SAMPLES}.values()


@given(definitions(), definitions())
def test_the_three_clauses_suffice_for_covering(a, b):
    assume(not momentary(a))
    together = truth_classes((a.enter, a.leave, b.enter, b.leave))
    if (
        all(enters_a for enters_a, _, enters_b, _ in together if enters_b)
        and all(leaves_b for _, leaves_a, _, leaves_b in together if leaves_a)
        and not any(enters_b and leaves_a for _, leaves_a, enters_b, _ in together)
    ):
        assert states.covers_state(a, b)


@given(definitions(), definitions(), definitions())
def test_covering_is_reflexive_and_transitive(a, b, c):
    assert states.covers_state(a, a)
    if states.covers_state(a, b) and states.covers_state(b, c):
        assert states.covers_state(a, c)


@pytest.mark.parametrize("kind", ["subscription", "advertisement"])
@given(data=st.data())
def test_covering_of_items_is_reflexive_and_transitive(kind, data):
    a, b, c = (data.draw(naive.numeric_filters) for _ in range(3))
    assert covers(kind, a, a)
    if covers(kind, a, b) and covers(kind, b, c):
        assert covers(kind, a, c)


@given(naive.numeric_filters, naive.numeric_filters, naive.contents())
def test_a_coverer_matches_everything_that_a_covered_subscription_matches(a, b, content):
    assume(covers("subscription", a, b))
    assert satisfies(a, content) or not satisfies(b, content)


@given(naive.numeric_filters, naive.numeric_filters, naive.numeric_filters)
def test_a_covered_advertisement_attracts_nothing_that_its_coverer_does_not(a, b, wanted):
    assume(covers("advertisement", a, b))
    attracts = [naive.relations_of(wanted, advertised, "subset", "intersection") for advertised in (a, b)]
    assert attracts[0] or not attracts[1]


@given(st.lists(naive.numeric_filters, max_size=8), st.randoms(use_true_random=False), naive.contents())
def test_active_subscriptions_match_everything_that_all_match_in_any_order(filters, random, content):
    stored = ItemTable("subscription")
    items = [Item(i, filter_) for i, filter_ in enumerate(filters)]
    random.shuffle(items)
    for item in items:
        stored.insert(item)
    wanted = any(satisfies(filter_, content) for filter_ in filters)
    assert any(satisfies(item.filter, content) for item in stored.active()) is wanted
