"""The approaches, as choices that each node makes.  [J10]

| approach             | not forwarded               | split            | sent back                        |
|----------------------|-----------------------------|------------------|----------------------------------|
| centralized          | –                           | –                | all events, to the central node  |
| naive                | –                           | by links         | a result set per subscription    |
| operator placement   | if one other covers it      | by links         | a result set per subscription    |
| multi-join           | if one other covers it      | filter by filter | events of binary joins, once     |
| filter-split-forward | if several others cover it  | by links         | events of complex events, once   |

In the centralized approach the central node sends result sets.

*Multi-join.*  A subscription travels whole up to the first node whose sources are behind several links, and
from there filter by filter, so that all events that satisfy a filter come to that node. There it is the ring
of binary joins of each filter, the main one, with the next, the filtering one: an event is forwarded if it
satisfies the main filter and an event that satisfies the filtering one lies within δt and δl of it, whether
or not the other filters are satisfied. From there to the user an event is forwarded whenever it satisfies a
filter. Nothing is compared again, so false positives arrive, including those of other subscriptions on the
same path.

The document does not define what happens on that path ("events follow matching subscriptions and
corresponding binary joins"), so there are two variants: in ``multi-join-named`` an event is forwarded only
for the subscriptions that joined it; in ``multi-join-again`` every node on the path compares as the first
did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....model.protocol import Peer
from .covering import CoveringTest, ExactCovering, PairwiseCovering, ProbabilisticCovering
from .joining import Join, join_complete, join_ring, join_single
from .operator import FsfOperator
from .sources import SensorSources
from .splitting import Parts, is_behind_one_link, split_by_filter, split_by_link


@dataclass(frozen=True, slots=True)
class FsfPolicy:
    """One approach."""

    filtering: CoveringTest | None
    splitting: Callable[[FsfOperator, Peer, SensorSources], Parts]
    joining: Callable[[FsfOperator, Peer, SensorSources], Join]
    result_sets: bool
    """Whether an event crosses a link once for each subscription, or once."""
    central: bool = False
    """Whether everything goes to one node; nothing is split then."""
    named: bool = False
    """Whether an event carries the subscriptions for which it crosses a link, and is forwarded for those
    alone."""


def join_all(operator: FsfOperator, *_: object) -> Join:
    """Join one event for each filter."""
    return join_complete if len(operator.filters) > 1 else join_single


def join_two(operator: FsfOperator, origin: Peer, sources: SensorSources) -> Join:
    """Use binary joins at the node at which the sources separate, and none after it."""
    is_joined = len(operator.filters) == 1 or is_behind_one_link(sources.ways(operator, origin))
    return join_single if is_joined else join_ring


def join_two_again(operator: FsfOperator, *_: object) -> Join:
    """Use binary joins at every node that an operator reaches whole."""
    return join_ring if len(operator.filters) > 1 else join_single


POLICIES: dict[str, FsfPolicy] = {
    "centralized": FsfPolicy(None, split_by_link, join_all, result_sets=True, central=True),
    "naive": FsfPolicy(None, split_by_link, join_all, result_sets=True),
    "operator-placement": FsfPolicy(PairwiseCovering(), split_by_link, join_all, result_sets=True),
    "multi-join": FsfPolicy(PairwiseCovering(), split_by_filter, join_two, result_sets=False),
    "multi-join-named": FsfPolicy(
        PairwiseCovering(), split_by_filter, join_two_again, result_sets=False, named=True
    ),
    "multi-join-again": FsfPolicy(PairwiseCovering(), split_by_filter, join_two_again, result_sets=False),
    "fsf": FsfPolicy(ProbabilisticCovering(), split_by_link, join_all, result_sets=False),
    "fsf-exact": FsfPolicy(ExactCovering(), split_by_link, join_all, result_sets=False),
}
