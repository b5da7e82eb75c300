"""The experiment."""

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
SEED = 2005
PUBLISHERS = 8
"""From how many leaves notifications are sent in the full run; they are drawn."""


def run(_: Path | None, full: bool, progress: Progress) -> Result:
    """The ten networks; with ``full`` with several publishers in each."""

    def measure_network(network: FanOuts) -> HopModelMeasurement:
        return measure(network, publishers(network) if full else [(0,) * len(network)])

    measured = conduct(measure_network, singly(NETWORKS, name_of), progress)
    rows = [_row(network, found) for network, found in measured.items()]
    return Result(NAME, _parameters(full), rows, claims(measured))


def publishers(network: FanOuts) -> list[tuple[int, ...]]:
    """Some leaves, by chance."""
    chance = random.Random(SEED)
    return [tuple(chance.randrange(children) for children in network) for _ in range(PUBLISHERS)]


def measure(network: FanOuts, publishers: Sequence[Sequence[int]]) -> HopModelMeasurement:
    """What notifications of some publishers make on average."""
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
    columns = list(result.rows[0])
    return [Table("Table 3-1", columns, [list(row.values()) for row in result.rows])]


EXPERIMENT = Experiment(
    NAME,
    "how far an event travels in a hub-and-spoke overlay  [Fulcrum, Table 3-1]",
    run,
    _tables,
    figure,
)
