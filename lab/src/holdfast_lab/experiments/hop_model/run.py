"""Run the experiment on hops: measure each network, format tables, register it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..experiment import Experiment, Progress, Result, Row, Table
from ..study import conduct, singly
from .claim import HopModelMeasurement, claims
from .figure import figure
from .measure import travel
from .network import NETWORKS, FanOuts, diameter, leaves, mean_hops, mean_hops_by_listing, name_of, root_share

NAME = "hop-model"
TITLE = "how far an event travels in a hub-and-spoke overlay  [Fulcrum, Table 3-1]"
SEED = 2005
PUBLISHERS = 8
"""The number of leaves, drawn at random, that publish in a full run."""


def run(_: Path | None, full: bool, progress: Progress) -> Result:
    """Measure the ten networks; with ``full``, with several publishers in each."""
    measured = conduct(
        lambda network: measure(network, publishers(network) if full else [(0,) * len(network)]),
        singly(NETWORKS, name_of),
        progress,
    )
    rows = [_row(network, found) for network, found in measured.items()]
    return Result(NAME, _parameters(full), rows, claims(measured))


def publishers(network: FanOuts) -> list[tuple[int, ...]]:
    """Draw the leaves that publish in a full run."""
    chance = random.Random(SEED)
    return [tuple(chance.randrange(children) for children in network) for _ in range(PUBLISHERS)]


def measure(network: FanOuts, publishers: Sequence[Sequence[int]]) -> HopModelMeasurement:
    """Measure the mean over the notifications of some publishers."""
    made = travel(network, publishers)
    return HopModelMeasurement(made.hops / made.sent, made.over_root / made.sent)


def _row(network: FanOuts, found: HopModelMeasurement) -> Row:
    printed = NETWORKS[network]
    return {
        "network": name_of(network),
        "radius": len(network),
        "diameter": diameter(network),
        "paper hops": printed.hops,
        "computed hops": round(float(mean_hops(network)), 4),
        "listing": round(float(mean_hops_by_listing(network)), 4),
        "measured hops": round(found.hops, 4),
        "paper percent": printed.percent,
        "measured percent": round(100 * found.hops / diameter(network), 1),
        "root share": round(float(root_share(network)), 4),
        "measured root share": round(found.root_share, 4),
    }


def _parameters(full: bool) -> dict[str, Any]:
    return {
        "networks": f"{len(NETWORKS)} trees of brokers, named by the children of a node at each level",
        "leaves": leaves(next(iter(NETWORKS))),
        "placement": "publisher and subscriber at any leaf with equal chance, also at the same",
        "measured": "a subscriber at every leaf, a notification for each; hops are links between brokers",
        "publishers": f"{PUBLISHERS} leaves, seed {SEED}" if full else "the first leaf: all leaves are alike",
    }


def _tables(result: Result) -> list[Table]:
    return [Table.of_rows("Table 3-1", result.rows)]


EXPERIMENT = Experiment(NAME, TITLE, run, _tables, figure)
