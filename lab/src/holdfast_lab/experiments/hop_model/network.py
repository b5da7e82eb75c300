"""The ten networks of the table, and the formulas for them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import NamedTuple

FanOuts = tuple[int, ...]
"""The number of children of a node at each level, from the root."""


class HopModelPrinted(NamedTuple):
    """The figures that the document prints for a network."""

    hops: float
    percent: int


NETWORKS: Mapping[FanOuts, HopModelPrinted] = {
    (4, 160): HopModelPrinted(3.5, 88),
    (8, 80): HopModelPrinted(3.75, 94),
    (4, 10, 16): HopModelPrinted(5.45, 91),
    (8, 8, 10): HopModelPrinted(5.72, 95),
    (10, 8, 8): HopModelPrinted(5.77, 96),
    (4, 4, 4, 10): HopModelPrinted(7.34, 92),
    (10, 4, 4, 4): HopModelPrinted(7.73, 97),
    (2, 2, 4, 4, 10): HopModelPrinted(8.34, 85),
    (4, 4, 2, 2, 10): HopModelPrinted(9.28, 93),
    (10, 4, 4, 2, 2): HopModelPrinted(9.73, 97),
}


def name_of(network: FanOuts) -> str:
    """Return the name of a network.

    >>> name_of((4, 160))
    '4-160'
    """
    return "-".join(map(str, network))


def diameter(network: FanOuts) -> int:
    """Return the length of the longest path between two leaves, in links."""
    return 2 * len(network)


def leaves(network: FanOuts) -> int:
    """Return the number of leaves."""
    return prod(network)


def mean_hops(network: FanOuts) -> Fraction:
    """Return the mean path length between two leaves: the sum over the levels at which their paths separate.

    >>> float(mean_hops((4, 160)))
    3.496875
    """
    total, together = Fraction(0), Fraction(1)
    for level, children in enumerate(network):
        parted = together * Fraction(children - 1, children)
        total += 2 * (len(network) - level) * parted
        together /= children
    return total


def mean_hops_by_listing(network: FanOuts) -> Fraction:
    """Return the mean by the document's listing, with its braces restored.

    It treats equal leaves as siblings, which makes the result larger by 2 / leaves.
    """
    total, part = Fraction(0), Fraction(1)
    for level in range(len(network)):
        if level > 0:
            part /= network[level - 1] - 1
        if level + 1 < len(network):
            part *= Fraction(network[level] - 1, network[level])
        total += 2 * (len(network) - level) * part
    return total


def root_share(network: FanOuts) -> Fraction:
    """Return the share of paths that cross the root."""
    return Fraction(network[0] - 1, network[0])
