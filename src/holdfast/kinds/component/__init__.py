"""Components: conditions over queries of several topics (State Maintenance Components of the thesis).

`parse` and `thesis_tables` read components, `check` checks them, and `plan` makes operators of them. The
folder `detector` evaluates them.
"""

from ..kind import Kind, caution_each
from . import check, compile, explain, infer, parse, plan, revise, syntax, thesis_tables

KIND = Kind(
    "component",
    statements=(syntax.DefineComponent, syntax.Collide),
    rules={"component": parse.component, "table": thesis_tables.table, "collide": parse.collide},
    show=thesis_tables.show_component,
    check=check.check,
    cautions=caution_each(check.cautions),
    implicit_topics=infer.implicit_topics,
    operators=plan.operators,
    sharded=plan.sharded,
    meaning=compile.meaning,
    describe=explain.describe,
    explain=explain.explain,
    revision=revise.REVISION,
    explain_on_spark=explain.explain_on_spark,
    shares_machines=True,
    shorter=explain.to_brackets,
)
