"""Folds: many active siblings reported as one."""

from ..kind import Kind
from . import check, plan, revise, syntax

KIND = Kind(
    "fold",
    statements=(syntax.DefineFold,),
    rules={"fold": syntax.read_fold},
    show=lambda statement, _notation: syntax.show_fold(statement),
    check=check.check,
    operators=plan.operators,
    meaning=plan.meaning,
    describe=plan.describe,
    explain=plan.explain,
    revision=revise.REVISION,
    builds_on_conditions=True,
)
