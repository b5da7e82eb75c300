"""Relations: pairs and groups of sources that are near, or otherwise related."""

from ..kind import Kind
from . import check, declared, explain, parse, plan, revise, show, syntax

KIND = Kind(
    "relation",
    statements=(syntax.DefineRelation, syntax.DeclareGroup, syntax.DeclareRoute),
    rules={"group_of": parse.group_of, "route": parse.route, "relate": parse.relate},
    show=lambda statement, _notation: show.show_relation(statement),
    check=check.check,
    cautions=check.cautions,
    operators=plan.operators,
    meaning=plan.meaning,
    describe=explain.describe,
    explain=explain.explain,
    revision=revise.REVISION,
    with_rows=declared.with_listed_sources,
    explain_on_spark=lambda conditions, _topics: explain.explain_on_spark(conditions),
)
