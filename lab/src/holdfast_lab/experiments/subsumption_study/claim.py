"""The claims of the document about subsumption, their rules, verdicts and explanations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from ..experiment import Claim, Judged, to_claims
from .workload import SERIES


class SubsumptionCell(NamedTuple):
    """One point of the study."""

    series: str
    dimensions: int
    attributes: int
    subscriptions: int


class Left(NamedTuple):
    """The mean number of remaining subscriptions, without covered ones and with merging."""

    covered: float
    merged: float


Grid = Mapping[SubsumptionCell, Left]

RULES: Mapping[str, str] = {
    "zipf-reduces": "With Zipf's law one attribute is reduced strongly, up to two about the same, three or "
    "four slightly more. Rule: of 65,536 subscriptions with one attribute at most a tenth is left, "
    "whatever the number of dimensions; with up to 2, 3 and 4 the share differs from that by at most ten "
    "percentage points.",
    "uniform-little": "With uniform distributions there is little overlap; to look for covered subscriptions "
    "does not pay. Rule: four fifths of the subscriptions are left, at every number of dimensions and of "
    "subscriptions.",
    "dimensions": "The more dimensions there are, the fewer subscriptions go. Rule: at the largest number of "
    "subscriptions, in both series and with every number of attributes, more are left with each doubling of "
    "the dimensions.",
}
"""The rules follow the document's text, as its figures are lost."""


def share(grid: Grid, cell: SubsumptionCell) -> float:
    """Return the share of subscriptions that remain after covering and merging."""
    return grid[cell].merged / cell.subscriptions


def claims(grid: Grid) -> tuple[Claim, ...]:
    """Judge all claims."""
    return to_claims(RULES, [_zipf(grid), _uniform(grid), _dimensions(grid)])


def _zipf(grid: Grid) -> Judged:
    series = SERIES[0]
    cell = partial(SubsumptionCell, series.name)
    shares = {k: [share(grid, cell(d, k, series.most)) for d in series.dimensions] for k in series.attributes}
    one = shares[1]
    pairs = [pair for several in shares.values() for pair in zip(several, one, strict=True)]
    holds = max(one) <= 0.1 and all(abs(a - b) <= 0.1 for a, b in pairs)
    small = [share(grid, cell(series.dimensions[-1], k, 512)) for k in series.attributes]
    return Judged(
        "strong; about the same; slightly more",
        {f"up to {k}" if k > 1 else "one": f"{min(s):.2%} to {max(s):.2%}" for k, s in shares.items()},
        holds,
        f"Of 512 subscriptions over 512 dimensions {small[0]:.0%} are left with one attribute and "
        f"{small[3]:.0%} with up to four.",
        {
            True: "One wide range soon covers each of the popular dimensions, and swallows whatever mentions "
            "them; a subscription with two attributes has two chances. How much goes depends on how many "
            "there are for each dimension: while they are few, more attributes leave a little less, as the "
            "document says; in the end they leave a little more."
        },
    )


def _uniform(grid: Grid) -> Judged:
    series = SERIES[1]
    shares = {cell: share(grid, cell) for cell in grid if cell.series == series.name}
    enough = [cell for cell, part in shares.items() if part >= 0.8]
    few = [cell for cell in shares if 4 * cell.subscriptions <= cell.dimensions]
    spared = min(shares[cell] for cell in few)
    crowded = SubsumptionCell(series.name, series.dimensions[0], 1, series.most)
    same = [SubsumptionCell(series.name, d, 1, d) for d in series.dimensions]
    beside = [share(grid, cell._replace(series=SERIES[0].name)) for cell in same if cell.dimensions <= 512]
    return Judged(
        "little overlap",
        {
            "at least four fifths left": f"at {len(enough)} of {len(shares)} points",
            "least": f"{min(shares.values()):.2%}",
            "with at most a quarter as many subscriptions as dimensions": f"{spared:.0%} or more",
            "with as many": f"{min(shares[c] for c in same):.0%} to {max(shares[c] for c in same):.0%}",
        },
        len(enough) == len(shares),
        f"Of {crowded.subscriptions} over {crowded.dimensions} dimensions {grid[crowded].merged:.0f} are "
        "left. With as many subscriptions as dimensions Zipf's law leaves "
        f"{min(beside):.0%} to {max(beside):.0%}.",
        {
            False: "Two ranges of uniform start and length in one dimension overlap in two of three cases, "
            "so what is left depends on how many share a dimension; Zipf's law leaves less, because it "
            "crowds them. The conclusion is right for interests of one's own (one subscriber for each "
            "identity), which are few for each dimension; it is not the uniformity that makes them so."
        },
    )


def _dimensions(grid: Grid) -> Judged:
    lines = {
        (series.name, k): [
            grid[SubsumptionCell(series.name, d, k, series.most)].merged for d in series.dimensions
        ]
        for series in SERIES
        for k in series.attributes
    }
    grows = {line: all(a < b for a, b in pairwise(left)) for line, left in lines.items()}
    return Judged(
        "fewer reductions",
        {
            f"{name}, {f'up to {k}' if k > 1 else 'one'}": [round(n, 1) for n in left]
            for (name, k), left in lines.items()
        },
        all(grows.values()),
        f"So it is in {sum(grows.values())} of {len(grows)} lines.",
        {
            True: "At the end about one range is left for each dimension, as wide as the contents; only the "
            "dimensions that Zipf's law hardly ever picks, and those that few uniform subscriptions have "
            "met, hold more."
        },
    )
