"""Units of measurement. A quantity is compared after conversion, and never with one of another dimension.

A unit is a power product of base dimensions with a factor and, for temperatures, an offset: ``base value =
value * factor + offset``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from ..errors import did_you_mean

Dimension = tuple[tuple[str, int], ...]  # sorted (base, exponent), no zero exponents

NONE: Dimension = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement. Its factor and offset are exact, so that a conversion rounds once."""

    name: str
    dimension: Dimension
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)

    @property
    def difference(self) -> Unit:
        """The unit of a difference of two quantities: the same scale, without the offset."""
        return self if not self.offset else replace(self, name=f"Δ{self.name}", offset=Fraction(0))


_BASE: Mapping[str, Dimension] = {
    "number": NONE,
    "time": (("time", 1),),
    "length": (("length", 1),),
    "mass": (("mass", 1),),
    "volume": (("length", 3),),
    "density": (("length", -3), ("mass", 1)),
    "flow": (("length", 3), ("time", -1)),
    "speed": (("length", 1), ("time", -1)),
    "temperature": (("temperature", 1),),
    "pressure": (("length", -1), ("mass", 1), ("time", -2)),
    "angle": (("angle", 1),),
    "illuminance": (("illuminance", 1),),
    "level": (("level", 1),),
    "current": (("current", 1),),
    "voltage": (("current", -1), ("length", 2), ("mass", 1), ("time", -3)),
    "power": (("length", 2), ("mass", 1), ("time", -3)),
    "irradiance": (("mass", 1), ("time", -3)),
    "energy": (("length", 2), ("mass", 1), ("time", -2)),
    "frequency": (("time", -1),),
    "rate": (("bit", 1), ("time", -1)),
}

_TABLE = """
time         us µs μs       1/1000000
time         ms             1/1000
time         s sec          1
time         min            60
time         h hour hours   3600
time         d day days     86400
length       mm             1/1000
length       cm             1/100
length       m              1
length       km             1000
length       ft             0.3048
length       mi             1609.344
mass         g              1/1000
mass         kg             1
volume       L              1/1000
volume       m³ m3          1
density      µg/m³ μg/m³ µg/m3 μg/m3 ug/m3 1/1000000000
density      mg/m³ mg/m3    1/1000000
density      g/m³ g/m3      1/1000
density      kg/m³ kg/m3    1
flow         L/min l/min    1/60000
flow         L/s l/s        1/1000
flow         m³/h m3/h      1/3600
flow         m³/s m3/s      1
speed        m/s            1
speed        km/h kmh       5/18
speed        mph            0.44704
speed        kn             463/900
temperature  K              1
temperature  °C degC        1           273.15
temperature  °F degF        5/9         45967/180
pressure     Pa             1
pressure     hPa mbar       100
pressure     kPa            1000
pressure     bar            100000
number       %              1/100
number       ppm ppmv       1/1000000
number       ppb ppbv       1/1000000000
angle        deg °          1
illuminance  lx lux         1
level        dB             1
current      A              1
current      mA             1/1000
voltage      V              1
voltage      mV             1/1000
power        W              1
power        kW             1000
power        VA             1
power        kVA            1000
power        var            1
power        kvar           1000
irradiance   W/m2 W/m²      1
energy       J              1
energy       Wh             3600
energy       kWh            3600000
frequency    Hz             1
frequency    kHz            1000
frequency    rpm            1/60
rate         bit/s bps      1
rate         kbit/s         1000
rate         Mbit/s         1000000
rate         Gbit/s         1000000000
"""


def _read(row: str) -> list[tuple[str, Unit]]:
    base, *words = row.split()
    names = [word for word in words if not word[0].isdigit()]
    factor, offset = ([Fraction(word) for word in words if word[0].isdigit()] + [Fraction(0)])[:2]
    return [(name, Unit(names[0], _BASE[base], factor, offset)) for name in names]


UNITS: Mapping[str, Unit] = {name: unit for row in _TABLE.strip().splitlines() for name, unit in _read(row)}
"""Every unit by each of its names."""

_SPELLED = {
    "c": "°C", "celsius": "°C", "f": "°F", "fahrenheit": "°F", "kelvin": "K", "percent": "%", "degree": "deg",
    "second": "s", "minute": "min", "hr": "h", "meter": "m", "metre": "m", "kilometer": "km", "mile": "mi",
    "kilometre": "km", "foot": "ft", "feet": "ft", "gram": "g", "kilogram": "kg", "liter": "L", "litre": "L",
    "kph": "km/h", "knot": "kn", "pascal": "Pa", "volt": "V", "ampere": "A", "amp": "A", "watt": "W",
    "joule": "J", "hertz": "Hz", "decibel": "dB", "lpm": "L/min", "cmh": "m³/h", "rev/min": "rpm",
    "1/min": "rpm", "kbps": "kbit/s", "mbps": "Mbit/s", "gbps": "Gbit/s", "microg/m3": "µg/m³",
}  # fmt: skip
"""Other spellings of units."""


def nearest(name: str) -> str | None:
    """Return the hint ``Did you mean '°C'?`` for an unknown unit, or ``None`` if no unit is similar."""
    plain = name.casefold().replace("^", "")
    spelled = _SPELLED.get(plain) or _SPELLED.get(plain.removesuffix("s"))
    return f"Did you mean '{spelled}'?" if spelled else did_you_mean(plain, UNITS)


def product(a: Unit, b: Unit) -> Unit:
    """Return the unit of a product of two quantities."""
    return _combine(a, b, 1, "*")


def quotient(a: Unit, b: Unit) -> Unit:
    """Return the unit of a quotient of two quantities."""
    return _combine(a, b, -1, "/")


def _combine(a: Unit, b: Unit, sign: int, sign_name: str) -> Unit:
    powers = dict(a.dimension)
    for base, power in b.dimension:
        powers[base] = powers.get(base, 0) + sign * power
    dimension = tuple(sorted((base, power) for base, power in powers.items() if power))
    return Unit(f"{a.name}{sign_name}{b.name}", dimension, a.factor * b.factor**sign)


def convert(value: float, unit: Unit, to: Unit) -> float:
    """Convert a value from one unit to another of the same dimension.

    >>> convert(77, UNITS["°F"], UNITS["°C"])
    25.0
    """
    scale, shift = conversion(unit, to)
    return float(Fraction(value) * scale + shift) if value - value == 0 else value


def conversion(unit: Unit, to: Unit) -> tuple[Fraction, Fraction]:
    """Return the scale and the offset that convert a value in ``unit`` to ``to``."""
    assert unit.dimension == to.dimension
    return unit.factor / to.factor, (unit.offset - to.offset) / to.factor
