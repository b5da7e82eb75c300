"""The localized resolving algorithms: R for subscriptions, R' for their end. [F39, F41]

A logical broker decides for each quadrant of its scope, without messages to others. Events of the quadrant
either pass this broker on their way to a subscriber, or come directly from a broker below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....model.space import Point
from .area import NOTHING, Area, centroid, difference, intersection
from .tree import QuadScope, ScopeTree

ROUNDING = 1 + 1e-12
"""The tolerance for detours that result from rounding. A broker may lie on the straight line itself."""

Publishers = Callable[[Area], Sequence[Point]]
"""A function that returns the points from which events of an area come, as known to a broker."""


class ResolvedPart(NamedTuple):
    """An element of Θ: a part of a subscription, the broker that gets it, and the remaining ε.

    If the deciding broker itself gets the part, ε is the value for its own subscription below.
    """

    scope: QuadScope
    area: Area
    epsilon: float


@dataclass(frozen=True, slots=True)
class ResolveInputs:
    """The inputs of a decision: v, p(u), cov(u), and the known publishers."""

    tree: ScopeTree
    scope: QuadScope
    at: Point
    covered: Area
    advertised: Publishers
    """The addresses of advertisers of an area; they replace its centroid."""
    leaves: Publishers | None = None
    """The leaves of an area, if ε is guaranteed; otherwise ``None``. ε must be satisfied for events of each
    leaf, also on shared paths.
    """


def resolve(here: ResolveInputs, subscriber: Point, area: Area, epsilon: float) -> Iterator[ResolvedPart]:
    """Apply R: yield the parts of a subscription that are registered here, and the parts for each child."""
    if here.tree.is_leaf(here.scope):
        yield ResolvedPart(here.scope, area, 0.0)
        return
    for child in here.tree.children(here.scope):
        part = intersection(area, here.tree.cell(child))
        if part == NOTHING:
            continue
        onward = _remaining_epsilon(here, subscriber, part, epsilon)
        yield ResolvedPart(child, part, epsilon) if onward is None else ResolvedPart(here.scope, part, onward)


def _remaining_epsilon(here: ResolveInputs, subscriber: Point, part: Area, epsilon: float) -> float | None:
    """Return the ε that remains if events of a quadrant pass here; ``None`` if they must not."""
    left = difference(part, here.covered)
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


def withdraw(tree: ScopeTree, scope: QuadScope, area: Area, registered: Area) -> Iterator[ResolvedPart]:
    """Apply R': yield the part that ends here, and the parts for each child."""
    here = intersection(area, registered)
    if here:
        yield ResolvedPart(scope, here, 0.0)
    rest = difference(area, registered)
    for child in tree.children(scope):
        if part := intersection(rest, tree.cell(child)):
            yield ResolvedPart(child, part, 0.0)
