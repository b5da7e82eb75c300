"""The relations of two intervals of conditions to one another. [Allen 1983]

An interval begins and ends at instants. The intervals of a momentary condition have no length.
"""

from __future__ import annotations

from typing import Literal, get_args

Allen = Literal["overlapping", "overlaps", "during", "before", "starts", "ends"]
"""``overlapping`` holds while all conditions are active at once. The others are relations of two
intervals, known at one instant."""

ALLEN: tuple[Allen, ...] = get_args(Allen)

BETWEEN = ALLEN[1:]
"""The words between the names of two conditions."""
