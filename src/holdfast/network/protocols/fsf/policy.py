"""The approaches, as values of `FsfPolicy` that determine the decisions of each node. [J10]

| approach             | not forwarded               | split            | sent back                        |
|----------------------|-----------------------------|------------------|----------------------------------|
| centralized          | –                           | –                | all events, to the central node  |
| naive                | –                           | by links         | a result set per subscription    |
| operator placement   | if one other covers it      | by links         | a result set per subscription    |
| multi-join           | if one other covers it      | filter by filter | events of binary joins, once     |
| filter-split-forward | if several others cover it  | by links         | events of complex events, once   |

In the centralized approach the central node sends result sets.

*Multi-join.* A subscription travels whole to the first node whose sources are behind several links. Beyond
that node it travels filter by filter, so all events that satisfy a filter come to that node. The node joins
each filter, the main one, with the next, the filtering one; these binary joins form a ring. It forwards an
event if the event satisfies the main filter and an event of the filtering one lies within δt and δl of it.
The other filters have no influence. On the path from there to the user, a node forwards every event that
satisfies a filter. No node joins the events again, so false positives arrive, including those of other
subscriptions on the same path.

The document does not define the behaviour on that path ("events follow matching subscriptions and
corresponding binary joins"), so there are two variants. In ``multi-join-named`` a node forwards an event only
for the subscriptions that joined it. In ``multi-join-again`` every node on the path joins as the first node
does.

To add an approach, add a row to `POLICIES`.
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
    """The decisions of one approach."""

    filtering: CoveringTest | None
    splitting: Callable[[FsfOperator, Peer, SensorSources], Parts]
    joining: Callable[[FsfOperator, Peer, SensorSources], Join]
    result_sets: bool
    """Whether an event crosses a link once for each subscription, instead of once for all."""
    central: bool = False
    """Whether all events and subscriptions go to one node. Nothing is split then."""
    named: bool = False
    """Whether an event names the subscriptions for which it crosses a link. It is then forwarded only for
    those.
    """


def join_all(operator: FsfOperator, *_: object) -> Join:
    """Return the join that requires one event for each filter."""
    return join_complete if len(operator.filters) > 1 else join_single


def join_two(operator: FsfOperator, origin: Peer, sources: SensorSources) -> Join:
    """Return binary joins for the node at which the sources separate, and no join for the nodes after it."""
    is_joined = len(operator.filters) == 1 or is_behind_one_link(sources.ways(operator, origin))
    return join_single if is_joined else join_ring


def join_two_again(operator: FsfOperator, *_: object) -> Join:
    """Return binary joins for every node that receives an operator whole."""
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
