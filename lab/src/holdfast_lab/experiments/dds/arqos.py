"""Reliability that switches on measured delivery: the evaluation that the thesis does not have.

[Appendix B; D55–D61] Five publishers send a sample a second over at most six hops to one base station, which
has requested 90 %. The radio is quiet (1 % of the frames are lost), noisy (5 %), quiet with a storm in the
middle third (8 %), or the fitted one. ARQoS is compared with BEQoS and FRQoS, with itself with one threshold
and without the assurance interval, and with itself at 100 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from holdfast.model.instant import SECOND, Duration, Instant
from holdfast.network.motes.dds import DdsNodes
from holdfast.network.motes.run import SimulationRun
from holdfast.network.protocols.dds.arqos import thresholds
from holdfast.network.protocols.dds.deployment import AdaptiveSettings
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL

from ..experiment import Judged
from . import setups
from .air import CLEAR, FITTED, radio, show_link
from .measure import RESTS, Measured, NoiseChange, Point
from .report import CurveSpec, Design, Panel, judge_each, verdict
from .study import Study

AGREED = 90.0
TERMS = AdaptiveSettings()
ARMS: dict[str, tuple[float, float | None, AdaptiveSettings]] = {
    "BEQoS": (BEST_EFFORT, None, TERMS),
    "ARQoS 90 %": (BEST_EFFORT, AGREED, TERMS),
    "one threshold": (BEST_EFFORT, AGREED, replace(TERMS, margin=0.0)),
    "no assurance": (BEST_EFFORT, AGREED, replace(TERMS, assurance=0)),
    "ARQoS 100 %": (BEST_EFFORT, 100.0, TERMS),
    "FRQoS": (FULL, None, TERMS),
}
"""For each arm: the level of the topic, the requested percentage, and the settings of ARQoS."""
AIRS = {
    "fitted": (FITTED, 0.0, 0.0),
    "quiet": (CLEAR, 0.01, 0.01),
    "noisy": (CLEAR, 0.05, 0.05),
    "storm": (CLEAR, 0.01, 0.08),
}
"""For each case: the radio model, and the share of frames lost to noise in the outer thirds and in the middle
one."""
WINDOW = 60

RULES = {
    "agreement-kept": "Who agreed on 90 % gets 90 %. Rule: the mean PDR of ARQoS at 90 % is 0.9 at least, "
    "in every air.",
    "cheap-when-quiet": "Where best effort suffices ARQoS costs what best effort costs. Rule: in the quiet "
    "air it sends at most 10 % more frames than BEQoS and at least 25 % fewer than FRQoS.",
    "two-thresholds": "Two thresholds avoid needless switching. Rule: with one threshold there are at "
    "least 1.5 times as many SWITCH messages, in every air.",
    "assurance-interval": "The assurance interval makes the measured PDR right. Rule: without it the mean "
    "measured PDR is lower by 0.01 at least, in one of the airs.",
    "nack-100%": "At 100 % everything arrives, and NACKs cost less than ACKs. Rule: in every air PDR is "
    "0.999 at least, with fewer frames than FRQoS.",
}


def points(full: bool) -> list[Point]:
    seconds = 1800 if full else 300
    return [
        Point(
            (("air", air), ("arm", arm)),
            partial(setup_of, arm, duration=seconds * SECOND, **_air(base)),
            (
                NoiseChange(0, outer),
                NoiseChange(15 + seconds / 3, middle),
                NoiseChange(15 + 2 * seconds / 3, outer),
            ),
        )
        for air, (base, outer, middle) in AIRS.items()
        for arm in ARMS
    ]


def _air(base: str) -> dict[str, Any]:
    return {**radio(setups.SPACING, air=base), "reliable": setups.acknowledging(base)}


def setup_of(arm: str, seed: int, **more: Any) -> setups.Setup:
    """Return the set-up of an arm: the base station subscribes and, for ARQoS, requests a percentage."""
    level, percent, adaptive = ARMS[arm]
    return setups.rtdds_load(5, SECOND, level, seed, percent=percent, adaptive=adaptive, **more)


def observe(run: SimulationRun) -> Measured:
    """Return what the receiver measured and ordered, and the delivery ratio of each minute."""
    assert isinstance(run.family, DdsNodes)
    agreements = [a for host in run.family.hosts.values() for a in host.state.agreements.values()]
    rounds = [(at, pdr, mode) for agreement in agreements for at, _, pdr, mode in agreement.measured]
    start, length = _publishing_time(run)
    storm = start + length // 3
    lower, _ = thresholds(AGREED, run.family.deployment.adaptive.margin)
    alarms = [at - storm for at, pdr, mode in rounds if at >= storm and not mode and pdr < lower]
    windows = _windows(run)
    return {
        "SWITCH": run.account.messages["Switch"],
        "rounds reliable": _mean([mode for _, _, mode in rounds]),
        "measured PDR": _mean([pdr for _, pdr, _ in rounds]),
        "measured PDR, best effort": _mean([pdr for _, pdr, mode in rounds if not mode]),
        "first alarm s": min(alarms) / SECOND if alarms else None,
        "worst minute": min(windows, default=None),
        "minutes below 90 %": _mean([pdr < AGREED / 100 for pdr in windows]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _publishing_time(run: SimulationRun) -> tuple[Instant, Duration]:
    """Return when publishers begin, and for how long they publish, in µs."""
    publisher = run.case.scenario.publishers[0]
    assert publisher.stop is not None
    return publisher.start, publisher.stop - publisher.start


def _windows(run: SimulationRun) -> list[float]:
    """Return the PDR of each whole minute, by the time of publication."""
    start, length = _publishing_time(run)
    minutes = length // (WINDOW * SECOND)
    due, came = [0] * minutes, [0] * minutes
    for expected in run.account.expected.values():
        for each in expected.deliveries.values():
            minute = (each.event.time - start) // (WINDOW * SECOND)
            if minute < minutes:
                due[minute] += 1
                came[minute] += each.arrived is not None
    return [c / d for c, d in zip(came, due, strict=True) if d]


NEVER = "not evaluated"


def _judge_agreement(study: Study) -> Judged:
    found, bare = (study.over("PDR", "air", AIRS, arm=arm) for arm in ("ARQoS 90 %", "BEQoS"))
    reliable = study.mean("rounds reliable", air="noisy", arm="ARQoS 90 %")
    below = study.mean("minutes below 90 %", air="noisy", arm="ARQoS 90 %")
    return verdict(
        NEVER,
        {f"{air} (BEQoS {bare[air]:.3f})": pdr for air, pdr in found.items()},
        all(pdr >= AGREED / 100 for pdr in found.values()),
        f"In the noisy air {reliable:.0%} of the rounds are reliable, and {below:.0%} of all minutes are "
        "below the agreement.",
        why_not="A receiver orders reliable mode after a round that was too bad, so what the first round "
        "of bad air loses stays lost; and in reliable mode samples wait, and rings may fill.",
    )


def _times(counts: dict[str, float]) -> float:
    return counts["one threshold"] / max(counts["ARQoS 90 %"], 1)


def _cheap(study: Study) -> Judged:
    frames = {arm: study.mean("frames", air="quiet", arm=arm) for arm in ("BEQoS", "ARQoS 90 %", "FRQoS")}
    adaptive, bare = frames["ARQoS 90 %"], study.mean("PDR", air="quiet", arm="BEQoS")
    switched = study.mean("SWITCH", air="quiet", arm="ARQoS 90 %")
    return verdict(
        NEVER,
        {f"frames, {arm}": value for arm, value in frames.items()},
        adaptive <= 1.1 * frames["BEQoS"] and adaptive <= 0.75 * frames["FRQoS"],
        f"Best effort brings {bare:.2f} on average in the quiet air, and ARQoS sends {switched:.0f} SWITCH "
        f"messages in a run. Beside FRQoS it saves {1 - adaptive / frames['FRQoS']:.0%} of the frames.",
        why_not="Counting costs no message: it is done where the samples arrive. But publishers that "
        "share a slot of the schedule bring less than the mean, and for those ARQoS switches.",
    )


def _calm(study: Study) -> Judged:
    arms = ("ARQoS 90 %", "one threshold")
    counts = {air: study.over("SWITCH", "arm", arms, air=air) for air in AIRS}
    return verdict(
        NEVER,
        counts,
        all(each["one threshold"] >= 1.5 * each["ARQoS 90 %"] for each in counts.values()),
        "One threshold makes "
        + ", ".join(f"{_times(each):.1f} times as many ({air})" for air, each in counts.items())
        + ".",
        why_not="A margin helps against chance, where PDR is near the agreement. Where it is far from it, "
        "the mode is the same with either.",
    )


def _assurance(study: Study) -> Judged:
    arms = ("ARQoS 90 %", "no assurance")
    found = {air: study.over("measured PDR", "arm", arms, air=air) for air in AIRS}
    return verdict(
        NEVER,
        found,
        any(each["ARQoS 90 %"] - each["no assurance"] >= 0.01 for each in found.values()),
        "Without the interval it is lower by "
        + ", ".join(f"{each['ARQoS 90 %'] - each['no assurance']:.3f} ({air})" for air, each in found.items())
        + ".",
        why_not="The interval waits for packets that come after a later one. Both modes keep order: a "
        "writer that repeats sends nothing else meanwhile (D28), and static routes do not overtake. So "
        "no packet is ever late in this sense, and the interval is idle; it would matter over routes "
        "that change.",
    )


def _nack(study: Study) -> Judged:
    pdr, frames = (study.over(name, "air", AIRS, arm="ARQoS 100 %") for name in ("PDR", "frames"))
    full = study.over("frames", "air", AIRS, arm="FRQoS")
    found = {a: {"PDR": pdr[a], "frames": frames[a], "frames, FRQoS": full[a]} for a in AIRS}
    delay = study.over("EED ms", "arm", ("ARQoS 100 %", "FRQoS"), air="noisy")
    return verdict(
        NEVER,
        found,
        all(each["PDR"] >= 0.999 and each["frames"] < each["frames, FRQoS"] for each in found.values()),
        f"The delay in the noisy air is {delay['ARQoS 100 %']:.0f} ms, with FRQoS {delay['FRQoS']:.0f} ms.",
        why_not="A receiver cannot miss what it never heard of, so the writer says what it sent last when "
        "a timeout (400 ms) passes in silence, and the receiver answers: at a sample a second these are "
        "as many messages as acknowledgements, and NACKs and repairs come on top. NACKs pay where "
        "several samples fall into one timeout.",
    )


def parameters(full: bool) -> dict[str, str]:
    lower, upper = thresholds(AGREED, TERMS.margin)
    return {
        "set-up": "as PRQoS: 5 × 10 nodes, 5 publishers drawn by the seed, a sample a second, IFS; "
        f"{1800 if full else 300} s; DefTDDS",
        "agreement": f"{AGREED:g} %: thresholds {lower:g} and {upper:g}; one threshold: {AGREED / 100:g}",
        "rounds": f"T {TERMS.round // SECOND} s, ATI {TERMS.assurance // SECOND} s, TI "
        f"{TERMS.pause // SECOND} s (the thesis gives no values)",
        "airs": "; ".join(
            f"{air}: {outer:.0%} of the frames lost"
            + (f", {middle:.0%} in the middle third" if middle != outer else "")
            for air, (base, outer, middle) in AIRS.items()
            if base == CLEAR
        )
        + f"; {show_link(setups.SPACING)['airs']}",
        "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items()),
        **{name: text for name, text in show_link(setups.SPACING).items() if name != "airs"},
    }


def panels() -> list[Panel]:
    def bars(*arms: str) -> list[CurveSpec]:
        bars = [(air, arm, colour) for air in AIRS for colour, arm in enumerate(arms)]
        return [CurveSpec(f"{air}, {arm}", {"air": air, "arm": arm}, colour) for air, arm, colour in bars]

    levels = bars("BEQoS", "ARQoS 90 %", "FRQoS")
    return [
        Panel("delivered", "PDR", "", levels),
        Panel("frames on the air", "frames", "", levels),
        Panel("SWITCH messages", "SWITCH", "", bars("ARQoS 90 %", "one threshold")),
    ]


EXPERIMENT = Design(
    "arqos",
    "adaptive reliability, evaluated  [Energy-aware DDS, appendix B]",
    points,
    parameters,
    RULES,
    judge_each(_judge_agreement, _cheap, _calm, _assurance, _nack),
    (
        "PDR",
        "worst minute",
        "minutes below 90 %",
        "SWITCH",
        "rounds reliable",
        "measured PDR",
        "measured PDR, best effort",
        "first alarm s",
        "EED ms",
        "frames",
        *(f"mJ, {rest}" for rest in RESTS),
    ),
    panels,
    shown=(
        "PDR",
        "worst minute",
        "minutes below 90 %",
        "SWITCH",
        "rounds reliable",
        "EED ms",
        "frames",
        "mJ, sleeping",
        "mJ, listening",
    ),
    extra=observe,
).experiment
