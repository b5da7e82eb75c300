"""What a node has asked of one neighbour: the operators that went there, and those that others cover.  [J9]

This is the store ``S^n`` that the neighbour keeps for the node, on the near side of the link: so a part
that is covered does not even cross it, as in the paper's example [J12].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.space import Rectangle, Region
from .covering import Box, Boxes, Filtering, Verdict
from .operator import Key, Operator, encloses

Shape = tuple[tuple[Key, ...], tuple[bool, ...]]
"""Only operators with the same keys, of which they want the same, are compared.  [J5]"""


class Question(NamedTuple):
    """Is the box covered by the boxes?"""

    box: Box
    boxes: Boxes


Ask = Callable[[Question], Verdict]


@dataclass(slots=True)
class Shelf:
    """Operators of one shape, in rows that can be compared at once."""

    operators: list[Operator] = field(default_factory=list)
    _bounds: Boxes = field(default_factory=lambda: np.empty((0, 0, 2)))
    _reach: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))

    def add(self, operator: Operator) -> None:
        """Put an operator at the end."""
        count = len(self.operators)
        if count == len(self._bounds):
            room = max(4, count)
            self._bounds = np.concatenate(
                (
                    self._bounds.reshape(count, len(operator.filters), 2),
                    np.empty((room, len(operator.filters), 2)),
                )
            )
            self._reach = np.concatenate((self._reach, np.empty((room, 2))))
        self._bounds[count] = bounds(operator)
        self._reach[count] = operator.within, operator.near
        self.operators.append(operator)

    def remove(self, operator: Operator) -> None:
        """Take an operator away."""
        at = self.operators.index(operator)
        del self.operators[at]
        rest = slice(at, len(self.operators))
        self._bounds[rest] = self._bounds[at + 1 : len(self.operators) + 1]
        self._reach[rest] = self._reach[at + 1 : len(self.operators) + 1]

    def of_all(self, sensor: str) -> Boxes:
        """The ranges of members that ask for what any sensor measures, or for this one's by its name."""
        rows = [i for i, member in enumerate(self.operators) if _names(member.region, sensor)]
        return self._bounds[rows]

    def question(self, operator: Operator) -> Question | None:
        """What to decide about an operator; nothing if no member can help to cover it.

        Members take part whose δt and δl are no smaller: every complex event that agrees for the operator
        agrees for them.  A simple operator needs no events to agree.
        """
        count = len(self.operators)
        if len(operator.filters) == 1 and operator.region is None:
            members = self._bounds[[i for i in range(count) if self.operators[i].region is None]]
            return Question(bounds(operator), members) if len(members) else None
        reaches = (self._reach[:count] >= (operator.within, operator.near)).all(axis=1)
        if operator.region is None and all(member.region is None for member in self.operators):
            members = self._bounds[:count][reaches]
            return Question(bounds(operator), members) if len(members) else None
        rows = [i for i in np.flatnonzero(reaches) if placed(self.operators[i].region, operator.region)]
        if not rows:
            return None
        places = np.stack([where(self.operators[i].region, operator) for i in rows])
        return Question(
            np.concatenate((bounds(operator), where(operator.region, operator))),
            np.concatenate((self._bounds[rows], places), axis=1),
        )


def bounds(operator: Operator) -> Box:
    """The ranges of values, in the order of the keys."""
    return np.array([(one.low, one.high) for one in operator.filters], float)


def placed(member: Region | None, region: Region | None) -> bool:
    """Whether a member's region can be said in ranges beside the region of an operator."""
    return encloses(member, region) or (
        _is_box(member) and _is_box(region) and _axes(member) == _axes(region)
    )


def where(member: Region | None, operator: Operator) -> Box:
    """The ranges of places: the region is one more attribute of every filter's event, not of all events
    together, since two sensors may be in different members' regions.  A member whose region encloses
    that of the operator allows every place."""
    region = operator.region
    if not _is_box(region):
        return np.empty((0, 2))
    assert region is not None and isinstance(region.shape, Rectangle)
    if member is not region and encloses(member, region):
        ranges = [(-np.inf, np.inf)] * len(region.shape.low)
    else:
        assert member is not None and isinstance(member.shape, Rectangle)
        ranges = list(zip(member.shape.low, member.shape.high, strict=True))
    return np.array(ranges * len(operator.filters), float)


def _names(region: Region | None, sensor: str) -> bool:
    return region is None or sensor in region.sources


def _is_box(region: Region | None) -> bool:
    return region is not None and isinstance(region.shape, Rectangle) and not region.sources


def _axes(region: Region | None) -> int:
    assert region is not None and isinstance(region.shape, Rectangle)
    return len(region.shape.low)


@dataclass(slots=True)
class Tally:
    """How often filtering was asked, and what it said."""

    asked: int = 0
    covered: int = 0
    undecided: int = 0


@dataclass(slots=True)
class Forwarded:
    """The operators that a neighbour was sent, and those that were not since the others cover them.

    One that several of the node's own operators need is held by each of them.
    """

    _holders: dict[Operator, set[Operator]] = field(default_factory=dict)
    _shelves: dict[Shape, Shelf] = field(default_factory=dict)
    _covered: dict[Shape, dict[Operator, None]] = field(default_factory=dict)

    def hold(self, operator: Operator, holder: Operator, ask: Ask | None) -> bool:
        """Need an operator; whether it must be sent."""
        holders = self._holders.setdefault(operator, set())
        holders.add(holder)
        return len(holders) == 1 and self._show(operator, ask)

    def release(self, operator: Operator, holder: Operator, ask: Ask | None) -> tuple[bool, list[Operator]]:
        """Need it no more; whether the neighbour must be told, and what it must be sent since it is not
        covered any more."""
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
        loose = [other for kin in self._helped(shape) for other in self._covered.pop(kin)]
        return True, [other for other in loose if self._show(other, ask)]

    def _helped(self, shape: Shape) -> list[Shape]:
        """The shapes that operators of this one help to cover, if any are covered."""
        keys, wanted = shape
        of_all = len(keys) == 1 and keys[0][1] is None
        return [
            kin
            for kin in self._covered
            if kin == shape
            or (of_all and kin[1] == wanted and len(kin[0]) == 1 and kin[0][0][0] == keys[0][0])
        ]

    def was_sent(self, operator: Operator) -> bool:
        """Whether the neighbour knows it."""
        return operator in self._holders and operator not in self._covered.get(
            (operator.keys, operator.wanted), {}
        )

    def _show(self, operator: Operator, ask: Ask | None) -> bool:
        shape = operator.keys, operator.wanted
        shelf = self._shelves.setdefault(shape, Shelf())
        if ask is not None:
            question = self._beside(operator, shelf.question(operator))
            if question is not None and ask(question) is Verdict.COVERED:
                self._covered.setdefault(shape, {})[operator] = None
                return False
        shelf.add(operator)
        return True

    def _beside(self, operator: Operator, question: Question | None) -> Question | None:
        """A simple operator on one sensor is compared with those on any sensor, too.  [J5, the exception]"""
        (attribute, sensor), *more = operator.keys
        if more or sensor is None or operator.region is not None:
            return question
        shelf = self._shelves.get((((attribute, None),), operator.wanted))
        if shelf is None or not len(others := shelf.of_all(sensor)):
            return question
        return Question(
            bounds(operator), others if question is None else np.concatenate((question.boxes, others))
        )


def asking(filtering: Filtering | None, chance: np.random.Generator, tally: Tally) -> Ask | None:
    """A filtering whose answers are counted; nothing if nothing is filtered."""
    if filtering is None:
        return None

    def ask(question: Question) -> Verdict:
        verdict = filtering.decide(question.box, question.boxes, chance)
        tally.asked += 1
        tally.covered += verdict is Verdict.COVERED
        tally.undecided += verdict is Verdict.UNDECIDED
        return verdict

    return ask
