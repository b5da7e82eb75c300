"""A protocol alone on the air: what it says when nothing is read, frame by frame, for some of its cycles.

Whoever speaks to many at once, or has all say something anew, makes its own messages meet: they wait for one
another, collide, overflow a queue and go again.  No sum over single messages knows that.  What is said comes
again with every cycle, so a few stand for all; readings, of which there are months, are not played.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....model.event import Event
from ....model.instant import SECOND, Duration
from ..case import Case
from ..play import cast
from ..run import Run
from .hop import Floats
from .rehearsal import SETTLED, undisturbed

SETTLING, CYCLES = 2, 3
"""So many pass before, and at least so many are listened to."""
MESSAGES, FRAMES = 1500, 20_000
"""Either is enough."""


def aired(
    case: Case, seed: int, events: Sequence[Event], cycle: Duration, a_second: float
) -> tuple[Floats, float]:
    """Watts of each node, rest included, and frames a second, if so many messages are sent in one."""
    stage = cast(undisturbed(case), events)
    length = max(CYCLES * cycle, round(MESSAGES / a_second * SECOND))
    begins = SETTLED + SETTLING * cycle
    ends = begins + -(-length // cycle) * cycle
    silent = tuple(replace(each, start=ends + each.start, sampled=None) for each in stage.scenario.publishers)
    scenario = replace(stage.scenario, publishers=silent, warm_up=begins, duration=ends)
    run = Run(replace(stage, scenario=scenario), seed)
    network, before = run.network, list[float]()
    network.at(begins, lambda: before.extend(network.joules()))

    def enough() -> None:
        if network.medium.transmissions >= FRAMES:
            network.stop()

    for at in range(begins + CYCLES * cycle, ends, cycle):
        network.at(at, enough)
    measures = run.finish().measures
    seconds = measures["seconds"]
    return (np.array(network.joules()) - before) / seconds, measures["transmissions"] / seconds
