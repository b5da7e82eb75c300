"""Components of every kind, in columns: levels, those that tell at every event, those that hosts carry.

Each is measured beside the reference machine, which must tell the same of the first events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.engine.machine import Emission, transitions
from holdfast.kinds.component.compile import component_group
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.group import ComponentGroup
from holdfast.model.batch import TIME, times
from holdfast.model.event import Transition
from holdfast.model.instant import MILLISECOND, NEVER

from . import Row
from .traffic import BATCH, ROADS, traffic

EVENTS = 1_000_000
LOOKED_AT = 2_000  # the reference machine is measured on fewer
GOAL = 300_000
HOSTS, PLACES, SIZE = 10, 100, 1_000

Batches = dict[str, pa.RecordBatch]

_ROADS = "topic InductiveLoop (value float)\ntopic CarSpeed (value float mph)\n"
_ALIKE = "topic InductiveLoop (value float)\ntopic CarSpeed (value float)\n"
_LEVELS = """
state Slow A = avg CarSpeed over 60 s each location      enter A.value < 7 mph exit A.value > 15 mph
state Full A = avg InductiveLoop over 30 s each location enter A.value > 2.5   exit A.value < 1
state Jam
  A = Slow each location
  B = Full each location
  enter A.valid && A.status == ingress && B.valid && B.status == ingress
  exit  A.valid && A.status == egress || B.valid && B.status == egress
"""
_LASTING_JAM = _LEVELS.replace("B.status == ingress\n", "B.status == ingress for 30 s\n")
_EVERY = """
state Mean A = avg CarSpeed over 60 s each location enter A.value > -100 mph set level = A.value exit true
"""
_LATEST = """
state Each A = CarSpeed each location enter A.value > -100 mph set level = 2 * A.value exit true
"""
_ABOVE = f"""{_LATEST}
state Slow A = avg Each over 60 s each location enter A.level < 14 exit A.level > 30
"""
_LIMITS = """
state Slow
  A = CarSpeed each location
  B = InductiveLoop each location
  enter A.value < 7 mph && B.value else 3 > 2.5
  exit  A.value else 20 mph > 15 mph
"""
_BESIDE = """
state Slow
  A = CarSpeed each location
  B = InductiveLoop
  enter A.value < 7 mph && B.value > 2
  exit A.value > 15 mph
"""
_EPISODES = """
state Episode A = Jam each location enter A.level > 8 set open = 1 exit A.level < 2 set open = 0
"""
_MOVING = "topic Jam (level float)\ntopic User ()\n"


class Kind(NamedTuple):
    """A kind of component: a definition, and its readings."""

    definition: str
    readings: Callable[[int], Iterator[Batches]]


def _of_roads(events: int) -> Iterator[Batches]:
    return traffic(events, ROADS)


def journeys(events: int) -> Iterator[Batches]:
    """Readings of places that jam in waves, and every fifth event a step of somebody who walks in circles."""
    chance = np.random.default_rng(1)
    spots = chance.uniform(0, SIZE, (PLACES, 2))
    for first in range(0, events, BATCH):
        at = np.arange(first, min(first + BATCH, events)) * 10 * MILLISECOND
        walks = np.arange(len(at)) % 5 == 0
        place, host = chance.integers(0, PLACES, (~walks).sum()), chance.integers(0, HOSTS, walks.sum())
        angle = at[walks] / 600e6 + host
        level = 5 + 5 * np.sin(at[~walks] / 60e6 + place)
        xs, ys = SIZE * (0.5 + 0.4 * np.cos(angle)), SIZE * (0.5 + 0.4 * np.sin(angle))
        yield {
            "Jam": _batch(at[~walks], "place", place, *spots[place].T, level=level),
            "User": _batch(at[walks], "user", host, xs, ys),
        }


def _batch(
    at: np.ndarray, name: str, who: np.ndarray, x: np.ndarray, y: np.ndarray, **own: np.ndarray
) -> pa.RecordBatch:
    names = pa.array([f"{name}-{i}" for i in range(max(HOSTS, PLACES))])
    source = pa.DictionaryArray.from_arrays(pa.array(who.astype(np.int32)), names)
    fixed = {"time": pa.array(at).cast(TIME), "source": source, "sequence": pa.array(np.arange(len(at)))}
    return pa.RecordBatch.from_pydict({**fixed, "x": x, "y": y, **own})


KINDS = {
    "a component on two others": Kind(_ROADS + _LEVELS, _of_roads),
    "told at every reading, of the latest": Kind(
        _ROADS
        + "state Each A = CarSpeed each location enter A.value > -100 mph set level = 2 * A.value exit true",
        _of_roads,
    ),
    "told at every reading, of a window": Kind(_ROADS + _EVERY, _of_roads),
    "a window over what is told at every reading": Kind(_ROADS + _ABOVE, _of_roads),
    "what counts where there is nothing (else)": Kind(_ROADS + _LIMITS, _of_roads),
    "the mean of all time (ever)": Kind(
        _ROADS
        + "state Slow A = avg CarSpeed ever each location enter A.value < 20 mph exit A.value > 22 mph",
        _of_roads,
    ),
    f"the largest of {PLACES} places (max location)": Kind(
        _MOVING + "state High A = Jam max location enter A.level > 9.9999 exit A.level < 9.999", journeys
    ),
    f"the deviation of {PLACES} places (stddev location), told at every event": Kind(
        _MOVING + "state Apart A = Jam stddev location enter A.level > 0 exit true", journeys
    ),
    f"the sum over {PLACES} places of what each told last (whatever status)": Kind(
        _MOVING
        + _EPISODES
        + "state Many A = Episode sum location whatever status enter A.open >= 40 exit A.open < 40",
        journeys,
    ),
    "the larger of the latest start and end (max status)": Kind(
        _MOVING
        + _EPISODES
        + "state Both A = Episode each location max status enter A.open > 0 set most = A.level exit true",
        journeys,
    ),
    "the latest of all roads beside that of each": Kind(_ROADS + _BESIDE, _of_roads),
    f"each coordinate of {PLACES} places (each x)": Kind(
        _MOVING + "state Row A = Jam each x enter A.level > 8 exit A.level < 2", journeys
    ),
    "any of two topics, each road": Kind(
        _ALIKE
        + "state Low A = any of (CarSpeed, InductiveLoop) each location enter A.value < 0.2"
        + " exit A.value > 30",
        _of_roads,
    ),
    "the sum of two topics, each road": Kind(
        _ALIKE
        + "state Low A = sum of (CarSpeed, InductiveLoop) each location enter A.value < 7 exit A.value > 15",
        _of_roads,
    ),
    "a component on two others, with a guard over what is valid": Kind(_ROADS + _LASTING_JAM, _of_roads),
    "a guard over what was nearest five seconds ago": Kind(
        _ROADS
        + "state Slow A = CarSpeed at -5 s each location enter A.value < 7 mph for 10 s"
        + " exit A.value > 15 mph for 10 s",
        _of_roads,
    ),
    "closest to a point": Kind(
        _MOVING + "state Near A = Jam closest to (500, 500) enter A.level > 8 exit A.level < 2", journeys
    ),
    f"closest to each of {HOSTS} hosts that move": Kind(
        _MOVING + "state Near A = Jam closest to here enter A.level > 8 exit A.level < 2 here User", journeys
    ),
    f"within 50 m of each of {HOSTS} hosts that move": Kind(
        _MOVING + "state Near A = Jam within 50 m of here enter A.level > 8 exit A.level < 2 here User",
        journeys,
    ),
    f"each location, at most 50 m from each of {HOSTS} hosts that move": Kind(
        _MOVING
        + "state Near A = Jam each location enter A.level > 8 && |A.location - here| <= 50"
        + " exit A.level < 2 here User",
        journeys,
    ),
    f"all locations within 50 m of each of {HOSTS} hosts that move": Kind(
        _MOVING + "state Near A = all Jam within 50 m of here enter A.level > 8 exit A.level < 2 here User",
        journeys,
    ),
    f"any location within 50 m of each of {HOSTS} hosts that move, told at every event": Kind(
        _MOVING + "state Near A = any Jam within 50 m of here enter A.level > 8 exit true here User",
        journeys,
    ),
}


def rows(progress: Callable[[str], None]) -> Iterator[Row]:
    """A row for each kind."""
    for name, kind in KINDS.items():
        progress(name)
        yield _measure(name, kind)


def _measure(name: str, kind: Kind) -> Row:
    checked = check(parse(kind.definition))
    it = component_group(checked.of(ComponentCondition), checked.topics)
    few = list(kind.readings(LOOKED_AT))
    reference, expected = _run_timed(it.without_plans(), few)
    _, found = _run_timed(it, few)
    assert _transitions(it, found) == _transitions(it, expected), (
        f"{name}: the reference machine tells something else"
    )
    history = list(kind.readings(EVENTS))
    seconds, emissions = min((_run_timed(it, history) for _ in range(2)), key=lambda pair: pair[0])
    rate, theirs = _size(it, history) / seconds, _size(it, few) / reference
    detail = {
        "events": _size(it, history),
        "told": sum(len(one.single) + sum(map(len, one.rows.values())) for one in emissions),
        "in_columns": all(plan is not None for plan in it.plans),
        "reference_machine": theirs,
        "times_faster": rate / theirs,
    }
    return Row(f"{name}, of processor time", rate, "events/s", "≥ 300 k/s", rate >= GOAL, detail)


def _size(it: ComponentGroup, history: Iterable[Batches]) -> int:
    return sum(len(batch) for some in history for topic, batch in some.items() if topic in it.topics)


def _run_timed(it: ComponentGroup, history: Iterable[Batches]) -> tuple[float, list[Emission]]:
    """The processor time that it takes, and what it tells."""
    state, emissions = it.initial(), list[Emission]()
    start = time.process_time()
    for some in history:
        mine = {topic: batch for topic, batch in some.items() if topic in it.topics}
        state, emission = it.step(state, mine, min(int(times(batch)[-1]) for batch in mine.values()))
        emissions.append(emission)
    state, emission = it.step(state, {}, NEVER)
    return time.process_time() - start, [*emissions, emission]


def _transitions(it: ComponentGroup, emissions: Iterable[Emission]) -> list[Transition]:
    return list(chain.from_iterable(transitions(it.topics, one) for one in emissions))
