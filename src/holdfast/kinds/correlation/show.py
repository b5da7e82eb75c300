"""Print correlations. `parse.py` reads the same statement again from the text."""

from __future__ import annotations

from ...lang.literal import write_text
from ...lang.show import label, show_coordinate, show_delivery, show_expression, show_shape
from ...model.instant import show_duration
from .syntax import DefineCorrelation, MatchRange


def show_correlate(statement: DefineCorrelation) -> str:
    """Return ``correlate …`` as text, with a line for each filter."""
    head = f"correlate {label(statement.name)} within {show_duration(statement.within)}"
    if statement.near is not None:
        head += f", {show_coordinate(statement.near)} m"
    match statement.region:
        case None:
            pass
        case str(name):
            head += f" in region {label(name)}"
        case shape:
            head += f" in {show_shape(shape)}"
    options = [] if statement.tell == "events" else [f"tell {statement.tell}"]
    options += filter(None, [show_delivery(statement.delivery)])
    lines = [head, *map(show_match, statement.matches), *([" ".join(options)] if options else [])]
    return "\n  ".join(lines)


def show_match(match: MatchRange) -> str:
    """Return a filter as text, such as ``ambient_temp in [-5, 2]``."""
    sensor = "" if match.sensor is None else f" of {write_text(match.sensor)}"
    return f"{match.attribute}{sensor} {_range(match)}"


def _range(match: MatchRange) -> str:
    low = "" if match.low is None else show_expression(match.low)
    high = "" if match.high is None else show_expression(match.high)
    over, under = match.strict
    if not high:
        return f"{'>' if over else '>='} {low}"
    if not low:
        return f"{'<' if under else '<='} {high}"
    if low == high and not (over or under):
        return f"== {low}"
    return f"in {'(' if over else '['}{low}, {high}{')' if under else ']'}"
