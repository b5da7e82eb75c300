"""A state whose definition changes while it runs keeps what is known of its scopes.

A scope of the new definition is on or off, as far as that follows: from what held before and from the two
definitions (what started or ended the old one started or ended the new one, too), or from the last reading,
where that is known and decides.  Else nobody knows, and it stays as it was until a reading decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...errors import UsageError
from ...kernels.guard import EXPECTED, LAST, NOBODY, NONE, ON, SEEN, UNDECIDED, UNKNOWN
from ...lang.condition import Condition, Guarded
from ...lang.ops import And, Expression
from ...lang.reason import satisfiable
from ...lang.rewrite import names, negated
from ...machines.filter import Filters
from ...machines.guard.machine import Guard
from ...model.event import Event, Status, Transition
from ...model.guard import PLAIN, Care, Hold
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from .. import scalar
from ..operator import Operator, Past
from ..tables import differing
from .machine import meaning, operators
from .rows import is_bounded, row_of, with_row

State = Condition | Guarded


class Known(NamedTuple):
    """What is known of a scope: whether it holds, since when, the last reading or at least its time, whether
    that is sure, and whether it ever spoke."""

    on: bool
    since: Instant
    at: Instant
    reading: Event | None = None
    sure: bool = True
    spoke: bool = True


class Revised(NamedTuple):
    """The operator of the new definition, its state, what is to be said of scopes that changed, and whether
    there is any of which something else is known now."""

    operator: Operator
    state: Any
    said: list[Transition]
    moves: bool = True


class Ran(NamedTuple):
    """A state that runs: its definition, where it is kept, and what is known of its scopes, if somebody has
    looked already."""

    one: State
    machine: Any
    state: Any
    number: int
    scopes: Mapping[str, Known] | None = None


class Becomes(NamedTuple):
    """What is known of a scope by another definition: what was known before, whether it holds, if that is
    known, since when, and the reading that says so."""

    before: Known
    holds: bool | None
    since: Instant
    reading: Event | None


def as_guarded(one: State) -> Guarded:
    """A plain state, as one that may be unknown."""
    if isinstance(one, Guarded):
        return one
    return Guarded(
        one.name, one.topic, one.enter, one.exit, one.keys, one.forest, one.delivery, PLAIN, (), one.tables
    )  # fmt: skip


def implies(one: Expression, other: Expression, topic: Topic) -> bool:
    """Whether a reading that satisfies one predicate satisfies the other, for sure."""
    return one == other or satisfiable(And(one, negated(other)), topic) is False


def prospects(was: State, now: State) -> tuple[bool, bool]:
    """Whether what holds goes on holding, and what does not goes on not to, whatever the readings were, if
    rows of tables have not changed."""
    topic, (before, after) = _together(was, now), (as_guarded(one).care for one in (was, now))
    sooner = _asks_no_more(after.enter, before.enter), _asks_no_more(after.exit, before.exit)
    later = _asks_no_more(before.enter, after.enter), _asks_no_more(before.exit, after.exit)
    stays = implies(was.enter, now.enter, topic) and implies(now.exit, was.exit, topic)
    stays_off = implies(now.enter, was.enter, topic) and implies(was.exit, now.exit, topic)
    return stays and sooner[0] and later[1], stays_off and later[0] and sooner[1]


def outlives(was: object, now: object) -> bool:
    """Whether what holds goes on to hold, whatever the readings."""
    assert isinstance(was, State) and isinstance(now, State)
    return prospects(was, now)[0]


def _together(was: State, now: State) -> Topic:
    """The topic with all that the two look at."""
    known = now.looked
    more = (a for a in was.looked.attributes if a.name not in known.by_name)
    return Topic(known.name, (*known.attributes, *more))


def by_row(was: State, now: State) -> Callable[[str], tuple[bool, bool]]:
    """``prospects`` for each scope, by its key, with the rows that it had and has."""
    if was.tables == now.tables:
        always = prospects(was, now)
        return lambda _key: always
    before, after = row_of(was), row_of(now)
    one, other = as_guarded(was), as_guarded(now)

    def of_scope(key: str) -> tuple[bool, bool]:
        had, has = before(key), after(key)
        if had is None or has is None or not (is_bounded(had) and is_bounded(has)):
            return False, False
        return _between(with_row(one, had), with_row(other, has))

    return of_scope


@lru_cache(maxsize=1_024)
def _between(was: Guarded, now: Guarded) -> tuple[bool, bool]:
    return prospects(was, now)


def _asks_no_more(one: Hold, other: Hold) -> bool:
    return one == other or (
        not one.column and not other.column and one.length <= other.length and one.readings <= other.readings
    )


def outlook(was: object, now: object) -> str:
    """What will become of the scopes of a state that is defined anew, in words."""
    assert isinstance(was, State) and isinstance(now, State)
    last = (
        "is as the history says, where that is heard again, else as the last reading says, where that is "
        "remembered and decides, else unknown until one does"
    )
    stays, stays_off = prospects(was, now)
    first, second = ("stays so" if is_sure else last for is_sure in (stays, stays_off))
    said = f"what holds {first}; what does not hold {second}"
    if was.tables == now.tables:
        return said
    if meaning(as_guarded(was)) == meaning(as_guarded(now)):
        return f"what has another row ({_other_rows(was, now)}) {last}"
    return f"{said}; and what has another row ({_other_rows(was, now)}) {last}"


def _other_rows(was: State, now: State) -> str:
    """How many rows of tables are new, gone or changed, in words."""
    before, after = ({t.name: t for t in one.tables} for one in (was, now))
    known = [(before[name], after[name]) for name in before.keys() & after.keys()]
    several = f"{sum(differing(*pair) for pair in known):,} of {sum(len(pair[1]) for pair in known):,}"
    return f"{several} rows of {', '.join(sorted(before | after))}"


def why_not(was: object, now: object) -> str | None:
    """Why a state cannot take over what another knows; ``None`` if it can."""
    assert isinstance(was, State) and isinstance(now, State)
    if was.topic.name != now.topic.name or was.keys != now.keys or was.forest != now.forest:
        return "its scopes or its topic are others"
    if any(_kind(was, name) != _kind(now, name) for one in (was, now) for name in _used(one)):
        return "an attribute that it looks at has another kind or unit"
    if was.delivery.wait is not None or now.delivery.wait is not None:
        return "it is ordered"
    if (isinstance(was, Condition) and was.momentary) or (isinstance(now, Condition) and now.momentary):
        return "it is momentary"
    if len(now.keys) + (now.forest.depth if now.forest else 0) > 1:
        return "it has scopes within scopes"
    return None


def _used(one: State) -> set[str]:
    return {*names(one.enter), *names(one.exit), *chain.from_iterable(one.keys)}


def _kind(one: State, name: str) -> object:
    """What an attribute of a topic is, where both have it: tables may bring others."""
    return one.topic.by_name.get(name)


def revised(was: Any, now: Any, past: Past) -> Revised:
    """Let a state take over what another of its name knows."""
    require(was, now, why_not)
    (operator,) = operators([as_guarded(now)])
    machine = operator.machine
    assert isinstance(machine, Guard)
    number = next(i for i, some in enumerate(past.operator.names) if now.name in some)
    ran = Ran(was, past.operator.machine, past.state, number)
    after, found = taken_over(machine, now, [ran], past)
    said = []
    for key, one in found.items():
        if one.holds != (one.before.on if one.before.sure else None):
            status: Status = "unknown" if one.holds is None else "revised"
            event = one.reading or Event(now.topic.name, past.at, machine.shown(key) or "")
            began = None if one.since == NONE else one.since
            said.append(Transition(event, status, machine.shown(key), began, 0))
    return Revised(operator, after, said, bool(said))


def require(was: Any, now: Any, why_not: Callable[[object, object], str | None]) -> None:
    """Refuse what cannot take over what another of its name knows."""
    if (why := why_not(was, now)) is not None:
        raise UsageError(f"'{now.name}' cannot keep what is known of it: {why}. Give it another name.")


def taken_over(
    machine: Guard, now: State, ran: Sequence[Ran], past: Past, keys: Iterable[str] = ()
) -> tuple[Any, dict[str, Becomes]]:
    """The state of a machine that knows what follows from states that ran, the first of which it was itself,
    if it ran; and what has become of the scopes that are not just as they were.  Of ``keys`` it is known that
    they exist."""
    settled, found = past.settled.get(now.name, {}), dict[str, Becomes]()
    after, is_same = _begun(machine, now, ran, past.at)
    outlooks = [by_row(one.one, now) for one in ran]
    last = _last(now, past.latest)
    known = [_everybody(now, one, past, keys, last) for one in ran]
    mine = known[0] if ran and ran[0].one.name == now.name else {}
    nobody = Known(False, NONE, past.at, sure=False)
    everybody = dict.fromkeys(key for some in known for key in some)
    for key in everybody:
        if is_same(key):
            continue
        one = mine.get(key) or next((some[key] for some in known if key in some), nobody)
        if key not in mine:
            one = nobody._replace(at=one.at, reading=one.reading, spoke=one.spoke)
        code = after.keys.code(key)
        after.widen()
        if not one.spoke and key not in settled:  # expected, and silent since then
            after.scopes["last"][code] = one.at
            after.scopes["flags"][code] |= 0 if one.sure else UNKNOWN
            continue
        follows = next(
            (
                some[key]
                for some, outlook in zip(known, outlooks, strict=True)
                if key in some and some[key].sure and outlook(key)[0 if some[key].on else 1]
            ),
            None,
        )
        told = settled.get(key)
        if told is not None and told.record is not None and not (follows and told.on != follows.on):
            since = one.since if told.on and one.on and not past.whole else told.since
            told.put(after, code, since)
            holds: bool | None = told.on if told.known else None
            reading: Event | None = told.told or told.last or one.reading
        else:
            holds, since = _claimed(machine, after, code, one, follows)
            reading = one.reading
        found[key] = Becomes(one, holds, since, reading)
    after.taken = bool(everybody)
    machine.look(after, np.arange(len(after.keys)))
    return after, found


def _begun(machine: Guard, now: State, ran: Sequence[Ran], at: Instant) -> tuple[Any, Callable[[str], bool]]:
    """The state of a machine before anything is taken over, and which scopes are there already as they were:
    those whose rows are the same, where rows are all that has changed."""
    one = ran[0] if ran else None
    if one and isinstance(one.machine, Guard) and meaning(as_guarded(one.one)) == meaning(as_guarded(now)):
        had, has = row_of(one.one), row_of(now)
        state = machine.from_bytes(one.machine.to_bytes(one.state), (one.number,))
        return state, lambda key: had(key) == has(key) is not None
    state = machine.initial()
    state.until = state.latest = at
    if at > BEGINNING:
        machine.started(state, at)
    return state, lambda _key: False


def _everybody(
    now: State, ran: Ran, past: Past, keys: Iterable[str], latest: Mapping[str, Event]
) -> dict[str, Known]:
    """All scopes of which something is known: by the machine, by last readings, or by the history."""
    known = scopes_of(ran, past.at)
    known |= {key: Known(False, NONE, past.at) for key in keys if key not in known}
    for key, last in latest.items():
        before = known.get(key, Known(False, NONE, last.time))
        known[key] = before._replace(reading=last, at=max(before.at, last.time), spoke=True)
    settled = past.settled.get(now.name, {})
    for key in settled.keys() - known.keys():
        known[key] = Known(False, NONE, settled[key].at)
    return known


def scopes_of(ran: Ran, at: Instant) -> dict[str, Known]:
    """The scopes of which a machine knows something."""
    return dict(_known(ran.machine, ran.state, ran.number, at) if ran.scopes is None else ran.scopes)


def _claimed(
    machine: Guard, after: Any, code: int, one: Known, follows: Known | None
) -> tuple[bool | None, Instant]:
    """Let a scope be as it follows or as its last reading says: whether it holds, if that is known, and since
    when."""
    (care,) = (rule.care for rule in machine.rules)
    words = (0, 0) if one.reading is None else tuple(machine.words(one.reading))
    holds = follows.on if follows is not None else _decided(care, *words)
    flags = SEEN | (ON if (one.on if holds is None else holds) else 0)
    flags |= 0 if holds is not None else UNKNOWN | UNDECIDED
    flags |= int(after.scopes["flags"][code]) & EXPECTED
    began = one.since if one.on else follows.since if follows is not None and follows.on else one.at
    since = began if flags & ON else NONE
    last = NOBODY if one.reading is None else LAST
    after.scopes[code] = (one.at, since, NONE, 0, last, NOBODY, flags, 0, *words)
    if one.reading is not None:
        after.last.put_one(code, one.reading)
        if after.waits is not None and machine.lengths is not None:
            after.waits[2 * code : 2 * code + 2] = machine.lengths.of_one(one.reading)
    return holds, since


def _decided(care: Care, enters: int, leaves: int) -> bool | None:
    """Whether a state holds after a reading, if that decides whatever was before."""
    match enters & 1, leaves & 1:
        case (1, 0) if not care.enter:
            return True
        case (0, 1) if not care.exit:
            return False
    return None


def _known(machine: Any, state: Any, number: int, at: Instant) -> Iterator[tuple[str, Known]]:
    """What a running machine knows of its scopes."""
    match machine:
        case Filters():
            keys, since = state.levels[-1].keys, state.since[number]
            for code in np.flatnonzero(since[: len(keys)] != NONE).tolist():
                yield keys.key(code), Known(True, int(since[code]), at)
        case Guard():
            there = state.there[:, number]
            for code in np.flatnonzero(there["last"] != NONE).tolist():
                last, since = int(there["last"][code]), int(there["since"][code])
                is_there = machine.keeps_last and there["last_row"][code] == LAST and not state.last.is_empty
                reading = state.last.event(code, last) if is_there else None
                flags = int(there["flags"][code])
                on, sure = bool(flags & ON), not flags & UNDECIDED
                if not flags & SEEN:
                    sure = not flags & UNKNOWN
                yield state.keys.key(code), Known(on, since, last, reading, sure, bool(flags & SEEN))


def _last(now: State, latest: Iterable[Event]) -> Mapping[str, Event]:
    """The last reading of each scope, where the last ones of the sources tell."""
    if now.forest is not None or now.keys not in ((), (("source",),)):
        return {}
    chain, found = scalar.chain(now), dict[str, Event]()
    for event in latest:
        if event.topic == now.topic.name and (at := chain(event)) is not None:
            key = at[-1]
            assert key is not None
            if key not in found or found[key].time <= event.time:
                found[key] = event
    return found
