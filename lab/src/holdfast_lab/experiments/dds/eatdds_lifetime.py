"""The lifetime of a network in which the role of the broker moves.

[§7.2, Figures 58 to 61; D46–D50, D64]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.network.motes.dds import DdsNodes
from holdfast.network.motes.run import SimulationRun
from holdfast.network.protocols.dds.deployment import ModeName, RotationSettings
from holdfast.network.protocols.dds.level import FULL

from ..experiment import Judged
from . import place, setups
from .air import CLEAR, FITTED
from .air import show_link as printed_air
from .measure import MEMORY, RESTS, Measured, Point, memory, point
from .place import BETWEEN, HASHED
from .report import CurveSpec, Design, Panel, judge_each, verdict
from .study import Study

MODES: tuple[ModeName, ...] = ("DefTDDS", "BLTDDS", "HyTDDS", "EATDDS")
LITERAL = "EATDDS, most energy"
ARMS: Mapping[str, tuple[ModeName, RotationSettings]] = {
    **{mode: (mode, RotationSettings(slack=0.3, reporters="cluster")) for mode in MODES},
    LITERAL: ("EATDDS", RotationSettings()),
}
"""The modes, and EATDDS in two readings of §7.1. The thesis says that it "uses the location of the nodes to
minimize the distances", and that a node reports to "the cluster RN node". So the nearest of the nodes with
nearly the most energy is elected, and the cluster reports. A variant follows the letter: most energy, and
all nodes report to all RNs."""
IPIS = (2, 4, 6, 8, 10)
STEP = 100 / 6
AWAKE = {"start": 2 * SECOND, "duration": 60 * SECOND}
"""With a radio that listens at rest, 1 J lasts for 14 s, so publishers begin early."""

RULES = {
    "EA>Def": "EATDDS lives significantly longer than DefTDDS. Rule: sleeping at rest, with rendezvous "
    "nodes as equation 6.1 has them, in the fitted air, its mean lifetime is 10 % longer at least, at every "
    "IPI.",
    "BL-Hy-longest": "BLTDDS and HyTDDS live longest, and equally long. Rule: sleeping at rest, hashed, "
    "fitted, both live longer than DefTDDS and EATDDS at every IPI, and their means differ by less than "
    "10 %.",
    "PPJ-light-heavy": "EATDDS delivers most packets for a joule at light load and fewest at heavy load. "
    "Rule: sleeping at rest, hashed, fitted, its mean is the largest of the four at IPI 10 and the smallest "
    "at IPI 2.",
    "WE-Def-most": "DefTDDS has the most wasted energy when the network is over. Rule: sleeping at rest, "
    "hashed, fitted, its mean is the largest of the four at every IPI.",
    "TEC-Def-most": "Likewise it has the largest total energy consumption. Rule: none; what is wasted is "
    "what is not consumed, so who has most of the one has least of the other, and this cannot be judged.",
    "EA-better-when-light": "EATDDS gets better as the load decreases: the difference of TEC grows with IPI. "
    "Rule: sleeping at rest, hashed, fitted, the mean TEC of EATDDS less that of DefTDDS is larger at IPI 10 "
    "than at IPI 2.",
}


def points(full: bool) -> list[Point]:
    some = {(HASHED, FITTED): (2, 10), (BETWEEN, FITTED): (10,), (HASHED, CLEAR): (2,)}
    ipis = {at: IPIS if full else few for at, few in some.items()}
    asleep = [_point("sleeping", at, arm, ipi, {}) for at in some for arm in ARMS for ipi in ipis[at]]
    listening = [_point("listening", (HASHED, FITTED), mode, 2, AWAKE) for mode in MODES]
    return asleep + listening


def _point(rest: str, at: tuple[str, str], arm: str, ipi: int, more: dict[str, Any]) -> Point:
    where, air = at
    mode, rotation = ARMS[arm]
    given = {"rendezvous": place.RENDEZVOUS[where], "rest": RESTS[rest], "rotation": rotation, **more}
    key = _at(arm, ipi, where, rest, air)
    return point(key, setups.lifetime, mode, ipi * SECOND, FULL, step=STEP, **given)


def end(run: SimulationRun) -> Measured:
    """Return the nodes that died, how often roles moved, and the energy reports and memory."""
    assert isinstance(run.family, DdsNodes)
    return {
        "dead": [node.id for node in run.network.nodes if node.died is not None],
        "hand-overs": run.family.total_counts()["terms"],
        "energy reports": run.account.messages["Energy"],
        **memory(run),
    }


def _at(arm: str, ipi: int, where: str = HASHED, rest: str = "sleeping", air: str = FITTED) -> dict[str, Any]:
    return {"rest": rest, "rendezvous": where, "air": air, "mode": arm, "IPI s": ipi}


def _ipis(study: Study, where: str = HASHED) -> list[int]:
    found = study.where(rest="sleeping", rendezvous=where, air=FITTED)
    return sorted({dict(key)["IPI s"] for key in found})


def _lifetimes(study: Study, where: str) -> dict[str, dict[str, float]]:
    return {
        f"{where}, IPI {ipi}, s": {arm: study.mean("NLT s", **_at(arm, ipi, where)) for arm in ARMS}
        for ipi in _ipis(study, where)
    }


def _longer(study: Study) -> Judged:
    def ratio(arm: str, ipi: int, where: str = HASHED) -> float:
        eatdds, default = (study.mean("NLT s", **_at(each, ipi, where)) for each in (arm, "DefTDDS"))
        return eatdds / default

    cells = [(where, ipi) for where in (HASHED, BETWEEN) for ipi in _ipis(study, where)]
    ratios = {(where, ipi): ratio("EATDDS", ipi, where) for where, ipi in cells}
    literal = {ipi: ratio(LITERAL, ipi) for ipi in _ipis(study)}
    listening = study.mean("NLT s", **_at("EATDDS", 2, rest="listening"))
    moved = {ipi: study.mean("hand-overs", **_at("EATDDS", ipi)) for ipi in _ipis(study)}
    return verdict(
        "significantly longer",
        {f"EA / Def, {where}, IPI {ipi}": ratio for (where, ipi), ratio in ratios.items()},
        all(ratio >= 1.1 for (where, _), ratio in ratios.items() if where == HASHED),
        f"Listening at rest EATDDS lives {listening:.1f} s, and its first round ends after 350 s: there is "
        "nothing to compare. Sleeping, roles moved "
        + ", ".join(f"{count:.1f} times at IPI {ipi}" for ipi, count in moved.items())
        + " before the first death. Where the RN stands well from the beginning (between, IPI 10) EATDDS "
        f"lives {ratios[BETWEEN, 10]:.2f} times as long as DefTDDS. By most energy alone, with reports of "
        "all nodes to all, it lives "
        + ", ".join(f"{ratio:.2f} times as long at IPI {ipi}" for ipi, ratio in literal.items())
        + ".",
        why="What helps is not that the role moves but where to: a node of the cluster is nearer to "
        "publishers and subscribers than the hash.",
    )


def _longest(study: Study) -> Judged:
    def holds(where: str) -> bool:
        for found in _lifetimes(study, where).values():
            bl, hy = found["BLTDDS"], found["HyTDDS"]
            if min(bl, hy) <= max(found["DefTDDS"], found["EATDDS"]) or abs(bl / hy - 1) >= 0.1:
                return False
        return True

    return verdict(
        "BL ≈ Hy > EA > Def",
        _lifetimes(study, HASHED) | _lifetimes(study, BETWEEN),
        holds(HASHED),
        f"With rendezvous nodes on the way (between) it {'holds' if holds(BETWEEN) else 'does not hold'}.",
        why="Nothing passes one node only, so no node is much hotter than the others; the flood of "
        "discovery costs BLTDDS little of its life.",
    )


def _packets(study: Study) -> Judged:
    found = {
        f"{where}, IPI {ipi}": {arm: study.mean("PPJ", **_at(arm, ipi, where)) for arm in ARMS}
        for where in (HASHED, BETWEEN)
        for ipi in _ipis(study, where)
    }
    light, heavy = ({mode: found[f"{HASHED}, IPI {ipi}"][mode] for mode in MODES} for ipi in (10, 2))
    reports = {arm: study.mean("energy reports", **_at(arm, 10)) for arm in ("EATDDS", LITERAL)}
    return verdict(
        "EA best at light, worst at heavy load",
        found,
        max(light, key=light.__getitem__) == "EATDDS" and min(heavy, key=heavy.__getitem__) == "EATDDS",
        f"At IPI 10 nodes report their energy in {reports['EATDDS']:.0f} messages before the first death, "
        f"and in {reports[LITERAL]:.0f} where all report to all.",
        why_not="A packet costs what its hops cost, at every load. EATDDS adds reports in every round, "
        "which weigh more, not less, when there are few samples. We find no load at which rotation by "
        "itself makes packets cheaper than not passing a broker at all.",
    )


def _sums(study: Study, quantity: str) -> dict[str, dict[str, float]]:
    ipis = _ipis(study)
    return {f"IPI {ipi}, mJ": study.over(quantity, "mode", MODES, **_at("", ipi)) for ipi in ipis}


def _judge_waste(study: Study) -> Judged:
    found = _sums(study, "WE mJ")
    return Judged(
        "Def most",
        found,
        all(each["DefTDDS"] > max(each[mode] for mode in MODES[1:]) for each in found.values()),
        "49 nodes have 49,000 mJ at the beginning.",
    )


def _judge_consumption(study: Study) -> Judged:
    return Judged(
        "Def most",
        _sums(study, "TEC mJ"),
        None,
        "The two add up to 49,000 mJ in every run; the thesis itself says that they are the opposite of each "
        "other.",
    )


def _lighter(study: Study) -> Judged:
    modes = ("EATDDS", "DefTDDS")
    used = {ipi: study.over("TEC mJ", "mode", modes, **_at("", ipi)) for ipi in _ipis(study)}
    found = {ipi: each["EATDDS"] - each["DefTDDS"] for ipi, each in used.items()}
    largest = max(found, key=found.__getitem__)
    return Judged(
        "grows with IPI",
        {f"EA - Def, IPI {ipi}, mJ": value for ipi, value in found.items()},
        found[10] > found[2],
        "A network that lives for several rounds lets the role move more often."
        + (f" The difference is largest at IPI {largest}, and falls from there on." if largest < 10 else ""),
    )


def parameters(_: bool) -> dict[str, str]:
    return {
        **place.describe(),
        "run": "until the first node has used its 1 J; reliable (FRQoS, RTO 400 ms)",
        "EATDDS": "rounds of 350 s; the nodes of a cluster report their energy; of those within 30 % of the "
        "most energy the one with the least sum of squared distances is next",
        LITERAL: "every node reports to all rendezvous nodes in every round; the cluster's node with most "
        "energy is next, wherever it stands",
        "RAM bytes": MEMORY,
        "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items())
        + "; listening, publishers begin after 2 s",
        **printed_air(STEP),
    }


def panels() -> list[Panel]:
    lines = [
        CurveSpec(f"{arm}, {where}", {"rest": "sleeping", "rendezvous": where, "air": FITTED, "mode": arm})
        for where in (HASHED, BETWEEN)
        for arm in ARMS
    ]
    return [
        Panel("Figure 58: energy used until the first death", "TEC mJ", "IPI s", lines, "mJ"),
        Panel("Figure 60: packets for a joule", "PPJ", "IPI s", lines),
        Panel("Figure 61: lifetime", "NLT s", "IPI s", lines, "s"),
    ]


EXPERIMENT = Design(
    "eatdds-lifetime",
    "network lifetime  [Energy-aware DDS, Figures 58 to 61]",
    points,
    parameters,
    RULES,
    judge_each(_longer, _longest, _packets, _judge_waste, _judge_consumption, _lighter),
    ("NLT s", "PPJ", "TEC mJ", "WE mJ", "PDR", "hand-overs", "energy reports", "RAM bytes"),
    panels,
    extra=end,
).experiment
