"""What was measured: for each approach and number of subscriptions, once for each seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, stdev
from typing import NamedTuple


class FsfCell(NamedTuple):
    """One run: whose draw, by which approach, with how many subscriptions."""

    seed: int
    approach: str
    subscriptions: int


class FsfMeasurement(NamedTuple):
    """What one run has cost and brought."""

    subscription_load: int
    """Operators that crossed a link."""
    between_routers: int
    """Those of them that crossed a link between two routers: they are whole."""
    publication_load: int
    """Events that crossed a link."""
    owed: int
    """Events that are due to subscriptions; one that is due to two counts twice."""
    delivered: int
    """How many of them have come."""
    surplus: int
    """What has come beyond them."""
    asked: int
    """How often an operator was compared with others that go the same way."""
    covered: int
    """How often they cover it."""
    undecided: int
    """How often exact filtering reached its bound; the operator is then sent."""
    missed: int = 0
    """How often set filtering by points said that they cover it, and they leave a gap."""

    @property
    def recall(self) -> float:
        return self.delivered / self.owed

    @property
    def cost(self) -> float:
        """Events over links for each event that was due and came."""
        return self.publication_load / self.delivered


Quantity = Callable[[FsfMeasurement], float]


@dataclass(frozen=True)
class Grid:
    """All runs of an experiment."""

    runs: Mapping[FsfCell, FsfMeasurement]

    @property
    def counts(self) -> list[int]:
        return sorted({cell.subscriptions for cell in self.runs})

    @property
    def approaches(self) -> list[str]:
        return list(dict.fromkeys(cell.approach for cell in self.runs))

    def of(self, approach: str, count: int) -> list[FsfMeasurement]:
        """One approach at one number of subscriptions, by seed."""
        return [
            found
            for cell, found in sorted(self.runs.items())
            if (cell.approach, cell.subscriptions) == (approach, count)
        ]

    def mean(self, quantity: Quantity, approach: str, count: int) -> float:
        return fmean(map(quantity, self.of(approach, count)))

    def spread(self, quantity: Quantity, approach: str, count: int) -> float:
        """The standard deviation over seeds."""
        return stdev(map(quantity, self.of(approach, count)))

    def saving(self, quantity: Quantity, than: str, approach: str, count: int) -> float:
        """By which part of the other's mean an approach is below it."""
        return 1 - self.mean(quantity, approach, count) / self.mean(quantity, than, count)


subscription_load: Quantity = attrgetter("subscription_load")
publication_load: Quantity = attrgetter("publication_load")
between_routers: Quantity = attrgetter("between_routers")
recall: Quantity = attrgetter("recall")
cost: Quantity = attrgetter("cost")


def in_stations(run: FsfMeasurement) -> float:
    return run.subscription_load - run.between_routers


def at_the_receiver(run: FsfMeasurement) -> float:
    """Operators over links if not the sender compares, but who receives: what is covered crosses one link
    more.  [Algorithm 4]"""
    return run.subscription_load + run.covered


def missed_share(run: FsfMeasurement) -> float:
    """Which part of the gaps that others leave in an operator set filtering has not seen."""
    return run.missed / max(1, run.asked - run.covered + run.missed)


def covered_share(run: FsfMeasurement) -> float:
    """Which part of the operators that were compared others cover."""
    return run.covered / max(1, run.asked)


@dataclass(frozen=True)
class FsfExhibit:
    """The runs of an experiment, and those with other choices of what the document leaves open."""

    grid: Grid
    varied: Mapping[str, Grid]
