"""Full reliability under load: the number of publishers, and how often they send.

[§4.2.2, Figure 32; D17–D19]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds.level import FULL

from ..experiment import Judged
from . import setups
from .air import CLEAR, FITTED, NOISY, show_link
from .measure import JUDGED, LONG, Point, point
from .report import CurveSpec, Design, Panel, judge_each, verdict
from .study import Study

PUBLISHERS = (1, 5, 10, 15, 20, 25)
IPIS = (1, 2, 3, 4, 5)
AIRS = (FITTED, CLEAR, NOISY)

RULES = {
    "ipi5-zero-drops": "At one message in five seconds no message is dropped for any number of publishers, "
    "and PDR is 100 %. Rule: in every run at IPI 5 in the fitted air DMR is 0 and PDR is 1.",
    "ipi1-60%-drops": "In the worst case, 25 publishers with a message a second each, about 60 % are "
    "dropped. Rule: the mean DMR of that point in the fitted air is from 0.5 to 0.7.",
    "8-retx": "There a message needs around 8 retransmissions (L754). Rule: the mean of that point in the "
    "fitted air is within 25 % of 8.",
    "5s-at-ipi5": "At IPI 5 the largest delay is around five seconds. Rule: the largest mean delay at IPI 5 "
    "in the fitted air is within 25 % of 5 s.",
    "60%-redundant": "At IPI 5 around 60 % of the messages are redundant. Rule: the mean Rd/msg of 25 "
    "publishers at IPI 5 in the fitted air is within 25 % of 0.6.",
}


def points(full: bool) -> list[Point]:
    cells = product(AIRS, PUBLISHERS if full else (5, 15, 25), IPIS if full else (1, 3, 5))
    wanted = [(a, n, ipi) for a, n, ipi in cells if full or a == FITTED or (n == 25 and ipi != 3)]
    found = [_point(air, publishers, ipi, JUDGED, 500 if full else 200) for air, publishers, ipi in wanted]
    return found if full else [*found, replace(_point(FITTED, 25, 1, LONG, 500), aside=True)]


def _point(air: str, publishers: int, ipi: int, run: str, seconds: int) -> Point:
    key, load = _at(air, publishers, ipi, run), (publishers, ipi * SECOND, FULL)
    reliable = setups.acknowledging(air)
    return point(key, setups.rtdds_load, *load, duration=seconds * SECOND, reliable=reliable)


CLOSE = 0.25


def _at(air: str, publishers: int, ipi: int, run: str = JUDGED) -> dict[str, Any]:
    return {"air": air, "publishers": publishers, "IPI s": ipi, "run": run}


def _near(value: float, thesis: float) -> bool:
    return abs(value / thesis - 1) <= CLOSE


def _five(study: Study) -> Judged:
    def slow(at: Mapping[str, Any]) -> bool:
        return bool(at["IPI s"] == 5 and at["air"] == FITTED)

    dropped, delivered = max(study.every("DMR", slow)), min(study.every("PDR", slow))
    return Judged(
        {"DMR": 0, "PDR": 1},
        {"largest DMR": dropped, "least PDR": delivered},
        dropped == 0 and delivered == 1,
        f"In {len(study.every('DMR', slow))} runs.",
    )


def _one(study: Study) -> Judged:
    names = ("DMR", "PDR", "ReTx/msg")
    found = {air: {name: study.mean(name, **_at(air, 25, 1)) for name in names} for air in AIRS}
    longer = [study.mean("DMR", **dict(key)) for key in study.where(run=LONG)]
    return verdict(
        {"DMR": 0.6},
        found,
        0.5 <= found[FITTED]["DMR"] <= 0.7,
        "".join(f"In runs of {LONG} in place of 200 s it is {each:.2f}. " for each in longer)
        + f"A message needs {found[FITTED]['ReTx/msg']:.1f} retransmissions in the fitted air, "
        f"{found[CLEAR]['ReTx/msg']:.1f} in the clear and {found[NOISY]['ReTx/msg']:.1f} in the noisy one; "
        "in the thesis 8 (L754).",
        why_not="A writer drops what it cannot send in a second: with r retransmissions a message takes "
        "about 400 ms · r, so it keeps up while r is below 2.5. At r = 8 a message takes 3.2 s, and two "
        "of three must be dropped. What differs is how many frames are lost, not what the ring does; and "
        "a ring of 20 takes time to fill.",
    )


def _judge_retransmissions(study: Study) -> Judged:
    found = {air: study.mean("ReTx/msg", **_at(air, 25, 1)) for air in AIRS}
    return Judged(8, found, _near(found[FITTED], 8), f"{found[FITTED]:.1f} in the fitted air.")


def _delay(study: Study) -> Judged:
    def longest(air: str) -> float:
        return max(study.means("EED ms", lambda at: at["IPI s"] == 5 and at["air"] == air))

    found = {air: longest(air) for air in AIRS}
    return Judged(
        5000,
        {f"largest mean delay ms, {air}": value for air, value in found.items()},
        _near(found[FITTED], 5000),
        f"{found[FITTED]:,.0f} ms in the fitted air.",
    )


def _redundant(study: Study) -> Judged:
    found = {air: study.mean("Rd/msg", **_at(air, 25, 5)) for air in AIRS}
    return Judged(0.6, found, _near(found[FITTED], 0.6), f"{found[FITTED]:.2f} in the fitted air.")


def parameters(full: bool) -> dict[str, str]:
    return {
        "set-up": "Table 5, FRQoS-IPI: 5 × 10 nodes, publishers drawn by the seed within three hops of the "
        f"rendezvous node, the base station three hops from it; {500 if full else 200} s",
        "level": "FRQoS, ring of 20, RTO 400 ms, IFS",
        **show_link(setups.SPACING),
        **setups.ACKNOWLEDGED,
    }


def panels() -> list[Panel]:
    lines = [CurveSpec(f"IPI {ipi} s", {"air": FITTED, "IPI s": ipi, "run": JUDGED}) for ipi in IPIS]
    for air, ipi in product(AIRS[1:], (1, 5)):
        lines.append(CurveSpec(f"IPI {ipi} s, {air}", {"air": air, "IPI s": ipi, "run": JUDGED}))
    return [
        Panel("a: delivered", "PDR", "publishers", lines),
        Panel("b: redundant for a message", "Rd/msg", "publishers", lines),
        Panel("c: delay", "EED ms", "publishers", lines, "ms"),
        Panel("d: dropped at the ring", "DMR", "publishers", lines, paper=((25, 0.6),)),
    ]


EXPERIMENT = Design(
    "rtdds-ipi",
    "full reliability under load  [Energy-aware DDS, Figure 32]",
    points,
    parameters,
    RULES,
    judge_each(_five, _one, _judge_retransmissions, _delay, _redundant),
    ("PDR", "Rd/msg", "EED ms", "DMR", "ReTx/msg"),
    panels,
).experiment
