"""How many publishers, how often: full reliability under load.  [§4.2.2, Figure 32; D17–D19]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.protocols.dds.level import FULL

from ..experiment import Judged
from . import setups
from .air import CLEAR, NOISY, printed
from .measure import Point, point
from .report import Design, Line, Panel, experiment
from .study import Study

PUBLISHERS = (1, 5, 10, 15, 20, 25)
IPIS = (1, 2, 3, 4, 5)
AIRS = (CLEAR, NOISY)

RULES = {
    "ipi5-zero-drops": "At one message in five seconds no message is dropped for any number of publishers, "
    "and PDR is 100 %. Rule: in every run at IPI 5, in both airs, DMR is 0 and PDR is 1.",
    "ipi1-60%-drops": "In the worst case, 25 publishers with a message a second each, about 60 % are "
    "dropped. Rule: the mean DMR of that point in the clear air is from 0.5 to 0.7.",
}


def points(full: bool) -> list[Point]:
    wanted = [
        (air, publishers, ipi)
        for air in AIRS
        for publishers in (PUBLISHERS if full else (5, 15, 25))
        for ipi in (IPIS if full else (1, 3, 5))
        if full or air == CLEAR or publishers == 25
    ]
    return [
        point(
            {"air": air, "publishers": publishers, "IPI s": ipi},
            setups.rtdds_load,
            publishers,
            ipi * SECOND,
            FULL,
            duration=(500 if full else 200) * SECOND,
        )
        for air, publishers, ipi in wanted
    ]


def claims(study: Study) -> Sequence[Judged]:
    return [_five(study), _one(study)]


def _five(study: Study) -> Judged:
    def slow(at: Mapping[str, Any]) -> bool:
        return bool(at["IPI s"] == 5)

    dropped, delivered = max(study.every("DMR", slow)), min(study.every("PDR", slow))
    delay = {air: study.mean("EED ms", **{"air": air, "publishers": 25, "IPI s": 5}) for air in AIRS}
    redundant = {air: study.mean("Rd/msg", **{"air": air, "publishers": 25, "IPI s": 5}) for air in AIRS}
    return Judged(
        {"DMR": 0, "PDR": 1},
        {"largest DMR": dropped, "least PDR": delivered},
        dropped == 0 and delivered == 1,
        f"With 25 publishers the delay is {delay[CLEAR]:.0f} ms in the clear air and {delay[NOISY]:.0f} ms "
        f"in the noisy one, and {redundant[CLEAR]:.0%} and {redundant[NOISY]:.0%} of the messages come "
        "twice; the thesis has about 5 s and 60 %.",
        {True: "Its network was much nearer to its limit than this one."},
    )


def _one(study: Study) -> Judged:
    found = {
        air: {
            name: study.mean(name, **{"air": air, "publishers": 25, "IPI s": 1})
            for name in ("DMR", "ReTx/msg")
        }
        for air in AIRS
    }
    return Judged(
        {"DMR": 0.6, "ReTx/msg": 8},
        found,
        0.5 <= found[CLEAR]["DMR"] <= 0.7,
        f"A message needs {found[CLEAR]['ReTx/msg']:.1f} retransmissions in the clear air and "
        f"{found[NOISY]['ReTx/msg']:.1f} in the noisy one; in the thesis 8 (L754).",
        {
            False: "A writer drops what it cannot send in a second: with r retransmissions a message takes "
            "about 400 ms · r, so it keeps up while r is below 2.5. At r = 8 a message takes 3.2 s, and two "
            "of three must be dropped; this network is near the edge, not beyond it. What differs is how "
            "many frames collide, not what the ring does."
        },
    )


def parameters(full: bool) -> dict[str, str]:
    return {
        "set-up": "Table 5, FRQoS-IPI: 5 × 10 nodes, publishers drawn by the seed within three hops of the "
        f"rendezvous node, the base station three hops from it; {500 if full else 200} s",
        "level": "FRQoS, ring of 20, RTO 400 ms, IFS",
        **printed(setups.SPACING),
    }


def panels(study: Study) -> list[Panel]:
    lines = [Line(f"IPI {ipi} s", {"air": CLEAR, "IPI s": ipi}) for ipi in study.levels("IPI s")]
    lines += [Line(f"IPI {ipi} s, noisy", {"air": NOISY, "IPI s": ipi}) for ipi in (1, 5)]
    return [
        Panel("a: delivered", "PDR", "publishers", lines),
        Panel("b: redundant for a message", "Rd/msg", "publishers", lines),
        Panel("c: delay", "EED ms", "publishers", lines, "ms"),
        Panel("d: dropped at the ring", "DMR", "publishers", lines, paper=((25, 0.6),)),
    ]


EXPERIMENT = experiment(
    Design(
        "rtdds-ipi",
        "full reliability under load  [Energy-aware DDS, Figure 32]",
        points,
        parameters,
        RULES,
        claims,
        ("PDR", "Rd/msg", "EED ms", "DMR", "ReTx/msg"),
        panels,
    )
)
