"""Counts over states as text."""

from __future__ import annotations

from collections.abc import Iterator

from ..literal import write_text
from ..ops import Number, Tally
from ..show import label, show_expression

_WORDS = {Number(50, "%"): "half", Number(100, "%"): "all"}


def show_tally(tally: Tally) -> str:
    """``state Fire = at least 2 of Smoke within room``."""
    quota = _WORDS.get(tally.least) or f"at least {show_expression(tally.least)}"
    return " ".join([f"state {label(tally.name)} = {quota} of {label(tally.over)}", *_clauses(tally)])


def _clauses(tally: Tally) -> Iterator[str]:
    if tally.within:
        yield f"within {', '.join(map(label, tally.within))}"
    if tally.scope:
        yield f"scope {', '.join(map(label, tally.scope))}"
    if tally.fewer is not None:
        yield f"until fewer than {show_expression(tally.fewer)}"
    if tally.joined:
        yield "joined"
    if tally.roster is not None:
        yield f"roster {write_text(tally.roster)}"
    if tally.unknown != "left":
        yield f"unknown {tally.unknown}"
