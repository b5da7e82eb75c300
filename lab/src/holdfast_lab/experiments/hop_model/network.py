"""The ten networks of the table, and what is computed of them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import NamedTuple

FanOuts = tuple[int, ...]
"""How many children a node has, level by level from the root."""


class HopModelPrinted(NamedTuple):
    """What the document says of a network."""

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
    """The name of a network.

    >>> name_of((4, 160))
    '4-160'
    """
    return "-".join(map(str, network))


def diameter(network: FanOuts) -> int:
    """The longest way between two leaves."""
    return 2 * len(network)


def leaves(network: FanOuts) -> int:
    """How many leaves there are."""
    return prod(network)


def mean_hops(network: FanOuts) -> Fraction:
    """The average way between two leaves: they part at the root, or else one level below, and so on.

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
    """The average by the document's listing, its braces restored.  It takes two leaves that are the same
    one for siblings, and so comes out 2 / leaves higher."""
    total, part = Fraction(0), Fraction(1)
    for level in range(len(network)):
        if level > 0:
            part /= network[level - 1] - 1
        if level + 1 < len(network):
            part *= Fraction(network[level] - 1, network[level])
        total += 2 * (len(network) - level) * part
    return total


def root_share(network: FanOuts) -> Fraction:
    """How many of the ways lead over the root."""
    return Fraction(network[0] - 1, network[0])
