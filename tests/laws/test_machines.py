"""The laws of DESIGN §1 for every machine in the table of `support.machines`."""

from __future__ import annotations

import inspect
import os
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from holdfast import engine, kinds
from holdfast.engine import slices
from holdfast.engine.carry_over import CarryingOver
from holdfast.engine.composite import Composite
from holdfast.engine.machine import Emission, Machine, compact_part, transitions
from holdfast.engine.operator import Operator
from holdfast.kinds.registry import KINDS
from holdfast.kinds.state.condition import DurationCondition
from holdfast.kinds.state.lossy import LossyToggleMachine as Lossy
from holdfast.lang.condition import Checked
from holdfast.model.batch import from_events, latest_time, row_count, to_events
from holdfast.model.event import Event, Notification, Transition
from holdfast.model.instant import BEGINNING, NEVER, SECOND, Duration, Instant
from holdfast.model.qos import Correct, Delivery
from holdfast.plan import compile as planning
from support.corrected import standing
from support.machines import MACHINES, Listed, to_checked

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES") or 8)
AFTER = 60 * SECOND
"""Later than all histories by more than anybody waits or looks back."""

Script = Sequence[tuple[Sequence[Event], Instant]]
"""Parts of a history, and how far time has come with each."""


@dataclass(frozen=True)
class Trial:
    """A machine of a random definition, a random history, and chance."""

    kind: Listed
    definition: Any
    checked: Checked
    operator: Operator
    history: list[Event]
    draw: Callable[[st.SearchStrategy[Any]], Any]

    @property
    def it(self) -> Machine:
        return self.operator.machine

    @cached_property
    def events(self) -> list[Event]:
        """The events of the history that the machine consumes."""
        return [event for event in self.history if event.topic in self.it.topics]

    @cached_property
    def last(self) -> Instant:
        return max((event.time for event in self.events), default=0)

    @cached_property
    def conditions(self) -> list[Any]:
        """The conditions that the machine runs."""
        names = {name for names in self.operator.names for name in names}
        return [one for one in self.checked.conditions if one.name in names]

    @cached_property
    def wait(self) -> Duration:
        """How far behind the latest an event may come and change nothing in the end."""
        return min((one.delivery.wait or 0) + correction_time(one.delivery) for one in self.conditions)

    def compiled(self, conditions: Sequence[Any]) -> Trial:
        """The same trial with a part of the conditions."""
        (operator,) = KINDS[self.operator.kind].compile(conditions, self.checked.topics, sharded=False)
        return replace(self, operator=operator)

    # --- how a history arrives ---

    def arriving(self) -> list[Event]:
        """The events, as they may arrive and mean the same: as they came where that is the meaning, else
        in order of time but for what the machine waits for."""
        if not self.it.traits.uses_watermark:
            return self.events
        size = len(self.events)
        delays = self.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        pairs = zip(self.events, delays, strict=True)
        order = sorted((event.time + self.wait * delay // 4, i) for i, (event, delay) in enumerate(pairs))
        return self.in_scope_order([self.events[i] for _, i in order])

    def in_scope_order(self, arriving: Sequence[Event]) -> list[Event]:
        """The same events, but derived events of one scope stay in their order of emission."""
        if not self.kind.consumes_conditions:
            return list(arriving)
        output = sorted(arriving, key=lambda event: self._places[id(event)])
        turns = {
            who: iter([event for event in output if speaker(event) == who]) for who in map(speaker, output)
        }
        return [next(turns[speaker(event)]) for event in arriving]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(event): i for i, event in enumerate(self.events)}

    def cut(self, events: Sequence[Event]) -> Script:
        """The events in parts; with each time comes as far as the latest, or not at all."""
        some = st.lists(st.integers(0, len(events)), max_size=3)
        ends = sorted(self.draw(some | some | st.just(range(len(events)))))
        now, parts = min((event.time for event in events), default=0), []
        for start, end in pairwise([0, *ends, len(events)]):
            if self.draw(st.booleans()):
                now = max([now, *(event.time for event in events[:end])])
            parts.append((events[start:end], now))
        return parts

    def at_odds(self) -> Script:
        """The events in parts, some of them late, with times that come and go as they like."""
        moments = {event.time + more for event in self.events for more in (0, 1, self.wait, self.wait + 1)}
        instant = st.sampled_from(sorted(moments) or [0])
        return [(part, self.draw(instant)) for part, _ in self.cut(self.events)]

    # --- the machine at work ---

    def batches(self, events: Sequence[Event]) -> dict[str, pa.RecordBatch]:
        """A batch of each topic that has events."""
        found: dict[str, list[Event]] = {}
        for event in events:
            if event.topic in self.it.topics:
                found.setdefault(event.topic, []).append(event)
        return {name: from_events(self.it.topics[name], some) for name, some in found.items()}

    def to_transitions(self, result: tuple[Any, Emission]) -> tuple[Any, list[Transition]]:
        state, emitted = result
        return state, transitions(self.it.topics, emitted)

    def step(self, state: Any, part: Sequence[Event], until: Instant) -> tuple[Any, list[Transition]]:
        return self.to_transitions(self.it.step(state, self.batches(part), until))

    def fold(self, state: Any, part: Sequence[Event], until: Instant) -> tuple[Any, list[Transition]]:
        """React to event after event."""
        out: list[Transition] = []
        for event in self.in_turn(part):
            state, some = self.it.react(state, event)
            out += some
        state, some = self.it.advance(state, until)
        return state, out + some

    def in_turn(self, part: Sequence[Event]) -> list[Event]:
        """The events topic by topic, or as the machine merges topics."""
        found: list[tuple[Instant, Event]] = []
        for topic in self.batches(part):
            mine = [event for event in part if event.topic == topic]
            found += zip(accumulate((event.time for event in mine), max), mine, strict=True)
        if self.kind.merges:
            found.sort(key=lambda pair: pair[0])
        return [event for _, event in found]

    def run(self, script: Script, state: Any = None) -> tuple[Any, list[Transition]]:
        """The state after a script, and everything that was emitted."""
        state, out = self.it.initial() if state is None else state, []
        for part, until in script:
            state, some = self.step(state, part, until)
            out += some
        return state, out

    # --- what can be seen of it ---

    def seen(self, output: Sequence[Transition]) -> list[Any]:
        """Transitions in the guaranteed order; of corrected ones only those that were not retracted."""
        ordered = sorted(output, key=self.kind.order)
        rows = [(t.condition, t.scope, t.status, t.since, show_event(t.event)) for t in ordered]
        return standing(rows, 2) if self.kind.corrects else rows

    def known(self, state: Any) -> list[Any]:
        """For each condition the active scopes with their start and the last emission."""
        return [
            (
                sorted((row[1:] for row in self.it.active(state) if row[0] == i), key=repr),
                sorted((row[1:] for row in self.it.unknown(state) if row[0] == i), key=repr),
                sorted(show_event(t.event) for t in self.it.latest_transitions(state, i)),
            )
            for i in range(len(self.operator.names))
        ]

    def left(self, batches: dict[str, pa.RecordBatch]) -> dict[str, list[str]]:
        """The events that batches still have."""
        found = ((name, to_events(self.it.topics[name], batch)) for name, batch in batches.items())
        return {name: list(map(show_event, events)) for name, events in found}


def speaker(event: Event) -> tuple[str, Any]:
    """The condition and the scope of a derived event."""
    return event.topic, event.attributes["@scope"]


def correction_time(delivery: Delivery) -> Duration:
    """How much later still an event may come."""
    return delivery.late.within if isinstance(delivery.late, Correct) else 0


def show_event(event: Event) -> str:
    """An event without what is missing."""
    there = {name: value for name, value in event.attributes.items() if value is not None and value == value}
    return repr(replace(event, attributes=there))


def over(kinds: Sequence[Listed]) -> Callable[[Callable[[list[Trial]], None]], Any]:
    """Try a law on kinds of machines; it is given all machines of a random definition."""

    def decorate(test: Callable[[list[Trial]], None]) -> Any:
        def try_kind(kind: Listed, data: st.DataObject) -> None:
            with ExitStack() as stack:
                for name, values in kind.tuned.items():
                    stack.enter_context(patch(name, data.draw(st.sampled_from(values))))
                definition, history = data.draw(kind.definitions), data.draw(kind.histories)
                meant = to_checked(definition)
                made = [one for one in planning.operators(meant) if one.kind == kind.family]
                test([Trial(kind, definition, meant, operator, history, data.draw) for operator in made])

        try_kind.__name__, try_kind.__qualname__, try_kind.__doc__ = (
            test.__name__,
            test.__qualname__,
            test.__doc__,
        )
        some = settings(max_examples=EXAMPLES)
        return pytest.mark.parametrize("kind", kinds, ids=repr)(some(given(data=st.data())(try_kind)))

    return decorate


def law(test: Callable[[Trial], None]) -> Any:
    """Try a law on every machine."""

    def each(trials: list[Trial]) -> None:
        for trial in trials:
            test(trial)

    each.__name__, each.__qualname__, each.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return over(MACHINES)(each)


# --- what it means -------------------------------------------------------------------------------------


@over([kind for kind in MACHINES if kind.twin is not None])
def test_machines_equal_their_naive_twins(trials):
    emitted: list[Notification] = []
    for trial in trials:
        _, output = trial.run([*trial.cut(trial.arriving()), ([], NEVER)])
        emitted += trial.operator.address(output)
    kind, definition, history = trials[0].kind, trials[0].definition, trials[0].history
    assert kind.rows_of(definition, history, emitted) == kind.twin(definition, history)


# --- law 0 ---------------------------------------------------------------------------------------------


@law
def test_law_0_a_step_folds_reactions_and_then_advances_time(trial):
    """This includes late events, and alternating single events and batches."""
    state, other = trial.it.initial(), trial.it.initial()
    for part, until in [*trial.at_odds(), ([], NEVER)]:
        state, output = trial.step(state, part, until)
        other, out = (trial.fold if trial.draw(st.booleans()) else trial.step)(other, part, until)
        assert trial.seen(out) == trial.seen(output)
        assert trial.known(other) == trial.known(state)


# --- law 1 ---------------------------------------------------------------------------------------------


@law
def test_law_1_a_history_can_be_cut_into_steps_anywhere(trial):
    """Events may arrive in any order where the machine waits for it."""
    arriving = trial.arriving()
    script = trial.cut(arriving)
    if trial.it.traits.uses_watermark and not trial.kind.as_it_comes:
        script = [(trial.in_scope_order(trial.draw(st.permutations(part))), until) for part, until in script]
        arriving = trial.in_scope_order(sorted(arriving, key=lambda event: event.order))
    state, output = trial.run(script)
    whole, expected = trial.run([(arriving, script[-1][1])])
    assert trial.seen(output) == trial.seen(expected)
    assert trial.known(state) == trial.known(whole)
    assert trial.it.due(state) == trial.it.due(whole)
    assert trial.seen(trial.it.advance(state, NEVER)[1]) == trial.seen(trial.it.advance(whole, NEVER)[1])


@law
def test_law_1_arrivals_between_two_watermarks_can_be_cut_anywhere(trial):
    """This includes late events unless they are applied on arrival. A minimum duration processes an
    applied late event before the timers that fired since, so advancing between two of them makes a
    difference."""
    guards = any(isinstance(one, DurationCondition) for one in trial.conditions)
    deliveries = [one.delivery for one in trial.conditions]
    if trial.it.traits.uses_watermark and any(
        way.wait is None or (guards and way.late == "apply") for way in deliveries
    ):
        return
    cut = trial.draw(st.integers(0, len(trial.events)))
    before, after = (trial.draw(st.integers(0, trial.last)) for _ in range(2))
    first, second = trial.events[:cut], trial.events[cut:]
    state, output = trial.run([([], before), (first, before), (second, after)])
    whole, expected = trial.run([([], before), (trial.events, after)])
    assert trial.seen(output) == trial.seen(expected)
    assert trial.known(state) == trial.known(whole)
    assert trial.it.due(state) == trial.it.due(whole)


# --- law 2 ---------------------------------------------------------------------------------------------

WAYS: dict[str, Callable[[Machine, Any, Instant], dict[str, pa.RecordBatch]]] = {
    "closed": lambda it, whole, latest: compact_part(it, whole),
    "not closed": lambda it, whole, latest: compact_part(it, whole, closed=False),
    "with the latest known": lambda it, whole, latest: compact_part(
        it, compact_part(it, whole, latest=latest + 1), latest=latest
    ),
}
"""How a part may be reduced by whoever reads it, if no event before it was later than ``latest``."""


@law
def test_law_2_irrelevant_events_can_be_dropped_anywhere(trial):
    it, latest = trial.it, BEGINNING
    plain, thin = it.initial(), {way: it.initial() for way in WAYS}
    for part, until in [*trial.cut(trial.events), ([], NEVER)]:
        whole = trial.batches(part)
        plain, expected = trial.to_transitions(it.step(plain, whole, until))
        for way, reduced in WAYS.items():
            less = reduced(it, whole, latest)
            counts = {topic: (row_count(batch), latest_time(batch)) for topic, batch in less.items()}
            assert counts == {topic: (len(batch), latest_time(batch)) for topic, batch in whole.items()}
            thin[way], output = trial.to_transitions(it.step(thin[way], less, until))
            assert (way, trial.seen(output)) == (way, trial.seen(expected))
        latest = max([latest, until, *(event.time for event in part)])


@law
def test_law_2_compaction_is_idempotent(trial):
    """An open part is compacted like a closed one unless the machine declares that it compacts."""
    it, whole = trial.it, trial.batches(trial.events)
    closed, loose = compact_part(it, whole), compact_part(it, whole, closed=False)
    assert trial.left(compact_part(it, closed)) == trial.left(closed)
    assert trial.left(compact_part(it, loose, closed=False)) == trial.left(loose)
    assert it.traits.compacts or trial.left(loose) == trial.left(closed)


@law
def test_law_2_compaction_of_an_open_part_keeps_all_relevant_events(trial):
    """A part of the events goes to a reader that does not know the others."""
    mine = [i for i in range(len(trial.events)) if trial.draw(st.booleans())]
    less = compact_part(trial.it, trial.batches([trial.events[i] for i in mine]), closed=False)
    stored = {event for some in trial.left(less).values() for event in some}
    filtered = [e for i, e in enumerate(trial.events) if i not in mine or show_event(e) in stored]
    state, output = trial.run([(filtered, trial.last)])
    whole, expected = trial.run([(trial.events, trial.last)])
    assert trial.seen(output) == trial.seen(expected)
    assert sorted(trial.it.active(state), key=repr) == sorted(trial.it.active(whole), key=repr)


# --- law 3 ---------------------------------------------------------------------------------------------


@over(MACHINES)
def test_law_3_shards_without_common_keys_can_run_separately(trials):
    """Sharded operators name the key by which events meet."""
    for operator in planning.operators(trials[0].checked, sharded=True):
        history = {event.topic for event in trials[0].history}
        if operator.kind != trials[0].kind.family or not operator.upstream_topics <= history:
            continue  # an operator of an earlier stage, or one with an upstream
        trial = replace(trials[0], operator=operator)
        script = [*trial.cut(trial.events), ([], AFTER)]
        state, output = trial.run(script)
        keys = {id(event): key for event, key in key_events(trial)}
        apart, holding = [], []
        for own in set(keys.values()):
            mine = [([event for event in part if keys[id(event)] == own], until) for part, until in script]
            part, some = trial.run(mine)
            apart += some
            holding += operator.machine.active(part)
        assert sorted(trial.seen(apart), key=repr) == sorted(trial.seen(output), key=repr)
        assert sorted(holding, key=repr) == sorted(operator.machine.active(state), key=repr)


def key_events(trial: Trial) -> Iterator[tuple[Event, str | None]]:
    """The events, each with the key by which it meets others."""
    for topic, batch in trial.batches(trial.events).items():
        keys = trial.operator.keys(topic, batch)
        codes, texts = keys.codes, keys.array.to_pylist()
        mine = (event for event in trial.events if event.topic == topic)
        yield from zip(mine, (texts[code] if code >= 0 else None for code in codes), strict=True)


@law
def test_law_3_conditions_are_independent_of_others_in_the_same_machine(trial):
    some = choose(trial)
    script = [*trial.cut(trial.arriving()), ([], AFTER)]
    emitted = [
        [n for n in one.operator.address(one.run(script)[1]) if n.subscription in names_of(some)]
        for one in (trial.compiled(some), trial)
    ]
    assert sorted(map(repr, emitted[0])) == sorted(map(repr, emitted[1]))


def choose(trial: Trial) -> list[Any]:
    """Choose at least one of the conditions, with those that it builds on."""
    numbers = trial.draw(st.sets(st.integers(0, len(trial.conditions) - 1), min_size=1))
    names = {trial.conditions[i].name for i in numbers}
    for one in reversed(trial.conditions):
        names |= inputs_of(one) if one.name in names else set()
    return [one for one in trial.conditions if one.name in names]


def inputs_of(condition: Any) -> set[str]:
    """The names of topics, and of other conditions, that a condition consumes."""
    return {topic.name for topic in getattr(condition, "listens", ())}


def names_of(conditions: Sequence[Any]) -> set[str]:
    return {one.name for one in conditions}


# --- stored states -------------------------------------------------------------------------------------


@law
def test_a_stored_state_continues_without_any_difference(trial):
    it, script = trial.it, trial.at_odds()
    at = trial.draw(st.integers(0, len(script)))
    state, _ = trial.run(script[:at])
    again = it.load(it.dump(state))
    assert trial.known(again) == trial.known(state)
    assert it.due(again) == it.due(state)
    for i in range(len(trial.operator.names)):
        assert it.is_initial(again, i) == it.is_initial(state, i)
    for part, until in [*script[at:], ([], NEVER)]:
        again, output = trial.step(again, part, until)
        state, expected = trial.step(state, part, until)
        assert trial.seen(output) == trial.seen(expected)
    assert trial.known(again) == trial.known(state)


@law
def test_a_stored_state_continues_for_unchanged_conditions_and_new_ones_start(trial):
    before, after = choose(trial), choose(trial)
    old, new = trial.compiled(before), trial.compiled(after)
    numbers = {meaning: i for i, meaning in enumerate(old.operator.meanings)}
    was = [numbers.get(meaning) for meaning in new.operator.meanings]
    script = trial.cut(trial.arriving())
    at = trial.draw(st.integers(0, len(script)))
    if None in was:  # to new ones, what was held back until now would be new
        latest = max([0, *(event.time for part, _ in script[:at] for event in part)])
        script = [*script[:at], ([], latest + trial.wait + 1), *script[at:]]
        at += 1
    state, _ = old.run(script[:at])
    resumed = new.it.load(old.it.dump(state), was)
    known, nothing = old.known(state), ([], [], [])
    assert new.known(resumed) == [nothing if number is None else known[number] for number in was]
    fresh, _ = new.run([([], until) for _, until in script[:at]])
    rest = [*script[at:], ([], AFTER)]
    (_, output), (_, stayed), (_, started) = (
        new.run(rest, resumed),
        old.run(rest, state),
        new.run(rest, fresh),
    )
    for i, number in enumerate(was):
        if number is not None:
            expected = [t._replace(condition=i) for t in stayed if t.condition == number]
        elif consumes_none_of(after, new.operator.names[i], names_of(before)):
            expected = [t for t in started if t.condition == i]
        else:
            continue  # a condition that consumes others
        assert new.seen([t for t in output if t.condition == i]) == new.seen(expected)


def consumes_none_of(conditions: Sequence[Any], names: Sequence[str], others: set[str]) -> bool:
    """Whether conditions with some names consume none of the others."""
    return all(inputs_of(one).isdisjoint(others) for one in conditions if one.name in names)


@law
def test_a_delta_brings_a_stored_state_up_to_date(trial):
    """Deltas may be taken any number of times. A state that applies them continues as if it had seen the
    events."""
    it = trial.it
    if not it.has_deltas:
        pytest.skip("it does not note what changes")
    state, script = it.track_changes(it.initial()), trial.at_odds()
    at = trial.draw(st.integers(0, len(script)))
    other = it.load(it.dump(state))
    for part, until in script[:at]:
        state, _ = (trial.fold if trial.draw(st.booleans()) else trial.step)(state, part, until)
        if trial.draw(st.booleans()):
            other = up_to_date(it, other, state)
    other = up_to_date(it, other, state)
    assert trial.known(other) == trial.known(state)
    assert it.due(other) == it.due(state)
    rest = [*script[at:], ([], NEVER)]
    (_, output), (_, expected) = trial.run(rest, other), trial.run(rest, state)
    assert trial.seen(output) == trial.seen(expected)


def up_to_date(it: Any, other: Any, state: Any) -> Any:
    """A state with what has changed in the one that notes that."""
    changed = it.delta(state)
    return it.apply_delta(other, changed) if changed else other if changed == b"" else it.load(it.dump(state))


@law
def test_a_condition_in_its_initial_state_equals_a_new_one(trial):
    it, script = trial.it, trial.cut(trial.arriving())
    at = trial.draw(st.integers(0, len(script)))
    state, _ = trial.run(script[:at])
    new, _ = trial.run([([], until) for _, until in script[:at]])
    fresh = [i for i in range(len(trial.operator.names)) if it.is_initial(state, i)]
    assert all(trial.known(state)[i] == trial.known(new)[i] for i in fresh)
    assert all(it.is_initial(new, i) for i in range(len(trial.operator.names)))
    rest = [*script[at:], ([], AFTER)]
    (_, output), (_, expected) = trial.run(rest, state), trial.run(rest, new)
    for i in fresh:
        if consumes_none_of(trial.conditions, trial.operator.names[i], names_of(trial.conditions)):
            assert trial.seen([t for t in output if t.condition == i]) == trial.seen(
                [t for t in expected if t.condition == i]
            )


# --- time ----------------------------------------------------------------------------------------------


@law
def test_advancing_to_the_due_time_emits_nothing(trial):
    state, _ = trial.run(trial.at_odds())
    due = trial.it.due(state)
    state, output = trial.it.advance(state, AFTER if due is None else due)
    assert output == []
    assert trial.it.due(state) == due


@law
def test_advancing_past_each_due_time_emits_everything_that_waits(trial):
    it, until = trial.it, trial.last + AFTER // 4
    come = trial.draw(st.sampled_from((trial.fold, trial.step)))
    woken, out = come(it.initial(), trial.events, BEGINNING)
    at_once, expected = come(it.initial(), trial.events, BEGINNING)
    while (due := it.due(woken)) is not None and due < until:
        woken, output = it.advance(woken, due + 1)
        out += output
        assert (again := it.due(woken)) is None or again > due
    at_once, output = it.advance(at_once, until)
    assert trial.seen(out) == trial.seen(expected + output)
    assert it.due(woken) == it.due(at_once)


# --- what is read --------------------------------------------------------------------------------------


@law
def test_slices_with_a_margin_emit_what_the_whole_history_emits(trial):
    it = trial.it
    if it.traits.lookaround is None:
        pytest.skip("everything before an event may matter")
    parts: dict[int, dict[str, pa.RecordBatch]] = {}
    with patch.object(slices, "HOUR", 0), patch.object(slices, "MARGINS", 1):
        for topic, batch in trial.batches(trial.events).items():
            for number, mine in slices.slices_of(it.traits.lookaround, batch):
                parts.setdefault(number, {})[topic] = mine
        emitted = [
            transitions(
                it.topics,
                slices.own_part(it.step(it.initial(), mine, NEVER)[1], number, it.traits.lookaround),
            )
            for number, mine in parts.items()
        ]
    _, whole = trial.run([(trial.events, NEVER)])
    assert trial.seen([t for some in emitted for t in some]) == trial.seen(whole)


@law
def test_relevance_of_a_batch_is_that_of_its_events_and_counts_events_outside_scopes(trial):
    """For a closed part it selects what compaction keeps. A condition ignores events outside all its
    scopes."""
    beyond: dict[int, Any] = {}
    for topic, batch in trial.batches(trial.events).items():
        found = trial.it.relevance(topic, batch)
        relevant, outside = found.satisfies, found.outside
        singly = [trial.it.relevance(topic, batch.slice(i, 1)) for i in range(len(batch))]
        assert relevant.tolist() == [one.satisfies.item() for one in singly]
        assert outside.tolist() == sum(one.outside for one in singly).tolist()
        left = compact_part(trial.it, {topic: batch}, latest=BEGINNING)
        assert trial.left({topic: batch.filter(pa.array(found.decides))}) == trial.left(left)
        mine = [event for event in trial.events if event.topic == topic]
        beyond |= {id(event): one.outside for event, one in zip(mine, singly, strict=True)}
        sources = {event.source for event, stays in zip(mine, relevant.tolist(), strict=True) if stays}
        assert sources <= trial.operator.sources.get(topic, sources)
    _, whole = trial.run([(trial.events, trial.last)])
    i = trial.draw(st.integers(0, len(trial.operator.names) - 1))
    _, output = trial.run([([event for event in trial.events if not beyond[id(event)][i]], trial.last)])
    assert trial.seen([t for t in output if t.condition == i]) == trial.seen(
        [t for t in whole if t.condition == i]
    )


# --- the table -----------------------------------------------------------------------------------------


def test_every_kind_and_every_machine_is_in_the_table():
    assert {kind.family for kind in MACHINES} == KINDS.keys()
    assert {kind.family for kind in MACHINES if kind.twin} == KINDS.keys()
    made = [one.machine for kind in MACHINES for one in planning.operators(example(kind))]
    inside = [one.inner for one in made if isinstance(one, CarryingOver)]
    assert set(machine_classes()) == {*map(type, made), *map(type, inside)}


def example(kind: Listed) -> Checked:
    first = settings(phases=[Phase.generate], database=None)
    return to_checked(find(kind.definitions, lambda definition: True, settings=first))


def machine_classes() -> Iterator[type]:
    """The machines of all kinds and the wrappers of the engine; what only prepares others is none."""
    for package in (engine, kinds):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for one in vars(import_module(module.name)).values():
                is_own = isinstance(one, type) and issubclass(one, Machine) and one.__module__ == module.name
                if is_own and "initial" in vars(one) and one not in (Machine, Composite, Lossy):
                    yield one


@pytest.mark.parametrize("kind", MACHINES, ids=repr)
def test_every_machine_implements_the_whole_protocol(kind):
    asked = {name: asked for name, asked in vars(Machine).items() if not name.startswith("_")}
    assert {"react", "learn_latest"} < asked.keys()
    for operator in planning.operators(example(kind)):
        for name, what in asked.items():
            assert hasattr(operator.machine, name)
            if inspect.isfunction(what):
                assert arguments_of(getattr(type(operator.machine), name)) == arguments_of(what)


def arguments_of(function: Callable[..., Any]) -> list[Any]:
    """The arguments of a function, whatever their types."""
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]
