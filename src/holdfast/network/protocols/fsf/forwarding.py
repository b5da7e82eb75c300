"""The operators that a node requests of one neighbour, and the operators that these cover. [J9]

The cited work stores this set, ``S^n``, at the neighbour. Here it is on the near side of the link, so a
covered part does not even cross the link, as in the example of that work. [J12]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....model.space import Rectangle, Region
from .covering import Box, Boxes, CoveringTest, Verdict
from .operator import FsfOperator, Key, encloses

Shape = tuple[tuple[Key, ...], tuple[bool, ...]]
"""The keys of an operator, and which of them are wanted. Only operators of equal shape are compared. [J5]"""


class CoveringQuestion(NamedTuple):
    """The question whether ``boxes`` cover ``box``."""

    box: Box
    boxes: Boxes


Ask = Callable[[CoveringQuestion], Verdict]


@dataclass(slots=True)
class OperatorRows:
    """Operators of one shape as rows of arrays, so that they can be compared together."""

    operators: list[FsfOperator] = field(default_factory=list)
    _bounds: Boxes = field(default_factory=lambda: np.empty((0, 0, 2)))
    _reach: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))

    def add(self, operator: FsfOperator) -> None:
        """Append a row for an operator."""
        count = len(self.operators)
        if count == len(self._bounds):
            room, width = max(4, count), len(operator.filters)
            rows = self._bounds.reshape(count, width, 2)
            self._bounds = np.concatenate((rows, np.empty((room, width, 2))))
            self._reach = np.concatenate((self._reach, np.empty((room, 2))))
        self._bounds[count] = bounds(operator)
        self._reach[count] = operator.within, operator.near
        self.operators.append(operator)

    def remove(self, operator: FsfOperator) -> None:
        """Remove the row of an operator; later rows move up."""
        at = self.operators.index(operator)
        del self.operators[at]
        rest = slice(at, len(self.operators))
        self._bounds[rest] = self._bounds[at + 1 : len(self.operators) + 1]
        self._reach[rest] = self._reach[at + 1 : len(self.operators) + 1]

    def of_all(self, sensor: str) -> Boxes:
        """Return the ranges of operators that apply to a sensor: those without a region, or whose region
        names the sensor.
        """
        rows = [i for i, member in enumerate(self.operators) if _names(member.region, sensor)]
        return self._bounds[rows]

    def question(self, operator: FsfOperator) -> CoveringQuestion | None:
        """Return the covering question for an operator; ``None`` if no other operator can help to cover it.

        Only operators with at least the same δt and δl are compared, because every complex event of
        ``operator`` is also a complex event of theirs. An operator with one filter needs no joint events.
        """
        count = len(self.operators)
        if len(operator.filters) == 1 and operator.region is None:
            members = self._bounds[[i for i in range(count) if self.operators[i].region is None]]
            return CoveringQuestion(bounds(operator), members) if len(members) else None
        reaches = (self._reach[:count] >= (operator.within, operator.near)).all(axis=1)
        if operator.region is None and all(member.region is None for member in self.operators):
            members = self._bounds[:count][reaches]
            return CoveringQuestion(bounds(operator), members) if len(members) else None
        regions = {i: self.operators[i].region for i in np.flatnonzero(reaches)}
        rows = [i for i, region in regions.items() if is_comparable(region, operator.region)]
        if not rows:
            return None
        places = np.stack([region_ranges(regions[i], operator) for i in rows])
        box = np.concatenate((bounds(operator), region_ranges(operator.region, operator)))
        return CoveringQuestion(box, np.concatenate((self._bounds[rows], places), axis=1))


def bounds(operator: FsfOperator) -> Box:
    """Return the ranges of values of an operator's filters, in the order of its keys."""
    return np.array([(one.low, one.high) for one in operator.filters], float)


def is_comparable(member: Region | None, region: Region | None) -> bool:
    """Whether the regions of two operators can be compared as ranges."""
    return encloses(member, region) or 0 < len(_sides(member)) == len(_sides(region))


def region_ranges(member: Region | None, operator: FsfOperator) -> Box:
    """Return the ranges of an operator's region as further dimensions.

    The region is a further attribute of each filter's event, not of all events together, because two sensors
    may be in different regions. A region that encloses that of the operator allows every position.
    """
    region = operator.region
    sides = _sides(region)
    if not sides:
        return np.empty((0, 2))
    is_open = member is not region and encloses(member, region)
    ranges = [(-np.inf, np.inf)] * len(sides) if is_open else _sides(member)
    return np.array(ranges * len(operator.filters), float)


def _names(region: Region | None, sensor: str) -> bool:
    return region is None or sensor in region.sources


def _sides(region: Region | None) -> list[tuple[float, float]]:
    """Return the range of each axis of a region that is a box; empty for any other region."""
    if region is None or not isinstance(region.shape, Rectangle) or region.sources:
        return []
    return list(zip(region.shape.low, region.shape.high, strict=True))


@dataclass(slots=True)
class CoveringTally:
    """Counts of covering questions and of their answers."""

    asked: int = 0
    covered: int = 0
    undecided: int = 0


@dataclass(slots=True)
class ForwardedOperators:
    """The operators that a neighbour has received, and those that were not sent because others cover them.

    Several operators of the node may need the same part. Each of them is a holder of that part, and the part
    is released with its last holder.
    """

    _holders: dict[FsfOperator, set[FsfOperator]] = field(default_factory=dict)
    _shelves: dict[Shape, OperatorRows] = field(default_factory=dict)
    _covered: dict[Shape, dict[FsfOperator, None]] = field(default_factory=dict)

    def hold(self, operator: FsfOperator, holder: FsfOperator, ask: Ask | None) -> bool:
        """Add a holder of an operator; return whether it must be sent."""
        holders = self._holders.setdefault(operator, set())
        holders.add(holder)
        return len(holders) == 1 and self._add(operator, ask)

    def release(
        self, operator: FsfOperator, holder: FsfOperator, ask: Ask | None
    ) -> tuple[bool, list[FsfOperator]]:
        """Remove a holder of an operator.

        Returns whether the neighbour must be informed, and the operators that must be sent because they are
        covered no longer.
        """
        holders = self._holders[operator]
        holders.discard(holder)
        if holders:
            return False, []
        del self._holders[operator]
        shape = operator.keys, operator.wanted
        covered = self._covered.get(shape, {})
        if operator in covered:
            del covered[operator]
            return False, []
        self._shelves[shape].remove(operator)
        loose = [other for kin in self._shapes_helped(shape) for other in self._covered.pop(kin)]
        return True, [other for other in loose if self._add(other, ask)]

    def _shapes_helped(self, shape: Shape) -> list[Shape]:
        """Return the shapes of covered operators that operators of ``shape`` help to cover."""
        keys, wanted = shape
        of_all = len(keys) == 1 and keys[0][1] is None

        def is_helped(kin: Shape) -> bool:
            same_attribute = of_all and len(kin[0]) == 1 and kin[0][0][0] == keys[0][0]
            return kin == shape or (same_attribute and kin[1] == wanted)

        return list(filter(is_helped, self._covered))

    def was_sent(self, operator: FsfOperator) -> bool:
        """Return whether the neighbour has received the operator."""
        covered = self._covered.get((operator.keys, operator.wanted), {})
        return operator in self._holders and operator not in covered

    def _add(self, operator: FsfOperator, ask: Ask | None) -> bool:
        """Record an operator as covered or as sent. Return whether it must be sent."""
        shape = operator.keys, operator.wanted
        shelf = self._shelves.setdefault(shape, OperatorRows())
        if ask is not None:
            question = self._with_any_sensor(operator, shelf.question(operator))
            if question is not None and ask(question) is Verdict.COVERED:
                self._covered.setdefault(shape, {})[operator] = None
                return False
        shelf.add(operator)
        return True

    def _with_any_sensor(
        self, operator: FsfOperator, question: CoveringQuestion | None
    ) -> CoveringQuestion | None:
        """Extend the question for an operator with one filter on one sensor by operators on any sensor. [J5,
        the exception]
        """
        (attribute, sensor), *more = operator.keys
        if more or sensor is None or operator.region is not None:
            return question
        shelf = self._shelves.get((((attribute, None),), operator.wanted))
        if shelf is None or not len(others := shelf.of_all(sensor)):
            return question
        boxes = others if question is None else np.concatenate((question.boxes, others))
        return CoveringQuestion(bounds(operator), boxes)


def counting_test(
    filtering: CoveringTest | None, chance: np.random.Generator, tally: CoveringTally
) -> Ask | None:
    """Return a function that decides and counts covering questions; ``None`` for a policy without
    filtering.
    """
    if filtering is None:
        return None

    def ask(question: CoveringQuestion) -> Verdict:
        verdict = filtering.decide(question.box, question.boxes, chance)
        tally.asked += 1
        tally.covered += verdict is Verdict.COVERED
        tally.undecided += verdict is Verdict.UNDECIDED
        return verdict

    return ask
