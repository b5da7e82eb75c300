"""Rows of a run, and how people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..experiment import Result, Row, Table
from .claim import RULES, crossing, input_share, judge
from .count import LINES, Counts
from .definition import COMPONENTS, CONGESTION

THESIS = "the thesis"


def row(setting: str, experiment: str, day: str, counts: Counts) -> Row:
    """What was counted on a day."""
    return {"setting": setting, "experiment": experiment, "day": day, **{key: counts[key] for key in LINES}}


def tables(result: Result) -> list[Table]:
    """The thesis' tables with ours beside, what our figures depend on, and which claims hold where."""
    theirs = [one for one in result.rows if one["setting"] == THESIS]
    both = [one for one in result.rows if one["experiment"] and one["setting"] != THESIS]
    month = [one for one in result.rows if not one["experiment"]]
    heads = ("", *(head for head, _ in _SUMMARY))
    found = [
        *(_beside(table, keys, both[:2]) for table, keys in _by_table().items()),
        Table(
            "What it depends on",
            ("setting", *heads),
            [(one["setting"], one["experiment"], *_summary(one)) for one in theirs + both],
        ),
        _verdicts(both),
    ]
    if month:
        days = [(one["day"], *_summary(one)) for one in month]
        found.append(Table("Every day, as described", ("day", *heads[1:]), days))
    return found


def _by_table() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, line in LINES.items():
        found.setdefault(line.table, []).append(key)
    return found


def _beside(table: str, keys: Sequence[str], ours: Sequence[Row]) -> Table:
    """One of the thesis' tables, with both experiments of ours."""
    first, second = ours
    return Table(
        table,
        ("statistic", "thesis Exp1", "ours", "thesis Exp2", "ours", "how it is counted"),
        [
            (line.called, line.paper[0], first[key], line.paper[1], second[key], line.how)
            for key, line in ((key, LINES[key]) for key in keys)
        ],
    )


def _verdicts(both: Sequence[Row]) -> Table:
    """Which claims hold in which setting, in both experiments."""
    settings: dict[str, list[dict[str, bool]]] = {}
    for one in both:
        settings.setdefault(one["setting"], []).append(judge(one))
    lines = [(claim, *(all(j[claim] for j in judged) for judged in settings.values())) for claim in RULES]
    return Table("Which claims hold", ("claim", *settings), lines)


def _figure(name: str) -> Callable[[Counts], Any]:
    return lambda counts: counts[name]


_SHORT = ("High", "Slow", "Congestion", "Near")
_SUMMARY: Sequence[tuple[str, Callable[[Counts], Any]]] = (
    *((short, _figure(name)) for short, name in zip(_SHORT, COMPONENTS, strict=True)),
    ("crosses %", lambda counts: f"{crossing(counts):.5f}"),
    ("evaluations", _figure(f"combinations {CONGESTION}")),
    ("in one piece", _figure("whole")),
    ("input cut %", lambda counts: round(input_share(counts), 1)),
    ("most KPs", lambda counts: max(counts[f"points {name}"] or 0 for name in COMPONENTS)),
    ("differ", _figure("differ nodes")),
)


def _summary(counts: Mapping[str, Any]) -> list[Any]:
    return [figure(counts) for _, figure in _SUMMARY]
