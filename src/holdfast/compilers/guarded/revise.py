"""A state whose definition changes while it runs keeps what is known of its scopes.

A scope of the new definition is on or off, as far as that follows: from what held before and from the two
definitions (what started or ended the old one started or ended the new one, too), or from the last reading,
where that is known and decides.  Else nobody knows, and it stays as it was until a reading decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...errors import UsageError
from ...kernels.guard import NOBODY, NONE, ON, SEEN, UNDECIDED, UNKNOWN
from ...lang.condition import Condition, Guarded
from ...lang.ops import And, Expression
from ...lang.reason import satisfiable
from ...lang.rewrite import names, negated
from ...machines.filter import Filters
from ...machines.guard.machine import Guard
from ...model.event import Event, Status, Transition
from ...model.guard import PLAIN, Care, Hold
from ...model.instant import Instant
from ...model.topic import Topic
from .. import scalar
from ..operator import Operator, Past
from .machine import operators

State = Condition | Guarded


class Known(NamedTuple):
    """What is known of a scope: whether it holds, since when, the last reading or at least its time, and
    whether that is sure."""

    on: bool
    since: Instant
    at: Instant
    reading: Event | None = None
    sure: bool = True


class Revised(NamedTuple):
    """The operator of the new definition, its state, and what is to be said of scopes that changed."""

    operator: Operator
    state: Any
    said: list[Transition]


def as_guarded(one: State) -> Guarded:
    """A plain state, as one that may be unknown."""
    if isinstance(one, Guarded):
        return one
    return Guarded(
        one.name, one.topic, one.enter, one.exit, one.keys, one.forest, one.delivery, PLAIN
    )  # fmt: skip


def implies(one: Expression, other: Expression, topic: Topic) -> bool:
    """Whether a reading that satisfies one predicate satisfies the other, for sure."""
    return one == other or satisfiable(And(one, negated(other)), topic) is False


def prospects(was: State, now: State) -> tuple[bool, bool]:
    """Whether what holds goes on holding, and what does not goes on not to, whatever the readings were."""
    topic, (before, after) = now.topic, (as_guarded(one).care for one in (was, now))
    sooner = _asks_no_more(after.enter, before.enter), _asks_no_more(after.exit, before.exit)
    later = _asks_no_more(before.enter, after.enter), _asks_no_more(before.exit, after.exit)
    stays = implies(was.enter, now.enter, topic) and implies(now.exit, was.exit, topic)
    stays_off = implies(now.enter, was.enter, topic) and implies(was.exit, now.exit, topic)
    return stays and sooner[0] and later[1], stays_off and later[0] and sooner[1]


def _asks_no_more(one: Hold, other: Hold) -> bool:
    return one == other or (
        not one.column and not other.column and one.length <= other.length and one.readings <= other.readings
    )


def outlook(was: object, now: object) -> str:
    """What will become of the scopes of a state that is defined anew, in words."""
    if (why := why_not(was, now)) is not None:
        return f"cannot take over what is known: {why}"
    assert isinstance(was, State) and isinstance(now, State)
    last = (
        "is as the history says, where that is heard again, else as the last reading says, where that is "
        "remembered and decides, else unknown until one does"
    )
    stays, stays_off = prospects(was, now)
    first, second = ("stays so" if is_sure else last for is_sure in (stays, stays_off))
    return f"what holds {first}; what does not hold {second}"


def why_not(was: object, now: object) -> str | None:
    """Why a state cannot take over what another knows; ``None`` if it can."""
    if not isinstance(was, State) or not isinstance(now, State):
        return "only states [enter; exit] can be revised"
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
    if (why := why_not(was, now)) is not None:
        raise UsageError(f"'{now.name}' cannot keep what is known of it: {why}. Give it another name.")
    (operator,) = operators([as_guarded(now)])
    machine = operator.machine
    assert isinstance(machine, Guard)
    (care,) = (rule.care for rule in machine.rules)
    at, names = past.at, past.operator.names
    number = next(i for i, some in enumerate(names) if now.name in some)
    known = dict(_known(past.operator.machine, past.state, number, at))
    for key, last in _last(now, past.latest).items():
        before = known.get(key, Known(False, NONE, last.time))
        known[key] = before._replace(reading=last, at=max(before.at, last.time))
    after, said = machine.initial(), list[Transition]()
    after.until = after.latest = at
    stays, stays_off = prospects(was, now)
    for key in past.settled.keys() - known.keys():
        known[key] = Known(False, NONE, past.settled[key].at)
    for key, one in known.items():
        code = after.keys.code(key)
        after.widen()
        follows = one.sure and (stays if one.on else stays_off)
        found = past.settled.get(key)
        if found is not None and found.record is not None and not (follows and found.on != one.on):
            since = one.since if found.on and one.on and not past.whole else found.since
            found.put(after, code, since)
            holds: bool | None = found.on if found.known else None
            reading: Event | None = found.told or found.last or one.reading
        else:
            words = (0, 0) if one.reading is None else tuple(machine.words(one.reading))
            holds = one.on if follows else _decided(care, *words)
            flags = SEEN | (ON if (one.on if holds is None else holds) else 0)
            flags |= 0 if holds is not None else UNKNOWN | UNDECIDED
            since = NONE if not flags & ON else one.since if one.on else one.at
            after.scopes[code] = (one.at, since, NONE, 0, NOBODY, NOBODY, flags, 0, *words)
            reading = one.reading
            if reading is not None:
                after.last.put_one(code, reading)
                if after.waits is not None and machine.lengths is not None:
                    after.waits[2 * code : 2 * code + 2] = machine.lengths.of_one(reading)
        if holds != (one.on if one.sure else None):
            status: Status = "unknown" if holds is None else "revised"
            event = reading or Event(now.topic.name, at, machine.shown(key) or "")
            began = None if since == NONE else since
            said.append(Transition(event, status, machine.shown(key), began, 0))
    after.taken = bool(known)
    machine.look(after, np.arange(len(after.keys)))
    return Revised(operator, after, said)


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
                spoke = there["flags"][code] & SEEN and not state.last.is_empty
                reading = state.last.event(code, last) if spoke else None
                flags = int(there["flags"][code])
                on, sure = bool(flags & ON), not flags & UNDECIDED
                yield state.keys.key(code), Known(on, since, last, reading, sure)


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
