"""What is said beside a claim: more that was measured, and the reasons of verdicts that we have seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean

from .grid import (
    Exhibit,
    Grid,
    between_routers,
    covered,
    in_stations,
    publication_load,
    recall,
    subscription_load,
)
from .setting import CENTRALIZED, FSF, MULTI_JOIN, NAIVE, PLACEMENT


def _subscription_load(exhibit: Exhibit) -> str:
    grid = exhibit.grid
    most = grid.counts[-1]
    next_best = min((PLACEMENT, MULTI_JOIN), key=lambda a: grid.mean(subscription_load, a, most))
    share = grid.mean(between_routers, FSF, most) / grid.mean(subscription_load, FSF, most)
    outside = grid.saving(between_routers, next_best, FSF, most)
    inside = grid.saving(in_stations, next_best, FSF, most)
    return (
        f"With {most} subscriptions {share:.0%} of its operators cross links between routers; it saves "
        f"{outside:.1%} there, and {inside:.1%} in the stations." + _varied(exhibit, "points", _both)
    )


def _publication_load(exhibit: Exhibit) -> str:
    grid = exhibit.grid
    most = grid.counts[-1]
    more = fmean(run.surplus / run.delivered for run in grid.of(MULTI_JOIN, most))
    return (
        f"With {most} subscriptions multi-join brings users {more:.0%} more events than are due."
        + _varied(exhibit, "ranges", _events)
    )


def _ranking(exhibit: Exhibit) -> str:
    grid = exhibit.grid
    apart = max(abs(grid.saving(subscription_load, PLACEMENT, MULTI_JOIN, n)) for n in grid.counts)
    few, most = grid.counts[0], grid.counts[-1]
    naive, single = (grid.mean(subscription_load, a, few) for a in (NAIVE, MULTI_JOIN))
    often, seldom = (grid.mean(covered, MULTI_JOIN, n) for n in (most, few))
    return (
        f"Operator placement and multi-join differ by at most {apart:.1%} in operators. With {few} "
        f"subscriptions others cover {seldom:.0%} of multi-join's filters, and it sends {single:,.0f} where "
        f"the naive way sends {naive:,.0f}; with {most} others cover {often:.0%}."
    )


def _centralized(exhibit: Exhibit) -> str:
    grid = exhibit.grid
    most = grid.counts[-1]
    centre, station = (grid.mean(subscription_load, a, most) / most for a in (CENTRALIZED, NAIVE))
    return (
        f"A subscription, and so each event of its result set, crosses {centre:.1f} links between user and "
        f"centre; in the naive way it spans {station:.1f} links up to the sensors."
    )


def _recall(exhibit: Exhibit) -> str:
    return (
        "The document does not say with which error probability set filtering ran; ours is among the "
        "parameters." + _varied(exhibit, "points", _both)
    )


MEASURED: Mapping[str, Callable[[Exhibit], str]] = {
    "subscription-load": _subscription_load,
    "publication-load": _publication_load,
    "ranking": _ranking,
    "centralized": _centralized,
    "recall": _recall,
}
WHY: Mapping[str, Mapping[bool | None, str]] = {
    "subscription-load": {
        False: "Between routers operators are whole, and a box of so many ranges seldom lies within others, "
        "be they several; in the stations they are split."
    },
    "publication-load": {
        False: "What that costs depends on how selective subscriptions are: where most readings are due to "
        "somebody, most cross a link anyway."
    },
    "ranking": {False: "Filters that go one by one are more, and with few subscriptions few are covered."},
    "centralized": {
        False: "All events must reach the centre, but each only once; the naive way sends one for every "
        "subscription that wants it from the first link on."
    },
}


def _varied(exhibit: Exhibit, about: str, said: Callable[[Grid], str]) -> str:
    """What the variants about something have given."""
    found = [
        f" {name[0].upper()}{name[1:]}: {said(grid)}."
        for name, grid in exhibit.varied.items()
        if about in name
    ]
    return "".join(found)


def _both(grid: Grid) -> str:
    (count,) = grid.counts
    saved = min(grid.saving(subscription_load, other, FSF, count) for other in (PLACEMENT, MULTI_JOIN))
    return f"it saves {saved:.1%}, with a recall of {grid.mean(recall, FSF, count):.2%}"


def _events(grid: Grid) -> str:
    (count,) = grid.counts
    return f"it saves {grid.saving(publication_load, MULTI_JOIN, FSF, count):.1%}"
