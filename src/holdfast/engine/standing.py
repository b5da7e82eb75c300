"""Standings: which scopes of an operator are active, inactive or unknown, and what a revision emits of
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..model.event import Event, Status, Transition
from .operator import Operator

Scoped = tuple[str, str | None]
"""A subscription, and a scope of it as people read it."""


class Standing(NamedTuple):
    """What is known of a scope: since when it is active, if it is, whether that is certain, and its level."""

    scope: str | None
    since: int | None
    known: bool
    level: str | None

    @property
    def reported(self) -> tuple[bool, bool, str | None]:
        """The part of which subscribers are notified."""
        return self.since is not None, self.known, self.level


INACTIVE = Standing(None, None, True, None)


def standings(operator: Operator, state: Any) -> dict[Scoped, Standing]:
    """The scopes of an operator that are active or unknown."""
    machine, found = operator.machine, dict[Scoped, Standing]()
    for known, rows in ((True, machine.active(state)), (False, machine.unknown(state))):
        for condition, scope, since in rows:
            standing = Standing(scope, since, known, machine.level(state, scope))
            for name in operator.names[condition]:
                found[name, operator.label_of(scope)] = standing
    return found


def revision_transitions(
    operator: Operator,
    state: Any,
    before: Mapping[Scoped, Standing],
    causes: Mapping[Scoped, Event],
    placeholder: Callable[[Scoped], Event],
) -> Iterator[tuple[Operator, list[Transition]]]:
    """For each subscription the operator as it serves that alone, and the transitions `revised` and `unknown`
    of its scopes that changed.

    Subscriptions that share a condition may have stood differently before. `causes` has the events that led
    scopes to where they are now, as far as these are known; the others get a `placeholder`.
    """
    after = standings(operator, state)
    for condition, names in enumerate(operator.names):
        for name in names:
            alone = operator.with_names((name,) if i == condition else () for i in range(len(operator.names)))
            transitions = []
            for key in dict.fromkeys(key for key in (*before, *after) if key[0] == name):
                was, now = before.get(key, INACTIVE), after.get(key, INACTIVE)
                if was.reported != now.reported:
                    status: Status = "revised" if now.known else "unknown"
                    scope = (now if key in after else was).scope
                    event = causes.get(key) or placeholder(key)
                    transitions.append(Transition(event, status, scope, now.since, condition))
            yield alone, transitions
