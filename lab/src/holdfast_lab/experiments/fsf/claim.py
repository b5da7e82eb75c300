"""The claims of the document, and the rule by which each is judged; both were fixed before the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from ..experiment import Claim, Judged
from .grid import FsfExhibit, Grid, Quantity, cost, publication_load, recall, subscription_load
from .note import MEASURED, WHY
from .setting import CENTRALIZED, EXACT, FSF, JOINS, MULTI_JOIN, NAIVE, NAMED, PLACEMENT

Range = tuple[float, float]
ByCount = Mapping[int, float]

FEW_SOURCES = "fsf-large-network"
FEW = 100
"""Up to this number of subscriptions the document found less recall in its large networks."""


@dataclass(frozen=True)
class FsfPrinted:
    """The numbers in the document's text for an experiment; its figures are lost."""

    subscription: Range | float | None
    """The saving of FSF against operator placement and multi-join: at every number of subscriptions, or on
    average."""
    publication: Range
    """The saving of FSF against multi-join."""
    recall: float
    recall_of_few: float


PRINTED: Mapping[str, FsfPrinted] = {
    "fsf-small": FsfPrinted(0.18, (0.10, 0.30), 0.93, 0.93),
    "fsf-medium": FsfPrinted((0.045, 0.174), (0.48, 0.559), 0.98, 0.98),
    "fsf-large-network": FsfPrinted((0.045, 0.174), (0.56, 0.62), 0.98, 0.93),
    "fsf-large-sources": FsfPrinted(None, (0.54, 0.68), 0.98, 0.93),
}
"""The document says that savings in the large network are those of the medium one; for many sources it gives
no number."""

RULES: Mapping[str, str] = {
    "operators-placement": "Filter-split-forward sends fewer operators over links than operator placement. "
    "Rule: where the document has a range, the saving is within it at every number of subscriptions; where "
    "it has an average, ours is that, give or take 5 percentage points; of the many sources, of which it "
    "says that there are fewer to compare with, there is a saving everywhere, and on average it is less "
    "than in the large network.",
    "operators-multi-join": "The same beside multi-join, by the same rule.",
    "publication-load": "Filter-split-forward sends fewer events over links than multi-join (named: an event "
    "follows the subscriptions whose joins it satisfied). Rule: at every number of subscriptions there is a "
    "saving, in the document's range or outside by at most 10 points.",
    "ranking": "The approaches come in one order. Rule: at every number of subscriptions, in subscription "
    "load naive is above operator placement and multi-join, and both are above filter-split-forward; in "
    "publication load naive is above operator placement, that above multi-join (named), that above "
    "filter-split-forward.",
    "centralized-operators": "The centralized way has by far the least subscription load. Rule: at most half "
    "of that of every other approach, at every number of subscriptions.",
    "centralized-events": "The centralized way has the largest event load. Rule: so it is against every "
    "other approach, at every number of subscriptions.",
    "recall": "Filter-split-forward loses few events. Rule: at every number of subscriptions its recall is "
    "what the document says, give or take 3 points.",
    "others-recall": "The other approaches lose nothing. Rule: their recall is 100 % in every run.",
    "exact-recall": "With exact set filtering nothing is lost. Rule: recall is 100 % in every run.",
    "exact-cost": "Exact set filtering costs little more. Rule: events over links for each event delivered "
    "are at most 5 % above those of probabilistic set filtering, at every number of subscriptions.",
    "undecided": "The exact answer is found within its bound of work. Rule: at most 5 % of the questions "
    "are left undecided, at every number of subscriptions.",
}
"""Loads are means over the seeds. The last three rules are ours, not the document's."""


def claims(name: str, exhibit: FsfExhibit) -> Iterator[Claim]:
    """Yield the judged claims of one experiment."""
    printed, grid = PRINTED[name], exhibit.grid
    judged: list[tuple[str, Judged]] = [
        ("operators-placement", _operators(printed, exhibit, PLACEMENT)),
        ("operators-multi-join", _operators(printed, exhibit, MULTI_JOIN)),
        ("publication-load", _publication_load(printed, grid)),
        ("ranking", _ranking(grid)),
        ("recall", _recall(printed, grid)),
        ("others-recall", _others_recall(grid)),
        ("exact-recall", _exact_recall(grid)),
        ("exact-cost", _exact_cost(grid)),
        ("undecided", _judge_undecided(grid)),
    ]
    if CENTRALIZED in grid.approaches:
        operators, events = _central_operators(grid), _central_events(grid)
        judged[4:4] = [("centralized-operators", operators), ("centralized-events", events)]
    for claim, verdict in judged:
        text = MEASURED[claim](exhibit) if claim in MEASURED else ""
        yield Claim(claim, RULES[claim], *verdict._replace(measured=text, why=WHY.get(claim, {})))


def savings(grid: Grid, quantity: Quantity, other: str) -> dict[int, float]:
    """Return the share by which filter-split-forward is below another approach, at each number."""
    return {n: grid.saving(quantity, other, FSF, n) for n in grid.counts}


def _operators(printed: FsfPrinted, exhibit: FsfExhibit, other: str) -> Judged:
    found = savings(exhibit.grid, subscription_load, other)
    average = fmean(found.values())
    ours = {**_percent(found), "average": f"{average:.1%}"}
    match printed.subscription:
        case None:
            least = fmean(savings(exhibit.varied[FEW_SOURCES], subscription_load, other).values())
            ours["large network, average"] = f"{least:.1%}"
            return Judged("less than in the large network", ours, min(found.values()) > 0 and average < least)
        case float(expected):
            return Judged(f"{expected:.0%} on average", ours, abs(average - expected) <= 0.05)
        case expected:
            return Judged(_format_range(expected), ours, _inside(found, expected, 0.0))


def _publication_load(printed: FsfPrinted, grid: Grid) -> Judged:
    every = {other: savings(grid, publication_load, other) for other in JOINS}
    ours = {f"{other}, {n}": f"{part:.1%}" for other, found in every.items() for n, part in found.items()}
    holds = min(every[NAMED].values()) > 0 and _inside(every[NAMED], printed.publication, 0.1)
    return Judged(_format_range(printed.publication), ours, holds)


def _ranking(grid: Grid) -> Judged:
    events = (NAIVE, PLACEMENT, NAMED, FSF)
    operators = ((NAIVE, PLACEMENT, FSF), (NAIVE, MULTI_JOIN, FSF))
    holds = all(_falling(grid, publication_load, events, n) for n in grid.counts) and all(
        _falling(grid, subscription_load, chain, n) for chain in operators for n in grid.counts
    )
    return Judged(
        "operators: naive > operator-placement ≈ multi-join > fsf; "
        "events: naive > operator-placement > multi-join > fsf",
        _orders(grid, events),
        holds,
    )


def _central_operators(grid: Grid) -> Judged:
    found = _of_the_centre(grid, subscription_load)
    return Judged("by far the least", _percent(found), max(found.values()) <= 0.5)


def _central_events(grid: Grid) -> Judged:
    found = _of_the_centre(grid, publication_load, max)
    return Judged("the largest", _percent(found), min(found.values()) > 1)


def _of_the_centre(grid: Grid, quantity: Quantity, of: Callable[..., float] = min) -> ByCount:
    """Return the load of the centralized approach relative to the least or the most of the others."""
    others = [a for a in grid.approaches if a != CENTRALIZED]
    best = {n: of(grid.mean(quantity, other, n) for other in others) for n in grid.counts}
    return {n: grid.mean(quantity, CENTRALIZED, n) / mean for n, mean in best.items()}


def _recall(printed: FsfPrinted, grid: Grid) -> Judged:
    found = {n: grid.mean(recall, FSF, n) for n in grid.counts}
    expected = {n: printed.recall_of_few if n <= FEW else printed.recall for n in found}
    near = all(abs(part - expected[n]) <= 0.03 for n, part in found.items())
    paper = f"about {printed.recall:.0%}"
    if printed.recall_of_few < printed.recall:
        paper += f", {printed.recall_of_few:.0%} with few subscriptions"
    return Judged(paper, _percent(found, 2), near)


def _others_recall(grid: Grid) -> Judged:
    others = [a for a in grid.approaches if a != FSF]
    lost = sum(run.owed - run.delivered for a in others for n in grid.counts for run in grid.of(a, n))
    return Judged("100 %", f"{lost} deliveries lost", lost == 0)


def _exact_recall(grid: Grid) -> Judged:
    runs = [run for n in grid.counts for run in grid.of(EXACT, n)]
    lost = sum(run.owed - run.delivered for run in runs)
    return Judged(None, f"{lost} of {sum(run.owed for run in runs):,} deliveries lost", lost == 0)


def _exact_cost(grid: Grid) -> Judged:
    above = {n: grid.mean(cost, EXACT, n) / grid.mean(cost, FSF, n) - 1 for n in grid.counts}
    return Judged(None, {n: f"{part:+.2%}" for n, part in above.items()}, max(above.values()) <= 0.05)


def _judge_undecided(grid: Grid) -> Judged:
    runs = {n: grid.of(EXACT, n) for n in grid.counts}
    asked = {n: sum(run.asked for run in cell) for n, cell in runs.items()}
    parts = {n: sum(r.undecided for r in cell) / (asked[n] or 1) for n, cell in runs.items()}
    ours = {**_percent(parts, 2), "questions": sum(asked.values())}
    return Judged(None, ours, max(parts.values()) <= 0.05)


def _falling(grid: Grid, quantity: Quantity, approaches: Iterable[str], count: int) -> bool:
    return all(grid.mean(quantity, a, count) > grid.mean(quantity, b, count) for a, b in pairwise(approaches))


def _orders(grid: Grid, approaches: Iterable[str]) -> dict[str, str]:
    """Return the approaches with their means at the largest number, the largest first."""
    most = grid.counts[-1]
    return {
        f"{name}, {most}": " > ".join(
            f"{approach} {mean:,.0f}"
            for mean, approach in sorted(((grid.mean(of, a, most), a) for a in approaches), reverse=True)
        )
        for name, of in (("operators", subscription_load), ("events", publication_load))
    }


def _inside(found: ByCount, expected: Range, slack: float) -> bool:
    low, high = expected
    return all(low - slack <= part <= high + slack for part in found.values())


def _format_range(expected: Range) -> str:
    low, high = expected
    return f"{100 * low:g} to {100 * high:g} %"


def _percent(found: ByCount, digits: int = 1) -> dict[int | str, str]:
    return {n: f"{part:.{digits}%}" for n, part in found.items()}
