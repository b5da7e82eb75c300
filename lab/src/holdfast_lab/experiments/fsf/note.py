"""The notes beside a claim: further measurements, and the reasons of verdicts that have occurred."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean

from .grid import (
    FsfExhibit,
    between_routers,
    covered_share,
    in_stations,
    missed_share,
    subscription_load,
)
from .setting import CENTRALIZED, FSF, JOINS, MULTI_JOIN, NAIVE, PLACEMENT


def _operators(exhibit: FsfExhibit) -> str:
    grid = exhibit.grid
    most = grid.counts[-1]
    next_best = min((PLACEMENT, MULTI_JOIN), key=lambda a: grid.mean(subscription_load, a, most))
    share = grid.mean(between_routers, FSF, most) / grid.mean(subscription_load, FSF, most)
    outside = grid.saving(between_routers, next_best, FSF, most)
    inside = grid.saving(in_stations, next_best, FSF, most)
    return (
        f"With {most} subscriptions {share:.0%} of its operators cross links between routers; it saves "
        f"{outside:.1%} there, and {inside:.1%} in the stations. Of the gaps that others leave, set "
        f"filtering has not seen {grid.mean(missed_share, FSF, most):.1%}."
    )


def _publication_load(exhibit: FsfExhibit) -> str:
    grid = exhibit.grid
    most = grid.counts[-1]
    more = [fmean(run.surplus / run.delivered for run in grid.of(a, most)) for a in JOINS]
    value, named, again = (f"{part:.0%}" for part in more)
    return (
        f"With {most} subscriptions multi-join brings users {value} more events than are due, {named} where "
        f"they follow the subscriptions that joined them, {again} where every node joins again."
    )


def _ranking(exhibit: FsfExhibit) -> str:
    grid = exhibit.grid
    apart = max(abs(grid.saving(subscription_load, PLACEMENT, MULTI_JOIN, n)) for n in grid.counts)
    few, most = grid.counts[0], grid.counts[-1]
    naive, single = (grid.mean(subscription_load, a, few) for a in (NAIVE, MULTI_JOIN))
    often, seldom = (grid.mean(covered_share, MULTI_JOIN, n) for n in (most, few))
    return (
        f"Operator placement and multi-join differ by at most {apart:.1%} in operators. With {few} "
        f"subscriptions others cover {seldom:.0%} of multi-join's filters, and it sends {single:,.0f} where "
        f"the naive way sends {naive:,.0f}; with {most} others cover {often:.0%}."
    )


def _central(exhibit: FsfExhibit) -> str:
    grid = exhibit.grid
    most = grid.counts[-1]
    centre, station = (grid.mean(subscription_load, a, most) / most for a in (CENTRALIZED, NAIVE))
    return (
        f"A subscription, and so each event of its result set, crosses {centre:.1f} links between user and "
        f"centre; in the naive way it spans {station:.1f} links up to the sensors."
    )


def _recall(_exhibit: FsfExhibit) -> str:
    return (
        "The document does not say with which error probability set filtering ran; ours is among the "
        "parameters."
    )


MEASURED: Mapping[str, Callable[[FsfExhibit], str]] = {
    "operators-placement": _operators,
    "publication-load": _publication_load,
    "ranking": _ranking,
    "centralized-events": _central,
    "recall": _recall,
}
WHY: Mapping[str, Mapping[bool | None, str]] = {
    "operators-placement": {
        False: "Between routers operators are whole, and a box of so many ranges seldom lies within others, "
        "be they several; in the stations they are split."
    },
    "publication-load": {
        False: "What that costs depends on how selective subscriptions are: where most readings are due to "
        "somebody, most cross a link anyway."
    },
    "ranking": {False: "Filters that go one by one are more, and with few subscriptions few are covered."},
    "centralized-events": {
        False: "All events must reach the centre, but each only once; the naive way sends one for every "
        "subscription that wants it from the first link on."
    },
}
