"""Counts: how many scopes of a condition are active at once."""

from ..kind import Kind
from . import check, plan, revise, syntax

KIND = Kind(
    "count",
    statements=(syntax.DefineCount,),
    rules={"tally": syntax.read_count},
    show=lambda statement, _notation: syntax.show_count(statement),
    check=check.check,
    operators=plan.operators,
    meaning=plan.meaning,
    describe=plan.describe,
    explain=plan.explain,
    revision=revise.REVISION,
    builds_on_conditions=True,
    reads_file=lambda statement: statement.roster is not None,
)
