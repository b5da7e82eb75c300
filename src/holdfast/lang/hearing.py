"""Conditions that hear others: in which order they are checked, and what each may hear."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import DefinitionError, Place, did_you_mean
from ..model.qos import Correct
from .condition import (
    Aligned,
    Component,
    Condition,
    Correlated,
    Folded,
    Guarded,
    Leveled,
    Related,
    Tallied,
)
from .ops import Align, Fold, Tally, place_of

Hears = Tally | Align | Fold
Heard = Condition | Guarded | Component | Correlated | Related | Leveled | Tallied | Aligned | Folded


def heard_by(statement: Hears) -> tuple[str, ...]:
    """The names of the conditions that one is over."""
    return statement.over if isinstance(statement, Align) else (statement.over,)


def built(
    statements: Sequence[Hears],
    others: Iterable[Heard],
    made_of: Callable[[Hears, Mapping[str, Heard]], Heard],
) -> list[Heard]:
    """What the statements mean, in their order; they may build on one another."""
    made: dict[str, Heard] = {one.name: one for one in others}
    waiting = {statement.name: statement for statement in statements}
    while waiting:
        ready = [one for one in waiting.values() if not waiting.keys() & {*heard_by(one)}]
        if not ready:
            raise _circle(next(iter(waiting.values())), waiting)
        for statement in ready:
            made[statement.name] = made_of(statement, made)
            del waiting[statement.name]
    return [made[statement.name] for statement in statements]


def _circle(first: Hears, waiting: Mapping[str, Hears]) -> DefinitionError:
    path = [first.name]
    while path.count(path[-1]) < 2:
        path.append(next(name for name in heard_by(waiting[path[-1]]) if name in waiting))
    names = " over ".join(f"'{name}'" for name in path[path.index(path[-1]) :])
    last = next(name for name in heard_by(waiting[path[-1]]) if name in waiting)
    return DefinitionError(
        f"conditions go in a circle: {names}",
        place_of(last, first.at),
        hint="Let one of them be over a state of readings.",
    )


def named(name: str, made: Mapping[str, Heard], at: Place | None) -> Heard:
    """The condition of that name."""
    if name not in made:
        raise DefinitionError(f"unknown condition '{name}'", at, hint=did_you_mean(name, made))
    one = made[name]
    if isinstance(one.delivery.late, Correct):
        raise DefinitionError(
            f"'{name}' corrects what it has told ('late correct'), so nothing can build on it",
            at,
            hint="Let it drop what comes late, and wait longer: ordered 10 min",
        )
    return one


def is_momentary(one: Heard) -> bool:
    """Whether a condition is over as it starts."""
    return isinstance(one, Correlated) or getattr(one, "momentary", False)


def keys_of(over: Heard) -> tuple[str, ...]:
    """By what the scopes of a condition are kept apart, as far as what it tells says so."""
    match over:
        case Condition() | Guarded():
            return over.keys[-1] if over.keys and over.forest is None else ()
        case Leveled():
            return keys_of(over.rungs[0])
        case Tallied():
            return over.within
        case _:
            return ()


def routing_keys(over: Heard) -> tuple[str, ...]:
    """The attributes that have one value in all that a condition emits of a scope: whoever consumes that may
    be sharded by them.  What ends a count may come from elsewhere than what started it."""
    return () if isinstance(over, Tallied) and not over.settled else keys_of(over)


def speaks_by_time(over: Heard) -> bool:
    """Whether a condition says things that no reading of that moment makes it say."""
    match over:
        case Condition():
            return False
        case Leveled():
            return any(map(speaks_by_time, over.rungs))
        case Tallied() | Folded():
            return over.waits
        case _:
            return True
