"""Levels: nested states of one topic. The highest active state is the level of a scope.

Levels consist of states: most of their checks, plans and revisions call those of `kinds/state`.
"""

from ..kind import Kind, caution_each, check_each, explain_each
from . import check, plan, revise, syntax

KIND = Kind(
    "levels",
    statements=(syntax.DefineLevels,),
    rules={"ladder": syntax.read_levels},
    show=lambda statement, _notation: syntax.show_levels_statement(statement),
    check=check_each(check.check_levels),
    cautions=caution_each(check.cautions),
    operators=plan.operators,
    meaning=plan.meaning,
    describe=plan.describe,
    explain=explain_each(plan.explain),
    revision=revise.REVISION,
    tables=syntax.tables,
    reads_file=syntax.reads_file,
)
