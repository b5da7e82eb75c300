"""A result as it is printed: parameters, rows, tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from holdfast.network.protocols.fsf.policy import POLICIES

from ..experiment import Result, Row, Table
from ..series import MINUTE
from ..stbernard import FILE
from .grid import (
    FsfExhibit,
    Grid,
    Quantity,
    at_the_receiver,
    cost,
    covered_share,
    missed_share,
    publication_load,
    recall,
    subscription_load,
)
from .measure import Draw
from .setting import EXACT, FSF, JOINS, MULTI_JOIN, PLACEMENT, SEEDS, STATIONS, WITHIN, FsfSetting
from .stream import ATTRIBUTES, Recording, first
from .workload import selectivity

QUANTITIES: Sequence[tuple[str, Quantity, int]] = (
    ("subscription load", subscription_load, 1),
    ("publication load", publication_load, 1),
    ("recall", recall, 6),
    ("events per delivery", cost, 4),
    ("covered", covered_share, 4),
    ("gaps not seen", missed_share, 4),
)


def parameters(setting: FsfSetting, every: Recording, draws: Mapping[str, Sequence[Draw]]) -> dict[str, Any]:
    """Return the parameters, including choices that the document leaves open."""
    recording = first(every, setting.groups)
    least, most = setting.attributes
    routers = setting.nodes - len(ATTRIBUTES) * setting.groups
    return {
        "data": FILE,
        "replay": f"{recording.hours} h from {recording.began}: of all stretches from a full hour that in "
        f"which the {STATIONS}th most complete station has most reports with all five readings",
        "events": sum(len(series.times) for series in recording.series.values()),
        "stations": list(recording.stations),
        "complete reports": f"at least {min(recording.complete.values()):.0%} of those due",
        "left out": "missing readings; the fault code -1 of both temperatures",
        "network": f"{setting.nodes} nodes: {routers} routers, each connected to an earlier one by chance; "
        f"{setting.groups} stations at different routers, whose five nodes are connected to the router",
        "users": "at any router, with equal chance; stations take turns",
        "attributes": f"{least} to {most}, by chance" if least < most else least,
        "ranges": "the centre is off the median of the stream by a Pareto variable of skew 1 (0 or more) "
        "times the distance of the quartile on its side, below or above with equal chance; the width is even "
        "between half and twice the distance between the quartiles",
        "selectivity": {name: _selectivity(some, every) for name, some in draws.items()},
        "drawn again, for want of a match": {
            name: sum(one.redrawn for one in some) for name, some in draws.items()
        },
        "δt": f"{WITHIN / MINUTE:g} min",
        "δl": "none: subscriptions name their sensors, those of one station",
        "set filtering": {name: repr(POLICIES[name].filtering) for name in (FSF, EXACT)},
        "seeds": f"{SEEDS[0]} to {SEEDS[-1]}; each draws network, users and subscriptions",
    }


def _selectivity(draws: Sequence[Draw], recording: Recording) -> str:
    """Return which share of the events of its sensors a subscription is owed."""
    parts = [selectivity(one, recording) for drawn in draws for one in drawn.subscriptions]
    low, middle, high = np.quantile(parts, (0.05, 0.5, 0.95))
    return f"{middle:.0%} (from {low:.0%} at 5 % to {high:.0%} at 95 %)"


def rows(name: str, exhibit: FsfExhibit) -> list[Row]:
    """Return a row for each setting, approach and number of subscriptions."""
    return [
        {"setting": setting, "approach": approach, "subscriptions": n, **_measures(grid, approach, n)}
        for setting, grid in ((name, exhibit.grid), *exhibit.varied.items())
        for approach in grid.approaches
        for n in grid.counts
    ]


def _measures(grid: Grid, approach: str, count: int) -> Row:
    """Return means and standard deviations over the seeds, and the measurements of each seed."""
    runs = grid.of(approach, count)
    row: Row = {}
    for called, quantity, digits in QUANTITIES:
        row[called] = round(grid.mean(quantity, approach, count), digits)
        row[f"{called}, sd"] = round(grid.spread(quantity, approach, count), digits)
    return row | {
        "deliveries": round(fmean(run.delivered for run in runs), 1),
        "surplus": round(fmean(run.surplus for run in runs), 1),
        "asked": sum(run.asked for run in runs),
        "undecided": sum(run.undecided for run in runs),
        "by seed": [list(run) for run in runs],
    }


def tables(result: Result) -> list[Table]:
    """Return loads and recall by approach, then the savings of filter-split-forward."""
    exhibit: FsfExhibit = result.exhibit
    grid = exhibit.grid
    shown = [
        Table(
            f"{title}, mean ± standard deviation over seeds, with so many subscriptions",
            ("approach", *map(str, grid.counts)),
            [(a, *(_mean(grid, quantity, a, n, digits) for n in grid.counts)) for a in grid.approaches],
        )
        for title, quantity, digits in (
            ("Operators over links", subscription_load, 0),
            ("Events over links", publication_load, 0),
            ("Recall", recall, 4),
            ("Events over links for each delivery", cost, 3),
        )
    ]
    return [*shown, *_savings(exhibit)]


def _mean(grid: Grid, quantity: Quantity, approach: str, count: int, digits: int) -> str:
    mean, spread = grid.mean(quantity, approach, count), grid.spread(quantity, approach, count)
    return f"{mean:,.{digits}f} ± {spread:,.{digits}f}"


def _savings(exhibit: FsfExhibit) -> Iterator[Table]:
    """Yield the savings of filter-split-forward, as described and with other choices."""
    settings = {"as described": exhibit.grid, **exhibit.varied}
    for count in sorted({n for grid in settings.values() for n in grid.counts}):
        shown = {name: grid for name, grid in settings.items() if count in grid.counts}
        rows = [(name, *_saving_cells(grid, count)) for name, grid in shown.items()]
        yield Table(
            f"What filter-split-forward saves with {count} subscriptions: operators beside operator "
            "placement and multi-join (compared at the receiver), events beside multi-join by value, named, "
            "again",
            ("setting", "operators", "events", "recall", "gaps not seen"),
            rows,
        )


def _saving_cells(grid: Grid, count: int) -> tuple[str, ...]:
    def by(quantity: Quantity, *others: str) -> str:
        there = [other for other in others if other in grid.approaches]
        return ", ".join(f"{grid.saving(quantity, other, FSF, count):.1%}" for other in there)

    operators = (PLACEMENT, MULTI_JOIN)
    return (
        f"{by(subscription_load, *operators)} ({by(at_the_receiver, *operators)})",
        by(publication_load, *JOINS),
        f"{grid.mean(recall, FSF, count):.2%}",
        f"{grid.mean(missed_share, FSF, count):.2%}",
    )
