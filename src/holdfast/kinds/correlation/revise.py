"""Revisions of correlations: a revised correlation restarts, and earlier readings take part in no
combination.

`kinds/revision.py` explains the functions of a revision.
"""

from __future__ import annotations

from ..revision import RESTARTS, Past, Revision, TakeOver, restart
from .condition import CorrelationCondition
from .plan import operators


def preview(_was: CorrelationCondition, _now: CorrelationCondition) -> str:
    """Return as text the effect of a revision on combinations."""
    return f"{RESTARTS}: what came before takes part in nothing"


def take_over(was: CorrelationCondition, now: CorrelationCondition, past: Past) -> TakeOver:
    """Restart a correlation without state, so that earlier readings take part in no combination."""
    (operator,) = operators([now], now.listens)
    return restart(operator, was, now, past, keeps_scopes=False)


REVISION = Revision(take_over, preview)
