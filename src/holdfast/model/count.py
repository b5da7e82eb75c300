"""Thresholds of counts: the number of members that must be active, or a share of all members."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

Unknown = Literal["left", "kept", "spreads"]
"""How a count treats unknown members: leaves them out, keeps their last state, or becomes unknown where
they decide."""
UNKNOWN: tuple[Unknown, ...] = get_args(Unknown)


@dataclass(frozen=True, slots=True)
class CountShare:
    """A number of members such as ``2``, or, with ``of_all``, a share of all members."""

    amount: Fraction
    of_all: bool = False

    def count_of(self, total: int) -> Fraction:
        """Return the number of members that this stands for, out of ``total``."""
        return self.amount * total if self.of_all else self.amount


@dataclass(frozen=True, slots=True)
class Quota:
    """The thresholds of a count: it starts at ``least`` members and ends below ``fewer``."""

    least: CountShare
    fewer: CountShare

    def holds(self, holding: bool, members: int, total: int) -> bool:
        """Whether the count is active, given the number of active members.

        ``holding`` is whether it was active before.
        """
        needed = (self.fewer if holding else self.least).count_of(total)
        return members > 0 and members >= needed
