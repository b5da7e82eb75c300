"""The claims of the document about hops, their rules, and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..experiment import Claim, Judged, to_claims
from .network import NETWORKS, FanOuts, diameter, leaves, mean_hops, mean_hops_by_listing, name_of, root_share

CLOSE = 0.01
LARGE = 10
"""The document calls a network with at least this many branches at the root large."""

ABOUT = 0.03


class HopModelMeasurement(NamedTuple):
    """Mean hops of a notification, and the share of notifications that cross the root."""

    hops: float
    root_share: float


RULES = {
    "table-3-1": "The average number of event hops in ten networks. Rule: in all of them both the computed "
    "and the measured average are within 0.01 of the printed one.",
    "0.95-diameter": "In a large network, with at least ten branches at the root, an event makes about "
    "0.95 D hops. Rule: in every such network of the table the measured average is within 0.03 of 0.95 D.",
    "root-share": "With B branches at the root, (B-1)/B of all event traffic flows through it. Rule: in all "
    "networks the measured share is that, to within half a notification.",
}


def claims(measured: Mapping[FanOuts, HopModelMeasurement]) -> tuple[Claim, ...]:
    """Judge all claims."""
    return to_claims(RULES, [_table(measured), _diameter(measured), _root(measured)])


def _table(measured: Mapping[FanOuts, HopModelMeasurement]) -> Judged:
    computed = max(abs(float(mean_hops(n)) - printed.hops) for n, printed in NETWORKS.items())
    on_overlay = max(abs(measured[n].hops - printed.hops) for n, printed in NETWORKS.items())
    listed = max(abs(float(mean_hops_by_listing(n)) - printed.hops) for n, printed in NETWORKS.items())
    return Judged(
        "ten averages, from 3.5 to 9.73",
        {"largest difference, computed": computed, "measured": on_overlay},
        max(computed, on_overlay) <= CLOSE,
        f"The printed listing (its braces are lost) differs by up to {listed:.4f}: it counts two hops from a "
        "leaf to itself. Two printed figures are slips: 8.34 of 10 is 83 %, not 85 %, and the 641 'total "
        "nodes' are the 640 leaves and the root, without the brokers between them.",
    )


def _diameter(measured: Mapping[FanOuts, HopModelMeasurement]) -> Judged:
    shares = {name_of(n): measured[n].hops / diameter(n) for n in NETWORKS if n[0] >= LARGE}
    others = [measured[n].hops / diameter(n) for n in NETWORKS if n[0] < LARGE]
    return Judged(
        0.95,
        shares,
        all(abs(share - 0.95) <= ABOUT for share in shares.values()),
        f"With fewer branches at the root it is {min(others):.2f} to {max(others):.2f}; with more it goes on "
        f"towards 1: {_of_diameter((20, 20, 20)):.3f} with 20 children everywhere, "
        f"{_of_diameter((100, 100, 100)):.3f} with 100.",
    )


def _of_diameter(network: FanOuts) -> float:
    return float(mean_hops(network)) / diameter(network)


def _root(measured: Mapping[FanOuts, HopModelMeasurement]) -> Judged:
    apart = max(abs(measured[n].root_share - float(root_share(n))) * leaves(n) for n in NETWORKS)
    shares = {name_of(n): measured[n].root_share for n in NETWORKS}
    note = f"Counted are the notifications that somebody wants; it differs by at most {apart:.2g} of one."
    return Judged("(B-1)/B", shares, apart < 0.5, note)
