"""How long the network lives when the broker's role moves.  [§7.2, Figures 58 to 61; D46–D50, D64]"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.protocols.dds.deployment import ModeName
from holdfast.protocols.dds.level import FULL
from holdfast.runtimes.sensornet.dds import Motes
from holdfast.runtimes.sensornet.run import Run

from ..experiment import Judged
from . import place, setups
from .air import printed as printed_air
from .measure import RESTS, Measured, Point, point
from .place import BETWEEN, HASHED
from .report import Design, Line, Panel, experiment
from .study import Study

MODES: tuple[ModeName, ...] = ("DefTDDS", "BLTDDS", "HyTDDS", "EATDDS")
IPIS = (2, 4, 6, 8, 10)
STEP = 100 / 6
AWAKE = {"start": 2 * SECOND, "duration": 60 * SECOND}
"""Listening at rest 1 J lasts for 14 s, so publishers begin early."""

RULES = {
    "EA>Def": "EATDDS lives significantly longer than DefTDDS. Rule: sleeping at rest, with rendezvous "
    "nodes as equation 6.1 has them, its mean lifetime is 10 % longer at least, at every IPI.",
    "BL-Hy-longest": "BLTDDS and HyTDDS live longest, and equally long. Rule: sleeping at rest, hashed, "
    "both live longer than DefTDDS and EATDDS at every IPI, and their means differ by less than 10 %.",
    "PPJ-light-heavy": "EATDDS delivers most packets for a joule at light load and fewest at heavy load. "
    "Rule: sleeping at rest, hashed, its mean is the largest of the four at IPI 10 and the smallest at IPI "
    "2.",
}


def points(full: bool) -> list[Point]:
    ipis = IPIS if full else (2, 10)
    placed = {HASHED: ipis, BETWEEN: ipis if full else (10,)}
    asleep = [
        _point("sleeping", where, mode, ipi, {})
        for where in placed
        for mode in MODES
        for ipi in placed[where]
    ]
    awake = [_point("listening", HASHED, mode, 2, AWAKE) for mode in MODES]
    return asleep + awake


def _point(rest: str, where: str, mode: ModeName, ipi: int, more: dict[str, Any]) -> Point:
    given = {"rendezvous": place.RENDEZVOUS[where], "rest": RESTS[rest], "step": STEP, **more}
    return point(_at(mode, ipi, where, rest), setups.lifetime, mode, ipi * SECOND, FULL, **given)


def end(run: Run) -> Measured:
    """Who died, and how often roles moved."""
    assert isinstance(run.family, Motes)
    return {
        "dead": [node.id for node in run.network.nodes if node.died is not None],
        "hand-overs": run.family.counted()["terms"],
        "energy reports": run.account.messages["Energy"],
    }


def claims(study: Study) -> Sequence[Judged]:
    return [_longer(study), _longest(study), _packets(study)]


def _at(mode: str, ipi: int, where: str = HASHED, rest: str = "sleeping") -> dict[str, Any]:
    return {"rest": rest, "rendezvous": where, "mode": mode, "IPI s": ipi}


def _ipis(study: Study, where: str = HASHED) -> list[int]:
    return sorted({dict(key)["IPI s"] for key in study.where(rest="sleeping", rendezvous=where)})


def _lifetimes(study: Study, where: str) -> dict[str, dict[str, float]]:
    return {
        f"{where}, IPI {ipi}, s": {mode: study.mean("NLT s", **_at(mode, ipi, where)) for mode in MODES}
        for ipi in _ipis(study, where)
    }


def _longer(study: Study) -> Judged:
    ratios = {
        (where, ipi): study.mean("NLT s", **_at("EATDDS", ipi, where))
        / study.mean("NLT s", **_at("DefTDDS", ipi, where))
        for where in (HASHED, BETWEEN)
        for ipi in _ipis(study, where)
    }
    awake = study.mean("NLT s", **_at("EATDDS", 2, rest="listening"))
    moved = {ipi: study.mean("hand-overs", **_at("EATDDS", ipi)) for ipi in _ipis(study)}
    return Judged(
        "significantly longer",
        {f"EA / Def, {where}, IPI {ipi}": ratio for (where, ipi), ratio in ratios.items()},
        all(ratio >= 1.1 for (where, _), ratio in ratios.items() if where == HASHED),
        f"Listening at rest EATDDS lives {awake:.1f} s, and its first round ends after 350 s: there is "
        "nothing to compare. Sleeping, roles moved "
        + ", ".join(f"{count:.1f} times at IPI {ipi}" for ipi, count in moved.items())
        + " before the first death. Where the RN stands well from the beginning (between, IPI 10) EATDDS "
        f"lives {ratios[BETWEEN, 10]:.2f} times as long as DefTDDS.",
        {
            True: "What helps is not that the role moves but where to: a node of the cluster is nearer to "
            "publishers and subscribers than the hash."
        },
    )


def _longest(study: Study) -> Judged:
    def holds(where: str) -> bool:
        for found in _lifetimes(study, where).values():
            bl, hy = found["BLTDDS"], found["HyTDDS"]
            if min(bl, hy) <= max(found["DefTDDS"], found["EATDDS"]) or abs(bl / hy - 1) >= 0.1:
                return False
        return True

    return Judged(
        "BL ≈ Hy > EA > Def",
        _lifetimes(study, HASHED) | _lifetimes(study, BETWEEN),
        holds(HASHED),
        f"With rendezvous nodes on the way (between) it {'holds' if holds(BETWEEN) else 'does not hold'}.",
        {
            True: "Nothing passes one node only, so no node is much hotter than the others; the flood of "
            "discovery costs BLTDDS little of its life."
        },
    )


def _packets(study: Study) -> Judged:
    found = {
        f"{where}, IPI {ipi}": {mode: study.mean("PPJ", **_at(mode, ipi, where)) for mode in MODES}
        for where in (HASHED, BETWEEN)
        for ipi in _ipis(study, where)
    }
    light, heavy = found[f"{HASHED}, IPI 10"], found[f"{HASHED}, IPI 2"]
    reports = study.mean("energy reports", **_at("EATDDS", 10))
    return Judged(
        "EA best at light, worst at heavy load",
        found,
        max(light, key=light.__getitem__) == "EATDDS" and min(heavy, key=heavy.__getitem__) == "EATDDS",
        f"At IPI 10 nodes report their energy in {reports:.0f} messages before the first death.",
        {
            False: "A packet costs what its hops cost, at every load. EATDDS adds reports of all nodes to "
            "all rendezvous nodes in every round, which weigh more, not less, when there are few samples. We "
            "find no load at which rotation by itself makes packets cheaper than not passing a broker at all."
        },
    )


def parameters(_: bool) -> dict[str, str]:
    return {
        **place.printed(),
        "run": "until the first node has used its 1 J; reliable (FRQoS, RTO 400 ms), clear air",
        "EATDDS": "rounds of 350 s; every node reports its energy to all rendezvous nodes in every round; "
        "the cluster's node with most energy is next",
        "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items())
        + "; listening, publishers begin after 2 s",
        **printed_air(STEP),
    }


def panels(_: Study) -> list[Panel]:
    lines = [
        Line(f"{mode}, {where}", {"rest": "sleeping", "rendezvous": where, "mode": mode})
        for where in (HASHED, BETWEEN)
        for mode in MODES
    ]
    return [
        Panel("Figure 58: energy used until the first death", "TEC mJ", "IPI s", lines, "mJ"),
        Panel("Figure 60: packets for a joule", "PPJ", "IPI s", lines),
        Panel("Figure 61: lifetime", "NLT s", "IPI s", lines, "s"),
    ]


EXPERIMENT = experiment(
    Design(
        "eatdds-lifetime",
        "network lifetime  [Energy-aware DDS, Figures 58 to 61]",
        points,
        parameters,
        RULES,
        claims,
        ("NLT s", "PPJ", "TEC mJ", "WE mJ", "PDR", "hand-overs", "energy reports"),
        panels,
        extra=end,
    )
)
