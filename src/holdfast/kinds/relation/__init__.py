"""Relations: pairs and groups of sources that are near one another, or otherwise related.

A tie is one such pair or group. `machine.py` measures ties with the kernels in `kernels/relate.py`.
"""

from ..kind import Kind, caution_each, explain_each
from . import check, declared, explain, parse, plan, revise, show, syntax

KIND = Kind(
    "relation",
    statements=(syntax.DefineRelation, syntax.DeclareGroup, syntax.DeclareRoute),
    rules={"group_of": parse.group_of, "route": parse.route, "relate": parse.relate},
    show=lambda statement, _notation: show.show_relation(statement),
    check=check.check,
    cautions=caution_each(check.cautions),
    operators=plan.operators,
    meaning=plan.meaning,
    describe=explain.describe,
    explain=explain_each(explain.explain),
    revision=revise.REVISION,
    with_rows=declared.with_listed_sources,
    explain_on_spark=lambda conditions, _topics: explain.explain_on_spark(conditions),
)
