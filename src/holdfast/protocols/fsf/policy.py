"""The approaches, as choices that one node makes.  [J10]

| approach | not forwarded | split | sent back |
|---|---|---|---|
| centralized | – | – | all events to the central node; from there result sets |
| naive | – | by links | result sets, one for each subscription |
| operator placement | what one operator covers | by links | result sets, one for each subscription |
| multi-join | what one operator covers | filter by filter | events of binary joins, once |
| filter-split-forward | what several operators cover | by links | events of complex events, once |

*Multi-join.*  Up to the first node at which its sources are not behind one link a subscription travels
whole, and from there filter by filter, so that all events that satisfy a filter come to that node.  There
it is the ring of binary joins of each filter, the main one, with the next, the filtering one: an event
goes on if it satisfies the main filter and some event that satisfies the filtering one lies within δt
and δl of it, whether or not the other filters are satisfied.  From there to the user an event goes on
whenever it satisfies a filter: nothing is compared again, so false positives arrive, those of other
subscriptions on the same way included.  The document does not say what happens there ("events follow
matching subscriptions and corresponding binary joins"), so there are two more: ``multi-join-named``, in
which an event goes on for the subscriptions that joined it only, and ``multi-join-again``, in which every
node on the way compares as the first did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...model.protocol import Peer
from .covering import Exact, Filtering, Pairwise, Probabilistic
from .joining import Join, alone, complete, ring
from .operator import Operator
from .sources import Sources
from .splitting import Parts, filter_by_filter, projected, together


@dataclass(frozen=True, slots=True)
class Policy:
    """One approach."""

    filtering: Filtering | None
    splitting: Callable[[Operator, Peer, Sources], Parts]
    joining: Callable[[Operator, Peer, Sources], Join]
    result_sets: bool
    """Whether an event crosses a link once for each subscription, or once."""
    central: bool = False
    """Whether everything goes to one node; nothing is then split."""
    named: bool = False
    """Whether an event says for which subscriptions it crosses a link, and goes on for those alone."""


def of_all(operator: Operator, *_: object) -> Join:
    """One event for each filter."""
    return complete if len(operator.filters) > 1 else alone


def of_two(operator: Operator, origin: Peer, sources: Sources) -> Join:
    """Binary joins at the node at which the sources part, none after it."""
    return alone if len(operator.filters) == 1 or together(sources.ways(operator, origin)) else ring


def of_two_again(operator: Operator, *_: object) -> Join:
    """Binary joins at every node that an operator has come to whole."""
    return ring if len(operator.filters) > 1 else alone


POLICIES: dict[str, Policy] = {
    "centralized": Policy(None, projected, of_all, result_sets=True, central=True),
    "naive": Policy(None, projected, of_all, result_sets=True),
    "operator-placement": Policy(Pairwise(), projected, of_all, result_sets=True),
    "multi-join": Policy(Pairwise(), filter_by_filter, of_two, result_sets=False),
    "multi-join-named": Policy(Pairwise(), filter_by_filter, of_two_again, result_sets=False, named=True),
    "multi-join-again": Policy(Pairwise(), filter_by_filter, of_two_again, result_sets=False),
    "fsf": Policy(Probabilistic(), projected, of_all, result_sets=False),
    "fsf-exact": Policy(Exact(), projected, of_all, result_sets=False),
}
