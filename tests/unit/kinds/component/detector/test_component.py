"""One component over time: its evaluations, its state, and its keys."""

from __future__ import annotations

import pytest

from holdfast.kinds.component.detector import component
from holdfast.model.instant import BEGINNING, NEVER
from support.fused import SECOND, machine, marks, reading, run_components

T = "topic T (value float, name text)\n"


# --- instants ----------------------------------------------------------------------------------


def test_a_component_is_evaluated_when_a_reading_arrives_and_just_after_one_leaves_its_window():
    text = T + "state S A = avg T over 10 s each location enter A.value > 2 exit A.value < 2"
    readings = [reading(0, "T", 1, 5.0), reading(5, "T", 1, 1.0), reading(30, "T", 1, 1.0)]
    assert marks(text, readings) == [("ingress", 0), ("egress", 10.000001)]


def test_an_event_that_enters_a_delayed_window_causes_an_evaluation():
    text = T + "state S A = max T over [-9 s, -5 s] enter A.value > 2 exit true"
    assert marks(text, [reading(0, "T", 1, 5.0), reading(20, "T", 1, 0.0)]) == [("atomic", 5)]


def test_ticks_evaluate_at_their_multiples_while_the_component_has_readings():
    text = T + "state Beat A = T enter last.time < now - 3 s exit true tick 1 s"
    assert marks(text, [reading(0.5, "T", 1, 1.0), reading(9, "T", 1, 1.0)]) == [
        ("atomic", 0.5),
        ("atomic", 4),
        ("atomic", 8),
    ]
    fading = T + "state Beat A = count T over 2 s enter true exit true tick 1 s"
    assert [at for _, at in marks(fading, [reading(0.5, "T", 1, 1.0), reading(9.5, "T", 1, 1.0)])] == [
        0.5, 1, 2, 9.5,
    ]  # fmt: skip


YEARS = 30 * 365 * 24 * 3600


@pytest.mark.parametrize("query", ["T", "max T over 5 s", "T each location", "count T over [-9 s, -5 s]"])
def test_a_component_silent_for_thirty_years_is_evaluated_once_and_at_the_next_reading(query, monkeypatch):
    looked, evaluate = [], component._evaluate
    monkeypatch.setattr(component, "_evaluate", lambda *given: looked.append(given[-1]) or evaluate(*given))
    text = T + f"state S A = {query} enter A.value > 5 exit A.value < 2 tick 1 s"
    at = [reading(0.5, "T", 1, 9.0), reading(YEARS, "T", 1, 1.0), reading(YEARS + 60, "T", 1, 1.0)]
    assert marks(text.replace("count T", "max T"), at)[0][0] == "ingress"
    assert 3 < len(looked) < 40


def test_a_component_that_depends_on_time_has_ten_thousand_ticks_after_a_reading():
    ends = 10_000 - 1
    for text, last in (
        ("enter A.value > 1 exit true", ("atomic", ends)),
        ("enter A.value > 1 exit A.value > 1", ("ingress", ends)),
        ("enter A.time < now - 9999 s exit A.value < 1", ("ingress", ends)),
        ("enter A.time < now - 2 h exit A.time >= now - 2 h", ("ingress", 7200)),
    ):
        text = T + f"state S A = T {text} tick 1 s"
        readings = [reading(-1, "T", 1, 5.0), reading(YEARS, "T", 1, 5.0)]
        emitted = [mark for mark in marks(text, readings) if mark[1] < YEARS]
        assert emitted[-1] == last


def test_events_outside_the_queries_do_not_evaluate_a_component():
    text = T + "topic U (value float)\nstate S A = T within [0, 5] enter last.time <= now - 1 s exit true"
    readings = [
        reading(0, "T", 1, 1.0),
        reading(2, "U", 1, 1.0),
        reading(4, "T", 9, 1.0),
        reading(6, "T", 2, 1.0),
    ]
    assert marks(text, readings) == [("atomic", 0), ("atomic", 6)]


def test_an_event_of_another_key_does_not_evaluate_a_component():
    text = T + "state S A = T each location enter last.time <= now - 2 s exit true"
    readings = [
        reading(0, "T", 1, 1.0),
        reading(1, "T", 2, 1.0),
        reading(3, "T", 2, 1.0),
        reading(4, "T", 1, 1.0),
    ]
    assert run_components(text, readings) == [
        ("S", "1.0", "atomic", 0),
        ("S", "2.0", "atomic", 1),
        ("S", "2.0", "atomic", 3),
        ("S", "1.0", "atomic", 4),
    ]


def test_time_advances_without_events_when_the_host_asks_for_it():
    it = machine(T + "state S A = sum T over 10 s enter A.value > 2 exit A.value < 2")
    state, _ = it.react(it.initial(), reading(0, "T", 1, 1.5))
    state, _ = it.react(state, reading(4, "T", 1, 1.5))
    state, out = it.advance(state, 4 * SECOND)
    assert (out, it.due(state)) == ([], 4 * SECOND)
    state, out = it.advance(state, 5 * SECOND)
    assert [t.status for t in out] == ["ingress"]
    assert it.due(state) == 10 * SECOND + 1
    state, out = it.advance(state, 11 * SECOND)
    assert [(t.status, t.since, t.event.time) for t in out] == [("egress", 4 * SECOND, 10 * SECOND + 1)]


def test_time_ends_with_the_last_event_when_the_input_ends():
    it = machine(T + "state S A = sum T over 10 s enter A.value > 2 exit A.value < 2 tick 1 s")
    state, _ = it.react(it.initial(), reading(0, "T", 1, 3.0))
    state, out = it.advance(state, NEVER)
    assert [t.status for t in out] == ["ingress"]
    assert [since for _, _, since in it.active(state)] == [0]


# --- guards ------------------------------------------------------------------------------------

GUARD = T + "state Hot on T each source enter value > 25 for 5 s exit value < 22 for 2 s"


def test_a_minimum_duration_elapses_while_the_predicate_is_true():
    readings = [
        reading(t, "T", 1, v) for t, v in enumerate([26, 26, 24, 26, 27, 26, 26, 26, 26, 26, 20, 20, 20, 20])
    ]
    assert marks(GUARD, readings) == [("ingress", 8), ("egress", 12)]


def test_a_minimum_duration_elapses_between_readings():
    assert marks(GUARD, [reading(0, "T", 1, 26.0), reading(60, "T", 1, 26.0)]) == [("ingress", 5)]


def test_a_minimum_duration_over_one_value_equals_a_lasting_condition():
    """The same with the means of the thesis: an inner component, and the time since its start."""
    inner = (
        T
        + """
        state Above A = T each source enter A.value > 25 exit A.value <= 25
        state Hot
          G = ingress Above each source
          W = ingress Above any time over [-4.999999 s, now] each source
          enter G.valid && G.time <= now - 5 s
          exit true
    """
    )
    guard = T + "state Hot on T each source enter value > 25 for 5 s exit true"
    for values in ([26, 26, 24, 26, 27, 26, 26, 26, 26], [30] * 7, [26, 20, 26, 20]):
        readings = [reading(t, "T", 1, v) for t, v in enumerate(values)]
        assert marks(inner, readings, "Hot")[:1] == marks(guard, readings, "Hot")[:1]


def test_a_missing_value_interrupts_a_minimum_duration():
    readings = [reading(t, "T", 1, v) for t, v in enumerate([26, 26, None, 26, 26, 26, 26, 26, 26])]
    assert marks(GUARD, readings) == [("ingress", 8)]


def test_an_interrupted_minimum_duration_causes_no_evaluation_at_its_former_end():
    """An invalid event stays invalid at every later instant, but is not evaluated before the next event."""
    text = T + "topic U ()\nstate Old A = T B = U enter A.value > 1 && !A.valid for 10 s exit true"
    ticks = [reading(t, "U", 1) for t in (1, 20)]
    readings = [reading(0, "T", 1, 5.0), reading(2, "T", 1, 5.0), *ticks, reading(40, "T", 1, 0.0)]
    assert marks(text, readings) == [("atomic", 30)]


# --- memory ------------------------------------------------------------------------------------


def test_last_is_the_previous_event_of_the_component_for_the_key():
    text = T + "state Rise A = T each location enter A.value > last.value exit true"
    readings = [
        reading(t, "T", where, v) for t, (where, v) in enumerate([(1, 5), (2, 1), (1, 4), (2, 2), (1, 6)])
    ]
    assert run_components(text, readings) == [
        ("Rise", "1.0", "atomic", 0),
        ("Rise", "2.0", "atomic", 1),
        ("Rise", "2.0", "atomic", 3),
        ("Rise", "1.0", "atomic", 4),
    ]


def test_before_the_first_event_a_comparison_with_last_is_true_and_last_valid_false():
    assert marks(T + "state S A = T enter last.value > 100 exit true", [reading(0, "T", 1, 1.0)]) == [
        ("atomic", 0)
    ]
    assert marks(T + "state S A = T enter last.valid exit true", [reading(0, "T", 1, 1.0)]) == []
    first = T + "state S A = T enter !last.valid exit true"
    assert marks(first, [reading(0, "T", 1, 1.0), reading(1, "T", 1, 1.0)]) == [("atomic", 0)]


@pytest.mark.parametrize(
    "atom",
    ["!(last.value > 5)", "!(last.value <= 5)", "last.high", "!last.high", "!(last.high && A.value < 0)"],
)
def test_before_the_first_event_every_comparison_with_last_is_true(atom):
    text = T + f"state S A = T enter {atom} set high = A.value > 9 exit true"
    assert marks(text, [reading(0, "T", 1, 1.0)]) == [("atomic", 0)]


# --- what a predicate does not mention ---------------------------------------------------------


def test_a_query_without_readings_does_not_block_a_predicate_that_does_not_mention_it():
    """The loop fails; the condition can still end.  [hazard 18]"""
    text = """
        topic Loop (value float)  topic Speed (value float)
        state S
          A = avg Loop over 5 s each location
          B = avg Speed over 5 s each location
          enter A.value > 2 && B.value < 7
          exit B.value > 15 set loop = A.value
    """
    readings = [reading(0, "Loop", 1, 3.0), reading(0, "Speed", 1, 5.0), reading(20, "Speed", 1, 20.0)]
    assert marks(text, readings) == [("ingress", 0), ("egress", 20)]


def test_a_predicate_without_queries_still_needs_a_reading():
    text = T + "topic U (value float)\nstate S A = T B = U enter last.time <= now - 1 s exit true"
    assert marks(text, [reading(0, "T", 1, 1.0)]) == []
    assert marks(text, [reading(0, "T", 1, 1.0), reading(1, "U", 1, 1.0)]) == [("atomic", 1)]


# --- late events -------------------------------------------------------------------------------

WINDOW = T + "state S A = sum T over 10 s enter A.value > 2 exit A.value < 1 {delivery}"


@pytest.mark.parametrize(
    ("delivery", "late", "received"),
    [
        ("", 0, [("ingress", 5)]),
        ("ordered 1 s", 1, []),
        ("ordered 1 s late apply", 0, [("ingress", 4)]),
        ("ordered 3 s", 0, [("ingress", 4)]),
    ],
)
def test_a_late_event_is_applied_emitted_or_waited_for(delivery, late, received):
    it = machine(WINDOW.format(delivery=delivery))
    state, out, missed = it.initial(), [], 0
    for event in [reading(4, "T", 1, 1.0), reading(5, "T", 1, 0.5), reading(2, "T", 1, 1.5)]:
        state, some = it.react(state, event)
        missed += sum(t.status == "late" for t in some)
        state, more = it.advance(state, state.latest)
        out += more
    state, more = it.advance(state, NEVER)
    assert missed == late
    assert [(t.status, t.event.time / SECOND) for t in out + more] == received


def test_info_time_never_goes_back():
    it = machine(WINDOW.format(delivery=""))
    state, _ = it.advance(it.initial(), 9 * SECOND)
    state, _ = it.advance(state, 2 * SECOND)
    assert [one.until for one in state.components] == [9 * SECOND]
    assert it.advance(it.initial(), BEGINNING)[1] == []


def test_ticks_start_with_a_late_event():
    it = machine(T + "state S A = T enter A.value > 1 exit true tick 1 s")
    state, _ = it.advance(it.initial(), 5 * SECOND)
    state, _ = it.react(state, reading(3, "T", None, 2.0))
    _, out = it.advance(state, 8 * SECOND)
    assert [t.event.time // SECOND for t in out] == [5, 6, 7]


# --- memory grows with the window, not with history --------------------------------------------


def test_only_the_latest_place_of_a_moving_source_is_stored():
    it = machine(T + "state S A = T each source enter A.value > 9 exit true")
    state = it.initial()
    for t in range(50):
        state, _ = it.react(state, reading(t, "T", t, 1.0))
    state, _ = it.advance(state, NEVER)
    assert [len(some) for some in state.components[0].info.points["A"].values()] == [1]


@pytest.mark.parametrize(
    ("query", "most"), [("avg T over 5 s each location", 14), ("T each location", 2), ("T at -3 s", 10)]
)
def test_readings_that_no_query_can_select_again_are_discarded(query, most):
    it = machine(T + f"state S A = {query} enter A.value > 9 exit true")
    state = it.initial()
    for t in range(200):
        for where in (1, 2):
            state, _ = it.react(state, reading(t, "T", where, 1.0))
        state, _ = it.advance(state, t * SECOND)
        stored = sum(len(some) for view in state.components[0].info.points.values() for some in view.values())
        assert stored <= most
    assert len(it.dump(state)) < 3000
