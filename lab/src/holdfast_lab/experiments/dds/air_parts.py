"""The effect of each part of the fitted radio model: one part is changed, all others stay. [our own]

The pages of chapters 4 and 6 explain results by lossy links, collisions, back-off and processor time. Here
each of these is removed, or set as it was before. The set-ups are the one by which the model was fitted (five
publishers, full reliability, IFS) and the one with most collisions (25 publishers that send at the same
time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.network.motes.dds import Dds
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.scenario import Radio
from holdfast.network.protocols.dds.deployment import ReliableSettings
from holdfast.network.protocols.dds.level import FULL
from holdfast.network.sim.routing.grid import hops

from ..experiment import Judged
from . import setups
from .air import FITTED, QUALITY, TINYOS, path_loss, show_link
from .measure import Measured, Point, point
from .report import CurveSpec, Design, Panel, verdict
from .study import Study

STEP = setups.SPACING
HOPS = "ACK hops"
WHOLE = "the fitted air"
SURVIVE, TOSSIM = "frames of equal strength survive", "TOSSIM's curve"
PERFECT, BETTER = "links lose nothing", "links of 0.83 to 1"
PATIENT, IDLE, COLLECTED = "back-off of 0 to 10 ms", "no processor time", "acknowledged by the RN"
PARTS: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {},
    SURVIVE: {"radio": Radio(co_channel=-40.0)},
    TOSSIM: {"radio": Radio(chip="cc2420-tossim")},
    PERFECT: {"propagation": path_loss(STEP)},
    BETTER: {"propagation": replace(path_loss(STEP), quality=(0.83, 1.0))},
    PATIENT: {"mac": TINYOS},
    IDLE: {"delays": False},
    COLLECTED: {"reliable": ReliableSettings()},
}
"""The changes, as fields of a set-up."""
FIVE, CROWD = "5, IFS", "25, no IFS"
LOADS: Mapping[str, tuple[int, bool]] = {FIVE: (5, True), CROWD: (25, False)}
BEHIND, BEHIND_COLLECTED = "publishers behind the RN", "behind it, acknowledged by the RN"
PLACES: Mapping[str, Mapping[str, Any]] = {
    BEHIND: {"behind": True},
    BEHIND_COLLECTED: {"behind": True, **PARTS[COLLECTED]},
}
"""Positions from which the path by the RN is as short as the direct one; there are not 25 such nodes."""
PERFECT_IDLE = "links lose nothing, no processor time"
BOTH: Mapping[str, Mapping[str, Any]] = {PERFECT_IDLE: {**PARTS[PERFECT], **PARTS[IDLE]}}
"""Two changes together, so that no timeout hides the time that a hop takes."""
SWITCHED = {FIVE: {**PARTS, **PLACES, **BOTH}, CROWD: PARTS}

RULES = {
    "links-repeat": "What five publishers repeat they repeat for their links. Rule: where links lose nothing "
    "they need less than a quarter of the retransmissions of the fitted air.",
    "range-fits": "The range of the links is what two retransmissions depend on. Rule: with 0.83 to 1 five "
    "publishers need from 10 to 40 % fewer of them than with the fitted range.",
    "equals-destroy": "Frames of equal strength that destroy each other make the air less kind. Rule: where "
    "they survive 25 publishers that send at the same moment need at least 10 % fewer retransmissions.",
    "tossim-alike": "The threshold of 3 dB and TOSSIM's curve come to the same. Rule: retransmissions with "
    "either differ by less than 15 %, for 5 and for 25 publishers.",
    "processor-delays": "Processor time delays what hops carry. Rule: where it is free the delay of five "
    "publishers is shorter by at least 10 ms.",
    "back-off-matters": "TinyOS' short back-off after a busy channel costs frames. Rule: with 0 to 10 ms 25 "
    "publishers need at least 5 % fewer retransmissions.",
    "who-acknowledges": "An acknowledgement end to end is lost more often than one by the rendezvous node. "
    "Rule: acknowledged by the rendezvous node, five publishers need fewer retransmissions.",
}


def points(full: bool) -> list[Point]:
    return [
        point(
            {"air": FITTED, "switched": part, "publishers": load},
            setups.rtdds_load,
            publishers,
            5 * SECOND,
            FULL,
            duration=(500 if full else 100) * SECOND,
            **{"reliable": setups.TO_ORIGIN, "ifs": ifs, **switched},
        )
        for load, (publishers, ifs) in LOADS.items()
        for part, switched in SWITCHED[load].items()
    ]


def way_back(run: SimulationRun) -> Measured:
    """Return the mean number of hops that an acknowledgement makes to its publisher."""
    scenario = run.case.scenario
    assert isinstance(scenario.protocol, Dds)
    (rn,), (station,) = scenario.protocol.rendezvous, (each.node for each in scenario.subscribers)
    straight = scenario.protocol.reliable.acknowledged == "end-to-end"
    begin = [int(station)] if straight else [int(station), int(rn)]
    ways = [(*begin, node) for node in run.plan.sources[0].nodes]
    return {HOPS: fmean(sum(hops(a, b, setups.COLUMNS) for a, b in pairwise(way)) for way in ways)}


def claims(study: Study) -> Sequence[Judged]:
    retx = {load: study.over("ReTx/msg", "switched", SWITCHED[load], publishers=load) for load in LOADS}
    back = study.over(HOPS, "switched", SWITCHED[FIVE], publishers=FIVE)
    five, crowd = retx[FIVE], retx[CROWD]

    def fewer(of: Mapping[str, float], part: str) -> float:
        return 1 - of[part] / of[WHOLE]

    def judge_part(of: Mapping[str, float], part: str, holds: bool, unit: str) -> Judged:
        text = f"{of[part]:.2f} {unit} in place of {of[WHOLE]:.2f}."
        return Judged("not described", {each: of[each] for each in (WHOLE, part)}, holds, text)

    five_retx = "retransmissions a message of five publishers"
    crowd_retx = "retransmissions a message of 25 publishers"
    alike = {load: fewer(each, TOSSIM) for load, each in retx.items()}
    return [
        judge_part(five, PERFECT, five[PERFECT] < five[WHOLE] / 4, five_retx),
        judge_part(five, BETTER, 0.1 <= fewer(five, BETTER) <= 0.4, five_retx),
        judge_part(crowd, SURVIVE, fewer(crowd, SURVIVE) >= 0.1, crowd_retx),
        Judged(
            "not described",
            {load: {part: each[part] for part in (WHOLE, TOSSIM)} for load, each in retx.items()},
            all(abs(each) < 0.15 for each in alike.values()),
            ", ".join(f"{-each:+.0%} with {load}" for load, each in alike.items()) + ".",
        ),
        _processor(study),
        judge_part(crowd, PATIENT, fewer(crowd, PATIENT) >= 0.05, crowd_retx),
        _judge_acknowledgements(five, back),
    ]


def _processor(study: Study) -> Judged:
    """Judge how processor time affects the delay, and whether the timeouts that it saves hide this."""

    def values(quantity: str, part: str) -> Sequence[float]:
        return study.values(quantity, switched=part, publishers=FIVE)

    parts = (WHOLE, IDLE, PERFECT, PERFECT_IDLE)
    delay, again = ({part: fmean(values(name, part)) for part in parts} for name in ("EED ms", "ReTx/msg"))
    perfect = (PERFECT, PERFECT_IDLE)
    columns = [values(name, part) for name in ("EED ms", "ReTx/msg") for part in perfect]
    runs = zip(*columns, strict=True)
    sooner = [busy - idle for busy, idle, *repeated in runs if not any(repeated)]
    seen = f" In {len(sooner)} runs nothing is sent twice: {fmean(sooner):.1f} ms shorter." if sooner else ""
    return verdict(
        "not described",
        delay,
        delay[WHOLE] - delay[IDLE] >= 10,
        f"{delay[IDLE]:.2f} ms of delay of five publishers in place of {delay[WHOLE]:.2f}; where links lose "
        f"nothing {delay[PERFECT_IDLE]:.2f} in place of {delay[PERFECT]:.2f}, with {again[PERFECT_IDLE]:.3f} "
        f"in place of {again[PERFECT]:.3f} retransmissions a message." + seen,
        why_not="Frames that wait for no processor follow each other sooner and meet more often, and a "
        "timeout costs more than all hops gain."
        if again[PERFECT_IDLE] > again[PERFECT]
        else "",
    )


def _judge_acknowledgements(retx: Mapping[str, float], back: Mapping[str, float]) -> Judged:
    """Judge whether acknowledgements by the RN cost fewer retransmissions, and whether path length
    decides."""

    def beside(one: str, other: str) -> str:
        return (
            f"{retx[other]:.2f} in place of {retx[one]:.2f} retransmissions a message, over "
            f"{back[other]:.1f} in place of {back[one]:.1f} hops back"
        )

    longer, shorter = back[COLLECTED] > back[WHOLE], retx[BEHIND_COLLECTED] < retx[BEHIND]
    return verdict(
        "not described",
        {part: retx[part] for part in (WHOLE, COLLECTED, BEHIND, BEHIND_COLLECTED)},
        retx[COLLECTED] < retx[WHOLE],
        f"Acknowledged by the RN five publishers need {beside(WHOLE, COLLECTED)}; behind the RN "
        f"{beside(BEHIND, BEHIND_COLLECTED)}.",
        why_not="It is the detour: the reader's acknowledgement goes straight to the publisher, and "
        "collected it goes by the RN. From where both ways are as long the RN's costs fewer."
        if longer and shorter
        else "",
    )


def parameters(full: bool) -> dict[str, str]:
    return {
        "set-up": "5 × 10 nodes, 5 publishers with IFS and 25 that send at the same moment, drawn by the "
        f"seed within three hops of the rendezvous node; a message in 5 s, FRQoS; {500 if full else 100} s",
        "switched": f"one part at a time: overlapping frames survive down to -40 dB, or by TOSSIM's curve; "
        f"links lose nothing, or from 0.83 in place of {QUALITY[0]:g} on; after a busy channel 0 to 10 ms; "
        "frames wait for no processor, here and where links lose nothing; the rendezvous node acknowledges; "
        "publishers only where no way to the "
        "base station is shorter than the one by the rendezvous node",
        HOPS: "from the base station to a publisher, straight or by the rendezvous node",
        **show_link(STEP),
    }


def panels() -> list[Panel]:
    def bars(load: str) -> list[CurveSpec]:
        return [CurveSpec(part, {"switched": part, "publishers": load}) for part in SWITCHED[load]]

    return [
        Panel(f"retransmissions for a message, {FIVE}", "ReTx/msg", "", bars(FIVE)),
        Panel(f"delay, {FIVE}", "EED ms", "", bars(FIVE), "ms"),
        Panel(f"retransmissions for a message, {CROWD}", "ReTx/msg", "", bars(CROWD)),
        Panel(f"delivered, {CROWD}", "PDR", "", bars(CROWD)),
    ]


EXPERIMENT = Design(
    "air-parts",
    "what each part of the fitted air does  [Energy-aware DDS, the air of chapters 4 and 6]",
    points,
    parameters,
    RULES,
    claims,
    ("PDR", "ReTx/msg", "EED ms", "DMR", "Rd/msg", HOPS),
    panels,
    extra=way_back,
).experiment
