"""The rows of a run, and the tables that readers see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from ..experiment import Result, Row, Table
from .claim import RULES, crossing, input_share, judge
from .count import LINES, Counts
from .definition import COMPONENTS, CONGESTION

THESIS = "the thesis"


def row(setting: str, experiment: str, day: str, counts: Counts) -> Row:
    """Return the counts of a day as a row."""
    return {"setting": setting, "experiment": experiment, "day": day, **{key: counts[key] for key in LINES}}


def tables(result: Result) -> list[Table]:
    """Return the thesis' tables beside our counts, the effect of the settings, and the verdicts."""
    theirs = [one for one in result.rows if one["setting"] == THESIS]
    both = [one for one in result.rows if one["experiment"] and one["setting"] != THESIS]
    month = [one for one in result.rows if not one["experiment"]]
    heads = ("", *(head for head, _ in _SUMMARY))
    settings = [(row["setting"], row["experiment"], *_summary(row)) for row in theirs + both]
    found = [
        *(_beside(table, both[:2]) for table in dict.fromkeys(line.table for line in LINES.values())),
        Table("What it depends on", ("setting", *heads), settings),
        _verdicts(both),
    ]
    if month:
        days = [(one["day"], *_summary(one)) for one in month]
        found.append(Table("Every day, as described", ("day", *heads[1:]), days))
    return found


def _beside(table: str, ours: Sequence[Row]) -> Table:
    """Return one of the thesis' tables with the counts of our two experiments."""
    first, second = ours
    return Table(
        table,
        ("statistic", "thesis Exp1", "ours", "thesis Exp2", "ours", "how it is counted"),
        [
            (line.called, line.paper[0], first[key], line.paper[1], second[key], line.how)
            for key, line in LINES.items()
            if line.table == table
        ],
    )


def _verdicts(both: Sequence[Row]) -> Table:
    """Return which claims hold in both experiments, for each setting."""
    settings: dict[str, list[dict[str, bool]]] = {}
    for one in both:
        settings.setdefault(one["setting"], []).append(judge(one))
    lines = [(claim, *(all(j[claim] for j in judged) for judged in settings.values())) for claim in RULES]
    return Table("Which claims hold", ("claim", *settings), lines)


_SHORT = ("High", "Slow", "Congestion", "Near")
_SUMMARY: Sequence[tuple[str, Callable[[Counts], Any]]] = (
    *((short, itemgetter(name)) for short, name in zip(_SHORT, COMPONENTS, strict=True)),
    ("crosses %", lambda counts: f"{crossing(counts):.5f}"),
    ("evaluations", itemgetter(f"combinations {CONGESTION}")),
    ("in one piece", itemgetter("whole")),
    ("input cut %", lambda counts: round(input_share(counts), 1)),
    ("most KPs", lambda counts: max(counts[f"points {name}"] or 0 for name in COMPONENTS)),
    ("differ", itemgetter("differ nodes")),
)


def _summary(counts: Mapping[str, Any]) -> list[Any]:
    return [figure(counts) for _, figure in _SUMMARY]
