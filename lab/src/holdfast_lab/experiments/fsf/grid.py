"""The measurements of an experiment: for each approach and number of subscriptions, one for each seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, stdev
from typing import NamedTuple


class FsfCell(NamedTuple):
    """One run: a seed, an approach, and a number of subscriptions."""

    seed: int
    approach: str
    subscriptions: int


class FsfMeasurement(NamedTuple):
    """The cost and the deliveries of one run."""

    subscription_load: int
    """Operators that crossed a link."""
    between_routers: int
    """The operators that crossed a link between two routers: they are whole."""
    publication_load: int
    """Events that crossed a link."""
    owed: int
    """Events that are due to subscriptions; an event that is due to two counts twice."""
    delivered: int
    """The number of due events that were delivered."""
    surplus: int
    """The number of events that were delivered without being due."""
    asked: int
    """How often an operator was compared with others on the same path."""
    covered: int
    """How often the others cover it."""
    undecided: int
    """How often exact filtering reached its bound; the operator is then sent."""
    missed: int = 0
    """How often set filtering by points found an operator covered although there is a gap."""

    @property
    def recall(self) -> float:
        return self.delivered / self.owed

    @property
    def cost(self) -> float:
        """Events over links for each due event that was delivered."""
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
        """Return the runs of one approach at one number of subscriptions, by seed."""
        cells = [c for c in sorted(self.runs) if (c.approach, c.subscriptions) == (approach, count)]
        return [self.runs[cell] for cell in cells]

    def mean(self, quantity: Quantity, approach: str, count: int) -> float:
        return fmean(map(quantity, self.of(approach, count)))

    def spread(self, quantity: Quantity, approach: str, count: int) -> float:
        """Return the standard deviation over seeds."""
        return stdev(map(quantity, self.of(approach, count)))

    def saving(self, quantity: Quantity, than: str, approach: str, count: int) -> float:
        """Return the share by which an approach is below the mean of another."""
        return 1 - self.mean(quantity, approach, count) / self.mean(quantity, than, count)


subscription_load: Quantity = attrgetter("subscription_load")
publication_load: Quantity = attrgetter("publication_load")
between_routers: Quantity = attrgetter("between_routers")
recall: Quantity = attrgetter("recall")
cost: Quantity = attrgetter("cost")


def in_stations(run: FsfMeasurement) -> float:
    return run.subscription_load - run.between_routers


def at_the_receiver(run: FsfMeasurement) -> float:
    """Return the operators over links if the receiver compares instead of the sender.

    A covered operator then crosses one link more. [Algorithm 4]
    """
    return run.subscription_load + run.covered


def missed_share(run: FsfMeasurement) -> float:
    """Return the share of the gaps in operators that set filtering did not find."""
    return run.missed / max(1, run.asked - run.covered + run.missed)


def covered_share(run: FsfMeasurement) -> float:
    """Return the share of the compared operators that others cover."""
    return run.covered / max(1, run.asked)


@dataclass(frozen=True)
class FsfExhibit:
    """The runs of an experiment, and those with other choices where the document leaves a choice open."""

    grid: Grid
    varied: Mapping[str, Grid]
