"""What each part of the fitted air does: one of them is switched, and the rest stays.  [our own]

The pages of chapters 4 and 6 explain by links that lose, by frames that destroy each other, by back-off, by
processor time.  Here each of them is taken away, or put as it was before, in the set-up by which the air was
fitted (five publishers, full reliability, IFS) and where publishers meet most (25 at the same moment).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.model.instant import SECOND
from holdfast.protocols.dds.deployment import Reliable
from holdfast.protocols.dds.level import FULL
from holdfast.runtimes.sensornet.scenario import Radio

from ..experiment import Judged
from . import setups
from .air import FITTED, QUALITY, TINYOS, path_loss, printed
from .measure import Point, point
from .report import Design, Line, Panel, experiment
from .study import Study

STEP = setups.SPACING
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
    COLLECTED: {"reliable": Reliable()},
}
"""What is switched, as fields of a set-up."""
FIVE, CROWD = "5, IFS", "25, no IFS"
LOADS: Mapping[str, tuple[int, bool]] = {FIVE: (5, True), CROWD: (25, False)}

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
        for part, switched in PARTS.items()
        for load, (publishers, ifs) in LOADS.items()
    ]


def claims(study: Study) -> Sequence[Judged]:
    retx = {load: {part: _mean(study, "ReTx/msg", part, load) for part in PARTS} for load in LOADS}
    delay = {part: _mean(study, "EED ms", part, FIVE) for part in PARTS}
    five, crowd = retx[FIVE], retx[CROWD]

    def fewer(of: Mapping[str, float], part: str) -> float:
        return 1 - of[part] / of[WHOLE]

    def judged(of: Mapping[str, float], part: str, holds: bool, unit: str) -> Judged:
        said = f"{of[part]:.2f} {unit} in place of {of[WHOLE]:.2f}."
        return Judged("not described", {each: of[each] for each in (WHOLE, part)}, holds, said)

    five_retx = "retransmissions a message of five publishers"
    crowd_retx = "retransmissions a message of 25 publishers"
    alike = {load: fewer(each, TOSSIM) for load, each in retx.items()}
    return [
        judged(five, PERFECT, five[PERFECT] < five[WHOLE] / 4, five_retx),
        judged(five, BETTER, 0.1 <= fewer(five, BETTER) <= 0.4, five_retx),
        judged(crowd, SURVIVE, fewer(crowd, SURVIVE) >= 0.1, crowd_retx),
        Judged(
            "not described",
            {load: {part: each[part] for part in (WHOLE, TOSSIM)} for load, each in retx.items()},
            all(abs(each) < 0.15 for each in alike.values()),
            ", ".join(f"{-each:+.0%} with {load}" for load, each in alike.items()) + ".",
        ),
        judged(delay, IDLE, delay[WHOLE] - delay[IDLE] >= 10, "ms of delay of five publishers"),
        judged(crowd, PATIENT, fewer(crowd, PATIENT) >= 0.05, crowd_retx),
        judged(five, COLLECTED, five[COLLECTED] < five[WHOLE], five_retx),
    ]


def _mean(study: Study, quantity: str, part: str, load: str) -> float:
    return study.mean(quantity, switched=part, publishers=load)


def parameters(full: bool) -> dict[str, str]:
    return {
        "set-up": "5 × 10 nodes, 5 publishers with IFS and 25 that send at the same moment, drawn by the "
        f"seed within three hops of the rendezvous node; a message in 5 s, FRQoS; {500 if full else 100} s",
        "switched": f"one part at a time: overlapping frames survive down to -40 dB, or by TOSSIM's curve; "
        f"links lose nothing, or from 0.83 in place of {QUALITY[0]:g} on; after a busy channel 0 to 10 ms; "
        "frames wait for no processor; the rendezvous node acknowledges",
        **printed(STEP),
    }


def panels(_: Study) -> list[Panel]:
    def bars(load: str) -> list[Line]:
        return [Line(part.replace(" ", "\n"), {"switched": part, "publishers": load}) for part in PARTS]

    return [
        Panel(f"retransmissions for a message, {FIVE}", "ReTx/msg", "", bars(FIVE)),
        Panel(f"delay, {FIVE}", "EED ms", "", bars(FIVE), "ms"),
        Panel(f"retransmissions for a message, {CROWD}", "ReTx/msg", "", bars(CROWD)),
        Panel(f"delivered, {CROWD}", "PDR", "", bars(CROWD)),
    ]


EXPERIMENT = experiment(
    Design(
        "air-parts",
        "what each part of the fitted air does  [Energy-aware DDS, the air of chapters 4 and 6]",
        points,
        parameters,
        RULES,
        claims,
        ("PDR", "ReTx/msg", "EED ms", "DMR", "Rd/msg"),
        panels,
    )
)
