"""Filtering: tests whether earlier operators already request all events of a new operator. [J4, J5]

A box has a closed range for each of its dimensions. A set of boxes is an array with one row for each box. A
wrong "covered" loses events; a wrong "not covered" only costs messages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ....errors import UsageError
from ....kernels.gap import GAP, UNKNOWN, find_gap

AT_ONCE = 64
"""The number of random points that one step tests together."""

Box = NDArray[np.float64]
"""An array with a row ``(low, high)`` for each dimension."""
Boxes = NDArray[np.float64]
"""An array of boxes with the same number of dimensions."""
Flags = NDArray[np.bool_]


class Verdict(Enum):
    """The result of a covering test. An undecided operator must be forwarded."""

    COVERED = "covered"
    NOT_COVERED = "not covered"
    UNDECIDED = "undecided"


class CoveringTest(Protocol):
    """A method to decide whether boxes cover a box. Implementations are values that can be printed and
    compared.
    """

    def decide(self, box: Box, boxes: Boxes, chance: np.random.Generator, /) -> Verdict:
        """Decide whether one or more ``boxes`` cover ``box``."""


@dataclass(frozen=True, slots=True)
class PairwiseCovering:
    """A test whether a single box covers the box."""

    def decide(self, box: Box, boxes: Boxes, _chance: np.random.Generator) -> Verdict:
        """Decide whether a single one of ``boxes`` contains ``box``."""
        return Verdict.COVERED if _is_contained(box, boxes) else Verdict.NOT_COVERED


@dataclass(frozen=True, slots=True)
class ExactCovering:
    """An exact test whether the union of boxes covers the box; undecided after ``most`` comparisons of two
    boxes.
    """

    most: int = 1_000_000

    def decide(self, box: Box, boxes: Boxes, _chance: np.random.Generator) -> Verdict:
        """Decide whether the union of ``boxes`` contains every point of ``box``. Corners are tested first,
        because they are cheap.
        """
        boxes = _intersecting(box, boxes)
        if not len(boxes):
            return Verdict.NOT_COVERED
        if _is_contained(box, boxes):
            return Verdict.COVERED
        if not _is_in_any(_corners(box), boxes).all():
            return Verdict.NOT_COVERED
        found = find_gap.compiled(boxes, box, self.most)
        if found == UNKNOWN:
            return Verdict.UNDECIDED
        return Verdict.NOT_COVERED if found == GAP else Verdict.COVERED


@dataclass(frozen=True, slots=True)
class ProbabilisticCovering:
    """Set filtering: a test by random points whether the union of boxes covers the box.

    [Ouksel et al., Efficient Probabilistic Subsumption Checking; Middleware 2006]

    The box counts as covered unless a random point is in no other box. Let ρ be the share of the smallest gap
    that the ends of the boxes allow. If there is a gap, a random point is in it with a probability of at
    least ρ. So ``ln error / ln (1 - ρ)`` points miss the gap with a probability of at most ``error``. At most
    ``most`` points are drawn; for thin gaps the error is therefore larger.
    """

    error: float = 0.01
    most: int = 1_000

    def __post_init__(self) -> None:
        if not 0 < self.error < 1 or self.most < 1:
            raise UsageError(
                f"set filtering needs an error probability between 0 and 1 and at least one trial, "
                f"not {self.error:g} and {self.most}"
            )

    def decide(self, box: Box, boxes: Boxes, chance: np.random.Generator) -> Verdict:
        """Decide whether the union of ``boxes`` covers ``box``, by random points."""
        boxes = _intersecting(box, boxes)
        if not len(boxes):
            return Verdict.NOT_COVERED
        if _is_contained(box, boxes):
            return Verdict.COVERED
        boxes = relevant_boxes(box, boxes)
        if not len(boxes):
            return Verdict.NOT_COVERED
        low, high = _finite_ends(box, boxes)
        left = self.trials(box, boxes)
        while left:
            points = chance.uniform(low, high, (min(left, AT_ONCE), len(box)))
            if not _is_in_any(points, boxes).all():
                return Verdict.NOT_COVERED
            left -= len(points)
        return Verdict.COVERED

    def trials(self, box: Box, boxes: Boxes) -> int:
        """Return the number of random points to draw."""
        share = smallest_share(box, boxes)
        if share >= 1:
            return 1
        wanted = math.log(self.error) / math.log1p(-share) if share > 0 else math.inf
        return max(1, math.ceil(min(wanted, self.most)))


def smallest_share(box: Box, boxes: Boxes) -> float:
    """Return a lower bound of the share of ``box`` that a gap between ``boxes`` can have.

    The bound is a product over all dimensions. Each factor is the least distance of two ends between which a
    gap can lie, divided by the width of the box.
    """
    share = 1.0
    for j, (low, high) in enumerate(zip(*_finite_ends(box, boxes), strict=True)):
        if low < high:
            highs, lows = boxes[:, j, 1], boxes[:, j, 0]
            begins = np.sort(np.append(highs[highs < high], low))
            ends = np.append(lows[lows > low], high)
            lengths = ends - begins[np.searchsorted(begins, ends) - 1]
            share *= lengths.min() / (high - low)
    return float(share)


def relevant_boxes(box: Box, boxes: Boxes) -> Boxes:
    """Return the boxes that can affect the answer: the minimal set of the cited work.

    A free side of a box is a side beyond which the covered box extends and no other box conflicts. A box is
    redundant if it has a free side, or if it has at least as many sides as there are boxes.
    """
    while len(boxes):
        below, above = boxes[:, :, 0] > box[:, 0], boxes[:, :, 1] < box[:, 1]
        highest = _max_of_others(np.where(above, boxes[:, :, 1], -np.inf))
        lowest = -_max_of_others(np.where(below, -boxes[:, :, 0], -np.inf))
        free = (below & (boxes[:, :, 0] > highest)) | (above & (boxes[:, :, 1] < lowest))
        sides = below.sum(axis=1) + above.sum(axis=1)
        is_relevant = ~free.any(axis=1) & (sides < len(boxes))
        if is_relevant.all():
            break
        boxes = boxes[is_relevant]
    return boxes


def _max_of_others(values: Box) -> Box:
    """Return, for each row, the greatest value of all other rows in each column."""
    if len(values) == 1:
        return np.full_like(values, -np.inf)
    order = np.sort(values, axis=0)
    return np.where(values == order[-1], order[-2], order[-1])


def _intersecting(box: Box, boxes: Boxes) -> Boxes:
    """Return the boxes that intersect ``box``."""
    meets = (boxes[:, :, 0] <= box[:, 1]) & (boxes[:, :, 1] >= box[:, 0])
    return boxes[meets.all(axis=1)]


def _is_contained(box: Box, boxes: Boxes) -> bool:
    """Return whether a single one of ``boxes`` contains ``box``."""
    within = (boxes[:, :, 0] <= box[:, 0]) & (boxes[:, :, 1] >= box[:, 1])
    return bool(within.all(axis=1).any())


def _is_in_any(points: Box, boxes: Boxes) -> Flags:
    """Return, for each point (a row), whether a box contains it."""
    inside: Flags = np.ones((len(points), len(boxes)), bool)
    for j in range(boxes.shape[1]):
        values = points[:, j : j + 1]
        inside &= (boxes[:, j, 0] <= values) & (values <= boxes[:, j, 1])
    return np.asarray(inside.any(axis=1))


def _corners(box: Box) -> Box:
    """Return the corners of a box in its first six dimensions; the other dimensions use their low end."""
    few = 6
    ends = [box[j] if j < few else box[j, :1] for j in range(len(box))]
    return np.array(list(product(*ends)))


def _finite_ends(box: Box, boxes: Boxes) -> tuple[Box, Box]:
    """Return the ends of a box. A value just beyond all ends of ``boxes`` replaces an infinite end."""
    finite = np.where(np.isfinite(boxes), boxes, np.nan)
    low, high = box[:, 0].copy(), box[:, 1].copy()
    for j in np.flatnonzero(~np.isfinite(box).all(axis=1)):
        ends = finite[:, j][~np.isnan(finite[:, j])]
        known = np.concatenate((ends, box[j][np.isfinite(box[j])], [0.0] if not len(ends) else []))
        if not np.isfinite(low[j]):
            low[j] = known.min() - 1
        if not np.isfinite(high[j]):
            high[j] = known.max() + 1
    return low, high
