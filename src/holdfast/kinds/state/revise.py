"""Revisions of states: a revised state carries over its scopes where their new state follows.

The new state may follow from the old scope and the two definitions: every reading that started or ended the
old condition also starts or ends the new one. It may also follow from the latest reading, if that is stored
and decides. Otherwise the scope is unknown, and stores its bit until a reading decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...kernels.guard import EXPECTED, LAST, NOBODY, NONE, ON, SEEN, UNDECIDED, UNKNOWN
from ...lang.expressions import event as scalar
from ...lang.expressions.tables import differing
from ...lang.ops import And, Expression
from ...lang.rewrite import names, negate
from ...model.event import Event, Status, Transition
from ...model.guard import PLAIN, Care, Hold
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from ..revision import Past, Revision, TakeOver
from .condition import AnyState, DurationCondition
from .duration.machine import DurationMachine
from .plan_duration import operators
from .plan_toggle import meaning
from .reason import satisfiable
from .rows import is_bounded, row_of, with_row
from .toggle import ToggleMachine


class KnownScope(NamedTuple):
    """The old state of a scope: whether it is active, since when, and its last reading or at least the time
    of it.

    `sure` is true if the bit is certain, `had_reading` if the scope ever had a reading.
    """

    on: bool
    since: Instant
    at: Instant
    reading: Event | None = None
    sure: bool = True
    had_reading: bool = True


class PreviousState(NamedTuple):
    """A state that ran: its definition (`one`), its machine with state, and its number in the machine.

    `scopes` has the scopes if they have already been read.
    """

    one: AnyState
    machine: Any
    state: Any
    number: int
    scopes: Mapping[str, KnownScope] | None = None


class RevisedScope(NamedTuple):
    """A scope under the new definition.

    `holds` is true if the scope is active, and `None` if that is unknown. `before` is the old state,
    `reading` the latest reading.
    """

    before: KnownScope
    holds: bool | None
    since: Instant
    reading: Event | None

    @property
    def is_changed(self) -> bool:
        """Whether the scope differs from its old state."""
        return self.holds != (self.before.on if self.before.sure else None)


def with_duration(condition: AnyState) -> DurationCondition:
    """Return a plain state in the form of a state with minimum durations, which can be unknown."""
    if isinstance(condition, DurationCondition):
        return condition
    return DurationCondition(
        condition.name, condition.topic, condition.enter, condition.exit, condition.keys, condition.forest,
        condition.delivery, PLAIN, (), condition.tables,
    )  # fmt: skip


def implies(one: Expression, other: Expression, topic: Topic) -> bool:
    """Whether every reading that satisfies one predicate certainly satisfies the other."""
    return one == other or satisfiable(And(one, negate(other)), topic) is False


def prospects(was: AnyState, now: AnyState) -> tuple[bool, bool]:
    """Whether active scopes stay active, and whether inactive scopes stay inactive, for any readings.

    Rows of tables are assumed to be unchanged.
    """
    known, before, after = now.topic_with_rows, with_duration(was).care, with_duration(now).care
    more = (a for a in was.topic_with_rows.attributes if a.name not in known.by_name)
    topic = Topic(known.name, (*known.attributes, *more))  # with the table columns of both definitions
    sooner = _asks_no_more(after.enter, before.enter), _asks_no_more(after.exit, before.exit)
    later = _asks_no_more(before.enter, after.enter), _asks_no_more(before.exit, after.exit)
    stays = implies(was.enter, now.enter, topic) and implies(now.exit, was.exit, topic)
    stays_off = implies(now.enter, was.enter, topic) and implies(was.exit, now.exit, topic)
    return stays and sooner[0] and later[1], stays_off and later[0] and sooner[1]


def is_preserved(was: AnyState, now: AnyState) -> bool:
    """Whether active scopes stay active, for any readings."""
    return prospects(was, now)[0]


def by_row(was: AnyState, now: AnyState) -> Callable[[str], tuple[bool, bool]]:
    """Return a function that computes `prospects` for a scope, with its old and its new row."""
    if was.tables == now.tables:
        always = prospects(was, now)
        return lambda _key: always
    before, after = row_of(was), row_of(now)
    old, new = with_duration(was), with_duration(now)

    def of_scope(key: str) -> tuple[bool, bool]:
        had, has = before(key), after(key)
        if had is None or has is None or not (is_bounded(had) and is_bounded(has)):
            return False, False
        return _prospects_of_rows(with_row(old, had), with_row(new, has))

    return of_scope


_prospects_of_rows = lru_cache(maxsize=1_024)(prospects)


def _asks_no_more(hold: Hold, other: Hold) -> bool:
    """Whether a minimum duration is certainly satisfied wherever the other is."""
    if hold == other or hold.column or other.column:
        return hold == other
    return hold.length <= other.length and hold.readings <= other.readings


def preview(was: AnyState, now: AnyState) -> str:
    """Return as text the effect of a revision on the scopes of a state."""
    last = (
        "follow from the history if it is read again, else from the last reading if it is stored and "
        "decides, else they are unknown until a reading decides"
    )
    stays, stays_off = prospects(was, now)
    first, second = ("stay as they are" if is_sure else last for is_sure in (stays, stays_off))
    text = f"active scopes {first}; inactive scopes {second}"
    if was.tables == now.tables:
        return text
    if meaning(with_duration(was)) == meaning(with_duration(now)):
        return f"scopes with another row ({_other_rows(was, now)}) {last}"
    return f"{text}; and scopes with another row ({_other_rows(was, now)}) {last}"


def _other_rows(was: AnyState, now: AnyState) -> str:
    """Return as text how many rows of tables were added, removed or changed."""
    before, after = ({t.name: t for t in condition.tables} for condition in (was, now))
    known = [(before[name], after[name]) for name in before.keys() & after.keys()]
    several = f"{sum(differing(*pair) for pair in known):,} of {sum(len(pair[1]) for pair in known):,}"
    return f"{several} rows of {', '.join(sorted(before | after))}"


def refusal(was: AnyState, now: AnyState) -> str | None:
    """Return the reason why a state cannot carry over the scopes of another one, or `None` if it can."""
    if was.topic.name != now.topic.name or was.keys != now.keys or was.forest != now.forest:
        return "its scopes or its topic are others"
    used = {name for c in (was, now) for name in (*names(c.enter), *names(c.exit), *chain(*c.keys))}
    if any(was.topic.by_name.get(name) != now.topic.by_name.get(name) for name in used):
        return "an attribute that it looks at has another kind or unit"
    if was.delivery.wait is not None or now.delivery.wait is not None:
        return "it is ordered"
    if was.momentary or now.momentary:
        return "it is momentary"
    if len(now.keys) + (now.forest.depth if now.forest else 0) > 1:
        return "it has scopes within scopes"
    return None


def take_over(was: AnyState, now: AnyState, past: Past) -> TakeOver:
    """Carry over the scopes of the state with the same name."""
    (operator,) = operators([with_duration(now)])
    machine = operator.machine
    assert isinstance(machine, DurationMachine)
    number = next(i for i, names in enumerate(past.operator.names) if now.name in names)
    ran = PreviousState(was, past.operator.machine, past.state, number)
    after, found = take_over_scopes(machine, now, [ran], past)
    transitions = []
    for key, scope in found.items():
        if scope.is_changed:
            status: Status = "unknown" if scope.holds is None else "revised"
            event = scope.reading or Event(now.topic.name, past.watermark, machine.readable_scope(key) or "")
            since = None if scope.since == NONE else scope.since
            transitions.append(Transition(event, status, machine.readable_scope(key), since, 0))
    return TakeOver(operator, after, transitions, bool(transitions))


def take_over_scopes(
    machine: DurationMachine,
    now: AnyState,
    ran: Sequence[PreviousState],
    past: Past,
    keys: Iterable[str] = (),
) -> tuple[Any, dict[str, RevisedScope]]:
    """Return the new state of a machine, and the scopes that may have changed.

    The scopes follow from the states that ran. The first of `ran` is the state with the same name, if there
    is one. `keys` are scopes that exist even if no state has them.
    """
    found = dict[str, RevisedScope]()
    after, is_same = _start(machine, now, ran, past.watermark)
    outlooks = [by_row(previous.one, now) for previous in ran]
    last = _last(now, past.latest)
    known = [_known_scopes(previous, past, keys, last) for previous in ran]
    own_known = known[0] if ran and ran[0].one.name == now.name else {}
    unknown = KnownScope(False, NONE, past.watermark, sure=False)
    scopes, states = dict.fromkeys(chain.from_iterable(known)), list(zip(known, outlooks, strict=True))
    for key in scopes:
        if is_same(key):
            continue
        having = [(of_state[key], prospect) for of_state, prospect in states if key in of_state]
        scope = own_known.get(key) or having[0][0]
        if key not in own_known:
            scope = unknown._replace(at=scope.at, reading=scope.reading, had_reading=scope.had_reading)
        code = after.keys.code(key)
        after.widen()
        if not scope.had_reading:  # expected, without a reading since then
            after.scopes["last"][code] = scope.at
            after.scopes["flags"][code] |= 0 if scope.sure else UNKNOWN
            continue
        sure = ((old, prospect(key)) for old, prospect in having if old.sure)
        follows = next((old for old, (stays, stays_off) in sure if (stays if old.on else stays_off)), None)
        holds, since = _claim(machine, after, code, scope, follows)
        found[key] = RevisedScope(scope, holds, since, scope.reading)
    after.taken = bool(scopes)
    machine.look(after, np.arange(len(after.keys)))
    return after, found


def _start(
    machine: DurationMachine, now: AnyState, ran: Sequence[PreviousState], at: Instant
) -> tuple[Any, Callable[[str], bool]]:
    """Return the state of a machine before scopes are carried over, and a test for the scopes that need no
    change.

    If only rows of tables changed, these are the scopes whose row is the same.
    """
    previous = ran[0] if ran else None
    same = previous and meaning(with_duration(previous.one)) == meaning(with_duration(now))
    if previous and same and isinstance(previous.machine, DurationMachine):
        had, has = row_of(previous.one), row_of(now)
        state = machine.load(previous.machine.dump(previous.state), (previous.number,))
        return state, lambda key: had(key) == has(key) is not None
    state = machine.initial()
    state.until = state.latest = at
    if at > BEGINNING:
        machine.start_expected(state, at)
    return state, lambda _key: False


def _known_scopes(
    ran: PreviousState, past: Past, keys: Iterable[str], latest: Mapping[str, Event]
) -> dict[str, KnownScope]:
    """Return all scopes with an old state or with a latest reading."""
    known = scopes_of(ran, past.watermark)
    known |= {key: KnownScope(False, NONE, past.watermark) for key in keys if key not in known}
    for key, last in latest.items():
        before = known.get(key, KnownScope(False, NONE, last.time))
        known[key] = before._replace(reading=last, at=max(before.at, last.time), had_reading=True)
    return known


def scopes_of(ran: PreviousState, at: Instant) -> dict[str, KnownScope]:
    """Return the old state of the scopes of a machine."""
    return dict(_known(ran.machine, ran.state, ran.number, at) if ran.scopes is None else ran.scopes)


def _claim(
    machine: DurationMachine, after: Any, code: int, known: KnownScope, follows: KnownScope | None
) -> tuple[bool | None, Instant]:
    """Set a scope to the state that follows, or to the state that its last reading decides.

    Return whether the scope is active (`None` if unknown), and since when.
    """
    (care,) = (rule.care for rule in machine.rules)
    words = (0, 0) if known.reading is None else tuple(machine.words(known.reading))
    holds = follows.on if follows is not None else _decision(care, *words)
    flags = SEEN | (ON if (known.on if holds is None else holds) else 0)
    flags |= 0 if holds is not None else UNKNOWN | UNDECIDED
    flags |= int(after.scopes["flags"][code]) & EXPECTED
    began = known.since if known.on else follows.since if follows is not None and follows.on else known.at
    since = began if flags & ON else NONE
    last = NOBODY if known.reading is None else LAST
    after.scopes[code] = (known.at, since, NONE, 0, last, NOBODY, flags, 0, *words)
    if known.reading is not None:
        after.last.put_one(code, known.reading)
        if after.waits is not None and machine.lengths is not None:
            after.waits[2 * code : 2 * code + 2] = machine.lengths.of_one(known.reading)
    return holds, since


def _decision(care: Care, enters: int, leaves: int) -> bool | None:
    """Return whether a state is active after a reading, or `None` if the reading alone does not decide
    that."""
    match enters & 1, leaves & 1:
        case (1, 0) if not care.enter:
            return True
        case (0, 1) if not care.exit:
            return False
    return None


def _known(machine: Any, state: Any, number: int, at: Instant) -> Iterator[tuple[str, KnownScope]]:
    """Yield the key and the old state of each scope of a machine. `number` is the number of the condition."""
    match machine:
        case ToggleMachine():
            keys, since = state.levels[-1].keys, state.since[number]
            for code in np.flatnonzero(since[: len(keys)] != NONE).tolist():
                yield keys.key(code), KnownScope(True, int(since[code]), at)
        case DurationMachine():
            records = state.there[:, number]
            for code in np.flatnonzero(records["last"] != NONE).tolist():
                last, since = int(records["last"][code]), int(records["since"][code])
                has_last = machine.keeps_last and records["last_row"][code] == LAST
                reading = state.last.event(code, last) if has_last and not state.last.is_empty else None
                flags = int(records["flags"][code])
                on, sure = bool(flags & ON), not flags & UNDECIDED
                if not flags & SEEN:
                    sure = not flags & UNKNOWN
                yield state.keys.key(code), KnownScope(on, since, last, reading, sure, bool(flags & SEEN))


def _last(now: AnyState, latest: Iterable[Event]) -> Mapping[str, Event]:
    """Return the last reading of each scope, from the latest readings of sources.

    The result is empty if scopes have a key other than the source. Only the latest reading of each source is
    stored, so the last reading of such a scope is not known.
    """
    if now.forest is not None or now.keys not in ((), (("source",),)):
        return {}
    chain, found = scalar.chain(now.keys, now.forest), dict[str, Event]()
    for event in latest:
        if event.topic == now.topic.name and (at := chain(event)) is not None:
            key = at[-1]
            assert key is not None
            if key not in found or found[key].time <= event.time:
                found[key] = event
    return found


REVISION = Revision(
    take_over, preview, refusal, is_preserved=is_preserved, revisable=with_duration, splits=True
)
