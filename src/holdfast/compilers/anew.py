"""Conditions that begin anew where their definition changes while they run: what they know are readings, of
which another definition would have kept others.

What held, in scopes that the new definition has, too, is open until it decides; in others it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..lang.condition import Component, Correlated, Related
from ..machines.inherited import Bit, Inheriting
from ..model.event import Event, Transition
from ..model.instant import Duration, show_duration
from ..model.query import Aggregate, Closest, Index, Members, Multiple, Query, Range
from .guarded.revise import Revised
from .operator import Operator, Past


def why_not(_was: object, _now: object) -> str | None:
    """Nothing is in the way of a beginning."""
    return None


def outlives(_was: object, _now: object) -> bool:
    """Of what holds nobody knows."""
    return False


def outlook(was: Any, now: Any) -> str:
    """What will become of scopes, in words."""
    said = "is as a whole history says, where one is heard again, else it begins anew"
    if isinstance(now, Correlated):
        return f"{said}: what came before takes part in nothing"
    if not keeps_scopes(was, now):
        return f"{said}, in other scopes: what holds ends"
    back = looks_back(now)
    ends = f"or, {show_duration(back)} after the edit at the soonest, ends it" if back else "or ends it"
    gone = "; of pairs that it no longer has, what holds ends" if _has_other_pairs(was, now) else ""
    return f"{said}: what holds is unknown until the new definition starts it {ends}{gone}"


def keeps_scopes(was: Any, now: Any) -> bool:
    """Whether what held can hold under another definition: in a scope of that name."""
    match was, now:
        case Component(), Component():
            return not now.momentary and (was.keys, _carrier(was)) == (now.keys, _carrier(now))
        case Related(), Related():
            pair = was.relation, now.relation
            old, new = (
                (one.ties is None, one.roaming, one.names, one.kind == "best", one.kind == "distance")
                for one in pair
            )
            return old == new
    return False


def why_not_in_shards(was: Any, now: Any, *, moves: bool) -> str | None:
    """Why a condition cannot take the place of another in the shards of a live query, which know what holds
    of their own scopes; ``moves`` says whether it runs elsewhere now."""
    if isinstance(now, Component) and not keeps_scopes(was, now):
        return "its scopes are others"
    ties = keeps_scopes(was, now) and _has_other_pairs(was, now)
    return "what it looks at meets in other shards than what is known" if ties or moves else None


def _has_other_pairs(was: Any, now: Any) -> bool:
    return isinstance(now, Related) and bool(was.relation.ties != now.relation.ties)


def _carrier(one: Component) -> str | None:
    """The topic whose sources carry a replica each."""
    return str(one.here) if isinstance(one.here, str) else None


def looks_back(one: Any) -> Duration:
    """How far back a condition looks; one that looks at all there was, or at the latest alone, does not."""
    queries = [query for _, query in one.inputs] if isinstance(one, Component) else []
    return max(map(_looks_back, queries), default=0)


def _looks_back(query: Query) -> Duration:
    match query.time:
        case Closest(Index(int(at), True)):
            return max(0, -at)
        case Aggregate(_, Range(Index(int(low), True))) | Multiple(_, Range(Index(int(low), True))):
            return max(0, -low)
        case Aggregate(_, Members(some)) | Multiple(_, Members(some)):
            return max([0, *(-one.value for one in some if one.relative and isinstance(one.value, int))])
    return 0


def inherited(name: str, was: Any, now: Any, operator: Operator, state: Any) -> list[Bit]:
    """What a condition leaves to the one that takes its place."""
    machine = operator.machine
    if not isinstance(machine, Inheriting) or not keeps_scopes(was, now):
        return []
    (number,) = (i for i, names in enumerate(operator.names) if name in names)
    other = was.topic.differing(now.topic)
    bits = machine.bits(state, number).values()
    return [machine.without(bit, other) for bit in bits] if other else list(bits)


def revised(compiled: Callable[[list[Any]], list[Operator]], was: Any, now: Any, past: Past) -> Revised:
    """Let a condition begin in a place of its own, with what another of its name leaves to it."""
    (operator,) = compiled([now])
    machine = operator.machine
    state, _ = machine.advance(machine.initial(), past.at)
    if isinstance(machine, Inheriting):
        state = machine.begun(state, 0, inherited(now.name, was, now, past.operator, past.state), past.at)
    open = {scope: since for _, scope, since in machine.unknown(state)}
    ran = past.operator.machine
    held = {scope for _, scope, _ in ran.holding(past.state)}
    held -= {scope for _, scope, _ in ran.unknown(past.state) if scope in open}
    said = [
        Transition(
            Event(now.topic.name, past.at, scope or ""),
            "unknown" if scope in open else "revised",
            scope,
            open.get(scope),
            0,
        )
        for scope in sorted(held, key=lambda scope: scope or "")
    ]
    return Revised(operator, state, said)
