"""Revisions of components: a revised component restarts.

Its active scopes are unknown until the new definition starts or ends them.
"""

from __future__ import annotations

from ...model.instant import show_duration
from ..revision import RESTARTS, Past, Revision, TakeOver, restart
from .condition import ComponentCondition
from .plan import looks_back, operators


def keeps_scopes(was: ComponentCondition, now: ComponentCondition) -> bool:
    """Whether scopes of the old definition are also scopes of the new definition."""
    carriers = [str(c.here) if isinstance(c.here, str) else None for c in (was, now)]
    return not now.momentary and was.keys == now.keys and carriers[0] == carriers[1]


def preview(was: ComponentCondition, now: ComponentCondition) -> str:
    """Return as text the effect of a revision on active scopes."""
    if not keeps_scopes(was, now):
        return f"{RESTARTS}, in other scopes: active scopes end"
    back = looks_back(now)
    ends = f"or, {show_duration(back)} after the edit at the soonest, ends them" if back else "or ends them"
    return f"{RESTARTS}: active scopes are unknown until the new definition starts them {ends}"


def refusal_in_shards(was: ComponentCondition, now: ComponentCondition, moves: bool) -> str | None:
    """Return the reason why the shards of a streaming query cannot carry over a component's scopes, or
    `None`."""
    if not keeps_scopes(was, now):
        return "its scopes are others"
    return "what it looks at meets in other shards than what is known" if moves else None


def take_over(was: ComponentCondition, now: ComponentCondition, past: Past) -> TakeOver:
    """Restart a component, with the active scopes of the old definition as unknown."""
    (operator,) = operators([now], now.listens)
    return restart(operator, was, now, past, keeps_scopes=keeps_scopes(was, now))


REVISION = Revision(take_over, preview, refusal_in_shards=refusal_in_shards, keeps_scopes=keeps_scopes)
