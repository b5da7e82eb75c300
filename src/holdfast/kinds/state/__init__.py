"""States and filters: conditions that single events start or end, possibly after a minimum duration.

`toggle.py` is the machine of plain states and filters, `duration/machine.py` that of states with minimum
durations.
"""

from dataclasses import replace

from ..kind import Kind, caution_each
from . import check, explain, on_broker, plan, plan_toggle, revise, syntax, window
from .sql import relevant

KIND = Kind(
    "state",
    statements=(syntax.DefineState,),
    rules=syntax.RULES,
    show=lambda statement, _notation: syntax.show_state(statement),
    check=check.check,
    cautions=caution_each(check.cautions),
    implicit_topics=check.implicit_topics,
    operators=plan.operators,
    meaning=plan_toggle.meaning,
    describe=explain.describe,
    explain=explain.explain,
    explain_on_spark=lambda conditions, _topics: explain.explain_on_spark(conditions),
    tables=syntax.tables,
    reads_file=syntax.reads_file,
    with_topic=lambda statement, topics: replace(statement, topic=topics[0]),
    sql=relevant,
    window=window.WINDOW_FORM,
    revision=revise.REVISION,
    on_broker=on_broker.on_broker,
    starts_silently=on_broker.starts_silently,
)
