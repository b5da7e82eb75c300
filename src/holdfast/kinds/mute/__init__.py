"""Mutes: they withhold notifications of a condition for a time.

`machine.py` is the machine; `kinds/derived.py` has the part that all conditions over conditions share.
"""

from ..kind import Kind, compile_each, explain_each
from . import check, plan, revise, syntax

KIND = Kind(
    "mute",
    statements=(syntax.DefineMute,),
    rules={"mute": syntax.read_mute},
    show=lambda statement, _notation: syntax.show_mute(statement),
    check=check.check,
    operators=compile_each(plan.operator),
    meaning=plan.meaning,
    describe=plan.describe,
    explain=explain_each(plan.explain),
    revision=revise.REVISION,
    builds_on_conditions=True,
)
