"""Checking of mutes: of what, while what, and not in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...errors import DefinitionError, Place
from ...model.schedule import schedule
from ...model.space import Forest
from ...model.topic import Attribute, Topic
from ..condition import (
    Aligned,
    Cause,
    Clock,
    Component,
    Condition,
    Correlated,
    Folded,
    Guarded,
    Leveled,
    Muted,
    Parent,
    Related,
    Storm,
    Tallied,
)
from ..hearing import Heard, is_momentary, named
from ..kinds import Scope
from ..ops import Beyond, During, Levels, Mute, While, place_of
from ..types import unknown_attribute

OWN = (Attribute("missed", "int"), Attribute("scopes", "int"), Attribute("holding", "int"))
"""What a summary tells: how much came and went untold, in how many scopes, and how many hold now."""


def muted(statements: Sequence[Mute], conditions: Iterable[Heard]) -> tuple[Muted, ...]:
    """What is muted, each condition once, with all causes."""
    known = {one.name: one for one in conditions}
    together: dict[str, list[Mute]] = {}
    for statement in statements:
        target = named(statement.target, known, place_of(statement.target, statement.at))
        together.setdefault(target.name, []).append(statement)
    _require_no_circle(statements)
    return tuple(_muted(known[name], some, known) for name, some in together.items())


def _require_no_circle(statements: Sequence[Mute]) -> None:
    """Refuse conditions that mute one another."""
    above: dict[str, list[str]] = {}
    for one in statements:
        if isinstance(one.cause, While):
            above.setdefault(one.target, []).append(one.cause.parent)
    for one in reversed(statements):  # the last one closes the circle
        path = [str(one.target)]
        waiting = [(path, parent) for parent in above.get(one.target, ())]
        while waiting:
            path, name = waiting.pop()
            if name == one.target:
                names = " while ".join(f"'{each}'" for each in (*path, name))
                raise DefinitionError(
                    f"mutes go in a circle: {names}",
                    place_of(one.target, one.at),
                    hint="Let one of them be told.",
                )
            if name not in path:
                waiting += [([*path, name], more) for more in above.get(name, ())]


def _muted(target: Heard, statements: Sequence[Mute], known: dict[str, Heard]) -> Muted:
    at = statements[0].at
    if isinstance(target, Correlated) and target.tell == "events" and len(target.listens) > 1:
        raise DefinitionError(
            f"'{target.name}' tells readings of several topics, which cannot be muted together",
            at,
            hint="Let it tell one event of its own: tell all",
        )
    tells = target.listens[0] if isinstance(target, Correlated) and target.tell == "events" else target.topic
    told = Topic(target.name, tells.attributes)
    return Muted(
        f"mute {target.name}",
        target.name,
        told,
        tells.name,
        Topic(f"mute {target.name}", OWN),
        tuple(_cause(one, told, known) for one in statements),
        max(one.wait for one in statements),
    )


def _cause(statement: Mute, told: Topic, known: dict[str, Heard]) -> Cause:
    match statement.cause:
        case During(spans, zone, at):
            try:
                return Clock(schedule(spans, zone))
            except ValueError as error:
                raise DefinitionError(str(error), at or statement.at) from None
        case While(name):
            return _parent(named(name, known, at := place_of(name, statement.at)), at, told)
        case Beyond(most, within):
            if most.unit is not None or not isinstance(most.value, int) or most.value < 1:
                raise DefinitionError("a storm is beyond a whole number above zero", most.at or statement.at)
            for name in within:
                if name not in told.by_name:
                    raise unknown_attribute(name, Scope(told, {}), place_of(name, statement.at))
            return Storm(most.value, tuple(map(str, within)))


def _parent(parent: Heard, at: Place | None, told: Topic) -> Parent:
    if is_momentary(parent):
        raise DefinitionError(
            f"'{parent.name}' is over as it starts, so nothing is muted while it holds",
            at,
            hint="Name a state, which lasts.",
        )
    if isinstance(parent, Aligned | Folded | Related):
        raise DefinitionError(
            f"'{parent.name}' holds of several together, so of no scope of '{told.name}'",
            at,
            hint=f"Count it: state Some = at least 1 of {parent.name}; mute … while Some",
        )
    keys, forest = _scopes(parent)
    for key in (key for level in keys for key in level):
        if key not in told.by_name:
            raise DefinitionError(
                f"'{parent.name}' is per {key}, which '{told.name}' does not tell",
                at,
                hint=f"Give the topic of '{told.name}' an attribute '{key}'.",
            )
    return Parent(Topic(parent.name, parent.topic.attributes), keys, forest)


def _scopes(parent: Heard) -> tuple[Levels, Forest | None]:
    """The scopes that a parent is told of: the outermost ones."""
    match parent:
        case Condition() | Guarded():
            return ((), parent.forest) if parent.forest is not None else (parent.keys[-1:], None)
        case Leveled():
            return _scopes(parent.rungs[0])
        case Tallied():
            return ((parent.within,) if parent.within else (), parent.forest)
        case Component():
            return ((parent.keys,) if parent.keys else (), None)
        case _:
            return (), None
