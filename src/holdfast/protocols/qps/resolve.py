"""The localized resolving algorithms: R for subscriptions, R' for their end.  [F39, F41]

A logical broker decides alone, for each quadrant of its scope, whether events shall pass it on their way to
a subscriber or come from a broker below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...model.space import Point
from .area import NOTHING, Area, centroid, meet, minus
from .tree import Scope, Tree

ROUNDING = 1 + 1e-12
"""A detour by so little is none: a broker may stand on the straight way itself."""

Publishers = Callable[[Area], Sequence[Point]]
"""Where events of a part of space come from, as far as a broker knows."""


class Resolved(NamedTuple):
    """One of Θ: a part of a subscription, the broker that has it now, and the ε that goes on with it.

    Where that is the deciding broker itself, ε is what its own subscription below may use.
    """

    scope: Scope
    area: Area
    epsilon: float


@dataclass(frozen=True, slots=True)
class Standing:
    """A logical broker that has to decide: v, p(u), cov(u), and what it knows of publishers."""

    tree: Tree
    scope: Scope
    at: Point
    covered: Area
    advertised: Publishers
    """The brokers of advertisers of an area; they stand in for its centroid."""
    leaves: Publishers | None = None
    """ε is guaranteed: it must hold for events of each leaf that the area reaches, also on a way that is
    shared already."""


def resolve(here: Standing, subscriber: Point, area: Area, epsilon: float) -> Iterator[Resolved]:
    """R: which part of a subscription is registered here, and which is for which child."""
    if here.tree.is_leaf(here.scope):
        yield Resolved(here.scope, area, 0.0)
        return
    for child in here.tree.children(here.scope):
        part = meet(area, here.tree.cell(child))
        if part == NOTHING:
            continue
        onward = _onward(here, subscriber, part, epsilon)
        yield Resolved(child, part, epsilon) if onward is None else Resolved(here.scope, part, onward)


def _onward(here: Standing, subscriber: Point, part: Area, epsilon: float) -> float | None:
    """The ε that is left for the way to here, if events of a quadrant may pass here; else nothing."""
    left = minus(part, here.covered)
    if here.leaves is not None:
        ends = here.leaves(part)
    else:
        ends = here.advertised(left or part) or [centroid(left or part)]
    own, shared = math.dist(subscriber, here.at), here.leaves is None and not left
    budgets = []
    for end in ends:
        straight, rest = math.dist(subscriber, end), math.dist(here.at, end)
        if (own if shared else own + rest) > epsilon * straight * ROUNDING > 0:
            return None
        budgets.append((epsilon * straight - own) / rest if rest else math.inf)
    return min(budgets)


def withdraw(tree: Tree, scope: Scope, area: Area, registered: Area) -> Iterator[Resolved]:
    """R': what ends here, and for which child the rest is."""
    here = meet(area, registered)
    if here:
        yield Resolved(scope, here, 0.0)
    rest = minus(area, registered)
    for child in tree.children(scope):
        if part := meet(rest, tree.cell(child)):
            yield Resolved(child, part, 0.0)
