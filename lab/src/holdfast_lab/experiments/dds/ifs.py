"""Interference-free scheduling: adjacent nodes send at different times.  [§4.2.2, Figure 30; D32]"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL

from ..experiment import Judged, Table
from . import setups
from .air import CLEAR, FITTED, NOISY, show_link
from .measure import Point, point
from .report import CurveSpec, Design, Panel, verdict
from .study import Study

AIRS = (FITTED, CLEAR, NOISY)
LEVELS = {"BEQoS": BEST_EFFORT, "FRQoS": FULL}
IPIS = (1, 5)
TOLERANCE = 0.3

RULES = {
    "3.5x-BE-PDR": "With IFS the PDR of BEQoS is nearly 3.5 times as high. Rule: the ratio of the means at "
    "IPI 5 in the fitted air is within 30 % of 3.5.",
    "retx-1.9x": "Without IFS FRQoS needs about 1.9 times as many retransmissions at IPI 5. Rule: the "
    "ratio of the means in the fitted air is within 30 % of 1.9.",
    "delay-2.4x": "Without IFS FRQoS is about 2.4 times as slow at IPI 5. Rule: the ratio of the means in "
    "the fitted air is within 30 % of 2.4.",
}


def points(full: bool) -> list[Point]:
    found = []
    for air, name, ipi, ifs in product(AIRS, LEVELS, IPIS, (False, True)):
        key = {"air": air, "level": name, "IPI s": ipi, "IFS": ifs}
        more: dict[str, Any] = {"ifs": ifs, "reliable": setups.acknowledging(air)}
        more["duration"] = (500 if full else 60) * SECOND
        found.append(point(key, setups.rtdds_load, 25, ipi * SECOND, LEVELS[name], **more))
    return found


def claims(study: Study) -> Sequence[Judged]:
    def ratio(quantity: str, level: str, air: str, ipi: int, better: bool) -> float:
        """The value of the better schedule over that of the other, or the other way round."""
        means = study.over(quantity, "IFS", (False, True), **{"air": air, "level": level, "IPI s": ipi})
        return means[better] / means[not better]

    def pdr(ipi: int, ifs: bool) -> float:
        return study.mean("PDR", **{"air": FITTED, "level": "BEQoS", "IPI s": ipi, "IFS": ifs})

    def means(quantity: str) -> str:
        where = {"air": FITTED, "level": "FRQoS", "IPI s": 5}
        without, scheduled = study.over(quantity, "IFS", (False, True), **where).values()
        return f"{without:.2f} without and {scheduled:.2f} with IFS at IPI 5 in the fitted air."

    before, after, often = pdr(5, False), pdr(5, True), pdr(1, False)
    from_to = f"From {before:.2f} to {after:.2f} at IPI 5; without IFS {often:.2f} at 1."
    judged = (
        ("3.5x-BE-PDR", 3.5, "PDR", "BEQoS", True, from_to),
        ("retx-1.9x", 1.9, "ReTx/msg", "FRQoS", False, means("ReTx/msg")),
        ("delay-2.4x", 2.4, "EED ms", "FRQoS", False, means("EED ms")),
    )
    return [
        verdict(
            paper,
            {f"{air}, IPI {ipi}": ratio(quantity, level, air, ipi, better) for air in AIRS for ipi in IPIS},
            abs(ratio(quantity, level, FITTED, 5, better) / paper - 1) <= TOLERANCE,
            measured,
            why_not=WHY_NOT[id],
        )
        for id, paper, quantity, level, better, measured in judged
    ]


WHY_NOT = {
    "3.5x-BE-PDR": "Without IFS all 25 send at the same moment, as the thesis says of its own publishers, so "
    "IPI does not matter here either. With IFS 25 publishers share nine slots: about three still send "
    "together, three steps or more apart, and no schedule at the sources prevents that their messages meet "
    "on the way to the rendezvous node. A factor of 3.5 needs a PDR below 0.29 without IFS.",
    "retx-1.9x": "Retransmissions are not scheduled: 400 ms after a loss they meet whoever sends then. At "
    "IPI 1 the channel is so full of them that the schedule of the first sending hardly matters.",
    "delay-2.4x": "A sample is taken when its slot begins, so waiting for a slot is no delay. What is left "
    "are timeouts of 400 ms, and so the ratio follows that of the retransmissions.",
}


def parameters(full: bool) -> dict[str, str]:
    return {
        "set-up": "5 × 10 nodes, 25 publishers (half of the nodes; Figure 30 does not say) drawn by the "
        f"seed; {500 if full else 60} s",
        "without IFS": "all publishers sample and send at the same moment",
        "with IFS": "nine slots in a second, a colouring of the grid in which nodes of one slot are three "
        "steps apart",
        "level": "BEQoS and FRQoS, ring of 20, RTO 400 ms",
        **show_link(setups.SPACING),
        **setups.ACKNOWLEDGED,
    }


def _ratios(study: Study) -> list[Table]:
    return [
        Table(
            "Ratios at IPI 5: the thesis' and ours",
            ("claim", "thesis", *AIRS),
            [
                (id, claim.paper, *(f"{claim.ours[f'{air}, IPI 5']:.2f}" for air in AIRS))
                for id, claim in zip(RULES, claims(study), strict=True)
            ],
        )
    ]


def panels() -> list[Panel]:
    def bars(level: str) -> list[CurveSpec]:
        found = []
        for air, ipi, ifs in product(AIRS, IPIS, (False, True)):
            label = f"{air}, IPI {ipi}, {'IFS' if ifs else 'no IFS'}"
            where = {"air": air, "level": level, "IPI s": ipi, "IFS": ifs}
            found.append(CurveSpec(label, where, int(ifs)))
        return found

    return [
        Panel("BEQoS: delivered", "PDR", "", bars("BEQoS")),
        Panel("FRQoS: retransmissions for a message", "ReTx/msg", "", bars("FRQoS")),
        Panel("FRQoS: delay", "EED ms", "", bars("FRQoS"), "ms"),
    ]


EXPERIMENT = Design(
    "ifs",
    "interference-free scheduling  [Energy-aware DDS, Figure 30]",
    points,
    parameters,
    RULES,
    claims,
    ("PDR", "ReTx/msg", "EED ms", "DMR"),
    panels,
    more_tables=_ratios,
).experiment
