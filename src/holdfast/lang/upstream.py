"""Conditions over conditions: their upstream conditions, and the order in which they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from ..errors import DefinitionError, Place, did_you_mean
from ..model.qos import Correct
from .condition import Condition
from .ops import DerivedStatement, place_of

S = TypeVar("S", bound=DerivedStatement)


def check_in_order(
    statements: Sequence[S],
    others: Iterable[Condition],
    check: Callable[[S, Mapping[str, Condition]], Condition],
) -> list[Condition]:
    """Check statements, each after those that it builds on.

    Return the conditions in the order of the text.
    """
    made: dict[str, Condition] = {other.name: other for other in others}
    waiting = {statement.name: statement for statement in statements}
    while waiting:
        ready = [statement for statement in waiting.values() if not waiting.keys() & {*statement.upstreams}]
        if not ready:
            raise _circle(next(iter(waiting.values())), waiting)
        for statement in ready:
            made[statement.name] = check(statement, made)
            del waiting[statement.name]
    return [made[statement.name] for statement in statements]


def _circle(first: DerivedStatement, waiting: Mapping[str, DerivedStatement]) -> DefinitionError:
    path = [first.name]
    while path.count(path[-1]) < 2:
        path.append(next(name for name in waiting[path[-1]].upstreams if name in waiting))
    names = " over ".join(f"'{name}'" for name in path[path.index(path[-1]) :])
    last = next(name for name in waiting[path[-1]].upstreams if name in waiting)
    return DefinitionError(
        f"conditions go in a circle: {names}",
        place_of(last, first.at),
        hint="Let one of them be over a state of readings.",
    )


def upstream(name: str, made: Mapping[str, Condition], at: Place | None) -> Condition:
    """Return the condition with a name, as an upstream of another one.

    Raises an error if it cannot be an upstream.
    """
    if name not in made:
        raise DefinitionError(f"unknown condition '{name}'", at, hint=did_you_mean(name, made))
    condition = made[name]
    if isinstance(condition.delivery.late, Correct):
        raise DefinitionError(
            f"'{name}' corrects what it has told ('late correct'), so nothing can build on it",
            at,
            hint="Let it drop what comes late, and wait longer: ordered 10 min",
        )
    return condition
