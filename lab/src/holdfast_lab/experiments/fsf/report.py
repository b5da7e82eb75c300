"""A result as it is printed: parameters, rows, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from holdfast.protocols.fsf.policy import POLICIES

from ..experiment import Result, Row, Table
from ..series import MINUTE
from ..stbernard import FILE
from .claim import OTHERS, savings
from .grid import Exhibit, Grid, Quantity, cost, covered, publication_load, recall, subscription_load
from .measure import Draw
from .setting import EXACT, FSF, MULTI_JOIN, STATIONS, WITHIN, Setting
from .stream import ATTRIBUTES, Stretch
from .workload import selectivity

QUANTITIES: Sequence[tuple[str, Quantity, int]] = (
    ("subscription load", subscription_load, 1),
    ("publication load", publication_load, 1),
    ("recall", recall, 6),
    ("events per delivery", cost, 4),
    ("covered", covered, 4),
)


def parameters(setting: Setting, stretch: Stretch, draws: Mapping[str, Sequence[Draw]]) -> dict[str, Any]:
    """What was chosen, also where the document does not say."""
    least, most = setting.attributes
    routers = setting.nodes - len(ATTRIBUTES) * setting.groups
    return {
        "data": FILE,
        "replay": f"{stretch.hours} h from {stretch.began}: of all stretches from a full hour that in which "
        f"the {STATIONS}th most complete station has most reports with all five readings",
        "events": sum(len(series.times) for series in stretch.series.values()),
        "stations": list(stretch.stations),
        "complete reports": f"at least {min(stretch.complete.values()):.0%} of those due",
        "left out": "missing readings; the fault code -1 of both temperatures",
        "network": f"{setting.nodes} nodes: {routers} routers, each connected to an earlier one by chance; "
        f"{setting.groups} stations at different routers, whose five nodes are connected to the router (the "
        "first) or to an earlier one of the five, by chance",
        "users": "at any node, with equal chance; stations take turns",
        "attributes": f"{least} to {most}, by chance" if least < most else least,
        "ranges": "from the median of the stream, each end off by the distance of the quartile on its side "
        "times a Pareto variable of skew 1 (1 or more), drawn for each end",
        "selectivity": {name: _selectivity(some, stretch) for name, some in draws.items()},
        "drawn again, for want of a match": {
            name: sum(one.redrawn for one in some) for name, some in draws.items()
        },
        "δt": f"{WITHIN / MINUTE:g} min",
        "δl": "none: subscriptions name their sensors, those of one station",
        "set filtering": {name: repr(POLICIES[name].filtering) for name in (FSF, EXACT)},
        "seeds": f"0 to {len(draws[setting.name]) - 1}; each draws network, users and subscriptions",
    }


def _selectivity(draws: Sequence[Draw], stretch: Stretch) -> str:
    """Which part of its sensors' events a subscription is owed."""
    parts = [selectivity(one, stretch) for drawn in draws for one in drawn.subscriptions]
    low, middle, high = np.quantile(parts, (0.05, 0.5, 0.95))
    return f"{middle:.0%} (from {low:.0%} at 5 % to {high:.0%} at 95 %)"


def rows(name: str, exhibit: Exhibit) -> list[Row]:
    """One for each setting, approach and number of subscriptions."""
    return [
        {"setting": setting, "approach": approach, "subscriptions": n, **_measures(grid, approach, n)}
        for setting, grid in ((name, exhibit.grid), *exhibit.varied.items())
        for approach in grid.approaches
        for n in grid.counts
    ]


def _measures(grid: Grid, approach: str, count: int) -> Row:
    """Means and standard deviations over the seeds, and what each seed gave."""
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
    """Loads and recall by approach; below, what they depend on."""
    exhibit: Exhibit = result.exhibit
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
    if exhibit.varied:
        shown.append(_dependence(exhibit))
    return shown


def _mean(grid: Grid, quantity: Quantity, approach: str, count: int, digits: int) -> str:
    mean, spread = grid.mean(quantity, approach, count), grid.spread(quantity, approach, count)
    return f"{mean:,.{digits}f} ± {spread:,.{digits}f}"


def _dependence(exhibit: Exhibit) -> Table:
    (count,) = {n for grid in exhibit.varied.values() for n in grid.counts}
    return Table(
        f"What it depends on: savings of filter-split-forward with {count} subscriptions",
        ("setting", "operators, than the next", "events, than multi-join", "recall"),
        [
            (
                name,
                f"{savings(grid, subscription_load, OTHERS)[count]:.1%}",
                f"{savings(grid, publication_load, (MULTI_JOIN,))[count]:.1%}",
                f"{grid.mean(recall, FSF, count):.2%}",
            )
            for name, grid in (("as above", exhibit.grid), *exhibit.varied.items())
        ],
    )
