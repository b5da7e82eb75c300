"""Quantities with units in files: ``2 s``, ``14 m``, ``-10 dBm``.

In Python an annotated field of a frozen value is a plain number in the base unit. A file states the unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from .unit import UNITS

LARGEST = 1e12
"""The largest quantity that is accepted, in seconds, metres or joules."""

_WRITTEN = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\s\d].*?)?\s*")


@dataclass(frozen=True, eq=False)
class Quantity:
    """A kind of quantity: its name, an example, and its units as multiples of the first one.

    If ``whole`` is given, values are integers: so many parts of the base unit. ``suffix`` is the ending of
    field names that states the unit.
    """

    called: str
    example: str
    units: Mapping[str, Fraction]
    whole: int | None = None
    suffix: str = ""

    def read(self, given: Any) -> float:
        """Parse a quantity to a number in the base unit.

        >>> DURATION.read("1.5 min"), POWER.read("-10 dBm")
        (90000000, -10.0)
        >>> DURATION.read(2)
        Traceback (most recent call last):
        ValueError: expected a duration with its unit, such as '2 s'; got 2
        """
        found = _WRITTEN.fullmatch(given) if isinstance(given, str) else None
        if found is None or found[2] not in self.units:
            known = "" if found is None or found[2] is None else f"; units are {', '.join(self.units)}"
            raise ValueError(f"expected {self.expectation}; got {_describe(given)}{known}")
        value = float(found[1]) * float(self.units[found[2]])
        if not abs(value) <= LARGEST:
            raise ValueError(f"{given} is too large")
        return value if self.whole is None else round(value * self.whole)

    @property
    def expectation(self) -> str:
        """A description of the expected input, for error messages."""
        return f"{self.called} with its unit, such as '{self.example}'"


def _describe(given: Any) -> str:
    return f"'{given}'" if isinstance(given, str) else "nothing" if given is None else str(given)


def _of(unit: str) -> dict[str, Fraction]:
    return {name: u.factor for name, u in UNITS.items() if u.dimension == UNITS[unit].dimension}


DURATION = Quantity("a duration", "2 s", _of("s"), whole=1_000_000)
LENGTH = Quantity("a length", "14 m", _of("m"), suffix="_m")
ENERGY = Quantity("an energy", "1 J", _of("J") | {"mJ": Fraction(1, 1000), "kJ": Fraction(1000)})
RATIO = Quantity("decibels", "4 dB", {"dB": Fraction(1)}, suffix="_db")
POWER = Quantity("a power", "0 dBm", {"dBm": Fraction(1)})
SHARE = Quantity("a share of a million", "50 ppm", {"ppm": Fraction(1)})

Metres = Annotated[float, LENGTH]
Joules = Annotated[float, ENERGY]
Decibels = Annotated[float, RATIO]
Dbm = Annotated[float, POWER]
Ppm = Annotated[float, SHARE]
