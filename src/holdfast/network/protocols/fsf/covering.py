"""Filtering: whether the demand of an operator is covered by earlier operators.  [J4, J5]

A box has a closed range for each of its dimensions; a set of boxes is an array with a row for each box. A
wrong "covered" loses events, a wrong "not covered" only costs messages.
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
"""The number of points that are tested together."""

Box = NDArray[np.float64]
"""Rows of low and high."""
Boxes = NDArray[np.float64]
"""Boxes of one width."""
Flags = NDArray[np.bool_]


class Verdict(Enum):
    """The result of filtering; an operator that is undecided must be forwarded."""

    COVERED = "covered"
    NOT_COVERED = "not covered"
    UNDECIDED = "undecided"


class CoveringTest(Protocol):
    """A method to decide whether a box is covered; a value that can be printed and compared."""

    def decide(self, box: Box, boxes: Boxes, chance: np.random.Generator, /) -> Verdict:
        """Decide whether ``boxes``, one or more, cover ``box``."""


@dataclass(frozen=True, slots=True)
class PairwiseCovering:
    """Covering by a single box."""

    def decide(self, box: Box, boxes: Boxes, _chance: np.random.Generator) -> Verdict:
        """Decide whether one of the boxes contains the box."""
        return Verdict.COVERED if _is_contained(box, boxes) else Verdict.NOT_COVERED


@dataclass(frozen=True, slots=True)
class ExactCovering:
    """Covering by the union, without error; undecided after ``most`` comparisons of two boxes."""

    most: int = 1_000_000

    def decide(self, box: Box, boxes: Boxes, _chance: np.random.Generator) -> Verdict:
        """Decide whether the union contains every point; corners are tested first."""
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
    """Covering by the union, unless one of several random points is in no box: set filtering.

    [Ouksel et al., Efficient Probabilistic Subsumption Checking; Middleware 2006]  If there is a gap, a
    random point of the box is in it with a probability of at least ρ, the share of the smallest gap that the
    ends of boxes allow; ``ln error / ln (1 - ρ)`` points miss it with a probability of at most ``error``. For
    thin gaps at most ``most`` points are drawn, and the error is larger.
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
        """Decide by random points."""
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
        """Return the number of points to draw."""
        share = smallest_share(box, boxes)
        if share >= 1:
            return 1
        wanted = math.log(self.error) / math.log1p(-share) if share > 0 else math.inf
        return max(1, math.ceil(min(wanted, self.most)))


def smallest_share(box: Box, boxes: Boxes) -> float:
    """Return a lower bound of a gap's share of the box.

    It is the product, over all dimensions, of the least distance of two ends between which a gap can lie.
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

    A gap lies beyond a free side of every box (a side beyond which the covered box extends). A box is
    redundant if one of its free sides conflicts with no other box's, or if it has at least as many free sides
    as there are boxes.
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
    """Return, for each row, the greatest value of the other rows in each column."""
    if len(values) == 1:
        return np.full_like(values, -np.inf)
    order = np.sort(values, axis=0)
    return np.where(values == order[-1], order[-2], order[-1])


def _intersecting(box: Box, boxes: Boxes) -> Boxes:
    """Return the boxes that intersect a box."""
    meets = (boxes[:, :, 0] <= box[:, 1]) & (boxes[:, :, 1] >= box[:, 0])
    return boxes[meets.all(axis=1)]


def _is_contained(box: Box, boxes: Boxes) -> bool:
    """Whether a single box contains the box."""
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
    """Return the corners of a box, using at most six dimensions; the others are at their low end."""
    few = 6
    ends = [box[j] if j < few else box[j, :1] for j in range(len(box))]
    return np.array(list(product(*ends)))


def _finite_ends(box: Box, boxes: Boxes) -> tuple[Box, Box]:
    """Return the ends of a box; an infinite end is replaced by a value just beyond all ends of the boxes."""
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
