"""Revisions of relations: a revised relation restarts.

Its active pairs are unknown until both members have reported again.
"""

from __future__ import annotations

from ..revision import RESTARTS, Past, Revision, TakeOver, restart
from .condition import RelationCondition
from .plan import operators


def keeps_scopes(was: RelationCondition, now: RelationCondition) -> bool:
    """Whether scopes of the old definition can be scopes of the new one."""
    old, new = (
        (relation.ties is None, relation.roaming, relation.names, kind == "best", kind == "distance")
        for relation, kind in ((c.relation, c.relation.kind) for c in (was, now))
    )
    return old == new


def preview(was: RelationCondition, now: RelationCondition) -> str:
    """Return as text the effect of a revision on active pairs."""
    if not keeps_scopes(was, now):
        return f"{RESTARTS}, in other scopes: active scopes end"
    has_others = was.relation.ties != now.relation.ties
    gone = "; active pairs that it no longer has end" if has_others else ""
    return f"{RESTARTS}: active scopes are unknown until the new definition starts or ends them{gone}"


def refusal_in_shards(was: RelationCondition, now: RelationCondition, moves: bool) -> str | None:
    """Return the reason why the shards of a streaming query cannot carry over the pairs of a relation, or
    `None`."""
    others = keeps_scopes(was, now) and was.relation.ties != now.relation.ties
    return "what it looks at meets in other shards than what is known" if others or moves else None


def take_over(was: RelationCondition, now: RelationCondition, past: Past) -> TakeOver:
    """Restart a relation, with the active pairs of the old definition as unknown."""
    (operator,) = operators([now], now.listens)
    return restart(operator, was, now, past, keeps_scopes=keeps_scopes(was, now))


REVISION = Revision(take_over, preview, refusal_in_shards=refusal_in_shards, keeps_scopes=keeps_scopes)
