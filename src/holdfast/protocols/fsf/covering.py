"""Filtering: is what an operator asks for asked for already?  [J4, J5]

A box has a closed range for each of its dimensions, and a member of a set of boxes a row of them.  A
filtering answers whether the box is covered; a wrong "covered" loses events, a wrong "not covered" costs
messages only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import UsageError
from ...kernels.gap import GAP, UNKNOWN, find_gap

AT_ONCE = 64
"""So many points are tried together."""

Box = NDArray[np.float64]
"""Rows of low and high."""
Boxes = NDArray[np.float64]
"""Boxes of one width."""
Flags = NDArray[np.bool_]


class Verdict(Enum):
    """What a filtering says; who did not find out must forward."""

    COVERED = "covered"
    NOT_COVERED = "not covered"
    UNDECIDED = "undecided"


class Filtering(Protocol):
    """A way to decide whether a box is covered; a value, so that it can be printed and compared."""

    def decide(self, box: Box, boxes: Boxes, chance: np.random.Generator, /) -> Verdict:
        """Whether ``boxes``, one or more, cover ``box``."""


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Covered by a single one of the boxes."""

    def decide(self, box: Box, boxes: Boxes, _chance: np.random.Generator) -> Verdict:
        """Covered if a box has all of it."""
        return Verdict.COVERED if _contained(box, boxes) else Verdict.NOT_COVERED


@dataclass(frozen=True, slots=True)
class Exact:
    """Covered by the union, without error; undecided after ``most`` comparisons of two boxes."""

    most: int = 1_000_000

    def decide(self, box: Box, boxes: Boxes, _chance: np.random.Generator) -> Verdict:
        """Covered if no point is left over; corners are tried first."""
        boxes = _meeting(box, boxes)
        if not len(boxes):
            return Verdict.NOT_COVERED
        if _contained(box, boxes):
            return Verdict.COVERED
        if not _each_in_some(_corners(box), boxes).all():
            return Verdict.NOT_COVERED
        found = find_gap.compiled(boxes, box, self.most)
        if found == UNKNOWN:
            return Verdict.UNDECIDED
        return Verdict.NOT_COVERED if found == GAP else Verdict.COVERED


@dataclass(frozen=True, slots=True)
class Probabilistic:
    """Covered by the union, unless one of some points by chance is in no box: set filtering.

    [Ouksel et al., Efficient Probabilistic Subsumption Checking; Middleware 2006]  If there is a gap, a
    point of the box is in it with a probability of at least ρ, the share of the smallest gap that the
    ends of boxes allow; ``ln error / ln (1 - ρ)`` points miss it with a probability of at most ``error``.
    Gaps may be thin: no more than ``most`` points are drawn, and the error is then larger.
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
        """Covered if no point by chance is in no box."""
        boxes = _meeting(box, boxes)
        if not len(boxes):
            return Verdict.NOT_COVERED
        if _contained(box, boxes):
            return Verdict.COVERED
        boxes = needed(box, boxes)
        if not len(boxes):
            return Verdict.NOT_COVERED
        low, high = _finite(box, boxes)
        left = self.trials(box, boxes)
        while left:
            points = chance.uniform(low, high, (min(left, AT_ONCE), len(box)))
            if not _each_in_some(points, boxes).all():
                return Verdict.NOT_COVERED
            left -= len(points)
        return Verdict.COVERED

    def trials(self, box: Box, boxes: Boxes) -> int:
        """How many points are drawn."""
        share = smallest_share(box, boxes)
        if share >= 1:
            return 1
        wanted = math.log(self.error) / math.log1p(-share) if share > 0 else math.inf
        return max(1, math.ceil(min(wanted, self.most)))


def smallest_share(box: Box, boxes: Boxes) -> float:
    """The least share of a box that a gap can have: in each dimension the least distance of two ends
    between which a gap can lie."""
    share = 1.0
    for j, (low, high) in enumerate(zip(*_finite(box, boxes), strict=True)):
        if low < high:
            highs, lows = boxes[:, j, 1], boxes[:, j, 0]
            begins = np.sort(np.append(highs[highs < high], low))
            ends = np.append(lows[lows > low], high)
            lengths = ends - begins[np.searchsorted(begins, ends) - 1]
            share *= lengths.min() / (high - low)
    return float(share)


def needed(box: Box, boxes: Boxes) -> Boxes:
    """The members without which the answer may be another: the minimal set of the cited work.

    A gap leaves every member on one of its free sides (where the box reaches further).  A member can
    always be left if one of its free sides is in the way of no other member's, or if it has as many free
    sides as there are members; and what can always be left does not matter.
    """
    while len(boxes):
        below, above = boxes[:, :, 0] > box[:, 0], boxes[:, :, 1] < box[:, 1]
        highest = _of_the_others(np.where(above, boxes[:, :, 1], -np.inf))
        lowest = -_of_the_others(np.where(below, -boxes[:, :, 0], -np.inf))
        free = (below & (boxes[:, :, 0] > highest)) | (above & (boxes[:, :, 1] < lowest))
        sides = below.sum(axis=1) + above.sum(axis=1)
        kept = ~free.any(axis=1) & (sides < len(boxes))
        if kept.all():
            break
        boxes = boxes[kept]
    return boxes


def _of_the_others(values: Box) -> Box:
    """For each row the greatest value of the other rows, column by column."""
    if len(values) == 1:
        return np.full_like(values, -np.inf)
    order = np.sort(values, axis=0)
    return np.where(values == order[-1], order[-2], order[-1])


def _meeting(box: Box, boxes: Boxes) -> Boxes:
    meets = (boxes[:, :, 0] <= box[:, 1]) & (boxes[:, :, 1] >= box[:, 0])
    return boxes[meets.all(axis=1)]


def _contained(box: Box, boxes: Boxes) -> bool:
    within = (boxes[:, :, 0] <= box[:, 0]) & (boxes[:, :, 1] >= box[:, 1])
    return bool(within.all(axis=1).any())


def _each_in_some(points: Box, boxes: Boxes) -> Flags:
    """For each point, a row, whether some box contains it."""
    inside: Flags = np.ones((len(points), len(boxes)), bool)
    for j in range(boxes.shape[1]):
        values = points[:, j : j + 1]
        inside &= (boxes[:, j, 0] <= values) & (values <= boxes[:, j, 1])
    return np.asarray(inside.any(axis=1))


def _corners(box: Box) -> Box:
    """The corners of a box, of a few dimensions of it if it has many; the rest is low."""
    few = 6
    ends = [box[j] if j < few else box[j, :1] for j in range(len(box))]
    return np.array(list(product(*ends)))


def _finite(box: Box, boxes: Boxes) -> tuple[Box, Box]:
    """The ends of a box; where it has none, as far as the members differ and one further."""
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
