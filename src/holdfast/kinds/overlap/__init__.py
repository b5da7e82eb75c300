"""Overlaps: conditions that are active at once, or follow one another in time."""

from ..kind import Kind
from . import check, plan, revise, syntax

KIND = Kind(
    "overlap",
    statements=(syntax.DefineOverlap,),
    rules={"align": syntax.read_overlap},
    show=lambda statement, _notation: syntax.show_align(statement),
    check=check.check,
    operators=plan.operators,
    meaning=plan.meaning,
    describe=plan.describe,
    explain=plan.explain,
    revision=revise.REVISION,
    builds_on_conditions=True,
)
