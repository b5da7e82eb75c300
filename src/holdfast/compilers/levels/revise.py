"""Levels whose definition changes while they run keep what is known of their scopes, level by level.

A level goes on as a state does: it is on or off as far as that follows from any of the levels that ran,
whatever their names, or from the last reading; else nobody knows.  The level of a scope is known where that
leaves no higher one open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ...kernels.guard import ON, UNKNOWN
from ...lang.condition import Guarded, Leveled
from ...machines.guard.machine import Guard
from ...machines.levels import Height, Levels
from ...model.event import Event, Status, Transition
from ..guarded import revise
from ..guarded.machine import meaning
from ..guarded.revise import Becomes, Ran, Revised, as_guarded
from ..operator import Past
from .machine import operators


def revisable(one: Leveled) -> Leveled:
    """The same, with states inside that may be unknown."""
    return replace(one, rungs=tuple(map(as_guarded, one.rungs)))


def states(one: Leveled) -> tuple[Guarded, ...]:
    """The states inside, by names that are theirs alone."""
    return tuple(replace(as_guarded(rung), name=_name(one, rung.name)) for rung in one.rungs)


def _name(one: Leveled, rung: str) -> str:
    return f"{one.name}.{rung}"


def why_not(was: object, now: object) -> str | None:
    """Why levels cannot take over what others know; ``None`` if they can."""
    assert isinstance(was, Leveled) and isinstance(now, Leveled)
    reasons = (revise.why_not(before, after) for before in was.rungs for after in now.rungs)
    return next((why for why in reasons if why is not None), None)


def outlives(was: object, now: object) -> bool:
    """Whether whoever has a level keeps it, whatever the readings."""
    assert isinstance(was, Leveled) and isinstance(now, Leveled)
    same = [rung.name for rung in was.rungs] == [rung.name for rung in now.rungs]
    pairs = zip(was.rungs, now.rungs, strict=False)
    return same and all(revise.prospects(*pair) == (True, True) for pair in pairs)


def outlook(was: object, now: object) -> str:
    """What will become of the scopes of levels that are defined anew, in words."""
    assert isinstance(was, Leveled) and isinstance(now, Leveled)
    before = {rung.name: rung for rung in was.rungs}
    return "; ".join(_outlook(before, rung) for rung in now.rungs)


def _outlook(before: Mapping[str, Any], rung: Any) -> str:
    if rung.name not in before:
        return f"level '{rung.name}' is as the others or the last reading say, else unknown until one does"
    same = before[rung.name] == rung
    return f"level '{rung.name}'" + (" stays" if same else f": {revise.outlook(before[rung.name], rung)}")


def revised(was: Any, now: Any, past: Past) -> Revised:
    """Let levels take over what others of their name know."""
    revise.require(was, now, why_not)
    (operator,) = operators([revisable(now)])
    machine = operator.machine
    assert isinstance(machine, Levels)
    ran = [one._replace(scopes=revise.scopes_of(one, past.at)) for one in _ran(was, past)]
    keys = dict.fromkeys(key for one in ran for key in one.scopes or ())
    state, becomes = machine.initial(), list[Mapping[str, Becomes]]()
    for i, one in enumerate(states(now)):
        guard = machine.inside[i]
        assert isinstance(guard, Guard)
        mine = [some for some in ran if some.one.name == one.name] or _alike(one, ran)
        rest = [some for some in ran if not any(some is other for other in mine)]
        state.inner[i], found = revise.taken_over(guard, one, [*mine, *rest], past, keys)
        becomes.append(found)
    known = dict.fromkeys((*keys, *(key for found in becomes for key in found)))
    said = list[Transition]()
    for key in known:
        readings = [found[key].reading for found in becomes if key in found]
        reading = next((one for one in readings if one is not None), None)
        scope = machine.shown(key)
        before = _called(was, past.state.heights.get(scope))
        event = reading or Event(now.listens[0].name, past.at, scope or "")
        said += _moved(machine, state, key, before, event)
    moves = bool(said) or any(_is_moved(one) for found in becomes for one in found.values())
    return Revised(operator, state, said, moves)


class Stood(NamedTuple):
    """Where a scope stood, and the name of its level."""

    height: Height | None
    level: str | None


def _called(was: Leveled, height: Height | None) -> Stood:
    return Stood(height, was.rungs[height.level - 1].name if height and height.level else None)


def _is_moved(one: Becomes) -> bool:
    return one.holds != (one.before.on if one.before.sure else None)


def _ran(was: Leveled, past: Past) -> Iterator[Ran]:
    """The states inside levels that run, each with where it is kept."""
    machine = past.operator.machine
    assert isinstance(machine, Levels)
    for number, one in enumerate(states(was)):
        plain = replace(was.rungs[number], name=one.name)
        for inside, own, bits in zip(machine.inside, past.state.inner, machine.bits, strict=True):
            for at, word in enumerate(bits):
                if word >> number & 1:
                    yield Ran(plain, inside, own, at)


def _alike(one: Guarded, ran: list[Ran]) -> list[Ran]:
    """A level that means the same under another name."""
    found = (some for some in ran if meaning(as_guarded(some.one)) == meaning(one))
    return [some for some in (next(found, None),) if some is not None]


def _moved(machine: Levels, state: Any, key: str, before: Stood, event: Event) -> Iterator[Transition]:
    """Let a scope stand where the states inside say, and tell if that is not where it stood."""
    flags = [_flags(own, key) for own in state.inner]
    word = sum(1 << i for i, some in enumerate(flags) if some & ON)
    unsure = sum(1 << i for i, some in enumerate(flags) if some & UNKNOWN)
    old = before.height or Height(0, event.time, event.time)
    since = (old.began, old.since) if old.level else (event.time, event.time)
    after = Height(word, *since, unsure)
    if before.level is not None and not after.known:  # one that is gone is the highest that may be
        names = machine.names
        after.told = names.index(before.level) + 1 if before.level in names else unsure.bit_length()
    level = machine.names[after.level - 1] if after.level else None
    if level != before.level:
        after.since = event.time
    scope = machine.shown(key)
    if word or unsure:
        state.heights[scope] = after
    if (level, after.known) != (before.level, old.known):
        status: Status = "revised" if after.known else "unknown"
        told = machine.said(event, after.level, 0)
        told = replace(told, attributes={**told.attributes, machine.says[1]: before.level})
        yield Transition(told, status, scope, after.began if after.level else None, 0)


def _flags(state: Any, key: str) -> int:
    """What is so of a scope in the state of a machine of one level."""
    code = state.keys.code(key)
    state.widen()
    return int(state.there["flags"][code, 0])
