"""Quantities as a scenario writes them: a number and its unit, ``2 s``, ``14 m``, ``-10 dBm``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ...model.instant import SECOND
from ...model.unit import UNITS


class Span(int):
    """A duration in whole microseconds."""


class Metres(float):
    """A length."""


class Joules(float):
    """An energy."""


class Decibels(float):
    """A ratio of powers."""


class Dbm(float):
    """A power, in decibels above a milliwatt."""


class Ppm(float):
    """Parts per million."""


_KINDS: Mapping[type, tuple[str, str, Mapping[str, Fraction]]] = {
    Span: (
        "a duration",
        "2 s",
        {name: u.factor for name, u in UNITS.items() if u.dimension == UNITS["s"].dimension},
    ),
    Metres: (
        "a length",
        "14 m",
        {name: u.factor for name, u in UNITS.items() if u.dimension == UNITS["m"].dimension},
    ),
    Joules: (
        "an energy",
        "1 J",
        {name: u.factor for name, u in UNITS.items() if u.dimension == UNITS["J"].dimension}
        | {"mJ": Fraction(1, 1000), "kJ": Fraction(1000)},
    ),
    Decibels: ("decibels", "4 dB", {"dB": Fraction(1)}),
    Dbm: ("a power", "0 dBm", {"dBm": Fraction(1)}),
    Ppm: ("a share of a million", "50 ppm", {"ppm": Fraction(1)}),
}
"""What each kind is called, how it may look, and its units in our own."""

LARGEST = 1e12
"""Seconds, metres or joules that anything may have."""

_WRITTEN = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\s\d].*?)?\s*")


def quantity(kind: type, given: Any) -> Any:
    """What was written, as the kind of quantity that is wanted here; the ``dec_hook`` of a scenario.

    >>> quantity(Span, "1.5 min"), quantity(Dbm, "-10 dBm")
    (90000000, -10.0)
    >>> quantity(Span, 2)
    Traceback (most recent call last):
    ValueError: expected a duration with its unit, such as '2 s'; got 2
    """
    name, example, units = _KINDS[kind]
    found = _WRITTEN.fullmatch(given) if isinstance(given, str) else None
    if found is None or found[2] not in units:
        known = "" if found is None or found[2] is None else f"; units are {', '.join(units)}"
        raise ValueError(f"expected {name} with its unit, such as '{example}'; got {_said(given)}{known}")
    value = float(found[1]) * float(units[found[2]])
    if not abs(value) <= LARGEST:
        raise ValueError(f"{given} is too large")
    return kind(round(value * SECOND)) if kind is Span else kind(value)


def _said(given: Any) -> str:
    return f"'{given}'" if isinstance(given, str) else "nothing" if given is None else str(given)
