"""Correlations as text."""

from __future__ import annotations

from ...model.instant import show_duration
from ..literal import write_text
from ..ops import Align, Correlate, Match
from ..show import label, show_coordinate, show_delivery, show_expression, show_shape


def show_correlate(statement: Correlate) -> str:
    """``correlate …``, with a line for each filter."""
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


def show_align(statement: Align) -> str:
    """``correlate Danger = Smoke, DoorOpen overlapping within 30 s, 50 m per room``."""
    names = list(map(label, statement.over))
    relation = statement.relation
    said = f"{', '.join(names)} overlapping" if relation == "overlapping" else f" {relation} ".join(names)
    extents = [] if statement.within is None else [show_duration(statement.within)]
    extents += [] if statement.near is None else [f"{show_coordinate(statement.near)} m"]
    words = [f"correlate {label(statement.name)} = {said}"]
    words += [f"within {', '.join(extents)}"] if extents else []
    words += [f"per {', '.join(map(label, statement.per))}"] if statement.per else []
    return " ".join(words)


def show_match(match: Match) -> str:
    """``ambient_temp in [-5, 2]``."""
    sensor = "" if match.sensor is None else f" of {write_text(match.sensor)}"
    return f"{match.attribute}{sensor} {_range(match)}"


def _range(match: Match) -> str:
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
