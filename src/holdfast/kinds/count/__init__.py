"""Counts: the number of scopes of a condition that are active at the same time, in total or within groups.

`machine.py` is the machine; `kinds/derived.py` has the part that all conditions over conditions share.
"""

from ..kind import Kind, check_each, compile_each, explain_each
from . import check, plan, revise, syntax

KIND = Kind(
    "count",
    statements=(syntax.DefineCount,),
    rules={"tally": syntax.read_count},
    show=lambda statement, _notation: syntax.show_count(statement),
    check=check_each(check.check_count),
    operators=compile_each(plan.operator),
    meaning=plan.meaning,
    describe=plan.describe,
    explain=explain_each(plan.explain),
    revision=revise.REVISION,
    builds_on_conditions=True,
    reads_file=lambda statement: statement.roster is not None,
)
