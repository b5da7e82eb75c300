"""A definition is exchanged for another: whom a history decides anew, and what is said of scopes by it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..lang.condition import Checked, Muted
from ..lang.hearing import keys_of
from ..machines.levels import Levels
from ..model.event import Event, Status, Transition, Value
from ..model.instant import Instant
from ..model.scope import unlisted
from .families import FAMILIES, conditions, has_other_rows, meanings, without
from .operator import Operator

Scoped = tuple[str, str | None]
"""A subscription, and a scope of it as people read it."""


def changed(was: Checked, now: Checked) -> list[str]:
    """The conditions that mean something else under their old name, or compare with other rows."""
    meant, means = meanings(was), meanings(now)
    known = [name for name in means if name in meant]
    return [name for name in known if means[name] != meant[name] or has_other_rows(name, was, now)]


def anew(was: Checked, now: Checked) -> frozenset[str]:
    """The conditions that a history decides anew: what is new or means something else, and whoever builds on
    that.  A mute is none: what people were told is not in the history."""
    told = conditions(now)
    found = upward(now, {*changed(was, now), *(name for name in told if name not in conditions(was))})
    for family in FAMILIES:  # those that run in one machine go together
        mine = {one.name for one in family.of(now)}
        found |= mine if family.builds_on_others and mine & found else set()
    return frozenset(name for name in found if not isinstance(told[name], Muted))


def upward(checked: Checked, names: Collection[str]) -> set[str]:
    """Some conditions, and whoever builds on them."""
    ground, found = _ground(checked), set(names)
    while more := {name for name, below in ground.items() if name not in found and below & found}:
        found |= more
    return found


def only(checked: Checked, names: Collection[str]) -> Checked:
    """The definition with no conditions but some."""
    return without(checked, [name for name in conditions(checked) if name not in names])


def with_ground(checked: Checked, names: Collection[str]) -> Checked:
    """The definition with no conditions but some and those on which they build."""
    ground, found = _ground(checked), set(names)
    while more := {below for name in found & ground.keys() for below in ground[name]} - found:
        found |= more
    return only(checked, found)


def _ground(checked: Checked) -> dict[str, set[str]]:
    """For each condition that builds on others, on which."""
    told = conditions(checked)
    above = [family for family in FAMILIES if family.builds_on_others or family.hears_others]
    some = (one for family in above for one in family.of(checked))
    return {one.name: {topic.name for topic in one.listens} & told.keys() for one in some}


# --- what is said of it ------------------------------------------------------------------------------


class Standing(NamedTuple):
    """What is so of a scope: since when it holds, if it does, whether that is known, and the level."""

    scope: str | None
    since: Instant | None
    known: bool
    level: str | None

    def says(self) -> object:
        """What people are told of."""
        return self.since is not None, self.known, self.level


def standings(operator: Operator, state: Any) -> dict[Scoped, Standing]:
    """Of all scopes that hold, or of which nobody knows whether they do."""
    machine, found = operator.machine, dict[Scoped, Standing]()
    levels = _levels(machine, state) if isinstance(machine, Levels) else {}
    for known, rows in ((True, machine.holding(state)), (False, machine.unknown(state))):
        for condition, scope, since in rows:
            for name in operator.names[condition]:
                found[name, operator.shows(scope)] = Standing(scope, since, known, levels.get(scope))
    return found


def _levels(machine: Levels, state: Any) -> dict[str | None, str]:
    heights = state.heights.items()
    return {scope: machine.names[height.level - 1] for scope, height in heights if height.level}


def holders(operator: Operator, state: Any, checked: Checked, at: Instant) -> list[Transition]:
    """Who holds in a state of an operator, as if that were said now of the time at which each began; and of
    whom nobody knows, as of the last moment that is over, or that in which it began.  What a scope was called
    by is all that is left of the readings."""
    told, machine, found = conditions(checked), operator.machine, list[Transition]()
    for status, rows in (("ingress", machine.holding(state)), ("unknown", machine.unknown(state))):
        for condition, scope, since in rows:
            for name in operator.names[condition][:1]:
                when = at - 1 if since is None else since if status == "ingress" else max(at - 1, since)
                event = _as_called(Event(name, when, scope or "", sequence=0), told[name], scope)
                found.append(Transition(event, status, scope, None, condition))  # type: ignore[arg-type]
    return found


def _as_called(event: Event, condition: Any, scope: str | None) -> Event:
    """An event with the values by which a scope is called."""
    keys, known = keys_of(condition), condition.topic.by_name
    texts = unlisted(scope, len(keys)) if scope is not None and keys else None
    values = {name: _VALUES[known[name].kind](text) for name, text in zip(keys, texts or (), strict=False)}
    fixed = {name: values.pop(name) for name in ("source", "place") if name in values}
    return replace(event, attributes=values, **fixed)  # type: ignore[arg-type]


_VALUES: Mapping[str, Callable[[str], Value]] = {
    "text": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "true",
}


def revisions(
    operator: Operator,
    state: Any,
    before: Mapping[Scoped, Standing],
    events: Mapping[Scoped, Event],
    nothing: Callable[[Scoped], Event],
) -> Iterator[tuple[Operator, list[Transition]]]:
    """For each subscription the operator as it serves that alone, and what is to be said of scopes that are
    not as they were; ``events`` are those by which they came to it, ``nothing`` is in the place of none."""
    after = standings(operator, state)
    for condition, names in enumerate(operator.names):
        for name in names:
            alone = operator.serving((name,) if i == condition else () for i in range(len(operator.names)))
            said = []
            for key in dict.fromkeys(key for key in (*before, *after) if key[0] == name):
                was, now = before.get(key, _OFF), after.get(key, _OFF)
                if was.says() != now.says():
                    status: Status = "revised" if now.known else "unknown"
                    scope = (now if key in after else was).scope
                    event = events.get(key) or nothing(key)
                    said.append(Transition(event, status, scope, now.since, condition))
            yield alone, said


_OFF = Standing(None, None, True, None)


def nothing_heard(checked: Checked, at: Instant) -> Callable[[Scoped], Event]:
    """For each scope what is in the place of an event by which it came to be as it is."""
    topics = {name: one.topic.name for name, one in conditions(checked).items()}
    return lambda key: Event(topics[key[0]], at, key[1] or "")
