"""How the stretches lie to one another in which conditions hold.  [Allen 1983]

A stretch begins and ends at instants; a momentary condition has stretches without length.
"""

from __future__ import annotations

from typing import Literal, get_args

Allen = Literal["overlapping", "overlaps", "during", "before", "starts", "ends"]
"""``overlapping``: all hold at once, which lasts; the others are Allen's, of two, and known at one moment."""

ALLEN: tuple[Allen, ...] = get_args(Allen)

BETWEEN = ALLEN[1:]
"""What stands between the names of two conditions."""
