"""The best of several sums: which is the least, and when another is so much less.  [B63, B65]

Observers and a mediator as for one sum.  Another alternative is told when it is at least ``by`` less than the
present one; so of each other alternative the distance from there is room for it and the present one together.
The present one takes half of the least such room, and each other what is left of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, chain

from ...model.relation import Relation, Term
from .hierarchy import KEPT, NONE, Mediator, Observer, observers, sources
from .talk import Knowledge, Report, Wants


@dataclass
class Best(Mediator):
    """The agent that knows all sums; ``alternatives`` has the observers of each, in order."""

    alternatives: tuple[tuple[str, ...], ...] = ()
    present: int | None = None
    in_doubt: frozenset[int] = field(default_factory=frozenset)
    """Alternatives of which nobody knows whether they were told to be the best."""

    def sums(self) -> list[float]:
        """The sum of each alternative, from what was reported last."""
        found = []
        for names in self.alternatives:
            total = 0.0
            for name in names:
                total += self.known[name].value
            found.append(total)
        return found

    def _turned(self) -> Wants:
        sums = self.sums()
        if any(total != total for total in sums):
            return []
        least = min(sums)
        if self.present is not None and not least <= sums[self.present] - self.relation.by:
            return []
        best, before = sums.index(least), self.present
        self.present, self.turns = best, self.turns + 1
        told, self.in_doubt = self.in_doubt - {best}, frozenset()
        if before is not None and before != best:
            told |= {before}
        elif before == best:
            return []
        by, reading = self._latest()
        names = self.relation.names
        ends: Wants = [Report("egress", by, reading, sums[i], names[i]) for i in sorted(told)]
        return [*ends, Report("ingress", by, reading, least, names[best])]

    def _given(self) -> dict[str, float]:
        sums, present = self.sums(), self.present
        if present is None or any(total != total for total in sums):
            return dict.fromkeys(self.observers, 0.0)
        edge = sums[present] - self.relation.by
        rooms = {
            i: max(0.0, total - edge - 1e-9 * (abs(total) + abs(edge)))
            for i, total in enumerate(sums)
            if i != present
        }
        mine = min(rooms.values(), default=math.inf) / 2
        given = {present: min(mine, 1e300)} | {i: room - mine for i, room in rooms.items()}
        return {
            name: given[i] * (1 - KEPT) * self._part(name, names)
            for i, names in enumerate(self.alternatives)
            for name in names
        }

    def _from_cache(self, _sender: str) -> float | None:
        """What is kept of one alternative's room is not another's, so nothing is given without looking."""
        return None

    def knowledge(self) -> Knowledge:
        return Knowledge(self.turns, self.present, tuple(sorted(self.in_doubt)))

    def adopt(self, knowledge: Knowledge) -> None:
        self.turns, self.present = knowledge.turns, knowledge.bit
        self.in_doubt = frozenset(knowledge.doubted)

    def lost(self, other: str) -> Wants:
        self.renew(other)
        self.turns += 1
        was, self.present = self.present, None
        if was is None:
            return []
        self.in_doubt |= {was}
        return [Report("unknown", other, None, math.nan, self.relation.names[was])]

    def doubt(self) -> None:
        self.present, self.turns = None, self.turns + 1
        self.in_doubt = frozenset(range(len(self.alternatives)))


def best_of(
    relation: Relation, terms: tuple[tuple[Term, ...], ...], moves: Mapping[str, float] = NONE
) -> list[Observer | Mediator]:
    """One mediator, beside the first source, and an observer for each term of each alternative."""
    below = observers(tuple(chain.from_iterable(terms)))
    names = [one.name for one in below]
    ends = list(accumulate(map(len, terms)))
    named = tuple(tuple(names[end - len(some) : end]) for some, end in zip(terms, ends, strict=True))
    top, whose = below[0].mediator, sources(below)
    volatility = {name: moves[source] for name, source in whose.items() if source in moves}
    return [*below, Best(top, tuple(names), relation, volatility, alternatives=named, sources=whose)]
