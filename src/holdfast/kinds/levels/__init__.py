"""Levels: nested states of one topic, of which the highest active one counts."""

from ..kind import Kind
from . import check, plan, revise, syntax

KIND = Kind(
    "levels",
    statements=(syntax.DefineLevels,),
    rules={"ladder": syntax.read_levels},
    show=lambda statement, _notation: syntax.show_levels_statement(statement),
    check=check.check,
    cautions=check.cautions,
    operators=plan.operators,
    meaning=plan.meaning,
    describe=plan.describe,
    explain=plan.explain,
    revision=revise.REVISION,
    tables=syntax.tables,
    reads_file=syntax.reads_file,
)
