"""Overlaps: conditions that are active at once, or follow one another in time.

`machine.py` relates intervals; `kinds/derived.py` has what it shares with other conditions over conditions.
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
