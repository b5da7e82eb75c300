"""The claims of the document about proximity, and the rule of each.

The rules were written before the experiment ran. At that time `holdfast relate` had already shown that a ring
saves about 96 % of the messages on the same walks.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..experiment import Claim, Judged, to_claims
from .measure import ProximityMeasurement

RULES = {
    "exact": "Nothing that holds is missed and nothing is reported that does not. Rule: in every row the "
    "starts and ends that agents report are those of the relation machine, with times and sources.",
    "reduction-82": "Agents save 82 % of the messages. Rule: ring events and reports together are at most "
    "18 % of the original reports, each counted once for each relationship.",
    "ring-events": "16.5 % of the original reports leave a ring, 1.3 % are proximity events. Rule: ours are "
    "within half and double of both.",
    "hops": "Hops for an original report: 2.5 (basic), 0.773 (first common node), 0.279 (Fulcrum). Rule: the "
    "same order, and Fulcrum's is at most 0.279.",
    "same-at-17x": "Cost depends on movement, not on how often it is reported. Rule: with 17 times the "
    "reports of the same ways there are at most 1.5 times the messages, and at least 95 % are saved.",
    "load": "The hub is relieved: 37.4 events a second (basic) become 6.24. Rule: with agents the hub passes "
    "at most a sixth of what it passes with basic.",
}


def claims(measured: Mapping[str, ProximityMeasurement]) -> tuple[Claim, ...]:
    """Judge all claims."""
    whole, sample, faster = (measured[name] for name in ("all", "sample", "sample, 17 x"))
    hops = {scheme: whole.hops(scheme) for scheme in ("basic", "first common node", "Fulcrum")}
    exact = {name: one.is_exact for name, one in measured.items()}
    basic, ours = hub(whole, "basic"), hub(whole, "Fulcrum")
    return to_claims(
        RULES,
        [
            Judged("silent on this", exact, all(exact.values())),
            Judged(0.82, whole.reduction, whole.reduction >= 0.82),
            Judged(
                {"rings": 0.165, "proximity": 0.013},
                {"rings": whole.ring_share, "proximity": whole.report_share},
                0.0825 <= whole.ring_share <= 0.33 and 0.0065 <= whole.report_share <= 0.026,
                why={
                    False: "Our walkers report twice a minute and are mostly far from their buddies, who are "
                    "drawn at random; the document's are friends who meet, and its positions jump with the "
                    "radio signal.",
                },
            ),
            Judged(
                {"basic": 2.5, "first common node": 0.773, "Fulcrum": 0.279},
                hops,
                hops["basic"] > hops["first common node"] > hops["Fulcrum"] and hops["Fulcrum"] <= 0.279,
            ),
            Judged(
                "0.0155 hops in place of 0.279",
                {"messages": sample.rings, "at 17 x": faster.rings, "saved": faster.reduction},
                faster.rings <= 1.5 * sample.rings and faster.reduction >= 0.95,
            ),
            Judged({"basic": 37.4, "Fulcrum": 6.24}, {"basic": basic, "Fulcrum": ours}, ours <= basic / 6),
        ],
    )  # fmt: skip


def hub(measured: ProximityMeasurement, scheme: str) -> float:
    """Return the events per second that the hub forwards. With basic these are all reports of relationships
    across brokers; with agents their messages across brokers.
    """
    period = 30.0
    seconds = period * measured.originals / (2 * measured.relationships)
    crossing = measured.originals * measured.crossing / seconds
    share = 1.0 if scheme == "basic" else measured.ring_share + measured.report_share
    return crossing * share
