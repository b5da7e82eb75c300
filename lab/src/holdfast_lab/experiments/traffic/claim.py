"""The claims of the document about routes, and their rules, which were written before the experiment ran."""

from __future__ import annotations

from collections.abc import Sequence

from ..experiment import Claim, Judged, to_claims
from .measure import Environment, Watched

COMMON = 0.5
"""Hops to the first common node divided by the diameter, in every row of the document."""

RULES = {
    "exact": "Nothing that holds is missed and nothing is reported that does not. Rule: of every route the "
    "starts and ends that agents report are those of the relation machine.",
    "crossover": "Agents cost as much as aggregation at the first common node at a complexity of 100 to "
    "150 (in the table, above it from 163 on). Rule: ours first exceed it between 75 and 330.",
    "eight-to-one": "Agents send an eighth of what basic publish/subscribe does. Rule: over all rows "
    "together, basic's hops are at least eight times theirs.",
    "load": "Aggregation loads a node 358 times as much, on average. Rule: 0.5 by the hops of agents at "
    "each sensor, the mean over the rows, is at least 358.",
}


def claims(pool: Sequence[Watched], rows: Sequence[Environment]) -> tuple[Claim, ...]:
    """Judge all claims; rows are in order of complexity."""
    wrong = sum(not one.is_exact for one in pool)
    over = next((row.complexity for row in rows if row.fulcrum > COMMON), None)
    ratio = sum(row.basic for row in rows) / sum(row.fulcrum for row in rows)
    noise: dict[bool | None, str] = {
        False: "Our sensors are links of city roads on which few cars are measured. On forty routes of nine, "
        "19 % of the readings leave their range, and at a fifth of the instants the cache does not suffice, "
        "and all nine are asked: 26 messages. The document's loops lie on freeways, and its column is not "
        "explained in messages.",
    }
    load = sum(COMMON / (row.fulcrum / row.sensors) for row in rows) / len(rows)
    verdicts = [
        Judged("silent on this", {"routes": len(pool), "wrong": wrong}, wrong == 0),
        Judged("100–150", over, over is not None and 75 <= over <= 330, why=noise),
        Judged("8:1", ratio, ratio >= 8, why=noise),
        Judged("358:1", load, load >= 358, why=noise),
    ]
    return to_claims(RULES, verdicts)
