"""How many must hold: a number, or a part of all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

Unknown = Literal["left", "kept", "spreads"]
"""A member that is unknown is left out, or kept as it last was, or the count is unknown where it decides."""
UNKNOWN: tuple[Unknown, ...] = get_args(Unknown)


@dataclass(frozen=True, slots=True)
class Share:
    """``2``, or with ``of_all`` a part of all."""

    amount: Fraction
    of_all: bool = False

    def needed(self, total: int) -> Fraction:
        """How many it is, of so many."""
        return self.amount * total if self.of_all else self.amount


@dataclass(frozen=True, slots=True)
class Quota:
    """A count holds from ``least`` members on, and until there are fewer than ``fewer``."""

    least: Share
    fewer: Share

    def holds(self, holding: bool, members: int, total: int) -> bool:
        """Whether it holds then, given whether it did."""
        needed = (self.fewer if holding else self.least).needed(total)
        return members > 0 and members >= needed
