"""Correlations: readings that agree in time and space, with one reading for each filter.

`machine.py` evaluates them with the kernels in `kernels/correlate.py`.
"""

from ..kind import Kind, caution_each, check_each
from . import check, explain, parse, plan, revise, show, syntax
from .sql import relevant

KIND = Kind(
    "correlation",
    statements=(syntax.DefineCorrelation,),
    rules={"correlate": parse.correlate},
    show=lambda statement, _notation: show.show_correlate(statement),
    check=check_each(check.check_correlation),
    cautions=caution_each(check.cautions),
    implicit_topics=check.implicit_topics,
    operators=plan.operators,
    meaning=plan.meaning,
    describe=explain.describe,
    explain=explain.explain,
    revision=revise.REVISION,
    explain_on_spark=lambda conditions, _topics: explain.explain_on_spark(conditions),
    sql=relevant,
)
