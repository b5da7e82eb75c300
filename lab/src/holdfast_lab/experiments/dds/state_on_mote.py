"""The saving by a state filter on the publisher's node: only starts and ends are sent, reliably.

The readings are real: CO2 in rooms of an office building, a mean for each minute. A base station must know
which rooms are stuffy. It can receive every sample, at best effort, reliably, or reliably above a threshold,
and evaluate the condition itself. Or the condition runs on the motes, and a transition is sent reliably while
other readings are not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.model.instant import MINUTE, SECOND
from holdfast.network.motes.dds import Dds
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL, Level
from holdfast.network.protocols.dds.level import partial as above

from ..data import locate
from ..experiment import Judged, Progress, Result
from . import setups
from .air import CLEAR, FITTED, NOISY, show_link
from .measure import RESTS, Point, point
from .report import CurveSpec, Design, Panel, run, verdict
from .rooms import (
    BEGIN,
    BROKER,
    CONDITION,
    DEFINITION,
    ENTER,
    FILE,
    HOURS,
    ROOMS,
    STATION,
    TOPIC,
    Trace,
    belief,
    read,
)
from .study import Study

AIRS = (FITTED, CLEAR, NOISY)
STEP = 100 / 6

ARMS: Mapping[str, Level] = {
    "samples, best effort": BEST_EFFORT,
    "samples, partial": above(ENTER),
    "samples, reliable": FULL,
    "states on motes": FULL,
}
STATES = "states on motes"

RULES = {
    "same-answer": "States on motes are those of a filter over all readings. Rule: in every run the base "
    "station gets exactly the transitions of the readings, each once.",
    "messages-saved": "Only what matters travels. Rule: states on motes need at most a tenth of the frames "
    "of reliable samples, in every air.",
    "joules-saved": "Energy falls with the messages. Rule: sleeping at rest states on motes use at most "
    "half of the energy of reliable samples, in every air; listening at rest the saving is told as well.",
    "better-than-best-effort": "Meaning is cheaper and better than best effort. Rule: in every air states "
    "on motes need fewer frames than samples at best effort, and in the fitted and the noisy one what the "
    "base station believes is wrong for a shorter time.",
}


def make_setup(arm: str, trace: Trace, seed: int, **more: Any) -> setups.Setup:
    """Return the set-up: rooms publish each minute, each at a time of its own; the base station
    subscribes."""
    minutes = len(next(iter(trace.readings.values())))
    given: dict[str, Any] = {
        "rows": setups.SIDE,
        "columns": setups.SIDE,
        "spacing": STEP,
        "definition": DEFINITION,
        "publishers": {TOPIC: tuple(trace.readings)},
        "subscribers": ((STATION, CONDITION if arm == STATES else TOPIC),),
        "protocol": Dds(mode="HyTDDS", level=ARMS[arm], rendezvous=(BROKER,)),
        "ipi": MINUTE,
        "phase": "random",
        "readings": trace,
        "start": trace.start,
        "duration": minutes * MINUTE,
        "seed": seed,
    }
    return setups.Setup(**given | more)


def points(trace: Trace) -> list[Point]:
    keys = [{"air": air, "arm": arm} for air in AIRS for arm in ARMS]
    return [point(key, make_setup, key["arm"], trace, step=STEP) for key in keys]


def claims(study: Study) -> Sequence[Judged]:
    def mean(quantity: str, air: str, arm: str = STATES) -> float:
        return study.mean(quantity, air=air, arm=arm)

    reliable, cheap, partly = "samples, reliable", "samples, best effort", "samples, partial"
    share = {air: mean("frames", air) / mean("frames", air, reliable) for air in AIRS}
    cells = {(rest, air): f"mJ, {rest}" for rest in RESTS for air in AIRS}
    energy = {(rest, air): mean(mj, air) / mean(mj, air, reliable) for (rest, air), mj in cells.items()}
    exact = min(study.every("same", lambda at: at["arm"] == STATES))
    worse = {air: {arm: mean("wrong s/h", air, arm) for arm in ARMS} for air in AIRS}
    fewer = {air: mean("frames", air) / mean("frames", air, cheap) for air in AIRS}
    resting = mean("resting mJ", CLEAR)
    rest_share = resting / mean("mJ, sleeping", CLEAR)
    traffic = (mean("mJ, sleeping", CLEAR) - resting) / (mean("mJ, sleeping", CLEAR, reliable) - resting)
    own = "our own design; the thesis leaves it to future work (L1389)"
    return [
        verdict(
            own,
            {"runs in which they are the same": exact == 1.0, "transitions": mean("transitions", CLEAR)},
            exact == 1.0,
            f"{mean('issued', CLEAR):,.0f} readings hold {mean('transitions', CLEAR):.0f} transitions.",
            why="A room's own samples come in order on its own mote, so the filter there has every "
            "reading; its transitions then travel with FRQoS, whatever the level of the topic is.",
        ),
        verdict(
            own,
            {f"frames, share, {air}": value for air, value in share.items()},
            all(value <= 0.1 for value in share.values()),
            "States on motes need "
            + ", ".join(f"{mean('frames', air):,.0f} frames in the {air} air" for air in AIRS)
            + ".",
            why="What is left is mostly discovery: the subscription is said ten times, and told to "
            "every publisher each time.",
        ),
        verdict(
            own,
            {f"{rest}, {air}, share": value for (rest, air), value in energy.items()},
            all(energy["sleeping", air] <= 0.5 for air in AIRS),
            f"Nodes that sleep all the time would use {rest_share:.0%} of what states on motes use; what "
            f"the messages themselves cost falls to {traffic:.1%}.",
            why_not="Sleeping nodes draw 30 µW, and that is most of what is left. Listening nodes draw 71 "
            "mW, and no message that is not sent saves anything. Fewer messages save energy only where "
            "radios may sleep.",
        ),
        verdict(
            own,
            {
                air: {
                    "frames, share": fewer[air],
                    "wrong s/h": worse[air][STATES],
                    "best effort, wrong s/h": worse[air][cheap],
                }
                for air in AIRS
            },
            all(fewer[air] < 1 for air in AIRS)
            and all(worse[air][STATES] < worse[air][cheap] for air in (FITTED, NOISY)),
            f"With partial reliability it is wrong for {worse[FITTED][partly]:.2f} s/h in the fitted air and "
            f"{worse[NOISY][partly]:.2f} s/h in the noisy one.",
            why="In the clear air nothing is lost. In the others a lost sample leaves the base "
            "station wrong until the next minute's. Partial reliability protects high readings and so "
            "the starts, but not the ends, which are low ones: a threshold on values does not know what "
            "a reading means.",
        ),
    ]


def design(trace: Trace, hours: int) -> Design:
    rooms = len(trace.readings)
    return Design(
        NAME,
        TITLE,
        lambda _: points(trace),
        lambda _: {
            "data": f"{FILE}: CO2 of {rooms} rooms, one-minute means, {hours} h from {BEGIN} UTC",
            "condition": DEFINITION,
            "network": f"7 × 7 nodes on 100 × 100 m; rooms at {', '.join(map(str, trace.readings))}; base "
            f"station {STATION}, rendezvous node {BROKER}; HyTDDS; each room at a moment of its own",
            "levels": f"partial: readings above {ENTER:g} are reliable; RTO 400 ms, ring of 20",
            "wrong s/h": "seconds in an hour for which the base station's belief about a room differs from "
            "the motes' readings",
            "rest states": "; ".join(f"{name}: {rest}" for name, rest in RESTS.items()),
            **show_link(STEP),
        },
        RULES,
        claims,
        (
            "frames",
            "messages",
            "transitions",
            "same",
            "resting mJ",
            "wrong s/h",
            "PDR",
            "EED ms",
            *(f"mJ, {rest}" for rest in RESTS),
        ),
        panels,
        shown=("messages", "frames", "wrong s/h", "PDR", "EED ms", *(f"mJ, {rest}" for rest in RESTS)),
        extra=belief,
    )


def panels() -> list[Panel]:
    cells = [(air, arm, colour) for air in AIRS for colour, arm in enumerate(ARMS)]
    bars = [CurveSpec(f"{air}: {arm}", {"air": air, "arm": arm}, colour) for air, arm, colour in cells]
    return [
        Panel("frames on the air", "frames", "", bars),
        Panel("energy, sleeping at rest", "mJ, sleeping", "", bars, "mJ"),
        Panel("belief wrong, seconds an hour", "wrong s/h", "", bars, "s/h"),
    ]


NAME = "state-on-mote"
TITLE = "state filters on motes, on real readings  [Energy-aware DDS, future work]"


def in_rooms(
    design: Callable[[Trace, int], Design], data: Path | None, full: bool, progress: Progress
) -> Result:
    """Run a working day of several rooms; with ``full`` a whole day of twice as many."""
    progress("reading")
    rooms, hours = (2 * ROOMS, 24) if full else (ROOMS, HOURS)
    trace = Trace(read(locate(FILE, data), rooms, hours), 15 * SECOND)
    return run(design(trace, hours), data, full, progress)


EXPERIMENT = replace(design(Trace({}, 0), 0).experiment, run=partial(in_rooms, design))
