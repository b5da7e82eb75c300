"""Revisions of levels: they carry over their scopes, level by level.

The state of a level may follow from any of the levels that ran, regardless of their names, or from the latest
reading. Otherwise the level is unknown. The level of a scope is known if no higher level is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ...kernels.guard import ON, UNKNOWN
from ...model.event import Event, Status, Transition
from ..revision import Past, Revision, TakeOver
from ..state import revise
from ..state.condition import DurationCondition
from ..state.duration.machine import DurationMachine
from ..state.plan_toggle import meaning
from ..state.revise import PreviousState, RevisedScope, with_duration
from .condition import LevelsCondition
from .machine import Height, LevelsMachine
from .plan import operators


def revisable(condition: LevelsCondition) -> LevelsCondition:
    """Return the levels in a form in which inner states can be unknown."""
    return replace(condition, rungs=tuple(map(with_duration, condition.rungs)))


def states(condition: LevelsCondition) -> tuple[DurationCondition, ...]:
    """Return the inner states, with names that are unique."""
    return tuple(replace(with_duration(r), name=f"{condition.name}.{r.name}") for r in condition.rungs)


def refusal(was: LevelsCondition, now: LevelsCondition) -> str | None:
    """Return the reason why levels cannot carry over the state of other levels, or `None` if they can."""
    reasons = (revise.refusal(before, after) for before in was.rungs for after in now.rungs)
    return next((why for why in reasons if why is not None), None)


def is_preserved(was: LevelsCondition, now: LevelsCondition) -> bool:
    """Whether scopes stay at their levels, for any readings."""
    same = [rung.name for rung in was.rungs] == [rung.name for rung in now.rungs]
    pairs = zip(was.rungs, now.rungs, strict=False)
    return same and all(revise.prospects(*pair) == (True, True) for pair in pairs)


def preview(was: LevelsCondition, now: LevelsCondition) -> str:
    """Return as text the effect of a revision on the scopes of levels."""
    before = {rung.name: rung for rung in was.rungs}
    effects = []
    for rung in now.rungs:
        effect = " follows from the others or the last reading, else it is unknown until a reading decides"
        if (old := before.get(rung.name)) is not None:
            effect = " stays" if old == rung else f": {revise.preview(old, rung)}"
        effects.append(f"level '{rung.name}'{effect}")
    return "; ".join(effects)


def take_over(was: LevelsCondition, now: LevelsCondition, past: Past) -> TakeOver:
    """Carry over the state of the levels that ran under the same name."""
    (operator,) = operators([revisable(now)])
    machine = operator.machine
    assert isinstance(machine, LevelsMachine)
    ran = [rung._replace(scopes=revise.scopes_of(rung, past.watermark)) for rung in _ran(was, past)]
    keys = dict.fromkeys(key for rung in ran for key in rung.scopes or ())
    state, becomes = machine.initial(), list[Mapping[str, RevisedScope]]()
    for i, rung in enumerate(states(now)):
        guard = machine.inside[i]
        assert isinstance(guard, DurationMachine)
        means = meaning(rung)
        own = [previous for previous in ran if previous.one.name == rung.name]
        own = own or [p for p in ran if meaning(with_duration(p.one)) == means][:1]
        rest = [previous for previous in ran if not any(previous is same for same in own)]
        state.inner[i], found = revise.take_over_scopes(guard, rung, [*own, *rest], past, keys)
        becomes.append(found)
    known = dict.fromkeys((*keys, *(key for found in becomes for key in found)))
    emitted = list[Transition]()
    for key in known:
        readings = [found[key].reading for found in becomes if key in found]
        reading = next((rung for rung in readings if rung is not None), None)
        scope = machine.readable_scope(key)
        height = past.state.heights.get(scope)
        before = KnownLevel(height, was.rungs[height.level - 1].name if height and height.level else None)
        event = reading or Event(now.listens[0].name, past.watermark, scope or "")
        emitted += _move(machine, state, key, before, event)
    moves = bool(emitted) or any(scope.is_changed for found in becomes for scope in found.values())
    return TakeOver(operator, state, emitted, moves)


class KnownLevel(NamedTuple):
    """The state of a scope before a revision, and the name of its level."""

    height: Height | None
    level: str | None


def _ran(was: LevelsCondition, past: Past) -> Iterator[PreviousState]:
    """Yield the inner states of the levels that ran, each with its stored state."""
    machine = past.operator.machine
    assert isinstance(machine, LevelsMachine)
    for number, rung in enumerate(states(was)):
        plain = replace(was.rungs[number], name=rung.name)
        for inside, inner_state, bits in zip(machine.inside, past.state.inner, machine.bits, strict=True):
            for at, word in enumerate(bits):
                if word >> number & 1:
                    yield PreviousState(plain, inside, inner_state, at)


def _move(
    machine: LevelsMachine, state: Any, key: str, before: KnownLevel, event: Event
) -> Iterator[Transition]:
    """Set the height of a scope from the inner states. Yield a transition if the level of the scope
    changes."""
    flags = []
    for inner in state.inner:
        code = inner.keys.code(key)
        inner.widen()
        flags.append(int(inner.there["flags"][code, 0]))
    word = sum(1 << i for i, scope_flags in enumerate(flags) if scope_flags & ON)
    unsure = sum(1 << i for i, scope_flags in enumerate(flags) if scope_flags & UNKNOWN)
    old = before.height or Height(0, event.time, event.time)
    since = (old.began, old.since) if old.level else (event.time, event.time)
    after = Height(word, *since, unsure)
    if before.level is not None and not after.known:  # a removed level: the highest that may be active
        names = machine.names
        after.announced = names.index(before.level) + 1 if before.level in names else unsure.bit_length()
    level = machine.names[after.level - 1] if after.level else None
    if level != before.level:
        after.since = event.time
    scope = machine.readable_scope(key)
    if word or unsure:
        state.heights[scope] = after
    if (level, after.known) != (before.level, old.known):
        status: Status = "revised" if after.known else "unknown"
        changed = machine.with_level(event, after.level, 0)
        changed = replace(changed, attributes={**changed.attributes, machine.level_columns[1]: before.level})
        yield Transition(changed, status, scope, after.began if after.level else None, 0)


REVISION = Revision(take_over, preview, refusal, is_preserved=is_preserved, revisable=revisable, splits=True)
