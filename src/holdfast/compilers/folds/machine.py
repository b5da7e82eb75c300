"""Checked folds become machines and operators, of a stage after that of what they fold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...lang.condition import Condition, Folded
from ...lang.fold.check import OWN
from ...lang.ops import Truth
from ...machines.fold import CELL, MEMBER, Fold, Path
from ...model.batch import AXES, values
from ...model.event import Event
from ...model.outline import corners
from ...model.qos import TIMELY
from ...model.space import Forest, Point
from ...model.topic import Topic
from .. import columns
from ..operator import RETOLD, SCOPE, SINCE, STATUS, Operator, digest, told_as

FAMILY = "folds"

Paths = Callable[[pa.RecordBatch], Sequence[Path]]


def operators(folds: Iterable[Folded], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """A machine for each."""
    return [_operator(one) for one in folds]


def _operator(one: Folded) -> Operator:
    run = machine(one)
    return Operator(
        family=FAMILY,
        machine=run,
        names=((one.name,),),
        meanings=(meaning(one),),
        listens=((),),
        looks_at={run.topic.name: frozenset()},
        key=(FAMILY, digest(one.name)),
        heard=frozenset((run.topic.name,)),
        recounts=True,
    )


def machine(one: Folded) -> Fold:
    """The machine of a fold."""
    topic = told_as(one.over)
    own = tuple(a.name for a in OWN)
    return Fold(
        topic=topic,
        name=one.name,
        says=(STATUS, SCOPE, SINCE),
        own=(own[0], own[1], own[2]),
        most=one.most,
        fewer=one.fewer,
        paths=_through_regions(topic, one.forest) if one.forest else _through_squares(one.sides),
        corners=_of_regions(one.forest) if one.forest else _of_squares(one.sides[0]),
        dropped=frozenset((*RETOLD, *own)),
        is_timed=one.waits,
    )


# --- cells of a gazetteer -----------------------------------------------------------------------------


def _through_regions(topic: Topic, forest: Forest) -> Paths:
    """A member is a leaf by itself; around it are the regions, the innermost first."""
    place = Condition("", topic, Truth(True), Truth(False), (), forest, TIMELY)
    scoping = columns.scoping(place)

    def paths(batch: pa.RecordBatch) -> list[Path]:
        members = [MEMBER + ("" if scope is None else str(scope)) for scope in values(batch.column(SCOPE))]
        levels = [[*(CELL + name for name in keys.to_pylist()), ""] for _, keys in scoping(batch)]
        codes = np.array([codes for codes, _ in scoping(batch)]).T.tolist()
        return [
            (member, *(level[code] for level, code in zip(levels, row, strict=True) if code >= 0))
            for member, row in zip(members, codes, strict=True)
        ]

    return paths


def _of_regions(forest: Forest) -> Callable[[Event], Sequence[Point]]:
    """Where a member itself is, else the smallest region around it that has a shape."""

    def found(event: Event) -> Sequence[Point]:
        if event.location is not None:
            return (event.location,)
        at = forest.locate(event.place, event.source, None)
        shapes = (forest.regions[i].shape for i in forest.chains[at]) if at >= 0 else ()
        shape = next((shape for shape in shapes if shape is not None), None)
        return () if shape is None else corners(shape)

    return found


# --- cells of a quadtree ------------------------------------------------------------------------------


def _through_squares(sides: Sequence[float]) -> Paths:
    """Half-open squares from the smallest to the largest; a member without coordinates is in none."""

    def paths(batch: pa.RecordBatch) -> list[Path]:
        spots = np.zeros((len(batch), 2))
        for i, axis in enumerate(AXES[:2]):
            if axis in batch.schema.names:
                spots[:, i] = _numbers(batch.column(axis), missing=np.nan if i == 0 else 0.0)
            elif i == 0:
                spots[:, i] = np.nan
        members = [MEMBER + ("" if scope is None else str(scope)) for scope in values(batch.column(SCOPE))]
        levels = [[_square(side, low) for low in _lows(spots, side)] for side in sides]
        return [
            (member,) if row[0] is None else (row[0], *row[1:])
            for member, *row in zip(members, *levels, strict=True)
        ]

    return paths


def _numbers(column: pa.Array, missing: float) -> np.ndarray:
    return column.fill_null(missing).to_numpy(zero_copy_only=False)


def _lows(spots: np.ndarray, side: float) -> list[list[float]]:
    """The lower corner of the square of each spot."""
    return (np.floor(spots / side) * side).tolist()


def _square(side: float, low: Sequence[float]) -> str | None:
    """The name of a square: its side, and its corner."""
    x, y = low
    return f"{CELL}{side:g} m at {x + 0.0:.12g},{y + 0.0:.12g}" if x - x == 0 and y - y == 0 else None


def _of_squares(side: float) -> Callable[[Event], Sequence[Point]]:
    """The corners of the smallest square around a member."""

    def found(event: Event) -> Sequence[Point]:
        x, y = (math.floor(c / side) * side for c in (*(event.location or ()), 0.0, 0.0)[:2])
        return ((x, y), (x + side, y), (x + side, y + side), (x, y + side))

    return found


def meaning(one: Folded) -> str:
    """Equal for folds that mean the same; what they tell has their name."""
    return digest((one.over, one.topic, one.most, one.fewer, one.forest, one.sides))


# --- in words ----------------------------------------------------------------------------------------


def in_words(one: Folded) -> dict[str, str]:
    """What a fold says, to tell what has changed."""
    return {
        "state that is folded": one.over.name,
        "folds": f"more than {one.most} siblings",
        "unfolds": f"fewer than {one.fewer}",
        "cells": _cells(one),
    }


def explained(folds: Sequence[Folded]) -> Iterator[str]:
    """The plan of folds, line by line."""
    return ("\n".join(_plan(one)) for one in folds)


def _plan(one: Folded) -> Iterator[str]:
    said = in_words(one)
    yield f"fold {one.name} over {one.over.name}, which it hears in a stage after it"
    yield f"  folds     {said['folds']} hold: the cell is told in their place"
    yield f"  unfolds   {said['unfolds']} hold: what goes on is told again"
    yield f"  cells     {_cells(one)}, found for whole batches"
    yield "  tells     how many hold, the polygon around them; again when there are twice as many"
    yield "  looks at  starts and ends alone, no reading"
    if one.waits:
        yield "  waits     until a moment is over, as what it folds speaks by time"
    yield "  keeps     what holds, with the event that started it, and the cells around it"
    yield "  shuffle   all meet in one place"


def _cells(one: Folded) -> str:
    if one.forest is not None:
        return f"{len(one.forest.regions)} regions"
    sides = [f"{side:g}" for side in one.sides]
    return f"squares of {', '.join(sides[:-1])} and {sides[-1]} m"
