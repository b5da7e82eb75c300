"""Standings: the active and unknown scopes of an operator, and the transitions that a revision emits for
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..model.event import Event, Status, Transition
from .operator import Operator

Scoped = tuple[str, str | None]
"""The name of a subscription, and the label of one of its scopes."""


class Standing(NamedTuple):
    """The state of a scope.

    `since` is the time since which the scope is active; `None` if it is inactive. `known` is true if that is
    certain.
    """

    scope: str | None
    since: int | None
    known: bool
    level: str | None

    @property
    def reported(self) -> tuple[bool, bool, str | None]:
        """The part of the standing that subscribers are notified about."""
        return self.since is not None, self.known, self.level


INACTIVE = Standing(None, None, True, None)
"""The standing of a scope that is certainly inactive."""


def standings(operator: Operator, state: Any) -> dict[Scoped, Standing]:
    """Return the active and the unknown scopes of an operator."""
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
    """Yield for each subscription its operator, and the transitions of its scopes that a revision changed.

    The operator serves only this subscription, because subscriptions that share a condition may have had
    different standings before. The transitions have the status `revised` or `unknown`. `causes` has the
    events that led to the new standings, if they are known; other transitions get a `placeholder`.
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
