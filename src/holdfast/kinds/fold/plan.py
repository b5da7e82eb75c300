"""Operators of checked folds, the cells of their members, and the explanations of folds.

The operators run one stage after the folded condition. To add another form of cells, add a function that
returns paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ...engine.operator import RETOLD, SCOPE, Operator, digest, topic_of_condition
from ...lang.expressions import batch as columns
from ...model.batch import AXES, values
from ...model.event import Event
from ...model.outline import corners
from ...model.space import Forest, Point
from ..derived import operator_over, scope_name
from .check import OWN
from .condition import FoldCondition
from .machine import CELL, MEMBER, FoldMachine, Path

Paths = Callable[[pa.RecordBatch], Sequence[Path]]
"""A function that returns the path of each event of a batch."""


def operator(condition: FoldCondition) -> Operator:
    """Return the operator of a fold."""
    return operator_over("fold", condition.name, machine(condition), meaning(condition))


def machine(condition: FoldCondition) -> FoldMachine:
    """Return the machine of a fold."""
    own = tuple(attribute.name for attribute in OWN)
    return FoldMachine(
        topic=topic_of_condition(condition.over),
        name=condition.name,
        own=own,
        most=condition.most,
        fewer=condition.fewer,
        paths=_through_regions(condition.forest) if condition.forest else _through_squares(condition.sides),
        corners=_of_regions(condition.forest) if condition.forest else _of_squares(condition.sides[0]),
        dropped=frozenset((*RETOLD, *own)),
        waits=condition.waits,
    )


# --- cells of a gazetteer -----------------------------------------------------------------------------


def _through_regions(forest: Forest) -> Paths:
    """Return a function that finds the path of each event of a batch.

    A path is the scope of the event, then the regions around it, the innermost first.
    """
    scoping = columns.scoping((), forest)

    def paths(batch: pa.RecordBatch) -> list[Path]:
        levels = [[*(CELL + name for name in keys.to_pylist()), ""] for _, keys in scoping(batch)]
        codes = np.array([codes for codes, _ in scoping(batch)]).T.tolist()
        return [
            (member, *(level[code] for level, code in zip(levels, row, strict=True) if code >= 0))
            for member, row in zip(_members(batch), codes, strict=True)
        ]

    return paths


def _of_regions(forest: Forest) -> Callable[[Event], Sequence[Point]]:
    """Return a function that returns the points of an event.

    These are its location or, without one, the corners of the smallest region around it that has a shape.
    """

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
    """Return a function that finds the path of each event through half-open squares, the smallest first.

    An event without coordinates lies in no square.
    """

    def paths(batch: pa.RecordBatch) -> list[Path]:
        spots = np.zeros((len(batch), 2))
        for i, axis in enumerate(AXES[:2]):
            if axis in batch.schema.names:
                column = batch.column(axis).fill_null(np.nan if i == 0 else 0.0)
                spots[:, i] = column.to_numpy(zero_copy_only=False)
            elif i == 0:
                spots[:, i] = np.nan
        lows = [(side, (np.floor(spots / side) * side).tolist()) for side in sides]
        levels = [[_square(side, low) for low in corners] for side, corners in lows]
        rows = zip(_members(batch), *levels, strict=True)
        return [(member,) if row[0] is None else tuple(row) for member, *row in rows]

    return paths


def _members(batch: pa.RecordBatch) -> list[str]:
    """Return the names of the members whose events are in a batch."""
    return [MEMBER + scope_name(scope) for scope in values(batch.column(SCOPE))]


def _square(side: float, low: Sequence[float]) -> str | None:
    """Return the name of a square with its side and its corner; `None` if a coordinate is missing."""
    x, y = low
    return f"{CELL}{side:g} m at {x + 0.0:.12g},{y + 0.0:.12g}" if x - x == 0 and y - y == 0 else None


def _of_squares(side: float) -> Callable[[Event], Sequence[Point]]:
    """Return a function that returns the corners of the smallest square around an event."""

    def found(event: Event) -> Sequence[Point]:
        x, y = (math.floor(c / side) * side for c in (*(event.location or ()), 0.0, 0.0)[:2])
        return ((x, y), (x + side, y), (x + side, y + side), (x, y + side))

    return found


def meaning(condition: FoldCondition) -> str:
    """Return a digest that is equal for folds with equal meaning.

    The name is part of the meaning, because it is the topic of the fold's events.
    """
    cells = condition.forest, condition.sides
    return digest((condition.over, condition.topic, condition.most, condition.fewer, *cells))


# --- in words ----------------------------------------------------------------------------------------


def describe(condition: FoldCondition) -> dict[str, str]:
    """Return the parts of a fold as text, by name, for the comparison of revisions."""
    return {
        "state that is folded": condition.over.name,
        "folds": f"more than {condition.most} siblings",
        "unfolds": f"fewer than {condition.fewer}",
        "cells": _cells(condition),
    }


def explain(condition: FoldCondition) -> Iterator[str]:
    """Yield an explanation of a fold, line by line."""
    words = describe(condition)
    yield f"fold {condition.name} over {condition.over.name}, evaluated in the stage after it"
    yield f"  folds     {words['folds']} active: one notification for the cell replaces theirs"
    yield f"  unfolds   {words['unfolds']} active: members are notified again by themselves"
    yield f"  cells     {_cells(condition)}, found for whole batches"
    yield "  reports   the number of active members and their polygon; again when the number doubles"
    yield "  looks at  starts and ends alone, no reading"
    if condition.waits:
        yield "  waits     for the watermark, because its input has timers"
    yield "  keeps     active members, each with the event that started it, and the cells around them"
    yield "  shuffle   all events go to one shard"


def _cells(condition: FoldCondition) -> str:
    if condition.forest is not None:
        return f"{len(condition.forest.regions)} regions"
    sides = [f"{side:g}" for side in condition.sides]
    return f"squares of {', '.join(sides[:-1])} and {sides[-1]} m"
