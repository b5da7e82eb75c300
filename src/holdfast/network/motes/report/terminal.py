"""The results of a study as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...sim.statistics import Estimate
from ..results import StudyResults
from .axis import short
from .page import MEASURES, subscriptions
from .style import format_estimate

_RECEIVED: Mapping[str, str] = {"received_ratio": "received", "received_delay_ms": "delay (ms)"}
_MAIN: Mapping[str, str] = {
    "delivery_ratio": "delivered",
    "delay_ms": "delay (ms)",
    "hops": "hops",
    "transmissions_per_delivery": "transmissions each",
    "energy_per_delivery_mj": "mJ each",
    "lifetime_s": "lifetime (s)",
}
"""The measures shown for each point of a sweep, if they were measured. With subscribers, the measures of
received notifications replace those of network messages.
"""


def summary_lines(results: StudyResults) -> Iterable[str]:
    """Yield the lines of a list for one point, or of a table for several points. Several seeds add 95 %
    intervals.
    """
    study, rest = results.study, results.runs[0].measures["rest"]
    yield f"{study.name}: {_count(study.points, 'point')}, {_count(study.seeds, 'seed')}; at rest: {rest}"
    summaries = [results.summary(i) for i in range(len(study.points))]
    if len(study.points) == 1:
        (found,) = summaries
        yield from align([(MEASURES[n], format_estimate(found[n])) for n in MEASURES if n in found])
    else:
        yield from _side_by_side(results, summaries)
    if results.runs[0].subscriptions:
        yield ""
        heading, *rows = subscriptions(results)
        yield from align([list(map(short, heading)), *rows])


def _side_by_side(results: StudyResults, summaries: Sequence[Mapping[str, Estimate]]) -> Iterable[str]:
    """Yield the lines of a table with a row for each point."""
    subscribed = any("expected" in summary for summary in summaries)
    network = ("delivery_ratio", "delay_ms", "hops") if subscribed else tuple(_RECEIVED)
    titles = {name: title for name, title in {**_RECEIVED, **_MAIN}.items() if name not in network}
    names = [name for name in titles if any(name in summary for summary in summaries)]
    heading = [*map(short, results.study.parameters), *(titles[name] for name in names)]
    rows = [
        [*results.settings(i).values(), *(format_estimate(summary.get(name)) for name in names)]
        for i, summary in enumerate(summaries)
    ]
    yield from align([heading, *rows])


def align(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Align the cells of rows in columns.

    >>> list(align([("every", "hops"), ("10 s", "3")]))
    ['every  hops', '10 s   3']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"
