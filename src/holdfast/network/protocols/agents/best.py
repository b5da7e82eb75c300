"""The least of several sums: which alternative is best, and when another is clearly better. [B63, B65]

The agents are observers and a mediator, as for one sum. Another alternative is reported when its sum is at
least ``by`` less than the sum of the present one. The distance of an alternative from that point is room for
both sums to move. The present alternative gets half of the least such distance. Each other alternative gets
the remainder of its own distance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, chain

from ....model.relation import Relation, Term
from .hierarchy import NO_VOLATILITY, RESERVE, SumMediator, TermObserver, by_observer, observers
from .talk import AgentKnowledge, AgentOutputs, AgentReport


@dataclass
class BestMediator(SumMediator):
    """The mediator that knows all sums. ``alternatives`` lists the observers of each alternative."""

    alternatives: tuple[tuple[str, ...], ...] = ()
    present: int | None = None
    in_doubt: frozenset[int] = field(default_factory=frozenset)
    """The alternatives that may have been reported as the best one."""

    def sums(self) -> list[float]:
        """Return the sum of each alternative from the last reported values."""
        return [self.sum_of(names) for names in self.alternatives]

    def _change_report(self) -> AgentOutputs:
        """Return the reports if another alternative has become the best."""
        sums = self.sums()
        if any(total != total for total in sums):
            return []
        least = min(sums)
        if self.present is not None and not least <= sums[self.present] - self.relation.by:
            return []
        best, previous = sums.index(least), self.present
        self.present, self.turns = best, self.turns + 1
        ended, self.in_doubt = self.in_doubt - {best}, frozenset()
        if previous is not None and previous != best:
            ended |= {previous}
        elif previous == best:
            return []
        by, reading = self._latest()
        names = self.relation.names
        ends: AgentOutputs = [AgentReport("egress", by, reading, sums[i], names[i]) for i in sorted(ended)]
        return [*ends, AgentReport("ingress", by, reading, least, names[best])]

    def _ranges(self) -> dict[str, float]:
        """Return the range of each observer in which it sends nothing."""
        sums, present = self.sums(), self.present
        if present is None or any(total != total for total in sums):
            return dict.fromkeys(self.members, 0.0)
        edge = sums[present] - self.relation.by
        others = {i: total for i, total in enumerate(sums) if i != present}
        rooms = {i: max(0.0, s - edge - 1e-9 * (abs(s) + abs(edge))) for i, s in others.items()}
        present_room = min(rooms.values(), default=math.inf) / 2
        ranges = {present: min(present_room, 1e300)} | {i: room - present_room for i, room in rooms.items()}
        return {
            name: ranges[i] * (1 - RESERVE) * self._share(name, names)
            for i, names in enumerate(self.alternatives)
            for name in names
        }

    def _from_cache(self, _sender: str) -> float | None:
        """Return ``None``: the reserve of one alternative cannot be given to another without new values."""
        return None

    def knowledge(self) -> AgentKnowledge:
        return AgentKnowledge(self.turns, self.present, tuple(sorted(self.in_doubt)))

    def adopt(self, knowledge: AgentKnowledge) -> None:
        self.turns, self.present = knowledge.turns, knowledge.bit
        self.in_doubt = frozenset(knowledge.doubted)

    def on_lost(self, other: str) -> AgentOutputs:
        self.on_partner_changed(other)
        self.turns += 1
        was, self.present = self.present, None
        if was is None:
            return []
        self.in_doubt |= {was}
        return [AgentReport("unknown", other, None, math.nan, self.relation.names[was])]

    def mark_unknown(self) -> None:
        self.present, self.turns = None, self.turns + 1
        self.in_doubt = frozenset(range(len(self.alternatives)))


def best_of(
    relation: Relation, terms: tuple[tuple[Term, ...], ...], moves: Mapping[str, float] = NO_VOLATILITY
) -> list[TermObserver | SumMediator]:
    """Build one mediator, beside the first source, and an observer for each term of each alternative."""
    below = observers(tuple(chain.from_iterable(terms)))
    names = tuple(observer.name for observer in below)
    ends = list(accumulate(map(len, terms)))
    named = tuple(names[end - len(part) : end] for part, end in zip(terms, ends, strict=True))
    top, parameters = below[0].mediator, by_observer(below, moves)
    return [*below, BestMediator(top, names, relation, alternatives=named, **parameters)]
