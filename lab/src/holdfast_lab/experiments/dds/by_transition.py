"""Reliability by transition compared with quality of service by topic.

A sample that starts or ends a state must arrive, any other need not. Rooms, radio and network are those of
``state-on-mote``. Quality of service by topic knows best effort, full, and partial above a threshold. By
transition the mote's filter sets the reliability bit. The base station receives all samples and runs the same
filter over those that arrive, or it receives transitions alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from holdfast.model.instant import MINUTE, SECOND, Instant
from holdfast.network.motes.conditions import Evaluator
from holdfast.network.motes.dds import Dds
from holdfast.network.motes.run import SimulationRun
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL, TRANSITION, Level
from holdfast.network.protocols.dds.level import partial as above

from ..experiment import Judged
from . import setups
from .air import CLEAR, FITTED, NOISY, show_link
from .measure import Measured, Point, point
from .report import CurveSpec, Design, Panel
from .rooms import BEGIN, BROKER, CONDITION, FILE, STATION, TOPIC, Course, Trace, wrong
from .state_on_mote import STEP, in_rooms, make_setup
from .study import Study

AIRS = (FITTED, CLEAR, NOISY)


class Band(NamedTuple):
    """A state and its hysteresis."""

    enter: float
    leave: float

    def __str__(self) -> str:
        return f"[value > {self.enter:g}; value < {self.leave:g}]"


MAIN, NARROW, HIGH = Band(600, 500), Band(600, 580), Band(800, 700)
"""The band of ``state-on-mote``, one with more transitions, and one that is entered less often."""

CHEAP, PARTLY, RELIABLE = "topic, best effort", "topic, partial", "topic, full"
TURNS, ONLY = "transition, rest best effort", "transition, rest not sent"
LEVELS: Mapping[str, Level | None] = {
    CHEAP: BEST_EFFORT,
    PARTLY: None,  # above the band's entrance
    RELIABLE: FULL,
    TURNS: TRANSITION,
    ONLY: BEST_EFFORT,  # of samples, which nobody asks for
}

RULES = {
    "every-turn": "Whatever the air loses, what turns a state arrives. Rule: in every run by transition, in "
    "both forms, every reading that starts or ends a state has arrived once at the end, and the base "
    "station's own filter has turned at exactly these.",
    "no-acks-inside": "Readings inside a state cost no acknowledgement. Rule: in every air there are at most "
    "two acknowledgements a turn in both forms, and full reliability sends one at least for each reading.",
    "cheap-as-best-effort": "It costs what best effort costs and knows what full reliability knows. Rule: in "
    "every air 'rest best effort' needs at most 5 % more frames than best effort by topic; in the fitted and "
    "the noisy air its belief is wrong for a shorter time than at best effort and with partial reliability, "
    "and for at most 1.1 times as long as with full reliability.",
    "cost-follows-turns": "The cost of what must arrive follows turns, not samples. Rule: in the fitted air, "
    "over the three bands, samples and acknowledgements a turn of 'rest not sent' differ by at most a factor "
    "of 1.5, while those of full reliability stay within 5 % of one another in all.",
}


def setup_with_band(arm: str, band: Band, trace: Trace, seed: int, **more: Any) -> setups.Setup:
    """Return the set-up of the rooms' motes, with the state of a band on them."""
    level = LEVELS[arm]
    given: dict[str, Any] = {
        "definition": f"state {CONDITION} on {TOPIC} {band} per source",
        "subscribers": ((STATION, CONDITION if arm == ONLY else TOPIC),),
        "protocol": Dds(
            mode="HyTDDS", level=above(band.enter) if level is None else level, rendezvous=(BROKER,)
        ),
    }
    return make_setup("samples, reliable", trace, seed, **given | more)


def points(trace: Trace) -> list[Point]:
    cells = [(air, MAIN, arm) for air in AIRS for arm in LEVELS]
    cells += [(FITTED, band, arm) for band in (NARROW, HIGH) for arm in (RELIABLE, TURNS, ONLY)]
    return [
        point({"air": air, "band": str(band), "arm": arm}, setup_with_band, arm, band, trace, step=STEP)
        for air, band, arm in cells
    ]


def known(run: SimulationRun) -> Measured:
    """Return what the base station knew of the rooms, compared with what the motes measured."""
    publisher = run.case.scenario.publishers[0]
    assert publisher.stop is not None
    operator = run.case.definition.operators()[CONDITION]
    mote, station = Evaluator(operator, CONDITION), Evaluator(operator, CONDITION)
    truth: dict[str, list[tuple[Instant, bool]]] = {event.source: [] for event in run.account.published}
    belief: dict[str, list[tuple[Instant, bool]]] = {source: [] for source in truth}
    found, turned = [], []
    for event in run.account.published:
        for transition in mote.react(event):
            truth[event.source].append((event.time, transition.status == "ingress"))
            turned.append((event.source, event.time))
    for arrived, sub, notification in run.account.notifications:
        for transition in station.react(notification.event) if sub.plain else (notification,):
            belief[notification.event.source].append((arrived, transition.status == "ingress"))
            found.append((notification.event.source, notification.event.time))
    hours = len(truth) * (publisher.stop - publisher.start) / (60 * MINUTE)
    return {
        "turns": len(turned),
        "turns lost": len(set(turned) - set(found)),
        "same turns": float(sorted(turned) == sorted(found)),
        "acks": run.account.messages["Ack"],
        "messages": run.account.messages["Data"] + run.account.messages["Ack"],
        "wrong s/h": _wrong(truth, belief, publisher.stop) / SECOND / hours,
    }


def _wrong(truth: Mapping[str, Course], belief: Mapping[str, Course], end: Instant) -> Instant:
    return sum(wrong(truth[source], belief[source], end) for source in truth)


def claims(study: Study) -> Sequence[Judged]:
    own = "our own design; DDS has its QoS by topic"

    def mean(quantity: str, arm: str, air: str = FITTED, band: Band = MAIN) -> float:
        return study.mean(quantity, air=air, band=str(band), arm=arm)

    both, bands = (TURNS, ONLY), (MAIN, NARROW, HIGH)
    exact = min(study.every("same turns", lambda at: at["arm"] in both))
    lost = {air: mean("turns lost", CHEAP, air) for air in AIRS}
    acks = {air: {arm: mean("acks", arm, air) for arm in (*both, RELIABLE)} for air in AIRS}
    turns = mean("turns", TURNS)
    frames = {air: mean("frames", TURNS, air) / mean("frames", CHEAP, air) for air in AIRS}
    astray = {air: {arm: mean("wrong s/h", arm, air) for arm in LEVELS} for air in AIRS}
    each = {str(band): mean("messages", ONLY, band=band) / mean("turns", ONLY, band=band) for band in bands}
    whole = {str(band): mean("messages", RELIABLE, band=band) for band in bands}
    return [
        Judged(
            own,
            {"all turns arrive in all runs": exact == 1.0, "turns a run": turns},
            exact == 1.0,
            "At best effort "
            + ", ".join(f"{lost[air]:.1f} turns a run are lost in the {air} air" for air in AIRS)
            + ".",
        ),
        Judged(
            own,
            {f"acknowledgements, {air}": acks[air] for air in AIRS},
            all(acks[air][arm] <= 2 * turns for air in AIRS for arm in both)
            and all(acks[air][RELIABLE] >= mean("issued", RELIABLE, air) for air in AIRS),
            f"A run has {turns:.0f} turns in {mean('issued', RELIABLE):,.0f} readings.",
        ),
        Judged(
            own,
            {f"{air}: frames beside best effort": frames[air] for air in AIRS}
            | {f"{air}: wrong s/h": astray[air] for air in AIRS},
            all(frames[air] <= 1.05 for air in AIRS)
            and all(
                astray[air][TURNS] < min(astray[air][CHEAP], astray[air][PARTLY])
                and astray[air][TURNS] <= 1.1 * astray[air][RELIABLE]
                for air in (FITTED, NOISY)
            ),
            f"With nothing but turns it is wrong for {astray[FITTED][ONLY]:.3g} s/h in the fitted air, with "
            f"{mean('frames', ONLY) / mean('frames', CHEAP):.1%} of the frames of best effort.",
        ),
        Judged(
            own,
            {"messages a turn, rest not sent": each, "messages in all, full reliability": whole},
            max(each.values()) <= 1.5 * min(each.values())
            and max(whole.values()) <= 1.05 * min(whole.values()),
            "The bands have "
            + ", ".join(f"{mean('turns', ONLY, band=band):.0f} turns ({band})" for band in bands)
            + ".",
        ),
    ]


def design(trace: Trace, hours: int) -> Design:
    return Design(
        NAME,
        TITLE,
        lambda _: points(trace),
        lambda _: {
            "data": f"{FILE}: CO2 of {len(trace.readings)} rooms, one-minute means, {hours} h from "
            f"{BEGIN} UTC",
            "bands": ", ".join(map(str, (MAIN, NARROW, HIGH))),
            "network": f"7 × 7 nodes on 100 × 100 m; rooms at {', '.join(map(str, trace.readings))}; base "
            f"station {STATION}, rendezvous node {BROKER}; HyTDDS; each room at a moment of its own",
            "levels": "partial: readings above the band's entrance are reliable; RTO 400 ms, ring of 20",
            "wrong s/h": "seconds in an hour for which the base station's belief about a room differs from "
            "the motes' readings",
            **show_link(STEP),
        },
        RULES,
        claims,
        ("turns", "turns lost", "same turns", "acks", "messages", "frames", "wrong s/h", "PDR",
         "mJ, sleeping", "mJ, listening"),
        panels,
        extra=known,
    )  # fmt: skip


def panels() -> list[Panel]:
    bars = [
        CurveSpec(f"{air}: {arm}", {"air": air, "band": str(MAIN), "arm": arm}, colour)
        for air in (FITTED, NOISY)
        for colour, arm in enumerate(LEVELS)
    ]
    return [
        Panel("acknowledgements", "acks", "", bars, log=True),
        Panel("frames on the air", "frames", "", bars, log=True),
        Panel("belief wrong, seconds an hour", "wrong s/h", "", bars, "s/h", log=True),
    ]


NAME = "reliability-by-transition"
TITLE = "reliability by transition beside QoS by topic, on real readings  [our own]"


EXPERIMENT = replace(design(Trace({}, 0), 0).experiment, run=partial(in_rooms, design))
