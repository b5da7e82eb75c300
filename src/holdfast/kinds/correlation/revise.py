"""A revised correlation restarts: earlier readings take part in no combination.

`kinds/revision.py` explains what the functions of a revision are for.
"""

from __future__ import annotations

from ..revision import RESTARTS, Past, Revision, TakeOver, restart
from .condition import CorrelationCondition
from .plan import operators


def preview(_was: CorrelationCondition, _now: CorrelationCondition) -> str:
    """Describe in words the effect of a revision on combinations."""
    return f"{RESTARTS}: what came before takes part in nothing"


def take_over(was: CorrelationCondition, now: CorrelationCondition, past: Past) -> TakeOver:
    """Restart a correlation."""
    (operator,) = operators([now], now.listens)
    return restart(operator, was, now, past, keeps_scopes=False)


REVISION = Revision(take_over, preview)
