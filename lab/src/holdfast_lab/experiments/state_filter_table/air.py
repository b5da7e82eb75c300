"""The two data sets for the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from .. import redwoods, stbernard
from ..series import MINUTE, Cleaned


class Air(NamedTuple):
    """A data set of temperatures, and explanations of its verdicts."""

    file: str
    read: Callable[[Path], Cleaned]
    fresh: int
    """The greatest age of a reading (µs) that is used at a time of the grid."""
    seed: int
    """The seed of the field; a full run uses the following seeds too."""
    why: Mapping[str, Mapping[bool | None, str]]
    """Explanations that depend on the readings, by claim and verdict."""

    @property
    def grid(self) -> str:
        return (
            "every 3 min the latest reading; where it is older than "
            f"{self.fresh // MINUTE} min it is carried on"
        )


PASS = Air(
    stbernard.FILE,
    stbernard.read,
    stbernard.FRESH,
    2006,
    {
        "source-pass-ratio": {
            False: "Two-minute readings of mountain air go to and fro across a threshold. SF tells each "
            "start and end; ECF is deaf for 30 min, so it is cheap because it says less."
        },
        "delivered": {
            False: "SF: readings that go to and fro. ECF: conditions held for less of the time, because "
            "10 °C is warm on the pass."
        },
        "shared-events": {
            False: "SF shares an event if one reading crosses the thresholds of two subscribers: they must "
            "be closer than the step between readings. ECF shares one if two validities end together, and "
            "filters that started apart stay apart."
        },
    },
)
CROWN = Air(
    redwoods.FILE,
    redwoods.read,
    redwoods.FRESH,
    2056,
    {
        "source-pass-ratio": {
            True: "Under trees it is warmer than 10 °C for hours on end, and the air seldom wavers: few "
            "starts and ends, and many events of ECF in each spell."
        },
        "delivered": {True: "ECF repeats itself in every half hour of long spells, from every sensor."},
        "shared-events": {
            True: "A step of five minutes crosses several thresholds at once, and filters that start "
            "together are deaf together, so ECF's events stay shared."
        },
    },
)
