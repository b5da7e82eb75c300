"""Overlaps: conditions that are active at the same time, or that follow one another in time.

`machine.py` is the machine; `kinds/derived.py` has the part that all conditions over conditions share.
"""

from ..kind import Kind, check_each, compile_each, explain_each
from . import check, plan, revise, syntax

KIND = Kind(
    "overlap",
    statements=(syntax.DefineOverlap,),
    rules={"align": syntax.read_overlap},
    show=lambda statement, _notation: syntax.show_align(statement),
    check=check_each(check.check_overlap),
    operators=compile_each(plan.operator),
    meaning=plan.meaning,
    describe=plan.describe,
    explain=explain_each(plan.explain),
    revision=revise.REVISION,
    builds_on_conditions=True,
)
