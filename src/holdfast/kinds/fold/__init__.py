"""Folds: many active siblings are reported as the cell around them.

`machine.py` is the machine; `kinds/derived.py` has the part that all conditions over conditions share.
"""

from ..kind import Kind, check_each, compile_each, explain_each
from . import check, plan, revise, syntax

KIND = Kind(
    "fold",
    statements=(syntax.DefineFold,),
    rules={"fold": syntax.read_fold},
    show=lambda statement, _notation: syntax.show_fold(statement),
    check=check_each(check.check_fold),
    operators=compile_each(plan.operator),
    meaning=plan.meaning,
    describe=plan.describe,
    explain=explain_each(plan.explain),
    revision=revise.REVISION,
    builds_on_conditions=True,
)
