"""Mutes: notifications of a condition are withheld for a while.

`machine.py` withholds them; `kinds/derived.py` has what it shares with other conditions over conditions.
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
